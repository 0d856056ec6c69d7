"""Mode `agent`: waits for an AI agent's job."""

from collections.abc import Mapping
from typing import ClassVar, Final

from ..context import PlatformContext
from ..errors import JobFailed, NoPullRequest
from ..inputs.settings import AgentSettings
from ..job import Job, Kind
from ..models import AgentJob
from ..text import as_sentence
from .polling import poll, take_over
from .task import Batch, Task


class Agent(Kind):
    """A job of an AI agent."""

    mode = "agent"
    name = "Agent job"
    noun = "agent job"
    later_mode = "agent"
    later_verb = "wait for"
    makes_pull_request = True
    facts: ClassVar[Mapping[str, str]] = {
        "Repository": "repository",
        "Branch": "ref",
        "Model": "model",
    }

    def site(self, job: Job) -> str | None:
        return job.domain

    def subject(self, job: Job) -> str:
        if not job.job_id:
            return self.name
        return f"{self.name} {job.job_id} of project {job.project_id}"

    def heading(self, job: Job) -> tuple[str, str]:
        return self.name, job.job_id or ""

    def pr_link(self, job: Job) -> str | None:
        reading = job.reading
        if not isinstance(reading, AgentJob):
            return None
        if reading.status not in {AgentJob.COMPLETED, AgentJob.ARCHIVED}:
            return None
        return reading.pr_link

    def fields(self, job: Job) -> Mapping[str, object]:
        reading = job.reading
        if not isinstance(reading, AgentJob):
            return {}
        return {
            "prLink": job.pr_link,
            "repository": reading.repository,
            "ref": reading.ref,
            "model": reading.model,
            "createdAt": reading.created_at,
            "archivedAt": reading.archived_at,
        }


def wait_until_ended(job: Job, settings: AgentSettings, context: PlatformContext) -> None:
    """Wait for the agent's job, and check how it ended."""
    reading = poll(job, settings.waiting, context, context.platform.read_agent_job)
    if reading.status == AgentJob.FAILED:
        raise JobFailed(
            "the agent failed",
            details=(_reason_of(reading),),
            remedy="Read the agent's session on the platform, then start a new agent job.",
        )
    if reading.status == AgentJob.ARCHIVED:
        _warn_of_archived(job, context)
    if reading.unusable_pr_link is not None:
        fact = f"The API's `prLink` is not an http or https address: '{reading.unusable_pr_link}'."
        problem = "the link to its pull request cannot be used"
        if settings.require_pr:
            raise NoPullRequest(problem, details=(fact,), cause="")
        context.listener.warning(job, [f"{job.subject}: {problem}.", fact])
    elif job.pr_link is None and settings.require_pr:
        raise NoPullRequest("it ended without a pull request")


def _reason_of(reading: AgentJob) -> str:
    if reading.error is None:
        return "The API gave no reason."
    return as_sentence(f'The API said: "{reading.error}"')


def _warn_of_archived(job: Job, context: PlatformContext) -> None:
    lines = [
        f"{job.subject} was archived",
        "A user or the platform archived the job. The changes that it made before remain.",
        "If its work is still needed, start a new agent job.",
    ]
    context.listener.warning(job, lines)


AGENT: Final = Agent()
STEPS: Final = (take_over, wait_until_ended)


def batch(settings: AgentSettings) -> Batch:
    """Return the one task of the mode."""
    job = Job(kind=AGENT, project_id=settings.project_id, job_id=settings.job_id)
    return Batch(
        tasks=[Task(job=job, settings=settings, steps=STEPS)],
        platform=settings.platform,
    )
