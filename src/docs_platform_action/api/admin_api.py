"""The administrative API's four operations, with retries.

Source: the API's description, version 2.0.0 (`docs/admin-api.openapi.yaml`).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import quote

from ..clock import Clock
from ..errors import ActionError, Advice, StartUnconfirmed, Unavailable
from ..http.circuit_breaker import CircuitBreaker
from ..http.client import Request, Timeouts
from ..http.faults import NetworkError, SocksProxyError, UntrustedCertificateError
from ..http.retry import MIN_ATTEMPT_SECONDS, PROXY, RetryState, TransientError, full_jitter, retry
from ..models import API, AgentJob, Bundle, ExportJob, StartedExport
from ..text import format_seconds
from .calls import NETWORK, Call, read_result
from .client import ApiClient, ApiResponse

if TYPE_CHECKING:
    from ..events import Events
    from ..job import Job

T = TypeVar("T")

BUNDLE_TIMEOUT_SECONDS: Final = 300.0  # the platform packs the bundle before it responds
SETTLING_SECONDS: Final = 30.0  # how long after its start a job may be unknown to some of the platform's servers

_UNREACHABLE: Final = Advice(
    cause="The host or port in `base-url` is mistyped, or the platform or the network between it and this runner is down.",
    remedy="Check `base-url` and the platform's status page, and run the workflow again.",
)
_THIS_JOB_ONLY: Final = Advice(
    cause="Requests for other jobs succeeded meanwhile, so the cause is probably this domain or job.",
    remedy="Run the workflow again. If it fails the same way, report it to the platform.",
)


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

    def start_export(self, job: "Job", options: Mapping[str, object]) -> StartedExport:
        """Start a static export of a job's domain. The request becomes the job's `start_request`."""
        request = job.start_request = Request(method="POST", url="/v1/static-export/jobs", body={**options, "domain": job.domain})
        other_jobs = [other for other in self.jobs if other is not job]
        call = Call(job=job, request=request, read=StartedExport.from_json, idempotent=False, other_jobs=other_jobs)
        return self.send(call)

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
        return self.send(Call(job=job, request=request, read=AgentJob.from_json, deadline=deadline))

    def send(self, call: Call[T]) -> T:
        """Return the result of a call, which is retried for as long as `outage-tolerance` allows."""
        state = RetryState(
            job=call.job,
            events=self.events,
            clock=self.clock,
            tolerance_seconds=self.outage_tolerance_seconds,
            server=API,
            jitter=self.jitter,
            deadline=call.deadline,
            breaker=self.breaker,
        )
        try:
            return retry(lambda: self._attempt(call, state), state)
        except TransientError as error:
            raise self._unavailable(error, state) from error

    def _attempt(self, call: Call[T], state: RetryState) -> T:
        try:
            with self.breaker.request(state):
                return self._fetch_result(call, call.timeouts.within(state.start_attempt()))
        except TransientError as error:
            call.request.maybe_processed = error.maybe_processed
            if error.maybe_processed and not call.idempotent:
                raise StartUnconfirmed(
                    "it is unknown whether the platform started it",
                    details=(f"{error.message}.", *error.details),
                    request_id=error.request_id,
                ) from error
            raise

    def _fetch_result(self, call: Call[T], timeouts: Timeouts) -> T:
        try:
            response = self._fetch(call, timeouts)
        except (UntrustedCertificateError, SocksProxyError) as error:
            raise error.failure(Unavailable, f"the API at {self.client.host}", "`base-url`") from error
        except NetworkError as error:
            advice = PROXY if error.is_proxy_error else NETWORK if error.maybe_processed else _UNREACHABLE
            raise TransientError(error.message, maybe_processed=error.maybe_processed, advice=advice) from error
        try:
            result = read_result(call, response, self.client, self.clock)
        except ActionError:  # after a final response other than 2xx, nothing was processed
            call.request.maybe_processed = 200 <= response.status < 300
            raise
        call.request.maybe_processed = False
        return result

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

    def _unavailable(self, error: TransientError, state: RetryState) -> Unavailable:
        outage = format_seconds(state.outage_seconds())
        this_job_only = not error.job_specific and self.breaker.last_answered_began_at > state.failing_since
        advice = _THIS_JOB_ONLY if this_job_only else error.advice
        error_class = DeadlineExceeded if self.clock.monotonic() >= state.deadline else Unavailable
        return error_class(
            f"the API at {self.client.host} {'kept failing for this job only' if this_job_only else 'remained unavailable'}",
            details=(f"No successful response for {outage}. Last error: {error.message}.", *error.details),
            request_id=error.request_id,
            **advice,
        )


def _settles_at(job: "Job") -> float:
    """Return until when a 404 is temporary. If this run did not start the job, it never is."""
    return -math.inf if job.started_at is None else job.started_at + SETTLING_SECONDS


def _path_segment(identifier: str | None) -> str:
    assert identifier is not None  # noqa: S101  # for the type checker: the id is known by now
    # slashes are encoded too, and the dots of `.` and `..`
    return "%2E" * len(identifier) if identifier in {".", ".."} else quote(identifier, safe="")
