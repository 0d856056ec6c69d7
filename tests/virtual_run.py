"""Runs the whole action in virtual time, with a transport adapter as the platform and seeded random numbers."""

import contextlib
import functools
import random
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Protocol
from unittest.mock import patch

from requests.adapters import BaseAdapter

from admin_api_simulator.runner import with_defaults
from docs_platform_action import main
from docs_platform_action.http import connection
from docs_platform_action.jobs import runner
from docs_platform_action.signals import SignalHandler, Work
from tests.virtual_time import VirtualClock


class Monotonic(Protocol):
    """The part of a clock that the time bounds on requests need."""

    def monotonic(self) -> float: ...


class SideBySide(SignalHandler):
    """Runs the work and the main thread's idle loop as threads in virtual time, without handling signals."""

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


@functools.cache
def default_inputs() -> Mapping[str, str]:
    """Return the inputs with their defaults in `action.yml`."""
    return with_defaults({}, Path(__file__).parents[1] / "action.yml")


@contextlib.contextmanager
def in_virtual_time(
    platform: BaseAdapter, clock: Monotonic, *, seed: int, thread: type[threading.Thread] = threading.Thread
) -> Iterator[None]:
    """Replace the action's transport, clocks and threads with virtual ones, and seed its random numbers.

    No thread aborts a request that takes too long: the platform checks the time bounds. `thread` replaces `threading.Thread`.
    """
    random_state = random.getstate()
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
            random.setstate(random_state)


class _NoThread(threading.Thread):
    """Replaces the thread that aborts requests."""

    def start(self) -> None:
        """Start nothing."""
