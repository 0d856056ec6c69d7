"""Waits for an AI agent's job."""

from ..context import Context
from ..errors import JobFailed, NoPullRequest
from ..inputs.settings import JobSettings
from ..job import Job
from ..models import AgentJob
from .polling import poll


def wait_for_agent(job: Job, settings: JobSettings, context: Context) -> None:
    """Wait for one agent job, and record each reading in the job. Raises the `ActionError` that the job failed with."""
    poll(job, settings.waiting, context)
    if job.status == AgentJob.FAILED:
        raise JobFailed(
            "the agent failed",
            details=("The API gave no reason.",),
            remedy="Read the agent's session on the platform, then start a new agent job.",
        )
    if job.status == AgentJob.ARCHIVED:
        remains = "A user or the platform archived the job. The changes that it made before remain."
        lines = [
            f"{job.subject} was archived",
            remains,
            "If its work is still needed, start a new agent job.",
        ]
        context.events.warning(job, lines)
    if isinstance(job.reading, AgentJob) and (unusable := job.reading.unusable_pr_link):
        problem = f"The API's `prLink` is not an http or https address: '{unusable}'."
        if settings.require_pr:
            raise NoPullRequest(
                "the link to its pull request cannot be used", details=(problem,), cause=""
            )
        context.events.warning(
            job, [f"{job.subject}: the link to its pull request cannot be used.", problem]
        )
    elif job.pr_link is None and settings.require_pr:
        raise NoPullRequest("it ended without a pull request")
