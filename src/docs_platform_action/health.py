"""One picture of the API's health for all who talk to it: how often it is asked, when it wants a pause, who tries it again."""

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from .clock import Clock
from .errors import Cancelled
from .retrying import LONGEST_PAUSE_SECONDS, TemporaryError

REQUESTS_A_SECOND: Final = 10
"""As many as ten jobs make, `max-parallel`'s default, at the default `poll-interval`; more jobs are each read less often."""

LOOK_SECONDS: Final = 0.25
"""How soon those that wait for one other's try see what came of it."""

_NEXT_TO_NOTHING: Final = 1e-6
"""Less than that is left of a pause by the rounding of numbers alone."""


class Health:
    """Lets requests through to one API. Safe to use from several threads.

    No more than `most_a_second` begin within any second, whoever sends them. While nothing but temporary errors comes, one
    request at a time is let through, after a pause that grows, and all others wait for what becomes of it: an outage costs the
    API as many requests of a hundred jobs as of one. A `Retry-After` holds for all.
    """

    def __init__(self, clock: Clock, *, most_a_second: int = REQUESTS_A_SECOND) -> None:
        self._clock = clock
        self._most = most_a_second
        self._lock = threading.Lock()
        self._begun: deque[float] = deque(maxlen=most_a_second)
        self._asked_at = self._asked_until = self._held_until = float("-inf")
        self._failures = 0
        self._trying = False
        self._troubled_since: float | None = None

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
        tries_for_all = self._admit(left_seconds)
        begun = self._clock.monotonic()
        try:
            yield
        except TemporaryError as error:
            if error.of_one_job:
                self._answered(begun)
            else:
                self._failed(error)
            raise
        except Cancelled:
            raise
        except BaseException:
            self._answered(begun)  # a refusal is an answer too
            raise
        else:
            self._answered(begun)
        finally:
            if tries_for_all:
                self._trying = False

    def hold(self, pause_seconds: float) -> None:
        """Have the others wait as well while one that failed makes a pause; not longer than what all have seen is worth."""
        with self._lock:
            until = self._clock.monotonic() + min(pause_seconds, self.ceiling_seconds)
            self._held_until = max(self._held_until, until)

    def _admit(self, left_seconds: Callable[[], float]) -> bool:
        """Wait until a request may be sent; tell whether it is the one that finds out for all whether an outage is over."""
        while True:
            tries_for_all = self._wait_while_held(left_seconds)
            self._wait_in_row()
            # what came to be known while it stood in the row counts too
            if tries_for_all or left_seconds() <= 0 or (self._troubled_since is None and self._pause_seconds() <= 0):
                return tries_for_all

    def _wait_while_held(self, left_seconds: Callable[[], float]) -> bool:
        while (left := left_seconds()) > 0:
            with self._lock:
                pause = self._pause_seconds()
                if pause <= 0:
                    tries_for_all = self._troubled_since is not None
                    self._trying = self._trying or tries_for_all
                    return tries_for_all
            self._clock.sleep(min(pause, left))
        return False

    def _pause_seconds(self) -> float:
        left = max(self._asked_until, self._held_until) - self._clock.monotonic()
        if left > _NEXT_TO_NOTHING:
            return left
        return LOOK_SECONDS if self._trying and self._troubled_since is not None else 0.0

    def _wait_in_row(self) -> None:
        """Take the next place in the row of requests, and wait until it is due."""
        with self._lock:
            now = self._clock.monotonic()
            due = max(now, self._begun[0] + 1.0) if len(self._begun) == self._most else now
            self._begun.append(due)
        if due > now:
            self._clock.sleep(due - now)

    def _failed(self, error: TemporaryError) -> None:
        with self._lock:
            now = self._clock.monotonic()
            self._failures += 1
            if self._troubled_since is None:
                self._troubled_since = now
            if error.retry_after_seconds is not None:
                self._asked_at = now
                self._asked_until = max(self._asked_until, now + error.retry_after_seconds)

    def _answered(self, begun: float) -> None:
        with self._lock:
            self._failures = 0
            self._troubled_since = None
            self._held_until = float("-inf")
            if begun >= self._asked_at:  # an answer to what was sent before says nothing of a pause that was asked for since
                self._asked_until = float("-inf")
