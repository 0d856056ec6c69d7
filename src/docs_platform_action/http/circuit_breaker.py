"""One picture of the API's health for all who talk to it: how often it is asked, when it wants a pause, who tries it again."""

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from ..clock import Clock
from ..errors import ActionError, Cancelled
from .retry import LONGEST_PAUSE_SECONDS, TemporaryError

REQUESTS_A_SECOND: Final = 10
"""As many as ten jobs make, `max-parallel`'s default, at the default `poll-interval`; more jobs are each read less often."""

SPREAD_SECONDS: Final = 0.1
"""By how much closer together requests may arrive than they were sent; so much longer than a second is what is counted in."""

LOOK_SECONDS: Final = 0.25
"""How soon those that are held up see that they are so no more."""

NO_ROOM_SECONDS: Final = 1.0
"""The pause for all when the platform has no room for one more job and asks for no pause itself."""

_NEVER: Final = float("-inf")

_NEXT_TO_NOTHING: Final = 1e-6
"""Less than that is left of a pause by the rounding of numbers alone."""


@dataclass(eq=False)
class _Turn:
    """One request's: when it began, once it has, and whether the time is up for whoever sends it."""

    begun: float = _NEVER
    overdue: bool = False


class Health:
    """Lets requests through to one API. Safe to use from several threads.

    No more than `most_a_second` begin within any second, whoever sends them, nor arrive within one, where none is on its way for
    `spread_seconds` longer than another. They stand in a row, in which those come first for whom the time is up, then whoever
    came first. While nothing but temporary errors comes, one request at a time is let through, after a pause that grows, and all
    others wait for what becomes of it: an outage costs the API as many requests of a hundred jobs as of one. One that just
    failed comes back to the row's end, so another one tries, and a job that alone gets nothing but errors keeps nobody up. A
    `Retry-After` holds for all.
    """

    def __init__(self, clock: Clock, *, most_a_second: int = REQUESTS_A_SECOND, spread_seconds: float = SPREAD_SECONDS) -> None:
        self._clock = clock
        self._most = most_a_second
        self._window_seconds = 1.0 + spread_seconds
        self._lock = threading.Lock()
        self._row: dict[_Turn, None] = {}
        self._begun = deque([_NEVER] * most_a_second, maxlen=most_a_second)
        self._trying: _Turn | None = None
        self._troubled_since: float | None = None
        self._failures = 0
        self._held_until = self._drawn_until = _NEVER
        self._asked_at = self._asked_until = _NEVER
        self._newest_answered = _NEVER

    def has_answered_since(self, moment: float) -> bool:
        """Tell whether something that was sent after a moment on the clock's `monotonic` has been answered."""
        return self._newest_answered > moment

    @property
    def troubled_since(self) -> float | None:
        """When the first of the errors came that are the latest news, on the clock's `monotonic`; `None` in good times."""
        return self._troubled_since

    @property
    def ceiling_seconds(self) -> float:
        """What the pause may be that the latest failures are worth."""
        return float(min(2 ** min(max(self._failures - 1, 0), 10), LONGEST_PAUSE_SECONDS))

    @contextlib.contextmanager
    def request(self, left_seconds: Callable[[], float]) -> Iterator[None]:
        """Wait for a request's turn, and learn from what comes of it: a `TemporaryError`, or an answer.

        When there is no time left for whoever sends it, it is not held up but for the bound on requests a second. Raises
        `Cancelled`.
        """
        turn = _Turn()
        try:
            self._wait(turn, left_seconds)
            yield
        except TemporaryError as error:
            if error.not_ready:
                self._answered(turn)
            elif error.at_capacity:
                self._answered(turn)
                self._ask_for_pause(error.retry_after_seconds or NO_ROOM_SECONDS)
            else:
                self._failed(turn, error)
            raise
        except Cancelled:
            raise
        except ActionError:
            self._answered(turn)  # a refusal is an answer too
            raise
        else:
            self._answered(turn)
        finally:
            with self._lock:
                self._row.pop(turn, None)
                if self._trying is turn:
                    self._trying = None

    def hold(self, pause_seconds: float) -> None:
        """Have the others wait as well while one that failed makes a pause; not longer than what all have seen is worth."""
        with self._lock:
            if self._troubled_since is None:  # it is the trouble of one
                return
            until = self._clock.monotonic() + min(pause_seconds, self.ceiling_seconds)
            self._held_until = self._drawn_until = max(self._drawn_until, until)

    def _wait(self, turn: _Turn, left_seconds: Callable[[], float]) -> None:
        with self._lock:
            self._row[turn] = None
        while (pause := self._let_begin(turn, left_seconds())) > 0:
            self._clock.sleep(pause)

    def _let_begin(self, turn: _Turn, left_seconds: float) -> float:
        """Let a request begin and give 0, or tell in how many seconds it is to look again."""
        with self._lock:
            now = self._clock.monotonic()
            turn.overdue = left_seconds <= 0
            in_row = self._due(turn, now) - now
            held = 0.0 if turn.overdue else self._held_seconds(turn, now)
            if in_row <= 0 and held <= 0:
                del self._row[turn]
                turn.begun = now
                self._begun.append(now)
                if self._troubled_since is not None and not turn.overdue:
                    self._trying = turn
                return 0.0
        pause = max(in_row, min(held, LOOK_SECONDS))
        return max(pause if turn.overdue else min(pause, left_seconds), _NEXT_TO_NOTHING)

    def _due(self, turn: _Turn, now: float) -> float:
        """Tell when a request's place in the row is due, if nobody before it is held up for longer."""
        row = sorted(self._row, key=attrgetter("overdue"), reverse=True)  # among their like as they came
        rounds, place = divmod(row.index(turn), self._most)
        return max(self._begun[place] + self._window_seconds, now) + rounds * self._window_seconds

    def _held_seconds(self, turn: _Turn, now: float) -> float:
        left = max(self._asked_until, self._held_until) - now
        if left > _NEXT_TO_NOTHING:
            return left
        if self._troubled_since is None:
            return 0.0
        # one that takes so long may be no sign of trouble but a bundle that is being packed
        tried = self._trying is not None and now < self._trying.begun + LONGEST_PAUSE_SECONDS
        return LOOK_SECONDS if tried or turn is not next(iter(self._row)) else 0.0

    def _ask_for_pause(self, seconds: float) -> None:
        with self._lock:
            self._asked_at = self._clock.monotonic()
            self._asked_until = max(self._asked_until, self._asked_at + seconds)

    def _failed(self, turn: _Turn, error: TemporaryError) -> None:
        if error.retry_after_seconds is not None:
            self._ask_for_pause(error.retry_after_seconds)
        with self._lock:
            now = self._clock.monotonic()
            if error.retry_after_seconds is None and error.maybe_processed and turn.begun < self._newest_answered:
                return  # old news: the API has answered since what was sent later
            if self._troubled_since is None:
                self._troubled_since = now
                self._failures = 1
            elif self._trying is turn:  # of those that were under way already there may be many
                self._failures += 1
            # until it is known which pause is drawn; for one that gives up there is none
            self._held_until = max(self._held_until, now + self.ceiling_seconds)

    def _answered(self, turn: _Turn) -> None:
        with self._lock:
            self._newest_answered = max(self._newest_answered, turn.begun)
            self._troubled_since = None
            self._failures = 0
            self._held_until = self._drawn_until = _NEVER
            if turn.begun > self._asked_at:  # an answer to what was sent before says nothing of a pause that was asked for since
                self._asked_until = _NEVER
