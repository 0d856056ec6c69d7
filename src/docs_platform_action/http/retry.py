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

# RFC 9110, section 15; RFC 8470 for 425
TEMPORARY_STATUSES: Final = frozenset({408, 425, 429, *range(500, 600)})


@dataclass(eq=False, repr=False)
class TransientError(Exception):
    """An attempt failed, but another attempt may succeed."""

    message: str
    _: KW_ONLY
    advice: Advice
    status: int | None = None  # `None` if no response came
    maybe_processed: bool = True  # the server may have carried out the request
    retry_after_seconds: float = 0.0  # what the server asks for
    # a status such as 404 is retried at this time at the latest, and is final from then on
    retry_until: float = math.inf
    tolerance_seconds: float = math.inf  # finite for an error that probably lasts
    details: tuple[str, ...] = ()
    final_error: ActionError | None = None  # what it is if it lasts
    request_id: str | None = None


def backoff_pauses(jitter: Callable[[float], float] | None = None) -> Iterator[float]:
    """Yield a random pause after each failure: up to 1 s, 2 s, 4 s … `MAX_PAUSE_SECONDS`.

    By default, it is anything from zero to that ceiling (full jitter).
    """
    choose_pause = jitter or backoff.full_jitter
    ceilings = backoff.expo(max_value=MAX_PAUSE_SECONDS)
    next(ceilings)  # begins the generator, which yields `None` first
    for ceiling in ceilings:
        yield choose_pause(ceiling)


@dataclass(frozen=True, kw_only=True)
class Retry:
    """The retries of one operation, immutable like urllib3's `Retry`.

    Times are on the clock's `monotonic`.
    """

    tolerance_seconds: float
    next_attempt_at: float  # or later; for the first attempt, when the operation was asked for
    failing_since: float = math.inf  # when the outage began
    deadline: float = math.inf  # of the operation
    is_idempotent: bool = True  # may be sent again even if the server may have processed it
    error: TransientError | None = None  # of the last attempt

    @property
    def last_attempt_at(self) -> float:
        """When the last attempt begins; infinite if there is neither a deadline nor an outage."""
        tolerance_seconds = self.tolerance_seconds
        if self.error is not None:
            tolerance_seconds = min(tolerance_seconds, self.error.tolerance_seconds)
        return min(self.deadline, self.failing_since + tolerance_seconds)

    def begins_at(self, held_until: float = -math.inf) -> float:
        """Return when the next attempt begins, if the platform asks to hold it back until then."""
        longest_hold = self.next_attempt_at + self.tolerance_seconds
        begins_at = max(self.next_attempt_at, min(held_until, longest_hold))
        return min(begins_at, self.last_attempt_at)

    def attempt_seconds(self, began_at: float) -> float:
        """Return how long an attempt may take. One that must not be repeated has no limit here."""
        if not self.is_idempotent:
            return math.inf
        remaining_seconds = self.last_attempt_at - began_at
        if remaining_seconds <= 0:
            return LAST_ATTEMPT_SECONDS
        return max(MIN_ATTEMPT_SECONDS, remaining_seconds)

    def increment(self, error: TransientError, now: float, *, pause_seconds: float) -> Self:
        """Return the state after a failed attempt.

        Raises the attempt's error if there is no further attempt.
        """
        failed = replace(self, error=error, failing_since=min(self.failing_since, now))
        was_last_attempt = self.next_attempt_at >= failed.last_attempt_at
        if was_last_attempt or (error.maybe_processed and not self.is_idempotent):
            raise error
        resumes_at = now + max(pause_seconds, error.retry_after_seconds)
        return replace(failed, next_attempt_at=min(resumes_at, error.retry_until))


def read_retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds of a `Retry-After` header, if it is valid.

    It is a number or a date (RFC 9110, section 10.2.3).
    """
    value = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"[0-9]{1,9}", value):
        return float(value)
    until = http_date(value)
    if until is None:
        return None
    # by the server's clock, if it sent its time: this machine's clock may be wrong
    since = http_date(headers.get("Date", "")) or now
    return max((until - since).total_seconds(), 0.0)


def http_date(value: str) -> datetime | None:
    """Return the time of a date in a header (RFC 9110, section 5.6.7), if it is valid."""
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if date.tzinfo is None:
        return date.replace(tzinfo=UTC)
    return date
