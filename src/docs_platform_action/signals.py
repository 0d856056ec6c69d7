"""Runs the work beside the main thread, so that a signal is answered at once, whatever the work is blocked in.

The main thread only waits for a letter: from the work, when it ends, or from a signal handler. It writes no log while the work
runs: a log that nobody reads would block it, and the signal with it. No exception is ever raised out of a handler, so none can
arrive at a bad moment.
"""

import contextlib
import os
import queue
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)

LEAVING_SECONDS: Final = 0.2
"""How long an aborted work gets to end by itself, so that a cancel is over within a second."""

PATIENCE_SECONDS: Final = 6.0
"""A signal that comes so long after the first finds a run that cannot end by itself, blocked by its log, say: it ends it."""


class Interruptions:
    """Receives SIGINT and SIGTERM from the moment it is made.

    PID 1 of a container has no default action for SIGTERM, so without handlers the runner's cancel would be ignored.
    """

    def __init__(self) -> None:
        # SimpleQueue.put is reentrant, so a handler may call it (source: the queue module's documentation)
        self._mail: queue.SimpleQueue[signal.Signals | BaseException | None] = queue.SimpleQueue()
        self._first_at: float | None = None
        for number in SIGNALS:
            signal.signal(number, self._receive)

    def run(
        self,
        work: Callable[[], None],
        *,
        on_idle: Callable[[], None],
        idle_seconds: float,
        stop: Callable[[], None],
        abort: Callable[[], None],
        grace_seconds: Callable[[], float],
        leaving_seconds: Callable[[], float] = lambda: LEAVING_SECONDS,
    ) -> signal.Signals | None:
        """Run `work` in a thread of its own until it ends or a signal comes; give the signal.

        `on_idle` is called every `idle_seconds` in between, in another thread. On a signal, `stop` asks the work to end by
        itself, and `abort` is called when `grace_seconds` have not been enough; if that does not end it within `leaving_seconds`,
        the thread is left behind. What the work or `on_idle` raises is raised here.
        """
        if not self._mail.empty() and isinstance(received := self._mail.get(), signal.Signals):
            return received
        threading.Thread(target=self._post, args=(work,), daemon=True, name="work").start()
        letter = self._next_letter(on_idle, idle_seconds)
        if not isinstance(letter, signal.Signals):
            if letter is not None:
                raise letter
            return None
        stop()
        if not self._ends_within(grace_seconds()):
            abort()
            self._ends_within(leaving_seconds())
        return letter

    def _next_letter(self, on_idle: Callable[[], None], idle_seconds: float) -> signal.Signals | BaseException | None:
        """Wait for a letter. Raises what `on_idle` raises, which is called in another thread meanwhile."""
        idle: threading.Thread | None = None
        failed: list[Exception] = []

        def tick() -> None:
            try:
                on_idle()
            except Exception as error:  # noqa: BLE001  # handed to the main thread, which raises it
                failed.append(error)

        while True:
            try:
                letter = self._mail.get(timeout=idle_seconds)
            except queue.Empty:
                if failed:
                    raise failed[0] from None
                if idle is None or not idle.is_alive():
                    idle = threading.Thread(target=tick, daemon=True, name="idle")
                    with contextlib.suppress(RuntimeError):  # the machine allows no more threads: it is tried again
                        idle.start()
            else:
                if idle is not None and idle.is_alive():
                    idle.join(LEAVING_SECONDS)  # what it writes must not follow the report, or meet the interpreter's end
                return letter

    def _ends_within(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        try:
            while isinstance(self._mail.get(timeout=max(until - time.monotonic(), 0.0)), signal.Signals):
                pass  # a second signal changes nothing
        except queue.Empty:
            return False
        return True

    def _post(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  # handed to the main thread, which raises it
            self._mail.put(error)
        else:
            self._mail.put(None)

    def ignore(self) -> None:
        """Receive no more: all is told, and what is left is to end."""
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._first_at is not None and now > self._first_at + PATIENCE_SECONDS:
            os._exit(128 + number)
        self._first_at = self._first_at or now
        self._mail.put(signal.Signals(number))
