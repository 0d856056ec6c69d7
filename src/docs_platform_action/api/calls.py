"""Makes the calls to the API, and retries them for as long as `outage-tolerance` allows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from ..clock import Clock, DeadlinePassed
from ..errors import ActionError, Advice, StartUnconfirmed, Unavailable
from ..http.circuit_breaker import CircuitBreaker
from ..http.client import Bounds
from ..http.faults import NetworkError, SocksProxyError, UntrustedError
from ..http.retry import PROXY, SHORTEST_ATTEMPT_SECONDS, RetryState, TemporaryError, full_jitter, retry
from ..models import API
from ..text import seconds
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
    cause="The API answered others meanwhile, so something about this domain or job makes it fail.",
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

        Raises the `ActionError` for the response, `Unavailable` if temporary errors last too long, `DeadlinePassed` if they last
        until the deadline, `StartUnconfirmed` if a call that must not be repeated may have been processed, and `Cancelled`.
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
        except TemporaryError as error:
            raise self._unavailable(error, state) from error

    def _attempt(self, call: Call[T], state: RetryState) -> T:
        try:
            with self.breaker.request(state):
                return self._result(call, call.bounds.within(state.begin_attempt()))
        except TemporaryError as error:
            call.request.maybe_processed = error.maybe_processed
            if error.maybe_processed and not call.repeatable:
                raise StartUnconfirmed(
                    "it is unknown whether the platform started it",
                    facts=(f"{error.what}.", *self.client.quote(error.said)),
                    request_id=error.request_id,
                ) from error
            raise

    def _result(self, call: Call[T], bounds: Bounds) -> T:
        try:
            answer = self._answer(call, bounds)
        except UntrustedError as error:
            raise error.failure(Unavailable, self.client.host, "API", "`base-url`") from error
        except SocksProxyError as error:
            raise error.failure(Unavailable, f"the API at {self.client.host}") from error
        try:
            result = result_of(call, answer, self.client, self.clock)
        except ActionError:
            if not 200 <= answer.status < 300:  # a final response other than 2xx says that nothing was processed
                call.request.maybe_processed = False
            raise
        call.request.maybe_processed = False
        return result

    def _answer(self, call: Call[T], bounds: Bounds) -> ApiResponse:
        began = self.clock.monotonic()
        try:
            try:
                return self._exchange(call, bounds, fresh=not call.repeatable)
            except NetworkError as error:
                if not (error.stale and call.repeatable):
                    raise
            # no outage: the server had closed a connection that was kept
            left = bounds.total_seconds - (self.clock.monotonic() - began)
            return self._exchange(call, bounds.within(max(SHORTEST_ATTEMPT_SECONDS, left)), fresh=True)
        except NetworkError as error:
            advice = PROXY if error.proxied else NETWORK if error.sent else _UNREACHED
            raise TemporaryError(error.what, maybe_processed=error.sent, advice=advice) from error

    def _exchange(self, call: Call[T], bounds: Bounds, *, fresh: bool) -> ApiResponse:
        began = self.clock.monotonic()
        outcome, request_id = "ended without an answer", None
        try:
            answer = self.client.send(call.request, bounds, fresh=fresh)
            outcome, request_id = str(answer.status), answer.request_id
        except NetworkError as error:
            outcome = error.what
            raise
        finally:
            request = f"{call.request.method} {call.request.url}"
            milliseconds = (self.clock.monotonic() - began) * 1000
            self.events.request_ended(call.job, request, outcome=outcome, milliseconds=milliseconds, request_id=request_id)
        return answer

    def _unavailable(self, error: TemporaryError, state: RetryState) -> Unavailable | DeadlinePassed:
        since = state.failing_since
        alone = not error.not_ready and since is not None and self.breaker.last_answered_began_at > since
        advice = _ALONE if alone else error.advice
        unavailable = Unavailable(
            f"the API at {self.client.host} {'kept failing for this job alone' if alone else 'stayed unavailable'}",
            facts=(
                f"No good answer came for {seconds(state.outage_seconds())}. The last try: {error.what}.",
                *self.client.quote(error.said),
            ),
            cause=advice.cause,
            remedy=advice.remedy,
            request_id=error.request_id,
        )
        return DeadlinePassed(unavailable) if self.clock.monotonic() >= state.deadline else unavailable
