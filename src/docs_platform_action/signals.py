"""Runs the work beside the main thread, so that a signal is answered at once, whatever the work is blocked in.

The main thread only waits for a event: from the work, when it ends, or from a signal handler. It writes no log while the work
runs: a log that nobody reads would block it, and the signal with it. No exception is ever raised out of a handler, so none can
arrive at a bad moment.
"""

import contextlib
import os
import queue
import signal
import threading
import time
from types import FrameType
from typing import Final, Protocol

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)

ABORT_GRACE_SECONDS: Final = 0.2
"""How long aborted work gets to end by itself, so that a cancel is over within a second."""

FORCE_EXIT_SECONDS: Final = 6.0
"""A signal that comes so long after the first ends the process: the run cannot end by itself, because its log blocks it, say."""


class Work(Protocol):
    """What is run until it ends or a signal comes. All durations are seconds."""

    tick_seconds: float

    def run(self) -> None:
        """Do the work."""
        ...

    def tick(self) -> None:
        """Show that the work goes on. Called every `tick_seconds`, in another thread."""
        ...

    def stop(self) -> float:
        """Ask the work to end by itself; return how long it gets until `abort` is called."""
        ...

    def abort(self) -> float:
        """End the work now; return how long it gets to do so before it is left behind."""
        ...


class SignalHandler:
    """Receives SIGINT and SIGTERM from the moment it is made.

    PID 1 of a container has no default action for SIGTERM, so without handlers the runner's cancel would be ignored.
    """

    def __init__(self) -> None:
        # SimpleQueue.put is reentrant, so a handler may call it (source: the queue module's documentation)
        self._events: queue.SimpleQueue[signal.Signals | BaseException | None] = queue.SimpleQueue()
        self._first_at: float | None = None
        for number in SIGNALS:
            signal.signal(number, self._receive)

    def run(self, work: Work) -> signal.Signals | None:
        """Run `work` in a thread of its own until it ends or a signal comes; return the signal.

        On a signal, the work is asked to end by itself, and then told to. If that does not end it, its thread is left behind.
        Raises what `work.run` or `work.tick` raises.
        """
        if not self._events.empty() and isinstance(received := self._events.get(), signal.Signals):
            return received
        threading.Thread(target=self._post, args=(work,), daemon=True, name="work").start()
        event = self._next_event(work)
        if isinstance(event, BaseException):
            raise event
        if event is not None and not self._ends_within(work.stop()):
            self._ends_within(work.abort())
        return event

    def _next_event(self, work: Work) -> signal.Signals | BaseException | None:
        """Wait for a event, and call `work.tick` in another thread meanwhile. Raises what that raises."""
        idle: threading.Thread | None = None
        failed: list[Exception] = []

        def tick() -> None:
            try:
                work.tick()
            except Exception as error:  # noqa: BLE001  # handed to the main thread, which raises it
                failed.append(error)

        while True:
            try:
                event = self._events.get(timeout=work.tick_seconds)
            except queue.Empty:
                if failed:
                    raise failed[0] from None
                if idle is None or not idle.is_alive():
                    idle = threading.Thread(target=tick, daemon=True, name="idle")
                    with contextlib.suppress(RuntimeError):  # the machine allows no more threads: it is tried again
                        idle.start()
            else:
                if idle is not None and idle.is_alive():
                    idle.join(ABORT_GRACE_SECONDS)  # what it writes must not follow the report, or meet the interpreter's end
                return event

    def _ends_within(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        try:
            while isinstance(self._events.get(timeout=max(until - time.monotonic(), 0.0)), signal.Signals):
                pass  # a second signal changes nothing
        except queue.Empty:
            return False
        return True

    def _post(self, work: Work) -> None:
        try:
            work.run()
        except BaseException as error:  # noqa: BLE001  # handed to the main thread, which raises it
            self._events.put(error)
        else:
            self._events.put(None)

    def ignore(self) -> None:
        """Ignore signals from here on: everything is reported."""
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._first_at is not None and now > self._first_at + FORCE_EXIT_SECONDS:
            os._exit(128 + number)
        self._first_at = self._first_at or now
        self._events.put(signal.Signals(number))
