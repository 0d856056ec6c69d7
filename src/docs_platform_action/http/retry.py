"""Retries: attempts with growing pauses, for as long as an outage is tolerated."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, TypeVar

from ..clock import Clock
from ..errors import Advice

if TYPE_CHECKING:
    from ..events import Events
    from ..job import Job
    from .circuit_breaker import CircuitBreaker

T = TypeVar("T")

MAX_PAUSE_SECONDS: Final = 30.0
MIN_ATTEMPT_SECONDS: Final = 2.0
LAST_ATTEMPT_SECONDS: Final = 10.0  # for the one attempt that begins when no time remains

TEMPORARY_STATUSES: Final = frozenset({408, 425, 429, *range(500, 600)})  # RFC 9110, section 15; RFC 8470 for 425

PROXY: Final = Advice(
    cause="The proxy set in the environment (HTTPS_PROXY or similar) is down, or does not serve this host.",
    remedy="Correct the proxy's address, or exclude the host with NO_PROXY.",
)


@dataclass(eq=False, repr=False)
class TransientError(Exception):
    """An attempt failed, but another attempt may succeed."""

    message: str
    _: KW_ONLY
    advice: Advice
    maybe_processed: bool = True  # the server may have carried out the request
    retry_after_seconds: float | None = None
    retry_for_seconds: float = math.inf  # finite for a status, such as 404, that is retried only for a while
    job_specific: bool = False  # the server is healthy, but this job is not ready
    at_capacity: bool = False  # the server is healthy, but other jobs of the run have to end first
    details: tuple[str, ...] = ()
    request_id: str | None = None


def full_jitter(ceiling_seconds: float) -> float:
    """Return a random pause between zero and a ceiling."""
    import backoff  # it imports asyncio, which takes 28 ms: not before the first request

    return float(backoff.full_jitter(ceiling_seconds))


def backoff_ceilings() -> Iterator[float]:
    """Return the longest pause after each failure, in seconds: 1, 2, 4, … up to `MAX_PAUSE_SECONDS`."""
    import backoff

    ceilings: Iterator[float] = backoff.expo(base=2, factor=1, max_value=MAX_PAUSE_SECONDS)
    next(ceilings)  # primes the generator
    return ceilings


@dataclass(kw_only=True)
class RetryState:
    """The attempts of one operation, and the outage that they are in: from the first failed attempt to the next success."""

    job: "Job"
    events: "Events"
    clock: Clock
    tolerance_seconds: float
    server: str
    jitter: Callable[[float], float] = full_jitter
    deadline: float = math.inf  # on the clock's `monotonic`
    breaker: "CircuitBreaker | None" = None  # if its outage began earlier, that start counts
    last_success_at: float = math.inf  # until the first success, the first attempt
    failing_since: float = math.inf  # infinite while the server responds
    reported: bool = False
    is_last_attempt: bool = False

    def start_attempt(self) -> float:
        """Begin an attempt, and return how many seconds it may take."""
        self.last_success_at = min(self.last_success_at, self.clock.monotonic())
        remaining = self.remaining_seconds()
        self.is_last_attempt = remaining <= 0
        return LAST_ATTEMPT_SECONDS if self.is_last_attempt else max(MIN_ATTEMPT_SECONDS, remaining)

    def record_failure(self) -> None:
        """Begin an outage, unless one has already begun."""
        self.failing_since = min(self.failing_since, self.clock.monotonic())

    def record_success(self) -> None:
        """End the outage, and announce its end if it was reported."""
        now = self.clock.monotonic()
        if self.reported:
            self.events.recovered(self.job, self.server, after_seconds=now - self.failing_since)
        self.last_success_at = now
        self.failing_since, self.reported, self.is_last_attempt = math.inf, False, False

    def remaining_seconds(self) -> float:
        """Return how long attempts may continue; infinite if there is neither a deadline nor an outage."""
        outage_ends_at = min(self.failing_since, self._breaker_failing_since) + self.tolerance_seconds
        return min(self.deadline, outage_ends_at) - self.clock.monotonic()

    def outage_seconds(self) -> float:
        """Return the time since the last success, or since the first attempt."""
        now = self.clock.monotonic()
        return now - min(now, self.last_success_at, self._breaker_failing_since)

    def pause_seconds(self, ceiling_seconds: float) -> float:
        """Return the pause after a failed attempt, during which the breaker blocks all requests."""
        if self.breaker is None:
            return self.jitter(ceiling_seconds)
        pause = self.jitter(max(ceiling_seconds, self.breaker.ceiling_seconds))
        self.breaker.back_off(pause)
        return pause

    @property
    def _breaker_failing_since(self) -> float:
        return self.breaker.failing_since if self.breaker is not None else math.inf


def retry(attempt: Callable[[], T], state: RetryState) -> T:
    """Return the result of `attempt`, repeated with growing pauses while it raises `TransientError` and time remains.

    `attempt` has to call `state.start_attempt`, which decides whether it is the last one.
    """
    ceilings: Iterator[float] | None = None
    while True:
        try:
            result = attempt()
        except TransientError as error:
            if state.failing_since == math.inf or ceilings is None:
                ceilings = backoff_ceilings()
            state.record_failure()
            if error.at_capacity:  # not an outage: the tolerance counts from now
                state.failing_since, state.is_last_attempt = state.clock.monotonic(), False
            if state.is_last_attempt:
                raise
            remaining = min(state.remaining_seconds(), error.retry_for_seconds)
            pause = max(state.pause_seconds(next(ceilings)), error.retry_after_seconds or 0.0)
            pause = min(pause, max(remaining, 0.0))
            if not state.reported and remaining > 0:
                state.reported = True
                budget = math.inf if error.at_capacity else remaining
                state.events.retrying(state.job, state.server, error.message, budget_seconds=budget, pause_seconds=pause)
        else:
            state.record_success()
            return result
        state.clock.sleep(pause)


def read_retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds of a `Retry-After` header, a number or a date (RFC 9110, section 10.2.3), if it is valid."""
    value = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"[0-9]{1,9}", value):
        return float(value)
    # not `now` if possible: this machine's clock may be wrong
    until, since = _http_date(value), _http_date(headers.get("Date", "")) or now
    return max((until - since).total_seconds(), 0.0) if until is not None else None


def _http_date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)
