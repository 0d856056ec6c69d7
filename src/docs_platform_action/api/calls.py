"""Makes the calls to the API, and retries them for as long as `outage-tolerance` allows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from ..clock import Clock, DeadlineExceeded
from ..errors import ActionError, Advice, StartUnconfirmed, Unavailable
from ..http.circuit_breaker import CircuitBreaker
from ..http.client import Timeouts
from ..http.faults import NetworkError, SocksProxyError, UntrustedCertificateError
from ..http.retry import MIN_ATTEMPT_SECONDS, PROXY, RetryState, TransientError, full_jitter, retry
from ..models import API
from ..text import format_seconds
from .client import ApiClient, ApiResponse
from .statuses import NETWORK, Call, result_of

if TYPE_CHECKING:
    from ..events import Events

T = TypeVar("T")

_UNREACHED: Final = Advice(
    cause="The host or port in `base-url` is mistyped, or the platform or the network between it and this runner is down.",
    remedy="Check `base-url` and the platform's status page, and run the workflow again.",
)
_ALONE: Final = Advice(
    cause="The API returned others meanwhile, so something about this domain or job makes it fail.",
    remedy="Run the workflow again. If it fails the same way, report it to the platform.",
)


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Makes calls to the API, and retries them for as long as `outage-tolerance` allows."""

    client: ApiClient
    breaker: CircuitBreaker
    clock: Clock
    outage_tolerance_seconds: float
    events: "Events"
    jitter: Callable[[float], float] = full_jitter

    def send(self, call: Call[T]) -> T:
        """Make a call and return its result.

        Raises the `ActionError` for the response, `Unavailable` if temporary errors last too long, `DeadlineExceeded` if they
        last until the deadline, `StartUnconfirmed` if a call that must not be repeated may have been processed, and `Cancelled`.
        """
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
                return self._result(call, call.timeouts.within(state.start_attempt()))
        except TransientError as error:
            call.request.maybe_processed = error.maybe_processed
            if error.maybe_processed and not call.idempotent:
                raise StartUnconfirmed(
                    "it is unknown whether the platform started it",
                    details=(f"{error.message}.", *self.client.quote(error.error_text)),
                    request_id=error.request_id,
                ) from error
            raise

    def _result(self, call: Call[T], timeouts: Timeouts) -> T:
        try:
            response = self._answer(call, timeouts)
        except UntrustedCertificateError as error:
            raise error.failure(Unavailable, self.client.host, "API", "`base-url`") from error
        except SocksProxyError as error:
            raise error.failure(Unavailable, f"the API at {self.client.host}") from error
        try:
            result = result_of(call, response, self.client, self.clock)
        except ActionError:
            if not 200 <= response.status < 300:  # a final response other than 2xx says that nothing was processed
                call.request.maybe_processed = False
            raise
        call.request.maybe_processed = False
        return result

    def _answer(self, call: Call[T], timeouts: Timeouts) -> ApiResponse:
        began = self.clock.monotonic()
        try:
            try:
                return self._exchange(call, timeouts, new_connection=not call.idempotent)
            except NetworkError as error:
                if not (error.is_stale and call.idempotent):
                    raise
            # no outage: the server had closed a connection that was kept
            left = timeouts.total_seconds - (self.clock.monotonic() - began)
            return self._exchange(call, timeouts.within(max(MIN_ATTEMPT_SECONDS, left)), new_connection=True)
        except NetworkError as error:
            advice = PROXY if error.is_proxy_error else NETWORK if error.maybe_processed else _UNREACHED
            raise TransientError(error.message, maybe_processed=error.maybe_processed, advice=advice) from error

    def _exchange(self, call: Call[T], timeouts: Timeouts, *, new_connection: bool) -> ApiResponse:
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

    def _unavailable(self, error: TransientError, state: RetryState) -> Unavailable | DeadlineExceeded:
        since = state.failing_since
        alone = not error.job_specific and since is not None and self.breaker.last_answered_began_at > since
        advice = _ALONE if alone else error.advice
        unavailable = Unavailable(
            f"the API at {self.client.host} {'kept failing for this job only' if alone else 'remained unavailable'}",
            details=(
                f"No successful response for {format_seconds(state.outage_seconds())}. Last error: {error.message}.",
                *self.client.quote(error.error_text),
            ),
            cause=advice.cause,
            remedy=advice.remedy,
            request_id=error.request_id,
        )
        return DeadlineExceeded(unavailable) if self.clock.monotonic() >= state.deadline else unavailable
