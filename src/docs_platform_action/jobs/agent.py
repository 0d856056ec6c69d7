"""Agent mode: wait for an AI agent's job and hand over its pull request."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ..api.admin_api import AdminApi
from ..clock import Clock
from ..errors import JobFailed, NoPullRequest
from ..inputs.settings import AgentSettings
from ..job import Job
from ..models import AgentJob
from ..report.job_log import JobLog

if TYPE_CHECKING:
    from .polling import Reading

KNOWN_STATUSES: Final = ("active", AgentJob.COMPLETED, AgentJob.ARCHIVED, AgentJob.FAILED)


def wait_for_agent(
    settings: AgentSettings,
    *,
    api: AdminApi,
    clock: Clock,
    record: Job,
    log: JobLog,
    on_job_known: Callable[[str], None],
    warn: Callable[[list[str]], None],
) -> None:
    """Wait for one agent job; what becomes known goes into the record at once.

    `warn` gets what is no failure but should be seen. Raises the `ActionError` that the job failed with.
    """
    from .timeout import wait_within_timeout

    def on_reading(reading: "Reading[AgentJob]") -> None:
        record.note_agent_job(reading.job)
        log.reading()

    log.title(f"Agent job {settings.job_id} of project {settings.project_id}")
    on_job_known(settings.job_id)
    log.waiting()
    job = wait_within_timeout(
        lambda deadline: api.read_agent_job(settings.project_id, settings.job_id, deadline=deadline),
        settings.waiting,
        clock=clock,
        record=record,
        on_reading=on_reading,
    )
    _judge(job, settings, record, log, warn)


def _judge(job: AgentJob, settings: AgentSettings, record: Job, log: JobLog, warn: Callable[[list[str]], None]) -> None:
    if job.status == AgentJob.FAILED:
        raise JobFailed(
            "the agent failed",
            cause="The agent hit an error that it could not recover from. The API gives no reason.",
            remedy="Read the agent's session on the platform, then start a new agent job.",
        )
    if job.status == AgentJob.ARCHIVED:
        warn(
            [
                f"{record.subject} was archived",
                "Somebody, or the platform, put the job aside; what it did until then stands.",
                "If its work is still wanted, start a new agent job.",
            ]
        )
    if record.pr_link is None and settings.require_pr:
        raise NoPullRequest("it ended without a pull request")
    log.note(f"Pull request: {record.pr_link}" if record.pr_link else "No pull request.")
