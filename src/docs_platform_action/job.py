"""What is known of one job."""

import math
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from .errors import ActionError, Cancelled, InvalidInput
from .models import UNUSABLE, AgentJob, Bundle, Downloaded, ExportJob
from .text import format_clock

if TYPE_CHECKING:
    from .http.transport import Request
    from .jobs.progress import DisplayedEstimate

DONE: Final = "done"
STARTED: Final = "started"  # with `wait: false`
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"
NOT_STARTED: Final = "not started"
VERDICTS: Final = (DONE, STARTED, FAILED, CANCELLED, NOT_STARTED)  # in the order in which they are counted

MAX_PHASES: Final = 100  # while the status changes between queued and others; the timeline shows a few, the longest

QUEUE: Final = "queue"
RUN: Final = "run"
BUNDLE: Final = "bundle"
DOWNLOAD: Final = "download"
UNPACK: Final = "unpack"

MIN_LINK_SECONDS: Final = 60.0  # that a link must remain valid at the end of the run, so that later steps can use it


def inputs_to_collect(job_id: str | None) -> str:
    """Return the inputs with which a later run collects an export."""
    return f"mode: collect, job-id: {job_id}"


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A phase of a job, which is the current one until it has an `ended_at`. Both times are on the clock's `monotonic`."""

    name: str
    began_at: float
    ended_at: float | None = None


@dataclass(kw_only=True, eq=False)
class Job:
    """One job of the run. Unknown values are `None`, paths are as later steps see them, times are on the clock's `monotonic`."""

    mode: str | None
    domain: str | None = None
    project_id: str | None = None
    job_id: str | None = None
    masks_bundle_url: bool = False
    status: str | None = None
    progress: float | None = None
    page_count: int | None = None  # of the completed job
    pages_so_far: int | None = None  # the last count of any reading
    bundle: Bundle | None = None
    has_short_link: bool = False  # also after a new one was made
    downloaded: Downloaded | None = None
    bundle_path: str | None = None
    site_path: str | None = None
    site_files: int | None = None
    values_file: str | None = None
    export_job: ExportJob | None = None
    agent_job: AgentJob | None = None
    estimate: "DisplayedEstimate | None" = None
    last_read_at: float | None = None
    failure: ActionError | None = None
    start_request: "Request | None" = None
    started_at: float | None = None  # when this run started the job at the platform
    began_at: float | None = None  # when the run began to work on it
    ended_at: float | None = None
    phases: list[Phase] = field(default_factory=list)

    def start_phase(self, name: str, now: float) -> None:
        """Begin a phase and end the previous one, unless the job is in this phase already."""
        if not self.phases or self.phases[-1].name != name:
            self.end_phase(now)
            self.phases.append(Phase(name=name, began_at=now))

    def end_phase(self, now: float) -> None:
        """End the current phase, if there is one."""
        if self.phases and self.phases[-1].ended_at is None:
            self.phases[-1] = replace(self.phases[-1], ended_at=now)

    @property
    def is_agent_job(self) -> bool:
        """Whether this is an agent's job, and not an export."""
        return self.mode == "agent"

    @property
    def inputs_to_collect(self) -> str:
        """The inputs with which a later run continues with the job."""
        agent_job = f"mode: agent, project-id: {self.project_id}, job-id: {self.job_id}"
        return agent_job if self.is_agent_job else inputs_to_collect(self.job_id)

    @property
    def was_started_here(self) -> bool:
        """Whether this run started the job."""
        return self.started_at is not None

    @property
    def subject(self) -> str:
        """The job's name for people, which begins a sentence."""
        if self.is_agent_job:
            return f"Agent job {self.job_id} of project {self.project_id}" if self.job_id else "Agent job"
        if self.domain is not None:
            return f"Export of {self.domain}"
        return f"Export job {self.job_id}" if self.job_id else "Static export"

    @property
    def title(self) -> str:
        """The job's name above its log and its summary."""
        if self.is_agent_job:
            return self.subject
        return f"Static export of {self.domain}" if self.domain else "Static export"

    def headline(self, error: ActionError) -> str:
        """Return what failed and how, in one sentence."""
        is_about_an_input = isinstance(error, InvalidInput) or error.summary.startswith("`base-url`")
        return error.summary if is_about_an_input else f"{self.subject}: {error.summary}"

    @property
    def is_under_way(self) -> bool:
        """Whether the platform is working on the job, as far as this run knows: it takes room there."""
        return self.job_id is not None and self.ended_at is None and not self.has_ended

    @property
    def is_delivering(self) -> bool:
        """Whether the job's files are being written."""
        return bool(self.phases) and self.phases[-1].name in {DOWNLOAD, UNPACK} and self.phases[-1].ended_at is None

    @property
    def verdict(self) -> str:
        """One of the `VERDICTS`."""
        if self.failure is None:
            if self.was_started_here and self.bundle is None:
                return STARTED
            return DONE if self.job_id is not None or self.ended_at is not None else NOT_STARTED
        if self.began_at is None and not isinstance(self.failure, InvalidInput):
            return NOT_STARTED
        return CANCELLED if isinstance(self.failure, Cancelled) else FAILED

    @property
    def has_ended(self) -> bool:
        """Whether the job's last known status is final."""
        kind = AgentJob if self.is_agent_job else ExportJob
        return self.status is not None and kind(status=self.status).has_ended

    @property
    def pr_link(self) -> str | None:
        """The pull request of an agent job that completed or was archived."""
        job = self.agent_job
        return job.pr_link if job is not None and job.status in {AgentJob.COMPLETED, AgentJob.ARCHIVED} else None

    @property
    def is_start_unconfirmed(self) -> bool:
        """Whether the platform may have processed a start request that got no response."""
        return self.start_request is not None and self.start_request.maybe_processed

    def link_seconds(self, now: datetime) -> float:
        """Return how long the link remains valid, at most 0 if it has expired; infinite if that is unknown."""
        expires = self.bundle.expires if self.bundle is not None else None
        return (expires - now).total_seconds() if expires is not None else math.inf

    def update_export(self, reading: ExportJob, now: float) -> None:
        """Record a reading of the export job."""
        self.export_job = reading
        self.status = reading.status
        self.progress = reading.progress
        self.page_count = reading.page_count if reading.status == ExportJob.COMPLETED else None
        self.pages_so_far = self.pages_so_far if reading.page_count is None else reading.page_count
        # the first phase began with the polling, and a phase of which only the end was seen began after the previous reading
        since = self.last_read_at if self.last_read_at is not None and (reading.has_ended or not self.phases) else now
        if len(self.phases) < MAX_PHASES:
            self.start_phase(QUEUE if reading.status == ExportJob.QUEUED else RUN, since)
        self.last_read_at = now

    def update_agent(self, reading: AgentJob) -> None:
        """Record a reading of the agent job."""
        self.status = reading.status
        self.agent_job = reading

    def duration_seconds(self, now: float) -> float:
        """Return how long the run has worked on this job."""
        if self.began_at is None:
            return 0.0
        return (now if self.ended_at is None else self.ended_at) - self.began_at

    def cancel(self, signal_name: str, now: float) -> None:
        """End the job because of a signal."""
        in_flight = "A start request was in flight; check the dashboard to see whether the export is running."
        when = f"after {format_clock(self.duration_seconds(now))}" if self.began_at is not None else "before it started"
        self.failure = Cancelled(
            f"cancelled {when}",
            details=(in_flight,) if self.is_start_unconfirmed else (),
            cause=f"The action received {signal_name}. {Cancelled.default_cause}",
        )
        self.ended_at = now
        self.end_phase(now)

    def result(self, now: float) -> dict[str, object]:
        """Return the job's object in the output `results`, with every key. Unknown values are `None`."""
        failure, downloaded, agent_job = self.failure, self.downloaded, self.agent_job
        bundle = self.bundle if failure is None else None
        message = ". ".join(filter(None, (self.headline(failure), " ".join(failure.details)))) if failure else None
        known: dict[str, object] = {
            "mode": self.mode,
            "domain": self.domain,
            "projectId": self.project_id,
            "jobId": self.job_id,
            "status": self.status,
            "bundleUrl": bundle.url if bundle else None,
            "expiresAt": bundle.expires_at if bundle else None,
            "pageCount": self.page_count,
            "bundlePath": self.bundle_path,
            "bundleSize": downloaded.size if downloaded else None,
            "bundleSha256": downloaded.sha256 if downloaded else None,
            "sitePath": self.site_path,
            "valuesFile": self.values_file,
            "prLink": self.pr_link,
            "repository": agent_job.repository if agent_job else None,
            "ref": agent_job.ref if agent_job else None,
            "model": agent_job.model if agent_job else None,
            "createdAt": agent_job.created_at if agent_job else None,
            "archivedAt": agent_job.archived_at if agent_job else None,
            "durationSeconds": int(self.duration_seconds(now)),
            "failureReason": failure.failure_reason if failure else None,
            "message": message,
        }
        # a line break would let a server write a command to a workflow that prints the value
        return {name: UNUSABLE.sub(" ", value) if isinstance(value, str) else value for name, value in known.items()}
