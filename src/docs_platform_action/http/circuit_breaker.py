"""A circuit breaker: while a server fails, one request at a time tests whether it works again."""

import contextlib
import http
import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from ..clock import Clock
from .rate_limit import QueuedRequest, RateLimiter
from .retry import MAX_PAUSE_SECONDS, Retry, TransientError, pause_ceiling

RECHECK_SECONDS: Final = 0.25  # how often a blocked request checks whether it may begin
_ROUNDING_SECONDS: Final = 1e-6


@dataclass(kw_only=True)
class Circuit:
    """What a run knows of a server. It blocks requests until `open_until`, then while one of them probes a failing server."""

    failing_since: float = math.inf  # infinite while the server responds
    failures: int = 0  # in a row; requests that were under way at the same time count once
    open_until: float = -math.inf
    _failed_at: float = -math.inf
    _probe: QueuedRequest | None = None
    _queue: dict[QueuedRequest, None] = field(default_factory=dict)  # ordered: the oldest is the next probe

    def blocked_seconds(self, request: QueuedRequest, now: float) -> float:
        """Queue a request, and return for how long it may not begin."""
        self._queue.setdefault(request)
        if self.open_until - now > _ROUNDING_SECONDS:
            return self.open_until - now
        if self.failing_since == math.inf:
            return 0.0
        # a probe that takes longer may wait for a bundle that is being packed
        is_probed = self._probe is not None and now < self._probe.began_at + MAX_PAUSE_SECONDS
        return RECHECK_SECONDS if is_probed or request is not next(iter(self._queue)) else 0.0

    def leave(self, request: QueuedRequest) -> None:
        """Remove a request from the queue, if it is there."""
        self._queue.pop(request, None)

    def begin(self, request: QueuedRequest) -> None:
        """Record that a request begins, which is the probe if the server fails."""
        self.leave(request)
        if self.failing_since < math.inf and not request.is_overdue:
            self._probe = request

    def recover(self) -> None:
        """Record that the server works. A pause that it asked for goes on."""
        self.failing_since, self.failures = math.inf, 0

    def succeed(self, request: QueuedRequest) -> None:
        """Record a response. One to a request that began before the latest failure does not end the pause after it."""
        self.recover()
        if request.began_at >= self._failed_at:
            self.open_until = -math.inf

    def fail(self, request: QueuedRequest, now: float) -> None:
        """Record a failure."""
        self.failing_since = min(self.failing_since, now)
        self.failures += self.failures == 0 or request.began_at >= self._failed_at
        self._failed_at = now

    def end(self, request: QueuedRequest) -> None:
        """Record that a request has ended, or will not begin."""
        self.leave(request)
        if self._probe is request:
            self._probe = None


class CircuitBreaker:
    """Decides when a request of any job of a run may begin. Safe to use from several threads.

    A temporary error blocks all requests for the pause of the failed one; then one request at a time probes the server until a
    response comes. Requests that start jobs have a second circuit: a server that asks to try one of them later blocks only them.
    An overdue request, whose operation has no time left, is not blocked, but keeps to the rate limit.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._limiter = RateLimiter()
        self._lock = threading.Lock()
        self._circuit, self._start_circuit = Circuit(), Circuit()
        self.answered_at = -math.inf  # when the latest response came

    @contextlib.contextmanager
    def request(self, *, is_start: bool) -> Iterator[QueuedRequest]:
        """Yield a request, which begins when `begin` returns 0."""
        request = QueuedRequest(is_start=is_start)
        try:
            yield request
        finally:
            with self._lock:
                self._limiter.leave(request)
                for circuit in self._circuits(is_start=is_start):
                    circuit.end(request)

    def begin(self, request: QueuedRequest, retry: Retry) -> float:
        """Begin a request and return 0, or return the seconds until the next call."""
        with self._lock:
            now = self._clock.monotonic()
            remaining = retry.turn_ends_at - now
            request.is_overdue = remaining <= 0
            circuits = self._circuits(is_start=request.is_start)
            pause = 0.0 if request.is_overdue else self._blocked_seconds(request, retry.ready_at - now, now)
            if pause <= 0:
                pause = self._limiter.delay_seconds(request, now)
            if pause <= 0:
                self._limiter.begin(request, now)
                for circuit in circuits:
                    circuit.begin(request)
                return 0.0
        return max(pause if request.is_overdue else min(pause, remaining), _ROUNDING_SECONDS)

    def succeeded(self, request: QueuedRequest) -> None:
        """Record the response to a request."""
        with self._lock:
            self.answered_at = self._clock.monotonic()
            for circuit in self._circuits(is_start=request.is_start):
                circuit.succeed(request)

    def failed(self, request: QueuedRequest, error: TransientError, retry: Retry) -> Retry:
        """Record a temporary error, and return the next state of the retries. Raises the error if there is no further attempt."""
        with self._lock:
            now = self._clock.monotonic()
            if error.job_specific:
                self._circuit.succeed(request)
                return retry.increment(error, began_at=request.began_at, now=now)
            circuit = self._circuit
            if request.is_start and error.is_throttled:
                circuit = self._start_circuit
                if error.status == http.HTTPStatus.TOO_MANY_REQUESTS:  # it may only lack room for another job
                    self._circuit.recover()
            circuit.fail(request, now)
            pause_until = now + max(pause_ceiling(circuit.failures), error.retry_after_seconds or 0.0)
            try:
                following = retry.increment(
                    error,
                    began_at=request.began_at,
                    now=now,
                    server_failing_since=self.failing_since(is_start=request.is_start),
                    server_failures=circuit.failures,
                )
                pause_until = min(pause_until, following.next_attempt_at)
                return following
            finally:
                circuit.open_until = max(circuit.open_until, pause_until)

    def failing_since(self, *, is_start: bool) -> float:
        """Return since when the server has failed for all jobs; infinite if it has not."""
        return min(circuit.failing_since for circuit in self._circuits(is_start=is_start))

    def tolerate_starts(self, until: float) -> None:
        """Let the outage of the starts, if there is one, begin no earlier than this."""
        with self._lock:
            if self._start_circuit.failing_since < math.inf:
                self._start_circuit.failing_since = max(self._start_circuit.failing_since, until)

    def _circuits(self, *, is_start: bool) -> Sequence[Circuit]:
        return (self._start_circuit, self._circuit) if is_start else (self._circuit,)

    def _blocked_seconds(self, request: QueuedRequest, own_pause_seconds: float, now: float) -> float:
        if own_pause_seconds > _ROUNDING_SECONDS:
            return own_pause_seconds
        for number, circuit in enumerate(circuits := self._circuits(is_start=request.is_start)):
            if (blocked := circuit.blocked_seconds(request, now)) > 0:
                self._limiter.leave(request)
                for later in circuits[number + 1 :]:  # there, it would block those behind it
                    later.leave(request)
                return min(blocked, RECHECK_SECONDS)  # a circuit may close at any time
        return 0.0
