"""When the next request of any job may begin."""

import math
import threading
from typing import Final

from ..clock import Clock

# what ten jobs, the default `max-parallel`, need at the default `poll-interval`
GAP_SECONDS: Final = 0.1


class Pacer:
    """Keeps requests apart. Safe to use from several threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._next_at = -math.inf

    def wait_for_turn(self) -> None:
        """Wait until a request may begin. Raises `Cancelled`."""
        with self._lock:
            turn = max(self._next_at, self._clock.monotonic())
            self._next_at = turn + GAP_SECONDS
        self._clock.sleep(turn - self._clock.monotonic())
