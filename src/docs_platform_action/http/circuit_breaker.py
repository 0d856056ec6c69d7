"""A circuit breaker: while a server fails, one request at a time tests whether it works again."""

import contextlib
import math
import threading
from collections.abc import Iterator
from typing import Final

from ..clock import Clock
from ..errors import ActionError, Cancelled
from .rate_limit import QueuedRequest, RateLimiter
from .retry import MAX_PAUSE_SECONDS, RetryState, TransientError, backoff_ceilings

RECHECK_SECONDS: Final = 0.25  # how often a blocked request checks whether it may begin
AT_CAPACITY_SECONDS: Final = 1.0  # the pause for all requests when the platform is at capacity and sends no `Retry-After`
_ROUNDING_SECONDS: Final = 1e-6


class CircuitBreaker:
    """Blocks the requests of all jobs to one server while it fails. Safe to use from several threads.

    A temporary error opens it, and a pause follows, which the failed request draws below a ceiling that doubles with each failed
    probe. Then the oldest request in the rate limiter's queue is the probe, and the others wait for its result. A failed request
    joins the queue's end when it is repeated, so the next probe comes from another job. Any response closes the breaker. A
    `Retry-After` blocks all requests, but a request whose sender has no time left is never blocked.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._limiter = RateLimiter()
        self._lock = threading.Lock()
        self.failing_since = math.inf  # infinite while the server responds
        self.ceiling_seconds = 0.0
        self._ceilings: Iterator[float] = iter(())
        self._probe: QueuedRequest | None = None
        self._open_until = self._drawn_until = -math.inf
        self._retry_after_received_at = self._retry_after_until = -math.inf
        self.last_answered_began_at = -math.inf

    @contextlib.contextmanager
    def request(self, state: RetryState) -> Iterator[None]:
        """Wait until a request may begin, then record its result. Raises `Cancelled`."""
        request = QueuedRequest()
        with self._lock:
            self._limiter.queue.append(request)
        try:
            while (pause := self._begin(request, state.remaining_seconds())) > 0:
                self._clock.sleep(pause)
            yield
        except TransientError as error:
            if error.job_specific or error.at_capacity:
                self._succeeded(request)
            else:
                self._failed(request, error)
            if error.at_capacity:
                self._block(error.retry_after_seconds or AT_CAPACITY_SECONDS)
            raise
        except ActionError as error:
            if not isinstance(error, Cancelled):
                self._succeeded(request)  # the server responded
            raise
        else:
            self._succeeded(request)
        finally:
            with self._lock:
                if request in self._limiter.queue:
                    self._limiter.queue.remove(request)
                if self._probe is request:
                    self._probe = None

    def back_off(self, pause_seconds: float) -> None:
        """Keep an open breaker open for a failed request's pause, up to the ceiling."""
        with self._lock:
            if self.failing_since < math.inf:
                until = self._clock.monotonic() + min(pause_seconds, self.ceiling_seconds)
                self._open_until = self._drawn_until = max(self._drawn_until, until)

    def _begin(self, request: QueuedRequest, remaining_seconds: float) -> float:
        """Begin a request and return 0, or return the seconds until the next call."""
        with self._lock:
            now = self._clock.monotonic()
            request.is_overdue = remaining_seconds <= 0
            delay = self._limiter.delay_seconds(request, now)
            blocked = 0.0 if request.is_overdue else self._blocked_seconds(request, now)
            if delay <= 0 and blocked <= 0:
                self._limiter.begin(request, now)
                if self.failing_since < math.inf and not request.is_overdue:
                    self._probe = request
                return 0.0
        pause = max(delay, min(blocked, RECHECK_SECONDS))
        return max(pause if request.is_overdue else min(pause, remaining_seconds), _ROUNDING_SECONDS)

    def _blocked_seconds(self, request: QueuedRequest, now: float) -> float:
        open_seconds = max(self._retry_after_until, self._open_until) - now
        if open_seconds > _ROUNDING_SECONDS:
            return open_seconds
        if self.failing_since == math.inf:
            return 0.0
        # a probe that takes longer may wait for a bundle that is being packed
        is_probing = self._probe is not None and now < self._probe.began_at + MAX_PAUSE_SECONDS
        return RECHECK_SECONDS if is_probing or request is not self._limiter.queue[0] else 0.0

    def _block(self, retry_after_seconds: float) -> None:
        with self._lock:
            self._retry_after_received_at = self._clock.monotonic()
            self._retry_after_until = max(self._retry_after_until, self._retry_after_received_at + retry_after_seconds)

    def _failed(self, request: QueuedRequest, error: TransientError) -> None:
        if error.retry_after_seconds is not None:
            self._block(error.retry_after_seconds)
        with self._lock:
            now = self._clock.monotonic()
            was_rejected = error.retry_after_seconds is not None or not error.maybe_processed
            if not was_rejected and request.began_at < self.last_answered_began_at:
                return  # a request that began later has been answered since
            if self.failing_since == math.inf:
                self.failing_since = now
                self._ceilings = backoff_ceilings()
                self.ceiling_seconds = next(self._ceilings)
            elif self._probe is request:  # others that were under way may fail in large numbers
                self.ceiling_seconds = next(self._ceilings)
            # until the failed request draws its pause, which it does not if it gives up
            self._open_until = max(self._open_until, now + self.ceiling_seconds)

    def _succeeded(self, request: QueuedRequest) -> None:
        with self._lock:
            self.last_answered_began_at = max(self.last_answered_began_at, request.began_at)
            self.failing_since = math.inf
            self.ceiling_seconds = 0.0
            self._open_until = self._drawn_until = -math.inf
            if request.began_at > self._retry_after_received_at:  # a response to an earlier request does not end the pause
                self._retry_after_until = -math.inf
