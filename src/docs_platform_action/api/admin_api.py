"""The administrative API's operations, with retries.

Source: the API's description (`docs/admin-api.openapi.yaml`). What differs between its two forms of
exports is in `by_domain` and `by_project`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Generic, TypeVar

from ..clock import Clock
from ..errors import (
    IN_FRONT,
    NETWORK,
    NO_LINK,
    UNREACHABLE,
    ActionError,
    BadResponse,
    JobFailed,
    NoRoom,
    StartUnconfirmed,
    Unavailable,
    UnknownHost,
)
from ..events import Events
from ..http.api_client import ApiClient
from ..http.faults import NetworkError
from ..http.pacing import Pacer
from ..http.retry import Retry, TransientError, backoff_pauses
from ..http.transport import Request, Timeouts
from ..http.trust import UnusableServerError
from ..job import Job
from ..models import API, AgentJob, BundleLink, ExportJob
from ..text import format_approx, format_clock, format_seconds
from .answers import result_of
from .by_domain import ByDomain
from .by_project import ByProject
from .calls import Answer, Call, ExportForm, path_segment, settles_at
from .resources import read_agent_job, read_started
from .room import ANSWER_CHECK_SECONDS, Room, StartHeld

T = TypeVar("T")

# how long a name that does not exist is looked up again before it is probably mistyped
UNKNOWN_HOST_SECONDS: Final = 30.0
LINK_SECONDS: Final = 30.0  # how long the link of a completed job may be missing
RECHECK_SECONDS: Final = 1.0  # how often a start that is held back checks until when


@dataclass(frozen=True, kw_only=True)
class Unannounced(Generic[T]):
    """The result of a call whose last request is still to be announced."""

    result: T
    call: Call[T]
    status: int
    request_id: str | None
    milliseconds: float
    outage_seconds: float | None = None  # of the announced outage that it ended


@dataclass(kw_only=True)
class AdminApi:
    """The API of one platform, for all jobs of a run. A `deadline` is on the clock's `monotonic`.

    Every method raises the `ActionError` that the response stands for, and `Unavailable` if errors
    last until the deadline.
    """

    client: ApiClient
    pacer: Pacer
    room: Room
    clock: Clock
    outage_tolerance_seconds: float
    events: Events
    jitter: Callable[[float], float] | None = None  # in place of full jitter
    start_requests: dict[Job, Request] = field(default_factory=dict)
    started_jobs: dict[str, Job] = field(default_factory=dict)  # by the platform's id
    is_host_known: bool = False  # as far as errors say, its name exists
    has_answered: bool = False  # with a successful response

    def start_export(self, job: Job, options: Mapping[str, object]) -> Unannounced[None]:
        """Start a static export of a job's site, and record in the job that it has started.

        The caller announces the result once it has written the job's id: a log may block.
        Also raises `NoRoom` and `StartHeld`.
        """
        form = _form_of(job)
        request = form.start(job, options)
        self.start_requests[job] = request
        call = Call(
            job=job,
            action="start exports",
            request=request,
            read=partial(self._record_start, job=job),
            form=form,
            is_start=True,
        )
        try:
            started = self._send_unannounced(call)
        except NoRoom as refusal:
            if refusal.running_job_id in self.started_jobs:
                refusal.own_site = self.started_jobs[refusal.running_job_id].site
            self.room.refuse(job, refusal)
            raise
        self.room.accept(job)
        return started

    def is_start_unconfirmed(self, job: Job) -> bool:
        """Return whether the platform may have processed a start request that got no response."""
        request = self.start_requests.get(job)
        return request is not None and request.maybe_processed

    def read_export(self, job: Job, *, deadline: float) -> ExportJob:
        """Return the status of an export job."""
        form = _form_of(job)
        call = Call(
            job=job,
            action="read exports",
            request=form.status(job),
            read=form.read_status,
            form=form,
            temporary_until={404: settles_at(job)},
            deadline=deadline,
        )
        return self.send(call)

    def make_link(self, job: Job) -> BundleLink:
        """Make a new link to the bundle of a completed export."""
        call = _form_of(job).link(job)
        if call is None:
            return self._read_link(job)
        return self.send(call)

    def _read_link(self, job: Job) -> BundleLink:
        """Read a completed job until it has a link, which may come a moment later.

        A reading without a link is not an outage. Raises also `JobFailed`, and `BadResponse` if the
        job has no link in the end.
        """
        give_up_at = self.clock.monotonic() + LINK_SECONDS
        pauses = backoff_pauses(self.jitter)
        was_noted = False
        while True:
            now = self.clock.monotonic()
            reading = self.read_export(job, deadline=math.inf)
            if reading.has_ended:
                job.record(reading)
            if reading.link is not None:
                return reading.link
            if reading.status == ExportJob.FAILED:
                raise self.export_failure(job, reading)
            if now >= give_up_at:
                raise BadResponse(
                    "the completed export has no bundle link",
                    details=("The API returned no `bundleUrl` that is an absolute https address.",),
                    **NO_LINK,
                )
            if not was_noted:
                was_noted = True
                self.events.noted(
                    job,
                    "The completed export has no bundle link yet. "
                    f"Reading it again for up to {format_clock(LINK_SECONDS)}.",
                )
            self.clock.sleep(min(next(pauses), give_up_at - now))

    def export_failure(self, job: Job, reading: ExportJob) -> JobFailed:
        """Return the failure of an export whose status is `failed`."""
        return JobFailed(
            "the export failed on the platform",
            details=self.client.quote(reading.error) or ("The API gave no reason.",),
            remedy=f"Check job {job.job_id} in the dashboard, fix the site, and run the workflow "
            "again.",
        )

    def read_agent_job(self, job: Job, *, deadline: float) -> AgentJob:
        """Return the status of an agent job."""
        path = f"/v2/agent/{path_segment(job.project_id)}/job/{path_segment(job.job_id)}"
        call = Call(
            job=job,
            action="read agent jobs",
            request=Request(method="GET", url=path),
            read=partial(read_agent_job, job_id=job.job_id),
            temporary_until={404: settles_at(job)},
            deadline=deadline,
        )
        return self.send(call)

    def announce(self, answered: Unannounced[T]) -> None:
        """Announce the end of a request, and of the outage before it."""
        call = answered.call
        outcome = str(answered.status)
        self._announce_request(call, outcome, answered.milliseconds, answered.request_id)
        if answered.outage_seconds is not None:
            self.events.recovered(call.job, API, after_seconds=answered.outage_seconds)

    def send(self, call: Call[T]) -> T:
        """Return the result of a call, which is retried for up to `outage-tolerance`."""
        answered = self._send_unannounced(call)
        self.announce(answered)
        return answered.result

    def _send_unannounced(self, call: Call[T]) -> Unannounced[T]:
        """Send a call until it succeeds. All is announced but the end of the last request."""
        began = self.clock.monotonic()
        pauses = backoff_pauses(self.jitter)
        retry = Retry(
            tolerance_seconds=self.outage_tolerance_seconds,
            next_attempt_at=began,
            deadline=call.deadline,
            is_idempotent=not call.is_start,
        )
        was_announced = False
        while True:
            try:
                retry = self._wait_for_turn(call, retry)
                attempt_seconds = retry.attempt_seconds(self.clock.monotonic())
                answered = self._attempt(call, call.timeouts.within(attempt_seconds))
            except TransientError as error:
                retry = self._next_attempt(
                    call, retry, error, pause_seconds=next(pauses), began=began
                )
                if not was_announced:
                    was_announced = self._announce_outage(call, retry, error)
            except (NoRoom, StartHeld):  # the API has answered this start, or another one
                if was_announced:
                    outage_seconds = self.clock.monotonic() - began
                    self.events.recovered(call.job, API, after_seconds=outage_seconds)
                raise
            else:
                self.has_answered = True
                if was_announced:
                    return replace(answered, outage_seconds=self.clock.monotonic() - began)
                return answered

    def _next_attempt(
        self,
        call: Call[T],
        retry: Retry,
        error: TransientError,
        *,
        pause_seconds: float,
        began: float,
    ) -> Retry:
        """Return the state for the next attempt, or raise the failure if there is none."""
        now = self.clock.monotonic()
        if call.is_start:
            self.room.end(call.job)
            self.pacer.hold_starts(now + error.retry_after_seconds)
        try:
            return retry.increment(error, now, pause_seconds=pause_seconds)
        except TransientError:
            raise self._failure(call, error, outage_seconds=now - began) from error

    def _wait_for_turn(self, call: Call[T], retry: Retry) -> Retry:
        """Wait until a request may begin. Return the state with that time.

        Raises `StartHeld` if the platform has limited starts in the meantime.
        """
        while True:
            now = self.clock.monotonic()
            begins_at = retry.begins_at()
            if call.is_start:
                begins_at = retry.begins_at(self.pacer.starts_held_until)
            if now >= begins_at:
                break
            pause = begins_at - now
            if call.is_start:
                self.room.end(call.job)
                # another job's start may be held back meanwhile, and this one with it
                pause = min(pause, RECHECK_SECONDS)
            self.clock.sleep(pause)
        self.pacer.wait_for_turn()
        if call.is_start:
            self._begin_start(call.job)
        return replace(retry, next_attempt_at=max(retry.next_attempt_at, now))

    def _begin_start(self, job: Job) -> None:
        while not self.room.begin(job):
            if self.room.next_at(job) > self.clock.monotonic():
                raise StartHeld
            self.clock.sleep(ANSWER_CHECK_SECONDS)

    def _attempt(self, call: Call[T], timeouts: Timeouts) -> Unannounced[T]:
        """Send a request once. Announces only its failure."""
        began = self.clock.monotonic()
        try:
            response = self.client.send(call.request, timeouts)
        except UnusableServerError as error:
            outcome = "ended without a response"
            self._announce_request(call, outcome, self._milliseconds_since(began))
            server = f"the API at {self.client.host}"
            raise error.failure(Unavailable, server, "`base-url`") from error
        except NetworkError as error:
            self._announce_request(call, error.message, self._milliseconds_since(began))
            raise self._network_failure(error) from error
        self.is_host_known = True
        milliseconds = self._milliseconds_since(began)
        answer = Answer(
            call=call, response=response, client=self.client, is_api_known=self.has_answered
        )
        try:
            result = result_of(answer, self.clock.monotonic())
        except (ActionError, NoRoom, TransientError) as error:
            self._announce_request(call, str(response.status), milliseconds, response.request_id)
            error.request_id = response.request_id
            # a refusal in JSON is the API's own, as good as a success
            if isinstance(error, NoRoom) and isinstance(response.body, dict):
                self.has_answered = True
            raise
        return Unannounced(
            result=result,
            call=call,
            status=response.status,
            request_id=response.request_id,
            milliseconds=milliseconds,
        )

    def _network_failure(self, error: NetworkError) -> TransientError:
        """Return an error to retry, and learn from it whether the host's name exists."""
        is_probably_mistyped = error.is_unknown_host and not self.is_host_known
        if not error.is_unresolved:
            self.is_host_known = True
        was_reached = error.maybe_processed or self.has_answered
        usual_advice = NETWORK if was_reached else UNREACHABLE
        return TransientError(
            error.message,
            advice=error.advice_for("`base-url`") or usual_advice,
            maybe_processed=error.maybe_processed,
            tolerance_seconds=UNKNOWN_HOST_SECONDS if is_probably_mistyped else math.inf,
        )

    def _milliseconds_since(self, began: float) -> float:
        return (self.clock.monotonic() - began) * 1000

    def _announce_request(
        self,
        call: Call[T],
        outcome: str,
        milliseconds: float,
        request_id: str | None = None,
    ) -> None:
        self.events.request_ended(
            call.job,
            f"{call.request.method} {call.request.url}",
            outcome=outcome,
            milliseconds=milliseconds,
            request_id=request_id,
        )

    def _announce_outage(self, call: Call[T], retry: Retry, error: TransientError) -> bool:
        """Announce an outage, and return `True`, unless there is no time to retry."""
        now = self.clock.monotonic()
        retried_until = min(retry.last_attempt_at, error.retry_until)
        if retried_until <= now:
            return False
        self.events.retrying(
            call.job,
            API,
            error.message,
            budget_seconds=retried_until - now,
            pause_seconds=retry.begins_at() - now,
        )
        return True

    def _failure(
        self, call: Call[T], error: TransientError, *, outage_seconds: float
    ) -> ActionError:
        if error.final_error is not None:
            error.final_error.request_id = error.request_id
            return error.final_error
        if call.is_start and error.maybe_processed:
            return StartUnconfirmed(
                "it is unknown whether the platform started it",
                details=(f"{error.message}.", *error.details),
                request_id=error.request_id,
            )
        outage = format_seconds(outage_seconds)
        details = [f"No successful response for {outage}. Last error: {error.message}."]
        if error.retry_after_seconds > 0:
            pause = format_approx(error.retry_after_seconds)
            details.append(f"The platform asked to wait for {pause} before the next attempt.")
        is_unknown_host = error.tolerance_seconds < math.inf
        kind = UnknownHost if is_unknown_host else Unavailable
        return kind(
            f"the API at {self.client.host} remained unavailable",
            details=(*details, *error.details),
            request_id=error.request_id,
            **error.advice,
        )

    def _record_start(self, body: Mapping[str, object], *, job: Job) -> None:
        job_id, status = read_started(body)
        # atomic: of two threads, one is the first
        first = self.started_jobs.setdefault(job_id, job)
        if first is not job:
            raise BadResponse(
                f"the platform returned the same job for {first.site} and this site",
                cause=IN_FRONT["cause"],
                remedy="Check the dashboard for an export of this site, and report this to the "
                "platform.",
            )
        job.record_start(job_id, status, self.clock.monotonic())


def _form_of(job: Job) -> ExportForm:
    """Return the form of the export API, which only the workflow knows: it sets `project-id`."""
    if job.project_id is None:
        return ByDomain()
    return ByProject()
