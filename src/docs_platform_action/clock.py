"""Time, as it is handed to whatever waits: read, slept through, and cut short by a cancel."""

import threading
import time
from collections.abc import Callable, Generator
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

from .errors import Cancelled, Unavailable

T = TypeVar("T")


class DeadlinePassed(Exception):
    """The time is up. `outage` is what kept the last reading from being taken, if anything did."""

    def __init__(self, outage: Unavailable | None = None) -> None:
        super().__init__()
        self.outage = outage


class Clock(Protocol):
    """What waiting needs of time."""

    def monotonic(self) -> float:
        """Seconds on a clock that never runs backwards."""
        ...

    def now(self) -> datetime:
        """Tell the time of day, aware, in UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Pause. Raises `Cancelled` once the run is cancelled."""
        ...


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


class SystemClock:
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


def slept_on(clock: Clock, schedule: Callable[[], Generator[float, T, None]]) -> Callable[[], Generator[float, Any, None]]:
    """Turn a schedule of pauses into a wait generator for backoff whose pauses are slept on `clock`.

    backoff itself sleeps with `time.sleep`, which no cancel cuts short and no test can skip. So the pause is made here, and
    backoff is left none to make. Like any wait generator of backoff's, the schedule is primed with one `next`, then receives what
    the last try gave (a value or an exception) and yields seconds; when it returns, backoff gives up.
    """

    def wait_generator() -> Generator[float, Any, None]:
        pauses = schedule()
        next(pauses)
        outcome = yield 0.0
        while True:
            try:
                seconds = pauses.send(outcome)
            except StopIteration:
                return
            clock.sleep(seconds)
            outcome = yield 0.0

    return wait_generator
