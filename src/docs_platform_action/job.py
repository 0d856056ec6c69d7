"""What is known of one job."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import ClassVar, Final, Protocol

from .errors import ActionError, Cancelled, InvalidInput
from .models import BundleLink, Delivered, Deployment, ExportJob, Phase, Reading, RoomWait
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


class Kind:
    """What a job is: what people call it, how it ends, and what only it has in `results`.

    Each mode has a subclass. This class itself is for a job whose mode is unknown.
    """

    mode: ClassVar[str | None] = None
    name: ClassVar[str] = "Static export"
    noun: ClassVar[str] = "export"  # its name inside a sentence

    # the mode of a later run that continues with such a job, and what that run does with it
    later_mode: ClassVar[str] = "collect"
    later_verb: ClassVar[str] = "collect"

    bundle_path_label: ClassVar[str] = "Saved as"
    makes_pull_request: ClassVar[bool] = False

    # facts that only such a job has in the summary, with their keys in `results`
    facts: ClassVar[Mapping[str, str]] = {}

    def site(self, job: "Job") -> str | None:
        """Return what people call the site of a job, if it is about one."""
        if job.domain is not None or job.project_id is None:
            return job.domain
        return f"project {job.project_id}"

    def subject(self, job: "Job") -> str:
        """Return the job's name for people, which begins a sentence."""
        if job.site is not None:
            return f"{self.noun.capitalize()} of {job.site}"
        if job.job_id:
            return f"{self.noun.capitalize()} job {job.job_id}"
        return self.name

    def title(self, job: "Job") -> str:
        """Return the job's name above its log and its summary."""
        if job.site is None:
            return job.subject
        return f"{self.name} of {job.site}"

    def heading(self, job: "Job") -> tuple[str, str]:
        """Return what the table of a job's facts is about: a label, and its value."""
        if job.domain is not None:
            return self.noun.capitalize(), job.domain
        if job.project_id is not None:
            return "Project", job.project_id
        return "Job", job.job_id or ""

    def inputs_to_collect(self, job: "Job", job_id: str | None) -> str:
        """Return the inputs with which a later run continues with a job of the same project."""
        inputs = [f"mode: {self.later_mode}"]
        if job.project_id is not None:
            inputs.append(f"project-id: {job.project_id}")
        inputs.append(f"job-id: {job_id}")
        return ", ".join(inputs)

    def how_to_collect(self, job: "Job", subject: str) -> str:
        """Return how a later run continues with a job that failed here. Empty if none can."""
        has_been_seen = job.was_started_here or job.status is not None
        if job.has_ended or not has_been_seen:
            return ""
        inputs = job.inputs_to_collect
        if not job.has_known_status:
            later = f"{self.later_verb} it in a later run with `{inputs}`"
            return f"If the job is still running, {later}."
        later = f"{self.later_verb.capitalize()} it in a later run with `{inputs}`"
        return f"{subject} continues on the platform. {later}."

    def lack_of_room(self, _job: "Job") -> str:
        """Return what the refused start of a job waits for, in a clause."""
        return ""

    def how_to_collect_other(self, _job: "Job") -> str:
        """Return how to use the job that keeps this one from starting, unless it is this run's."""
        return ""

    def phase_of(self, _reading: Reading) -> str | None:
        """Return the phase of a job with this reading, if such jobs have phases."""
        return None

    def pr_link(self, _job: "Job") -> str | None:
        """Return the pull request that a job ended with."""
        return None

    def verdict_without_failure(self, job: "Job") -> str:
        """Return the verdict on a job that has not failed."""
        if job.job_id is None and job.ended_at is None:
            return NOT_STARTED
        return DONE

    def cancelled_before_start(self, _job: "Job", _now: float) -> Sequence[str]:
        """Return what to know of a job without an ID that a signal ended, in sentences."""
        return ["Nothing was started on the platform."]

    def fields(self, _job: "Job") -> Mapping[str, object]:
        """Return the keys of a job's object in `results` that only this kind fills."""
        return {}


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

    kind: Kind
    domain: str | None = None
    project_id: str | None = None
    job_id: str | None = None
    masks_bundle_url: bool = False
    is_first_publication: bool = False  # nothing is published yet to compare the site with
    deployed: Deployment | None = None  # what the platform served when the export was started
    deployed_later: Deployment | None = None  # what it served at the end, if that is another one
    is_deployed_later_unknown: bool = False  # GitHub could not be read at the end
    reading: Reading | None = None  # the last one
    link: BundleLink | None = None
    has_short_link: bool = False  # also after a new one was made
    delivered: Delivered = field(default_factory=Delivered)
    room: RoomWait | None = None  # also after the start was accepted
    warnings: list[Sequence[str]] = field(default_factory=list)
    """About what is delivered: each is a title and further sentences."""
    failure: ActionError | None = None
    start_attempt: StartAttempt | None = field(default=None, repr=False)  # of unknown outcome
    started_at: float | None = None  # when this run started the job on the platform
    began_at: float | None = None  # when the run began to work on it
    last_read_at: float | None = None
    expected_end_at: float | None = None  # on the platform, as estimated after the last reading
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
        is_exported = phase.name == RUN and self.is_completed
        if self.failure is None or not is_last or is_wait or is_exported:
            return phase.name
        return f"{self.verdict} after"

    def record_start(self, job_id: str, status: str | None, now: float) -> None:
        """Record that this run started the job on the platform."""
        self.started_at = now
        self.end_phase(now)
        if status is not None:
            self.record(ExportJob(status=status))
        self.job_id = job_id  # after the rest: any thread that sees the id sees that, too
        self.start_attempt = None  # after the id: a cancel sees at least one of them

    def record(self, reading: Reading, *, polled_at: float | None = None) -> None:
        """Record a reading of the job. One that was polled also tells its phase."""
        self.reading = reading
        self.expected_end_at = None
        if polled_at is None:
            return
        phase = self.kind.phase_of(reading)
        if phase is not None:
            self.start_phase(phase, self._phase_began_at(reading, polled_at))
        self.last_read_at = polled_at

    def _phase_began_at(self, reading: Reading, now: float) -> float:
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
        reading = self.reading  # read once: another thread may change it
        if reading is None or reading.is_queued:
            return None
        return reading.progress

    @property
    def reported_pages(self) -> int | None:
        """The last reading's page count, also while the job is running."""
        if self.reading is None:
            return None
        return self.reading.page_count

    @property
    def page_count(self) -> int | None:
        """The page count of the completed job."""
        if not self.is_completed:
            return None
        return self.reported_pages

    @property
    def is_queued(self) -> bool:
        """Whether the job waits for its turn on the platform."""
        return self.reading is not None and self.reading.is_queued

    @property
    def is_completed(self) -> bool:
        """Whether the job's last known status is that it has completed."""
        return self.reading is not None and self.reading.is_completed

    @property
    def has_ended(self) -> bool:
        """Whether the job's last known status is final."""
        return self.reading is not None and self.reading.has_ended

    @property
    def has_known_status(self) -> bool:
        """Whether the job's status is unread, or one that the API's description has."""
        return self.reading is None or self.reading.has_known_status

    def remaining_seconds(self, now: float) -> float | None:
        """Return how long the job still takes, or `None` if that is unknown or it is overdue."""
        expected_end_at = self.expected_end_at  # read once: another thread may change it
        if expected_end_at is None or expected_end_at <= now:
            return None
        return expected_end_at - now

    @property
    def pr_link(self) -> str | None:
        """The pull request that the job ended with."""
        return self.kind.pr_link(self)

    @property
    def site(self) -> str | None:
        """What people call the job's site, if it is about one."""
        return self.kind.site(self)

    @property
    def inputs_to_collect(self) -> str:
        """The inputs with which a later run continues with the job."""
        return self.kind.inputs_to_collect(self, self.job_id)

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
        return self.kind.subject(self)

    @property
    def title(self) -> str:
        """The job's name above its log and its summary."""
        return self.kind.title(self)

    def headline(self, error: ActionError) -> str:
        """Return what failed and how, in one sentence."""
        if isinstance(error, InvalidInput) or error.summary.startswith("`base-url`"):
            return error.summary  # is about an input, and not about the job
        return f"{self.subject}: {error.summary}"

    @property
    def lack_of_room(self) -> str:
        """What its refused start waits for, in a clause."""
        return self.kind.lack_of_room(self)

    @property
    def how_to_collect_other(self) -> str:
        """How to use the job that keeps this one from starting, unless it is this run's own."""
        return self.kind.how_to_collect_other(self)

    @property
    def verdict(self) -> str:
        """One of the `VERDICTS`."""
        if self.failure is None:
            return self.kind.verdict_without_failure(self)
        if self.began_at is None and not isinstance(self.failure, InvalidInput):
            return NOT_STARTED
        if isinstance(self.failure, Cancelled):
            return CANCELLED
        return FAILED

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
        attempt = self.start_attempt  # read once: another thread may clear it
        return attempt is not None and attempt.was_sent

    def cancel(self, signal_name: str, now: float) -> None:
        """End the job because of a signal."""
        when = "before it started"
        if self.began_at is not None:
            when = f"after {format_clock(self.duration_seconds(now))}"
        details: list[str] = []
        # before the job's id, which is recorded before the attempt is cleared
        if self.is_start_unconfirmed:
            check = f"Check the dashboard to see whether the {self.kind.noun} is running."
            details.append(f"A start request was in flight. {check}")
        elif self.job_id is None:
            details += self.kind.cancelled_before_start(self, now)
        self.failure = Cancelled(
            f"cancelled {when}",
            details=tuple(details),
            cause=f"The action received {signal_name}. {Cancelled.default_cause}",
        )
        self.ended_at = now
        self.end_phase(now)

    def result(self, now: float) -> dict[str, object]:
        """Return the job's object in the output `results`, with every key.

        Unknown values are `None`.
        """
        result: dict[str, object] = {
            "mode": self.kind.mode,
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
            "prLink": None,
            "repository": None,
            "ref": None,
            "model": None,
            "createdAt": None,
            "archivedAt": None,
            "durationSeconds": int(self.duration_seconds(now)),
            "failureReason": None,
            "message": None,
        }
        self._add_delivery(result)
        result.update(self.kind.fields(self))
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
