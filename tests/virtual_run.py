"""Runs the whole action in virtual time, with a virtual transport as the platform and seeded random numbers."""

import contextlib
import functools
import io
import random
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from admin_api_simulator.runner import left_files, parse_outputs, runner_environment, with_defaults
from docs_platform_action import main
from docs_platform_action.http.transport import Transport
from docs_platform_action.jobs import runner
from docs_platform_action.signals import SignalHandler, Work
from tests.ended import Ended
from tests.keys import ADMIN_KEY
from tests.virtual_platform import API_URL
from tests.virtual_time import VirtualClock

IDLE_SECONDS = 11.0
"""How often the virtual main thread checks whether a heartbeat is due; the real one checks every second."""


class VirtualHandler(SignalHandler):
    """Runs the work and the main thread's idle loop in virtual time, without handling signals.

    They are threads of the clock if the work starts threads; otherwise the idle loop runs in the pauses of the work.
    """

    def __init__(self, clock: VirtualClock, *, idle_seconds: float, has_threads: bool) -> None:
        """Leave the process's signal handlers alone."""
        self._clock = clock
        self._idle_seconds = idle_seconds
        self._has_threads = has_threads

    def run(self, work: Work) -> None:
        clock, over = self._clock, threading.Event()
        if not self._has_threads:
            clock.call_every(self._idle_seconds, work.tick)
            work.run()
            return

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


def run_virtually(
    platform: Transport,
    clock: VirtualClock,
    inputs: Mapping[str, str],
    *,
    seed: int = 1,
    idle_seconds: float = IDLE_SECONDS,
    stream: io.StringIO | None = None,
    env: Mapping[str, str] | None = None,
) -> Ended:
    """Run the whole action to the end in a new workspace; `left` has its files. `env` is added to the runner's environment."""
    stream = stream or io.StringIO()
    given = {**default_inputs(), "base-url": API_URL, "admin-key": ADMIN_KEY, **inputs}
    has_threads = "\n" in given["domain"].strip()
    handler = VirtualHandler(clock, idle_seconds=idle_seconds, has_threads=has_threads)
    with (
        tempfile.TemporaryDirectory(prefix="virtual-run-") as temporary,
        in_virtual_time(platform, seed=seed, thread=clock.Thread if has_threads else threading.Thread),
    ):
        folder = Path(temporary)
        workspace = folder / "workspace"
        workspace.mkdir()
        environ = runner_environment(inputs=given, folder=folder, workspace=workspace, debug=False)
        exit_code = main.run(environ | dict(env or {}), stream, handler, clock)  # type: ignore[arg-type]
        ended = Ended(
            exit_code=exit_code,
            stdout=stream.getvalue(),
            stderr="",
            outputs=parse_outputs((folder / "output").read_text(encoding="utf-8")),
            summary=(folder / "summary").read_text(encoding="utf-8"),
            left=left_files(folder),
        )
    # the search after each test would take minutes for hundreds of runs
    shown = ended.stdout.replace(f"::add-mask::{ADMIN_KEY}\n", "", 1), *ended.outputs.values(), ended.summary
    assert not any(ADMIN_KEY in text for text in shown), "the key is shown"
    return ended


@contextlib.contextmanager
def in_virtual_time(platform: Transport, *, seed: int, thread: type[threading.Thread] = threading.Thread) -> Iterator[None]:
    """Replace the action's transport and threads with virtual ones, and seed its random numbers.

    `thread` replaces `threading.Thread`.
    """
    random_state = random.getstate()
    random.seed(seed)
    with (
        patch.object(main, "Transport", lambda _context: platform),
        patch.object(main, "create_ssl_context", lambda _pem: None),  # reading all authorities takes longer than a run
        patch.object(runner, "threading", SimpleNamespace(Lock=threading.Lock, Thread=thread)),
    ):
        try:
            yield
        finally:
            random.setstate(random_state)
