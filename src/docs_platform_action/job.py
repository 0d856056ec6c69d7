"""What is known of one job."""

import math
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Protocol

from .errors import ActionError, Cancelled, InvalidInput, NoRoom
from .models import AgentJob, Archive, BundleLink, Changes, Deployment, ExportJob
from .text import UNUSABLE, format_clock

DONE: Final = "done"
STARTED: Final = "started"  # with `wait: false`
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"
NOT_STARTED: Final = "not started"
VERDICTS: Final = (DONE, STARTED, FAILED, CANCELLED, NOT_STARTED)  # in the order of the summary

DEPLOYMENT: Final = "deployed"
ROOM: Final = "waited for room"
QUEUE: Final = "queued"
RUN: Final = "exported"
BUNDLE: Final = "packed"
DOWNLOAD: Final = "downloaded"
VERIFICATION: Final = "verified"
UNPACK: Final = "unpacked"

# that a link must remain valid at the end of the run, so that later steps can use it
MIN_LINK_SECONDS: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A phase of a job, which is the current one until it has an `ended_at`.

    Both times are on the clock's `monotonic`.
    """

    name: str
    began_at: float
    ended_at: float | None = None

    def seconds(self, now: float) -> float:
        """Return how long the phase has taken."""
        ended_at = now if self.ended_at is None else self.ended_at
        return ended_at - self.began_at


@dataclass(frozen=True, kw_only=True)
class RoomWait:
    """A start's wait for room at the platform, with its last refusal.

    Times are on the clock's `monotonic`: `until` is when the last attempt is made.
    """

    refusal: NoRoom
    refusals: int
    since: float
    next_at: float = math.inf
    until: float = math.inf
    is_over: bool = False  # the last attempt was refused, too


@dataclass(frozen=True, kw_only=True)
class Delivered:
    """What is delivered of a bundle so far. Paths are as later steps see them."""

    archive: Archive | None = None
    bundle_path: str | None = None
    site_path: str | None = None
    site_files: int | None = None
    values_file: str | None = None
    manifest_path: str | None = None
    site_sha256: str | None = None
    changes: Changes | None = None
    changes_path: str | None = None


class StartAttempt(Protocol):
    """A request that starts a job."""

    @property
    def was_sent(self) -> bool:
        """Whether the platform may have received it."""


@dataclass(kw_only=True, eq=False)
class Job:
    """One job of the run. Unknown values are `None`, times are on the clock's `monotonic`.

    `domain` is what people call the site: its domain, or the label of its project.
    With a `project_id`, the API names a project.

    `reading`, `link`, `delivered` and `room` are replaced whole, so any thread may read them.
    """

    mode: str | None
    domain: str | None = None
    project_id: str | None = None
    job_id: str | None = None
    masks_bundle_url: bool = False
    deployed: Deployment | None = None  # what the platform served when the export was started
    deployed_later: Deployment | None = None  # what it served at the end, if that is another one
    reading: ExportJob | AgentJob | None = None  # the last one
    link: BundleLink | None = None
    has_short_link: bool = False  # also after a new one was made
    delivered: Delivered = Delivered()
    room: RoomWait | None = None  # also after the start was accepted
    failure: ActionError | None = None
    start_attempt: StartAttempt | None = None  # whose outcome is not known
    started_at: float | None = None  # when this run started the job on the platform
    began_at: float | None = None  # when the run began to work on it
    last_read_at: float | None = None
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

    def is_in(self, *phases: str) -> bool:
        """Return whether the job's current phase is one of these."""
        if not self.phases:
            return False
        last = self.phases[-1]
        return last.ended_at is None and last.name in phases

    def outcome_of(self, phase: Phase) -> str:
        """Return the name of a phase, or how the job ended in it."""
        is_last = phase is self.phases[-1]
        is_wait = phase.name in {QUEUE, ROOM}  # took this long, however it ended
        is_exported = phase.name == RUN and self.status == ExportJob.COMPLETED
        if self.failure is None or not is_last or is_wait or is_exported:
            return phase.name
        return f"{self.verdict} after"

    def record_start(self, job_id: str, status: str | None, now: float) -> None:
        """Record that this run started the job on the platform."""
        self.started_at = now
        self.end_phase(now)
        if status is not None:
            self.reading = ExportJob(status=status)
        self.job_id = job_id  # last: any thread that sees the id sees the rest, too

    def record(self, reading: ExportJob | AgentJob, now: float) -> None:
        """Record a reading of the job."""
        self.reading = reading
        if isinstance(reading, ExportJob):
            phase = QUEUE if reading.status == ExportJob.QUEUED else RUN
            self.start_phase(phase, self._phase_began_at(reading, now))
        self.last_read_at = now

    def _phase_began_at(self, reading: ExportJob, now: float) -> float:
        """Return when the phase of a new reading began, as far as it is known."""
        began_at: float | None = now
        if self.last_read_at is None:
            began_at = self.waiting_since  # the first phase began with the wait
        elif reading.has_ended:
            began_at = self.last_read_at  # only its end was seen
        return now if began_at is None else began_at

    @property
    def status(self) -> str | None:
        """The last status that the API reported."""
        if self.reading is None:
            return None
        return self.reading.status

    @property
    def progress(self) -> float | None:
        """The last reading's percentage. What a queued job reports is not its own progress."""
        if not isinstance(self.reading, ExportJob) or self.reading.status == ExportJob.QUEUED:
            return None
        return self.reading.progress

    @property
    def reported_pages(self) -> int | None:
        """The last reading's page count, also while the job is running."""
        if not isinstance(self.reading, ExportJob):
            return None
        return self.reading.page_count

    @property
    def page_count(self) -> int | None:
        """The page count of the completed job."""
        if self.status != ExportJob.COMPLETED:
            return None
        return self.reported_pages

    @property
    def has_ended(self) -> bool:
        """Whether the job's last known status is final."""
        return self.reading is not None and self.reading.has_ended

    @property
    def has_known_status(self) -> bool:
        """Whether the job's status is unread, or one that the API's description has."""
        return self.reading is None or self.reading.status in self.reading.KNOWN_STATUSES

    @property
    def pr_link(self) -> str | None:
        """The pull request of an agent job that completed or was archived."""
        is_done = self.status in {AgentJob.COMPLETED, AgentJob.ARCHIVED}
        if not isinstance(self.reading, AgentJob) or not is_done:
            return None
        return self.reading.pr_link

    @property
    def is_agent_job(self) -> bool:
        """Whether this is an agent's job, and not an export."""
        return self.mode == "agent"

    @property
    def is_bundle_file(self) -> bool:
        """Whether this is a bundle that is a file here already, and not a job of the platform."""
        return self.mode == "unpack"

    @property
    def kind(self) -> str:
        """What the job is, for people."""
        if self.is_agent_job:
            return "Agent job"
        if self.is_bundle_file:
            return "Bundle"
        return "Static export"

    @property
    def site(self) -> str | None:
        """What people call the site of an export or a bundle."""
        if self.domain is not None or self.project_id is None or self.is_agent_job:
            return self.domain
        return f"project {self.project_id}"

    @property
    def inputs_to_collect(self) -> str:
        """The inputs with which a later run continues with the job."""
        return self.inputs_to_collect_as(self.job_id)

    def inputs_to_collect_as(self, job_id: str | None) -> str:
        """Return the inputs with which a later run continues with a job of the same project."""
        inputs = ["mode: agent" if self.is_agent_job else "mode: collect"]
        if self.project_id is not None:
            inputs.append(f"project-id: {self.project_id}")
        inputs.append(f"job-id: {job_id}")
        return ", ".join(inputs)

    @property
    def was_started_here(self) -> bool:
        """Whether this run started the job."""
        return self.started_at is not None

    @property
    def waiting_since(self) -> float | None:
        """When the run started the job, or began to wait for it."""
        return self.started_at if self.started_at is not None else self.began_at

    @property
    def subject(self) -> str:
        """The job's name for people, which begins a sentence."""
        if self.is_agent_job:
            if not self.job_id:
                return self.kind
            return f"Agent job {self.job_id} of project {self.project_id}"
        if self.site is not None:
            noun = "Bundle" if self.is_bundle_file else "Export"
            return f"{noun} of {self.site}"
        if self.job_id:
            return f"Export job {self.job_id}"
        return self.kind

    @property
    def title(self) -> str:
        """The job's name above its log and its summary."""
        if self.site is None:
            return self.subject
        return f"{self.kind} of {self.site}"

    def headline(self, error: ActionError) -> str:
        """Return what failed and how, in one sentence."""
        if isinstance(error, InvalidInput) or error.summary.startswith("`base-url`"):
            return error.summary  # is about an input, and not about the job
        return f"{self.subject}: {error.summary}"

    @property
    def lack_of_room(self) -> str:
        """What its refused start waits for, in a clause."""
        if self.room is None:
            return ""
        refusal = self.room.refusal
        if refusal.status == NoRoom.LIMIT:
            return "the platform allows no more starts for now (429)"
        reason = f"another export of {self.site} is running"
        if refusal.own_site is not None:
            reason = f"the platform is exporting the same deployment for {refusal.own_site}"
        if refusal.running_job_id is not None:
            reason += f" (job {refusal.running_job_id})"
        return reason

    @property
    def how_to_collect_other(self) -> str:
        """How to use the export that keeps this one from starting, unless it is this run's own."""
        room = self.room
        if room is None or room.refusal.status == NoRoom.LIMIT:
            return ""
        if room.refusal.own_site is not None:
            return ""
        running = room.refusal.running_job_id
        if running is None:
            inputs = self.inputs_to_collect_as("ID")
            return f"To use that export, collect it with `{inputs}` (the dashboard shows the ID)."
        return f"To use that export, collect it with `{self.inputs_to_collect_as(running)}`."

    @property
    def verdict(self) -> str:
        """One of the `VERDICTS`."""
        if self.failure is None:
            return self._verdict_without_failure
        if self.began_at is None and not isinstance(self.failure, InvalidInput):
            return NOT_STARTED
        if isinstance(self.failure, Cancelled):
            return CANCELLED
        return FAILED

    @property
    def _verdict_without_failure(self) -> str:
        if self.was_started_here and self.link is None:
            return STARTED
        if self.job_id is None and self.ended_at is None:
            return NOT_STARTED
        return DONE

    def link_seconds(self, now: datetime) -> float:
        """Return how long the link remains valid, at most 0 if it has expired.

        Infinite if that is unknown.
        """
        if self.link is None or self.link.expires is None:
            return math.inf
        return (self.link.expires - now).total_seconds()

    def duration_seconds(self, now: float) -> float:
        """Return how long the run has worked on this job."""
        if self.began_at is None:
            return 0.0
        ended_at = now if self.ended_at is None else self.ended_at
        return ended_at - self.began_at

    @property
    def is_start_unconfirmed(self) -> bool:
        """Whether the platform may have processed a start request that got no response."""
        return self.start_attempt is not None and self.start_attempt.was_sent

    def cancel(self, signal_name: str, now: float) -> None:
        """End the job because of a signal."""
        when = "before it started"
        if self.began_at is not None:
            when = f"after {format_clock(self.duration_seconds(now))}"
        details = []
        # before the job's id is read: a start records the id, and then clears the attempt
        if self.is_start_unconfirmed:
            check = "Check the dashboard to see whether the export is running."
            details.append(f"A start request was in flight. {check}")
        elif self.job_id is None and not self.is_bundle_file:
            details.append("Nothing was started on the platform.")
            details += self._details_of_room_wait(now)
        self.failure = Cancelled(
            f"cancelled {when}",
            details=tuple(details),
            cause=f"The action received {signal_name}. {Cancelled.default_cause}",
        )
        self.ended_at = now
        self.end_phase(now)

    def _details_of_room_wait(self, now: float) -> list[str]:
        """Return sentences about the wait for room that a cancel interrupts, if one does."""
        if self.room is None or self.room.next_at <= now:
            return []
        waited = format_clock(now - self.room.since)
        sentences = [
            f"It had waited for room for {waited}: {self.lack_of_room}.",
            self.room.refusal.asked_pause,
            self.how_to_collect_other,
        ]
        return [sentence for sentence in sentences if sentence]

    def result(self, now: float) -> dict[str, object]:
        """Return the job's object in the output `results`, with every key.

        Unknown values are `None`.
        """
        result: dict[str, object] = {
            "mode": self.mode,
            "domain": self.domain,
            "projectId": self.project_id,
            "deployedCommit": None,
            "jobId": self.job_id,
            "status": self.status,
            "bundleUrl": None,
            "expiresAt": None,
            "pageCount": self.page_count,
            "bundlePath": self.delivered.bundle_path,
            "bundleSize": None,
            "bundleSha256": None,
            "sitePath": self.delivered.site_path,
            "valuesFile": self.delivered.values_file,
            "manifestPath": self.delivered.manifest_path,
            "siteSha256": self.delivered.site_sha256,
            "changed": None,
            "changes": None,
            "changesPath": self.delivered.changes_path,
            "prLink": self.pr_link,
            "repository": None,
            "ref": None,
            "model": None,
            "createdAt": None,
            "archivedAt": None,
            "durationSeconds": int(self.duration_seconds(now)),
            "failureReason": None,
            "message": None,
        }
        if self.deployed is not None and self.job_id is not None:
            result["deployedCommit"] = self.deployed.commit
        self._add_delivery(result)
        if isinstance(self.reading, AgentJob):
            result["repository"] = self.reading.repository
            result["ref"] = self.reading.ref
            result["model"] = self.reading.model
            result["createdAt"] = self.reading.created_at
            result["archivedAt"] = self.reading.archived_at
        if self.failure is not None:
            result["failureReason"] = self.failure.failure_reason
            result["message"] = self._message(self.failure)
        for name, value in result.items():
            if isinstance(value, str):
                # a line break would let a server write a command to a workflow that prints it
                result[name] = UNUSABLE.sub(" ", value)
        return result

    def _add_delivery(self, result: dict[str, object]) -> None:
        """Add what is known of the link, the archive and the changes. A failed job has no link."""
        if self.link is not None and self.failure is None:
            result["bundleUrl"] = self.link.url
            result["expiresAt"] = self.link.expires_at
        archive = self.delivered.archive
        if archive is not None:
            result["bundleSize"] = archive.size
            result["bundleSha256"] = archive.sha256
        changes = self.delivered.changes
        if changes is not None:
            result["changed"] = changes.is_any
            result["changes"] = {"pages": dict(changes.pages), "files": dict(changes.files)}

    def _message(self, failure: ActionError) -> str:
        """Return what failed, and the details, in one text."""
        headline = self.headline(failure)
        if not failure.details:
            return headline
        return f"{headline}. {' '.join(failure.details)}"
