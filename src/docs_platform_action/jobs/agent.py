"""Agent mode: wait for an AI agent's job."""

from ..context import Context
from ..errors import JobFailed, NoPullRequest
from ..inputs.settings import AgentSettings
from ..job import Job
from ..models import AgentJob


def wait_for_agent(job: Job, settings: AgentSettings, context: Context) -> None:
    """Wait for one agent job; what becomes known is in the job at once. Raises the `ActionError` that the job failed with."""
    context.events.job_known(job)
    from .polling import poll  # the runner imports this module for exports too, whose start request must not wait for it

    poll(job, settings.waiting, context)
    if job.status == AgentJob.FAILED:
        raise JobFailed(
            "the agent failed",
            cause="The agent hit an error that it could not recover from. The API gives no reason.",
            remedy="Read the agent's session on the platform, then start a new agent job.",
        )
    if job.status == AgentJob.ARCHIVED:
        context.events.warning(
            job,
            [
                f"{job.subject} was archived",
                "Someone, or the platform, archived the job; what it did until then remains.",
                "If its work is still wanted, start a new agent job.",
            ],
        )
    if job.pr_link is None and settings.require_pr:
        raise NoPullRequest("it ended without a pull request")
