"""Makes the calls to the API, and retries them for as long as `outage-tolerance` allows."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from ..clock import Clock, DeadlinePassed
from ..errors import (
    ActionError,
    Advice,
    StartUnconfirmed,
    Unavailable,
)
from ..http.circuit_breaker import CircuitBreaker
from ..http.client import Bounds
from ..http.faults import SOCKS, NetworkError, SocksProxyError, UntrustedError
from ..http.retry import (
    PROXY,
    SHORTEST_ATTEMPT_SECONDS,
    RetryState,
    TemporaryError,
    full_jitter,
    retry,
)
from ..models import API
from ..text import seconds
from .client import ApiClient, ApiResponse
from .statuses import NETWORK, Call, result_of

if TYPE_CHECKING:
    from ..events import Events

T = TypeVar("T")


class Caller:
    """Makes calls to the API, and retries them for as long as `outage-tolerance` allows."""

    def __init__(
        self,
        *,
        client: ApiClient,
        breaker: CircuitBreaker,
        clock: Clock,
        outage_tolerance_seconds: float,
        events: "Events",
        jitter: Callable[[float], float] = full_jitter,
    ) -> None:
        self._client = client
        self._breaker = breaker
        self._clock = clock
        self._tolerance = outage_tolerance_seconds
        self._events = events
        self._jitter = jitter

    @property
    def host(self) -> str:
        """The API's host, with its port."""
        return self._client.host

    def send(self, call: Call[T], *, deadline: float | None = None) -> T:
        """Make a call and return its result.

        One last attempt follows when `deadline` is reached, on the clock's `monotonic`. Raises the `ActionError` for the
        response, `Unavailable` if temporary errors last too long, `DeadlinePassed` if they last until the deadline,
        `StartUnconfirmed` if a call that must not be repeated may have been processed, and `Cancelled`.
        """
        state = RetryState(
            clock=self._clock, tolerance_seconds=self._tolerance, server=API, deadline=deadline, breaker=self._breaker
        )

        def attempt() -> T:
            try:
                with self._breaker.request(state):
                    return self._attempt(call, state)
            except TemporaryError as error:
                if error.maybe_processed and not call.repeatable:
                    raise self._unconfirmed(error) from error
                raise

        try:
            return retry(attempt, state, job=call.job, events=self._events, jitter=self._jitter)
        except TemporaryError as error:
            raise self._unavailable(error, state) from error

    def _attempt(self, call: Call[T], state: RetryState) -> T:
        bounds = call.bounds.within(state.begin_attempt())
        answer: ApiResponse | None = None
        try:
            answer = self._take_answer(call, bounds)
            result = result_of(call, answer, self._client, self._clock)
        except TemporaryError as error:
            call.request.maybe_processed = error.maybe_processed
            raise
        except UntrustedError as error:
            raise self._untrusted(error) from error
        except SocksProxyError as error:
            happened = f"the API at {self.host} cannot be reached through a SOCKS proxy"
            raise Unavailable(happened, cause=SOCKS.cause, remedy=SOCKS.remedy) from error
        except ActionError:
            # a final answer but 2xx says that nothing was processed; after a cancel there is none
            if answer is not None and not 200 <= answer.status < 300:
                call.request.maybe_processed = False
            raise
        call.request.maybe_processed = False
        return result

    def _take_answer(self, call: Call[T], bounds: Bounds) -> ApiResponse:
        began = self._clock.monotonic()
        try:
            try:
                return self._exchange(call, bounds, fresh=not call.repeatable)
            except NetworkError as error:
                if not (error.stale and call.repeatable):
                    raise
            # nobody's trouble: the server had put the connection away
            left = bounds.total_seconds - (self._clock.monotonic() - began)
            return self._exchange(call, bounds.within(max(SHORTEST_ATTEMPT_SECONDS, left)), fresh=True)
        except NetworkError as error:
            advice = PROXY if error.proxied else NETWORK if error.sent else _UNREACHED
            raise TemporaryError(error.what, maybe_processed=error.sent, advice=advice) from error

    def _exchange(self, call: Call[T], bounds: Bounds, *, fresh: bool) -> ApiResponse:
        began = self._clock.monotonic()
        outcome, request_id = "ended without an answer", None
        try:
            answer = self._client.send(call.request, bounds, fresh=fresh)
            outcome, request_id = str(answer.status), answer.request_id
        except NetworkError as error:
            outcome = error.what
            raise
        finally:
            milliseconds = (self._clock.monotonic() - began) * 1000
            self._events.request_ended(
                call.job,
                f"{call.request.method} {call.request.url}",
                outcome=outcome,
                milliseconds=milliseconds,
                request_id=request_id,
            )
        return answer

    def _untrusted(self, error: UntrustedError) -> Unavailable:
        whose = f"the proxy for {self.host}" if error.proxied else self.host
        advice = error.advice("API", "`base-url`")
        return Unavailable(
            f"the certificate of {whose} is not trusted",
            facts=(error.fact,),
            cause=advice.cause,
            remedy=advice.remedy,
        )

    def _unconfirmed(self, error: TemporaryError) -> StartUnconfirmed:
        return StartUnconfirmed(
            "it is unknown whether the platform started it",
            facts=(f"{error.what}.", *self._client.quote(error.said)),
            request_id=error.request_id,
        )

    def _unavailable(self, error: TemporaryError, state: RetryState) -> Unavailable | DeadlinePassed:
        failing_since = state.failing_since
        alone = not error.not_ready and failing_since is not None and self._breaker.has_answered_since(failing_since)
        advice = _ALONE if alone else error.advice
        unavailable = Unavailable(
            f"the API at {self.host} {'kept failing for this job alone' if alone else 'stayed unavailable'}",
            facts=(
                f"No good answer came for {seconds(state.outage_seconds())}. The last try: {error.what}.",
                *self._client.quote(error.said),
            ),
            cause=advice.cause,
            remedy=advice.remedy,
            request_id=error.request_id,
        )
        if state.deadline is not None and self._clock.monotonic() >= state.deadline:
            return DeadlinePassed(unavailable)
        return unavailable


_UNREACHED: Final = Advice(
    cause="The host or port in `base-url` is mistyped, or the platform or the network between it and this runner is down.",
    remedy="Check `base-url` and the platform's status page, and run the workflow again.",
)
_ALONE: Final = Advice(
    cause="The API answered others meanwhile, so something about this domain or job makes it fail.",
    remedy="Run the workflow again. If it fails the same way, report it to the platform.",
)
