"""The administrative API's four operations, with retries.

Source: the API's description, version 2.0.0 (`docs/admin-api.openapi.yaml`).
"""

import math
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import quote

from ..clock import Clock
from ..errors import ActionError, Advice, BadResponse, Cancelled, StartUnconfirmed, Unavailable, UnknownHost
from ..http.circuit_breaker import CircuitBreaker
from ..http.client import Request, Timeouts
from ..http.faults import NetworkError, UntrustedCertificateError
from ..http.proxy import UnusableProxyError
from ..http.rate_limit import QueuedRequest
from ..http.retry import MIN_ATTEMPT_SECONDS, PROXY, Retry, TransientError, full_jitter
from ..models import API, AgentJob, Bundle, ExportJob, StartedExport
from ..text import format_approx, format_seconds
from .calls import NETWORK, Call, read_result
from .client import ApiClient, ApiResponse

if TYPE_CHECKING:
    from ..events import Events
    from ..job import Job

T = TypeVar("T")

BUNDLE_TIMEOUT_SECONDS: Final = 300.0  # the platform packs the bundle before it responds
UNKNOWN_HOST_SECONDS: Final = 30.0  # how long a name that does not exist is looked up again before it is probably mistyped
SETTLING_SECONDS: Final = 30.0  # how long after its start a job may be unknown to some of the platform's servers

_UNREACHABLE: Final = Advice(
    cause="The host or port in `base-url` is mistyped, or the platform or the network between it and this runner is down.",
    remedy="Check `base-url` and the platform's status page, and run the workflow again.",
)
_THIS_JOB_ONLY: Final = Advice(
    cause="Requests for other jobs succeeded meanwhile, so the cause is probably this domain or job.",
    remedy="Run the workflow again. If it fails the same way, report it to the platform.",
)

_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class DeadlineExceeded(Unavailable):
    """Temporary errors lasted until the deadline of a call."""


@dataclass(frozen=True, kw_only=True)
class AdminApi:
    """The API of one platform, for all `jobs` of a run. A `deadline` is on the clock's `monotonic`.

    Every method raises the `ActionError` that the response stands for, and `DeadlineExceeded` if errors last until the deadline.
    """

    client: ApiClient
    breaker: CircuitBreaker
    clock: Clock
    outage_tolerance_seconds: float
    events: "Events"
    jobs: "Sequence[Job]"
    jitter: Callable[[float], float] = full_jitter
    started_jobs: "dict[str, Job]" = field(default_factory=dict)  # by the platform's id
    host_found: threading.Event = field(default_factory=threading.Event)  # set once the host's name was resolved
    has_responded: threading.Event = field(default_factory=threading.Event)

    def start_export(self, job: "Job", options: Mapping[str, object]) -> StartedExport:
        """Start a static export of a job's domain. The request becomes the job's `start_request`."""
        request = job.start_request = Request(method="POST", url="/v1/static-export/jobs", body={**options, "domain": job.domain})
        read = partial(self._read_started, job=job)
        return self.send(Call(job=job, request=request, read=read, idempotent=False))

    def read_export(self, job: "Job", *, deadline: float) -> ExportJob:
        """Return the status of an export job."""
        request = Request(method="GET", url=f"/v1/static-export/jobs/{_path_segment(job.job_id)}")
        temporary_until = {404: _settles_at(job)}
        call = Call(job=job, request=request, read=ExportJob.from_json, temporary_until=temporary_until, deadline=deadline)
        return self.send(call)

    def make_bundle(self, job: "Job") -> Bundle:
        """Pack a completed export, or make a new link to its bundle."""
        call = Call(
            job=job,
            request=Request(method="POST", url=f"/v1/static-export/jobs/{_path_segment(job.job_id)}/bundle"),
            read=Bundle.from_json,
            retry_invalid_object=False,
            temporary_until={404: _settles_at(job), 409: math.inf},  # 409: the platform is still packing
            timeouts=Timeouts(idle_seconds=BUNDLE_TIMEOUT_SECONDS, total_seconds=BUNDLE_TIMEOUT_SECONDS),
        )
        return self.send(call)

    def read_agent_job(self, job: "Job", *, deadline: float) -> AgentJob:
        """Return the status of an agent job."""
        request = Request(method="GET", url=f"/v2/agent/{_path_segment(job.project_id)}/job/{_path_segment(job.job_id)}")
        return self.send(Call(job=job, request=request, read=partial(_read_agent_job, job_id=job.job_id), deadline=deadline))

    def send(self, call: Call[T]) -> T:
        """Return the result of a call, which is retried for as long as `outage-tolerance` allows."""
        retry = Retry(
            tolerance_seconds=self.outage_tolerance_seconds,
            started_at=self.clock.monotonic(),
            deadline=call.deadline,
            is_idempotent=call.idempotent,
            jitter=self.jitter,
        )
        announced_at: float | None = None
        while True:
            with self.breaker.request(is_start=not call.idempotent) as request:
                retry = self._wait_for_turn(call, request, retry)
                try:
                    result = self._attempt(call, call.timeouts.within(retry.attempt_seconds(request.began_at)))
                except TransientError as error:
                    retry = self._next_state(call, request, retry, error)
                    if announced_at is None and self._announce(call, retry, error):
                        announced_at = self.clock.monotonic()
                except ActionError as error:
                    if not isinstance(error, Cancelled | Unavailable):  # those come without a response
                        self.breaker.succeeded(request)
                    raise
                else:
                    self.breaker.succeeded(request)
                    if announced_at is not None:
                        self.events.recovered(call.job, API, after_seconds=self.clock.monotonic() - announced_at)
                    return result

    def _read_started(self, body: Mapping[str, object], *, job: "Job") -> StartedExport:
        started = StartedExport.from_json(body)
        first = self.started_jobs.setdefault(started.job_id, job)  # atomic: of two threads, one is the first
        if first is not job:
            raise BadResponse(
                f"the platform returned the job of {first.domain} for this domain, too",
                cause="The platform, or a gateway in front of it, mixes up jobs or their ids.",
                remedy="Check the dashboard to see whether this domain is exported, too, before you export it again. "
                "Report this to the platform with the time of the request.",
            )
        return started

    def _wait_for_turn(self, call: Call[T], request: QueuedRequest, retry: Retry) -> Retry:
        while True:
            retry = self._tolerated(call, retry, retry.error)
            retry = replace(retry, server_failing_since=self.breaker.failing_since(is_start=not call.idempotent))
            pause = self.breaker.begin(request, retry)
            if pause <= 0:
                return retry
            self.clock.sleep(pause)

    def _tolerated(self, call: Call[T], retry: Retry, error: TransientError | None) -> Retry:
        until = min(self._has_room_at(call, error), self.clock.monotonic())
        self.breaker.tolerate_starts(until)
        return retry.tolerated(until)

    def _has_room_at(self, call: Call[T], error: TransientError | None) -> float:
        """Return since when the platform should have room for the job that a call starts: since the last other job has ended.

        It is infinite while another job of the run is under way, and `-inf` if it does not matter.
        """
        if call.idempotent or (error is not None and error.status != 429):
            return -math.inf
        others = (job.ended_at for job in self.jobs if job is not call.job and job.job_id is not None)
        return max((math.inf if ended_at is None else ended_at for ended_at in others), default=-math.inf)

    def _next_state(self, call: Call[T], request: QueuedRequest, retry: Retry, error: TransientError) -> Retry:
        try:
            return self.breaker.failed(request, error, self._tolerated(call, retry, error))
        except TransientError:
            if error.maybe_processed and not call.idempotent:
                details = (f"{error.message}.", *error.details)
                summary = "it is unknown whether the platform started it"
                raise StartUnconfirmed(summary, details=details, request_id=error.request_id) from error
            raise self._unavailable(call, error, retry) from error

    def _announce(self, call: Call[T], retry: Retry, error: TransientError) -> bool:
        now = self.clock.monotonic()
        remaining = min(retry.last_attempt_at, error.retry_until) - now
        pause = retry.ready_at - now
        if self._has_room_at(call, error) == math.inf:
            remaining, pause = math.inf, retry.next_attempt_at - now
        if remaining > 0:
            self.events.retrying(call.job, API, error.message, budget_seconds=remaining, pause_seconds=pause)
        return remaining > 0

    def _attempt(self, call: Call[T], timeouts: Timeouts) -> T:
        try:
            response = self._fetch(call, timeouts)
            self.host_found.set()
            self.has_responded.set()
        except (UntrustedCertificateError, UnusableProxyError) as error:
            raise error.failure(Unavailable, f"the API at {self.client.host}", "`base-url`") from error
        except NetworkError as error:
            if not error.is_unresolved:
                self.host_found.set()
            is_mistyped = error.is_unknown_host and not self.host_found.is_set()
            is_reachable = error.maybe_processed or self.has_responded.is_set()
            advice = PROXY if error.is_proxy_error else NETWORK if is_reachable else _UNREACHABLE
            raise TransientError(
                error.message,
                maybe_processed=error.maybe_processed,
                tolerance_seconds=UNKNOWN_HOST_SECONDS if is_mistyped else math.inf,
                advice=error.advice_for("`base-url`") or advice,
            ) from error
        return read_result(call, response, self.client, self.clock)

    def _fetch(self, call: Call[T], timeouts: Timeouts) -> ApiResponse:
        began = self.clock.monotonic()
        try:
            return self._send_once(call, timeouts, new_connection=not call.idempotent)
        except NetworkError as error:
            if not (error.is_stale and call.idempotent):
                raise
        # the server had closed an idle connection, which is not an outage
        remaining = timeouts.total_seconds - (self.clock.monotonic() - began)
        return self._send_once(call, timeouts.within(max(MIN_ATTEMPT_SECONDS, remaining)), new_connection=True)

    def _send_once(self, call: Call[T], timeouts: Timeouts, *, new_connection: bool) -> ApiResponse:
        began = self.clock.monotonic()
        outcome, request_id = "ended without a response", None
        try:
            response = self.client.send(call.request, timeouts, new_connection=new_connection)
            outcome, request_id = str(response.status), response.request_id
        except NetworkError as error:
            outcome = error.message
            raise
        finally:
            request = f"{call.request.method} {call.request.url}"
            milliseconds = (self.clock.monotonic() - began) * 1000
            self.events.request_ended(call.job, request, outcome=outcome, milliseconds=milliseconds, request_id=request_id)
        return response

    def _unavailable(self, call: Call[T], error: TransientError, retry: Retry) -> Unavailable:
        outage = format_seconds(self.clock.monotonic() - min(retry.started_at, retry.outage_began_at))
        this_job_only = not error.job_specific and error.status != 429 and self.breaker.answered_at > retry.failing_since
        advice = _THIS_JOB_ONLY if this_job_only else error.advice
        error_class: type[Unavailable] = UnknownHost if error.tolerance_seconds < math.inf else Unavailable
        if self.clock.monotonic() >= call.deadline:
            error_class = DeadlineExceeded
        summary = f"the API at {self.client.host} remained unavailable"
        if error.status == 429 and not call.idempotent:
            summary = f"the API at {self.client.host} kept refusing to start the export"
        elif this_job_only:
            summary = f"the API at {self.client.host} kept failing for this job only"
        wait = error.retry_after_seconds
        asked = [f"The platform asked to wait for {format_approx(wait)} before the next attempt."] if wait else []
        return error_class(
            summary,
            details=(f"No successful response for {outage}. Last error: {error.message}.", *asked, *error.details),
            request_id=error.request_id,
            **advice,
        )


def _read_agent_job(body: Mapping[str, object], *, job_id: str | None) -> AgentJob:
    """Read the job with this id. An `id` that is missing or of another type may be that of any job."""
    given = body.get("id")
    is_number = isinstance(given, int) and str(job_id).isdigit()
    found = str(given) if is_number or isinstance(given, str) else ""
    if found and found != job_id and not _is_same_uuid(found, str(job_id)):
        raise BadResponse(
            "the API returned another job",
            details=(f"The response has the id '{found[:100]}'.",),
            cause="The platform, or a gateway or cache in front of it, mixes up responses.",
            remedy="Run the workflow again. If it fails the same way, report it to the platform with the time of the request.",
        )
    return AgentJob.from_json(body)


def _is_same_uuid(one: str, other: str) -> bool:
    """Return whether both are the same UUID, which may be in upper or lower case (RFC 9562, section 4)."""
    return bool(_UUID.fullmatch(one)) and one.lower() == other.lower()


def _settles_at(job: "Job") -> float:
    """Return until when a 404 is temporary. If this run did not start the job, it never is."""
    return -math.inf if job.started_at is None else job.started_at + SETTLING_SECONDS


def _path_segment(identifier: str | None) -> str:
    assert identifier is not None  # noqa: S101  # for the type checker: the id is known by now
    # slashes are encoded too, and the dots of `.` and `..`
    return "%2E" * len(identifier) if identifier in {".", ".."} else quote(identifier, safe="")
