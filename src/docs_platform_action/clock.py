"""The clock and the cancellation of a run."""

import threading
import time
from datetime import UTC, datetime

from .errors import Cancelled


class Cancellation:
    """Whether the run is cancelled. Safe to use from several threads."""

    def __init__(self) -> None:
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """Cancel the run."""
        self._cancelled.set()

    def check(self) -> None:
        """Raise `Cancelled` once the run is cancelled."""
        if self._cancelled.is_set():  # much cheaper than `wait(0)`, and called for every chunk of an archive
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
