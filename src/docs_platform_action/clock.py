"""The clock and the cancellation of a run."""

import queue
import threading
import time
from datetime import UTC, datetime
from typing import Any, Final

from .errors import Cancelled

# how often a wait for another thread checks whether the run is cancelled
_CHECK_SECONDS: Final = 0.05


class Cancellation:
    """Whether the run is cancelled. Safe to use from several threads."""

    def __init__(self) -> None:
        self._cancelled = threading.Event()
        self.is_aborted = False  # if so, the requests that are under way are given up, too

    def cancel(self) -> None:
        """Cancel the run: no request begins, but those under way may finish."""
        self._cancelled.set()

    def check(self) -> None:
        """Raise `Cancelled` once the run is cancelled."""
        # much cheaper than `wait(0)`, and called for every chunk of an archive
        if self._cancelled.is_set():
            raise Cancelled("cancelled")

    def wait(self, seconds: float) -> None:
        """Wait. Raises `Cancelled` as soon as the run is cancelled."""
        if self._cancelled.wait(max(seconds, 0.0)):
            raise Cancelled("cancelled")


class Clock:
    """The machine's time. Its `cancellation` ends the sleep of every thread."""

    def __init__(self) -> None:
        self.cancellation = Cancellation()

    def monotonic(self) -> float:
        """Return the seconds on a clock that never runs backwards."""
        return time.monotonic()

    def now(self) -> datetime:
        """Return the time of day in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Sleep. Raises `Cancelled` as soon as the run is cancelled."""
        self.cancellation.wait(seconds)

    def wait_for(self, arrivals: "queue.Queue[Any]", seconds: float) -> Any:
        """Return what another thread puts into a queue.

        Raises `queue.Empty` after `seconds`, and `Cancelled` after an abort.
        """
        until = self.monotonic() + seconds
        while not self.cancellation.is_aborted:
            remaining = until - self.monotonic()
            timeout = min(remaining, _CHECK_SECONDS)
            try:
                return arrivals.get(timeout=max(timeout, 0.0))
            except queue.Empty:
                if remaining <= 0:
                    raise
        raise Cancelled("cancelled")
