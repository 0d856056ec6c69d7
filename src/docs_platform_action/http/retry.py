"""Retries: attempts with growing pauses, for as long as an outage may last."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
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

LONGEST_PAUSE_SECONDS: Final = 30.0

SHORTEST_ATTEMPT_SECONDS: Final = 2.0
"""Minimum time for an attempt, even if less time remains."""

LAST_ATTEMPT_SECONDS: Final = 10.0
"""Time for the one attempt that begins when no time remains."""

TEMPORARY_STATUSES: Final = frozenset({408, 425, 429, *range(500, 600)})
"""Statuses that are temporary by definition (RFC 9110, section 15; RFC 8470 for 425)."""


PROXY: Final = Advice(
    cause="The proxy that the environment names, in HTTPS_PROXY or the like, is down, or does not serve this host.",
    remedy="Correct the proxy's address, or except the host with NO_PROXY.",
)


class TemporaryError(Exception):
    """An attempt failed in a way that another attempt may not.

    `maybe_processed` says whether the server may have processed the request, and `retry_for_seconds` how long a status is retried
    that is normally final. Two errors come from a healthy server: `not_ready`, because one job is not ready, and `at_capacity`,
    because other jobs of the run have to end first.
    """

    def __init__(
        self,
        what: str,
        *,
        advice: Advice,
        maybe_processed: bool = True,
        retry_after_seconds: float | None = None,
        retry_for_seconds: float = math.inf,
        not_ready: bool = False,
        at_capacity: bool = False,
        said: str | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.advice = advice
        self.maybe_processed = maybe_processed
        self.retry_after_seconds = retry_after_seconds
        self.retry_for_seconds = retry_for_seconds
        self.not_ready = not_ready
        self.at_capacity = at_capacity
        self.said = said
        self.request_id = request_id


@dataclass(kw_only=True)
class RetryState:
    """The attempts of one operation, and the outage that they are in.

    An outage lasts from the first failed attempt to the next success. The tolerance counts from `failing_since`, when that
    attempt failed; reports count from `last_success_at`: the last success, or the beginning of the first attempt. With a
    `breaker`, other jobs send requests to the same server, and the outage is at least as old as the breaker's. `server` is
    `API` or `STORAGE`.
    """

    clock: Clock
    tolerance_seconds: float
    server: str
    deadline: float | None = None
    breaker: "CircuitBreaker | None" = None
    last_success_at: float | None = field(default=None, init=False)
    failing_since: float | None = field(default=None, init=False)
    announced: bool = field(default=False, init=False)
    is_last_attempt: bool = field(default=False, init=False)

    def begin_attempt(self) -> float:
        """Begin an attempt. Return how many seconds it may take."""
        if self.last_success_at is None:
            self.last_success_at = self.clock.monotonic()
        remaining = self.remaining_seconds()
        self.is_last_attempt = remaining <= 0
        return LAST_ATTEMPT_SECONDS if self.is_last_attempt else max(SHORTEST_ATTEMPT_SECONDS, remaining)

    def begin_outage(self) -> bool:
        """Record a failed attempt. Return whether an outage begins with it."""
        begins = self.failing_since is None
        if begins:
            self.failing_since = self.clock.monotonic()
        return begins

    def restart_tolerance(self) -> None:
        """Count the tolerance from now."""
        self.failing_since, self.is_last_attempt = self.clock.monotonic(), False

    def end(self, job: "Job", events: "Events") -> None:
        """Record a success, and announce the end of an outage that was announced."""
        if self.failing_since is not None and self.announced:
            events.recovered(job, self.server, after_seconds=self.clock.monotonic() - self.failing_since)
        self.last_success_at = self.clock.monotonic()
        self.failing_since, self.announced, self.is_last_attempt = None, False, False

    def remaining_seconds(self) -> float:
        """Return how long attempts may continue, infinite without a deadline or an outage."""
        ends = [self.deadline] if self.deadline is not None else []
        ends += [
            since + self.tolerance_seconds for since in (self.failing_since, self._breaker_failing_since()) if since is not None
        ]
        return min(ends) - self.clock.monotonic() if ends else math.inf

    def outage_seconds(self) -> float:
        """Return how long there has been no success."""
        since = [moment for moment in (self.last_success_at, self._breaker_failing_since()) if moment is not None]
        return self.clock.monotonic() - min(since) if since else 0.0

    def pause_seconds(self, ceiling_seconds: float, jitter: Callable[[float], float]) -> float:
        """Return the pause after a failed attempt. With a breaker, all other requests pause too."""
        if self.breaker is None:
            return jitter(ceiling_seconds)
        pause = jitter(max(ceiling_seconds, self.breaker.ceiling_seconds))
        self.breaker.hold_open(pause)
        return pause

    def _breaker_failing_since(self) -> float | None:
        return self.breaker.failing_since if self.breaker is not None else None


def full_jitter(ceiling_seconds: float) -> float:
    """Draw a pause between zero and a ceiling."""
    import backoff  # as in `_growing_ceilings`

    return float(backoff.full_jitter(ceiling_seconds))


def retry(
    attempt: Callable[[], T],
    state: RetryState,
    *,
    job: "Job",
    events: "Events",
    jitter: Callable[[float], float] = full_jitter,
) -> T:
    """Return the result of `attempt`, which is repeated while it raises `TemporaryError`, with pauses that grow.

    Raises the last `TemporaryError` when no time remains, `Cancelled`, and any other error of `attempt`.
    """
    ceilings: Iterator[float] | None = None
    while True:
        try:
            result = attempt()
        except TemporaryError as error:
            if state.begin_outage() or ceilings is None:
                ceilings = _growing_ceilings()
            if error.at_capacity:
                state.restart_tolerance()  # not an outage
            if state.is_last_attempt:
                raise
            remaining = min(state.remaining_seconds(), error.retry_for_seconds)
            pause = max(state.pause_seconds(next(ceilings), jitter), error.retry_after_seconds or 0.0)
            pause = min(pause, max(remaining, 0.0))
            if not state.announced and remaining > 0:
                state.announced = True
                budget = math.inf if error.at_capacity else remaining
                events.retrying(job, state.server, error.what, budget_seconds=budget, pause_seconds=pause)
        else:
            state.end(job, events)
            return result
        state.clock.sleep(pause)


def _growing_ceilings() -> Iterator[float]:
    import backoff  # imports asyncio, which takes 28 ms: not before the first request

    ceilings: Iterator[float] = backoff.expo(base=2, factor=1, max_value=LONGEST_PAUSE_SECONDS)
    next(ceilings)  # primes the generator
    return ceilings


def read_retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds of a `Retry-After` header, a number or a date (RFC 9110, section 10.2.3); `None` without a valid one.

    A date is compared with the response's `Date`, so that this machine's clock does not matter.
    """
    value = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"[0-9]{1,9}", value):
        return float(value)
    until, since = http_date(value), http_date(headers.get("Date", "")) or now
    return max((until - since).total_seconds(), 0.0) if until is not None else None


def http_date(value: str) -> datetime | None:
    """Return a header's date, `None` if it is not a date."""
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
