"""Retries: whether an operation is tried again, when, and for how long."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, Self

import backoff

from ..errors import ActionError, Advice

MAX_PAUSE_SECONDS: Final = 30.0
MIN_ATTEMPT_SECONDS: Final = 2.0
LAST_ATTEMPT_SECONDS: Final = 10.0  # for the one attempt that begins when no time remains

TEMPORARY_STATUSES: Final = frozenset(
    {408, 425, 429, *range(500, 600)}
)  # RFC 9110, section 15; RFC 8470 for 425


@dataclass(eq=False, repr=False)
class TransientError(Exception):
    """An attempt failed, but another attempt may succeed."""

    message: str
    _: KW_ONLY
    advice: Advice
    status: int | None = None  # `None` if no response came
    maybe_processed: bool = True  # the server may have carried out the request
    retry_after_seconds: float = 0.0  # what the server asks for
    retry_until: float = (
        math.inf
    )  # when to try a status again, such as 404, that is final from then on
    tolerance_seconds: float = math.inf  # finite for an error that probably lasts
    details: tuple[str, ...] = ()
    final_error: ActionError | None = None  # what it is if it lasts
    request_id: str | None = None


def backoff_pauses(jitter: Callable[[float], float] | None = None) -> Iterator[float]:
    """Yield the pauses after one failure, two, …: random, up to 1 s, 2 s, 4 s, … `MAX_PAUSE_SECONDS` (full jitter by default)."""
    ceilings = backoff.expo(max_value=MAX_PAUSE_SECONDS)
    next(ceilings)  # begins the generator, which yields `None` first
    yield from map(jitter or backoff.full_jitter, ceilings)


@dataclass(frozen=True, kw_only=True)
class Retry:
    """The retries of one operation, immutable like urllib3's `Retry`. Times are on the clock's `monotonic`."""

    tolerance_seconds: float
    next_attempt_at: float  # or later; for the first attempt, when the operation was asked for
    failing_since: float = math.inf  # when the outage began
    deadline: float = math.inf  # of the operation
    is_idempotent: bool = True  # may be sent again even if the server may have processed it
    error: TransientError | None = None  # of the last attempt

    @property
    def last_attempt_at(self) -> float:
        """When the last attempt begins; infinite if there is neither a deadline nor an outage."""
        tolerance = min(
            self.tolerance_seconds, self.error.tolerance_seconds if self.error else math.inf
        )
        return min(self.deadline, self.failing_since + tolerance)

    def begins_at(self, held_until: float = -math.inf) -> float:
        """Return when the next attempt begins, if the platform asks to hold it back until then."""
        held_until = min(held_until, self.next_attempt_at + self.tolerance_seconds)
        return min(max(self.next_attempt_at, held_until), self.last_attempt_at)

    def attempt_seconds(self, began_at: float) -> float:
        """Return how long an attempt may take, which has no limit here if there may be no other one."""
        remaining = self.last_attempt_at - began_at if self.is_idempotent else math.inf
        return LAST_ATTEMPT_SECONDS if remaining <= 0 else max(MIN_ATTEMPT_SECONDS, remaining)

    def increment(self, error: TransientError, now: float, *, pause_seconds: float) -> Self:
        """Return the state after a failed attempt, or raise its error if there is no further attempt."""
        failed = replace(self, error=error, failing_since=min(self.failing_since, now))
        if self.next_attempt_at >= failed.last_attempt_at or (
            error.maybe_processed and not self.is_idempotent
        ):
            raise error
        return replace(
            failed,
            next_attempt_at=min(
                now + max(pause_seconds, error.retry_after_seconds), error.retry_until
            ),
        )


def read_retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds of a `Retry-After` header, a number or a date (RFC 9110, section 10.2.3), if it is valid."""
    value = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"[0-9]{1,9}", value):
        return float(value)
    until, since = (
        http_date(value),
        http_date(headers.get("Date", "")) or now,
    )  # this machine's clock may be wrong
    return max((until - since).total_seconds(), 0.0) if until is not None else None


def http_date(value: str) -> datetime | None:
    """Return the time of a date in a header (RFC 9110, section 5.6.7), if it is valid."""
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)
