"""Runs the work in another thread, so that a signal is handled even while the work is blocked.

The main thread only waits for an event: the end of the work, or a signal. It writes no log
meanwhile, because a log that nobody reads would block it too. Signal handlers raise no exceptions,
which could interrupt the main thread anywhere.
"""

import os
import queue
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final, Protocol

from .clock import Clock

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)

# how long to wait for aborted work
ABORT_GRACE_SECONDS: Final = 0.2

# when another signal ends the process, counted from the first: something blocks it, such as its log
FORCE_EXIT_SECONDS: Final = 6.0

_CHECK_SECONDS: Final = 0.05  # how often a write checks whether a signal has been received

# a signal, an error of the work, or `None` for its end
Event = signal.Signals | BaseException | None


class Work(Protocol):
    """What a `SignalHandler` runs. All durations are in seconds."""

    tick_seconds: float

    def run(self) -> None:
        """Do the work."""

    def tick(self) -> None:
        """Report progress every `tick_seconds`, in a third thread. Raises nothing."""

    def stop(self) -> float:
        """Request the end of the work; return how long to wait for it before `abort`."""

    def abort(self) -> float:
        """End the work now; return how long to wait for it before it is abandoned."""


class SignalHandler:
    """Handles SIGINT and SIGTERM from its creation on. `received` is the first signal.

    PID 1 of a container would otherwise ignore SIGTERM.
    """

    received: signal.Signals | None = None

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # its `put` is reentrant, as handlers need it (source: the queue module's documentation)
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._ended = threading.Event()
        self._first_at: float | None = None
        for number in SIGNALS:
            signal.signal(number, self._receive)

    def run(self, work: Work) -> signal.Signals | None:
        """Run `work` until it ends or a signal is received; return the signal.

        A signal stops the work, and aborts it if it does not end in time.
        Raises what `work.run` raises.
        """
        if not self._events.empty():
            early_event = self._events.get()
            if isinstance(early_event, signal.Signals):
                return early_event
        threading.Thread(target=self._run, args=(work,), daemon=True, name="work").start()
        event = self._next_event(work)
        if isinstance(event, BaseException):
            raise event
        if event is not None and not self._ended.wait(work.stop()):
            self._ended.wait(work.abort())
        return event

    def finish(self, write: Callable[[], None], grace_seconds: float) -> signal.Signals | None:
        """Write in another thread. Return the signal that ended the wait for it, if one did.

        A write cannot be interrupted. Without a signal, it may take as long as it needs; after one,
        `grace_seconds`. Raises what `write` raises.
        """
        errors: list[Exception] = []

        def run() -> None:
            try:
                write()
            except Exception as error:  # noqa: BLE001  # the main thread raises it
                errors.append(error)

        writing = threading.Thread(target=run, daemon=True, name="finish")
        try:
            writing.start()
        except RuntimeError:  # the machine allows no more threads
            write()
            return None
        while writing.is_alive() and self.received is None:
            writing.join(_CHECK_SECONDS)
        writing.join(grace_seconds)
        if errors:
            raise errors[0]
        return self.received if writing.is_alive() else None

    def _next_event(self, work: Work) -> Event:
        """Wait for the next event. Tick meanwhile, but never twice at the same time."""
        ticking: threading.Thread | None = None
        while True:
            try:
                event = self._events.get(timeout=work.tick_seconds)
                break
            except queue.Empty:
                if ticking is None or not ticking.is_alive():
                    ticking = _start_tick(work)
        if ticking is not None:
            # it must not write after the report, or while the interpreter exits
            ticking.join(ABORT_GRACE_SECONDS)
        return event

    def _run(self, work: Work) -> None:
        try:
            work.run()
        except BaseException as error:  # noqa: BLE001  # the main thread raises it
            self._events.put(error)
        self._ended.set()
        self._events.put(None)

    def ignore(self) -> None:
        """Ignore further signals."""
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        now = self._clock.monotonic()
        if self._first_at is None:
            self._first_at = now
            self.received = signal.Signals(number)
        elif now > self._first_at + FORCE_EXIT_SECONDS:
            os._exit(128 + number)
        self._events.put(signal.Signals(number))


def _start_tick(work: Work) -> threading.Thread | None:
    """Return the thread of a tick, or `None` if the machine allows no more threads now."""
    ticking = threading.Thread(target=work.tick, daemon=True, name="tick")
    try:
        ticking.start()
    except RuntimeError:
        return None
    return ticking
