"""Retries: whether an operation is tried again, when, and for how long."""

import http
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, Self

from ..errors import Advice

MAX_PAUSE_SECONDS: Final = 30.0
_MAX_DOUBLINGS: Final = 16  # more than the longest pause takes
MIN_ATTEMPT_SECONDS: Final = 2.0
LAST_ATTEMPT_SECONDS: Final = 10.0  # for the one attempt that begins when no time remains

TEMPORARY_STATUSES: Final = frozenset({408, 425, 429, *range(500, 600)})  # RFC 9110, section 15; RFC 8470 for 425

PROXY: Final = Advice(
    cause="The proxy set in the environment (HTTPS_PROXY or similar) is down, or does not serve this host.",
    remedy="Correct the proxy's address, let it serve this host, or exclude the host with NO_PROXY.",
)


@dataclass(eq=False, repr=False)
class TransientError(Exception):
    """An attempt failed, but another attempt may succeed."""

    message: str
    _: KW_ONLY
    advice: Advice
    status: int | None = None  # `None` if no response came
    maybe_processed: bool = True  # the server may have carried out the request
    retry_after_seconds: float | None = None
    retry_until: float = math.inf  # when to try a status again, such as 404, that is final from then on
    tolerance_seconds: float = math.inf  # finite for an error that probably lasts
    job_specific: bool = False  # the server is healthy, but this job is not ready
    details: tuple[str, ...] = ()
    request_id: str | None = None

    @property
    def is_throttled(self) -> bool:
        """Whether the server asks to try later."""
        return self.status == http.HTTPStatus.TOO_MANY_REQUESTS or self.retry_after_seconds is not None


def full_jitter(ceiling_seconds: float) -> float:
    """Return a random pause between zero and a ceiling."""
    import backoff  # it imports asyncio, which takes 28 ms: not before the first request

    return float(backoff.full_jitter(ceiling_seconds))


def pause_ceiling(failures: int) -> float:
    """Return the longest pause after this many failures in a row: 1, 2, 4, … up to `MAX_PAUSE_SECONDS`."""
    import backoff

    ceilings: Iterator[float] = backoff.expo(base=2, factor=1, max_value=MAX_PAUSE_SECONDS)
    next(ceilings)  # primes the generator
    return next(itertools.islice(ceilings, min(failures, _MAX_DOUBLINGS) - 1, None))


@dataclass(frozen=True, kw_only=True)
class Retry:
    """The retries of one operation, immutable like urllib3's `Retry`. Times are on the clock's `monotonic`.

    `started_at` is when the operation was asked for or last made progress, and `failing_since` when its first attempt failed.
    `server_failing_since` is when the server began to fail for all jobs, until any of them gets a response.
    """

    tolerance_seconds: float
    started_at: float
    failing_since: float = math.inf
    server_failing_since: float = math.inf
    deadline: float = math.inf
    is_idempotent: bool = True  # may be sent again even if the server may have processed it
    jitter: Callable[[float], float] = full_jitter
    error: TransientError | None = None  # of the last attempt
    failures: int = 0
    next_attempt_at: float = -math.inf

    @property
    def outage_began_at(self) -> float:
        """When the outage began that the operation is in; infinite if it is in none."""
        return min(self.failing_since, self.server_failing_since)

    @property
    def last_attempt_at(self) -> float:
        """When the last attempt begins; infinite if there is neither a deadline nor an outage."""
        tolerance = min(self.tolerance_seconds, self.error.tolerance_seconds if self.error else math.inf)
        return min(self.deadline, self.outage_began_at + tolerance)

    @property
    def turn_ends_at(self) -> float:
        """Until when an attempt may wait for requests of other jobs."""
        is_failing = self.failing_since < math.inf
        return self.last_attempt_at if is_failing else min(self.last_attempt_at, self.started_at + self.tolerance_seconds)

    @property
    def ready_at(self) -> float:
        """When the next attempt is ready to begin, unless requests of other jobs block it."""
        return min(self.next_attempt_at, self.turn_ends_at)

    def tolerated(self, until: float) -> Self:
        """Return the state in which the wait, and the operation's own outage if there is one, begin no earlier than this."""
        failing_since = self.failing_since if self.failing_since == math.inf else max(self.failing_since, until)
        return replace(self, started_at=max(self.started_at, until), failing_since=failing_since)

    def attempt_seconds(self, began_at: float) -> float:
        """Return how long an attempt may take."""
        remaining = self.last_attempt_at - began_at
        return LAST_ATTEMPT_SECONDS if remaining <= 0 else max(MIN_ATTEMPT_SECONDS, remaining)

    def increment(
        self,
        error: TransientError,
        *,
        began_at: float,
        now: float,
        server_failing_since: float = math.inf,
        server_failures: int = 0,
    ) -> Self:
        """Return the state after a failed attempt, or raise its error if there is no further attempt."""
        failed = replace(
            self,
            failing_since=min(self.failing_since, now),
            server_failing_since=server_failing_since,
            error=error,
            failures=self.failures + 1,
        )
        if began_at >= failed.last_attempt_at or (error.maybe_processed and not self.is_idempotent):
            raise error
        pause = max(self.jitter(pause_ceiling(max(failed.failures, server_failures))), error.retry_after_seconds or 0.0)
        return replace(failed, next_attempt_at=min(now + pause, error.retry_until))


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
