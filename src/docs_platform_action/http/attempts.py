"""Attempts: whether an operation is tried again, when, and for how long.

The loop is the same for the API, the storage and GitHub. It announces nothing.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import Final, Self

import backoff

from ..clock import Clock
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
    is_unprocessed: bool = False  # the server has certainly not carried out the request
    retry_after_seconds: float = 0.0  # what the server asks for
    # a status such as 404 is retried at this time at the latest, and is final from then on
    retry_until: float = math.inf
    tolerance_seconds: float = math.inf  # finite for an error that probably lasts
    details: tuple[str, ...] = ()
    final_error: ActionError | None = None  # the failure, if the error lasts
    request_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Retry:
    """The decision about the next attempt of an operation, immutable like urllib3's `Retry`.

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
        """Return when the next attempt begins, if the server asks to hold it back until then."""
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

    def after(self, error: TransientError, now: float, *, pause_seconds: float) -> Self | None:
        """Return the decision after a failed attempt, or `None` if it was the last one.

        What must not be done twice is tried again only if it was certainly not processed.
        """
        failed = replace(self, error=error, failing_since=min(self.failing_since, now))
        if self.next_attempt_at >= failed.last_attempt_at:
            return None
        if not self.is_idempotent and not error.is_unprocessed:
            return None
        resumes_at = now + max(pause_seconds, error.retry_after_seconds)
        return replace(failed, next_attempt_at=min(resumes_at, error.retry_until))


@dataclass(frozen=True, kw_only=True)
class Pause:
    """The pause before the next attempt, in seconds."""

    seconds: float
    budget_seconds: float  # until the last attempt
    is_first: bool  # since the last success


class Attempts:
    """The attempts of one operation.

    Iterating waits before each attempt, and ends when no further one is allowed: then `error` is
    that of the last one. The caller leaves the loop with the first success, and reports each
    failure to `failed`. After a success, `reset` begins anew.
    """

    error: TransientError  # of the last attempt, once one has failed

    def __init__(
        self,
        clock: Clock,
        *,
        tolerance_seconds: float = math.inf,
        deadline: float = math.inf,
        is_idempotent: bool = True,
        jitter: Callable[[float], float] | None = None,
    ) -> None:
        self._clock = clock
        self._jitter = jitter
        self._first = Retry(
            tolerance_seconds=tolerance_seconds,
            next_attempt_at=clock.monotonic(),
            deadline=deadline,
            is_idempotent=is_idempotent,
        )
        self.reset()

    def reset(self) -> None:
        """Begin anew: the operation has succeeded, or a part of it has."""
        self.began_at = self._clock.monotonic()
        self.retry = replace(self._first, next_attempt_at=self.began_at)
        self._is_over = False
        self._pauses = backoff_pauses(self._jitter)

    def __iter__(self) -> Iterator[int]:
        """Yield the number of each attempt once it may begin. Raises `Cancelled`."""
        number = 0
        while not self._is_over:
            self.wait()
            number += 1
            yield number

    def wait(self) -> None:
        """Wait until the next attempt may begin. Raises `Cancelled`."""
        if self.has_failed:
            self._clock.sleep(self.retry.begins_at() - self._clock.monotonic())
        self.begin()

    def hold_seconds(self, held_until: float) -> float:
        """Return how much longer the attempt is held back, if the server asks for that."""
        return self.retry.begins_at(held_until) - self._clock.monotonic()

    def begin(self) -> None:
        """Record that the attempt begins now, after a hold."""
        now = self._clock.monotonic()
        self.retry = replace(self.retry, next_attempt_at=max(self.retry.next_attempt_at, now))

    @property
    def has_failed(self) -> bool:
        """Whether an attempt has failed since the last success."""
        return self.retry.error is not None

    @property
    def time_limit_seconds(self) -> float:
        """How long an attempt may take that begins now."""
        return self.retry.attempt_seconds(self._clock.monotonic())

    @property
    def elapsed_seconds(self) -> float:
        """How long the operation has been tried."""
        return self._clock.monotonic() - self.began_at

    def failed(self, error: TransientError, *, pause_seconds: float | None = None) -> Pause | None:
        """Return the pause after a failed attempt, or `None` if there is no further attempt.

        Without `pause_seconds`, pauses grow.
        """
        now = self._clock.monotonic()
        is_first = not self.has_failed
        self.error = error
        if pause_seconds is None:
            pause_seconds = next(self._pauses)
        retry = self.retry.after(error, now, pause_seconds=pause_seconds)
        if retry is None:
            self._is_over = True
            return None
        self.retry = retry
        return Pause(
            seconds=retry.begins_at() - now,
            budget_seconds=min(retry.last_attempt_at, error.retry_until) - now,
            is_first=is_first,
        )


def backoff_pauses(jitter: Callable[[float], float] | None = None) -> Iterator[float]:
    """Yield a random pause after each failure: up to 1 s, 2 s, 4 s … `MAX_PAUSE_SECONDS`.

    By default, it is anything from zero to that ceiling (full jitter).
    """
    choose_pause = jitter or backoff.full_jitter
    ceilings = backoff.expo(max_value=MAX_PAUSE_SECONDS)
    next(ceilings)  # begins the generator, which yields `None` first
    for ceiling in ceilings:
        yield choose_pause(ceiling)
