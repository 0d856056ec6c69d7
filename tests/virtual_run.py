"""Puts a run of the whole action into virtual time: a platform below requests, with bounds, threads and dice that are known."""

import contextlib
import random
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Protocol
from unittest.mock import patch

from requests.adapters import BaseAdapter

from docs_platform_action import main
from docs_platform_action.http import connection
from docs_platform_action.jobs import runner
from docs_platform_action.signals import SignalHandler, Work
from tests.unit.virtual_time import VirtualClock


class Monotonic(Protocol):
    """The clock of a run, as far as the bounds on exchanges need it."""

    def monotonic(self) -> float: ...


class Beside(SignalHandler):
    """Runs the work in virtual time, with the main thread's idle moments beside it; no signal comes."""

    def __init__(self, clock: VirtualClock, *, idle_seconds: float) -> None:
        """Leave the process's signal handlers alone."""
        self._clock = clock
        self._idle_seconds = idle_seconds

    def run(self, work: Work) -> None:
        clock, over = self._clock, threading.Event()

        def main_thread() -> None:
            while not over.is_set():
                clock.sleep(self._idle_seconds)
                work.tick()

        def until_over() -> None:
            try:
                work.run()
            finally:
                over.set()

        clock.run(until_over, main_thread)


@contextlib.contextmanager
def in_virtual_time(
    platform: BaseAdapter, clock: Monotonic, *, seed: int, thread: type[threading.Thread] = threading.Thread
) -> Iterator[None]:
    """Put the platform below the action, its bounds and threads into virtual time, and its dice onto the seed.

    No thread ends an exchange that takes too long: the platform does. `thread` replaces that of `threading`.
    """
    dice = random.getstate()
    random.seed(seed)
    with (
        patch.object(main, "AbortableAdapter", lambda _context: platform),
        patch.object(main, "create_ssl_context", lambda _pem: None),  # reading all authorities takes longer than a run
        patch.object(connection, "time", SimpleNamespace(monotonic=clock.monotonic)),
        patch.object(
            connection, "threading", SimpleNamespace(Lock=threading.Lock, Condition=threading.Condition, Thread=_NoThread)
        ),
        patch.object(runner, "threading", SimpleNamespace(Lock=threading.Lock, Thread=thread)),
    ):
        try:
            yield
        finally:
            random.setstate(dice)


class _NoThread(threading.Thread):
    """Stands in for the thread that ends exchanges."""

    def start(self) -> None:
        """End none."""
