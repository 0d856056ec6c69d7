"""Time, as it is handed to whatever waits: read, slept through, and cut short by a cancel."""

import threading
import time
from datetime import UTC, datetime

from .errors import Cancelled, Unavailable


class DeadlineExceeded(Exception):
    """The time is up. `outage` is what kept the last reading from being taken."""

    def __init__(self, outage: Unavailable) -> None:
        super().__init__()
        self.outage = outage


class Cancellation:
    """Whether the run is cancelled. Safe to use from several threads."""

    def __init__(self) -> None:
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """Cancel the run, once and for all."""
        self._cancelled.set()

    def check(self) -> None:
        """Raise `Cancelled` once the run is cancelled."""
        if self._cancelled.is_set():  # far cheaper than a wait of no time, and checked for every chunk of an archive
            raise Cancelled("cancelled")

    def wait(self, seconds: float) -> None:
        """Wait this long. Raises `Cancelled` as soon as the run is cancelled."""
        if self._cancelled.wait(max(seconds, 0.0)):
            raise Cancelled("cancelled")


class Clock:
    """The machine's own time. Its `cancellation` ends every sleep, in whichever thread."""

    def __init__(self) -> None:
        self.cancellation = Cancellation()

    def monotonic(self) -> float:
        """Seconds on a clock that never runs backwards."""
        return time.monotonic()

    def now(self) -> datetime:
        """Return the time of day, aware, in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Pause. Raises `Cancelled` once the run is cancelled."""
        self.cancellation.wait(seconds)
