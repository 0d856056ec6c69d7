"""When the next request of any job may begin."""

import math
import threading
from typing import Final

from ..clock import Clock

# what ten jobs, the default `max-parallel`, need at the default `poll-interval`
GAP_SECONDS: Final = 0.1


class Pacer:
    """Keeps requests apart, and holds back starts while the platform asks for it.

    Safe to use from several threads.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._next_at = -math.inf
        self.starts_held_until = -math.inf

    def hold_starts(self, until: float) -> None:
        """Start no job before this."""
        with self._lock:
            self.starts_held_until = max(self.starts_held_until, until)

    def wait_for_turn(self) -> None:
        """Wait until a request may begin. Raises `Cancelled`."""
        with self._lock:
            turn = max(self._next_at, self._clock.monotonic())
            self._next_at = turn + GAP_SECONDS
        self._clock.sleep(turn - self._clock.monotonic())
