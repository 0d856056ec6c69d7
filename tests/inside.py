"""Runs the action inside the test's own process, over real sockets, where a thousand runs have to be over in a minute.

What only a process of its own shows (signals, exit codes, the interpreter's own words on stderr) is for `tests.action`.
"""

import contextlib
import importlib
import io
import tempfile
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest import mock

import coverage

from admin_api_simulator.runner import ActionRun, left_files, parse_outputs, read_text, runner_environment, with_defaults
from docs_platform_action.clock import Clock
from docs_platform_action.inputs.reader import read_key
from docs_platform_action.main import run
from docs_platform_action.signals import SignalHandler, Work
from tests.ended import ENTRYPOINT, Ended, ended


class QuickClock(Clock):
    """The machine's clock, but for pauses, which count and take no time; what takes time counts `factor` times."""

    def __init__(self, *, factor: float = 1.0) -> None:
        super().__init__()
        self._began = time.monotonic()
        self._began_at = datetime.now(UTC)
        self._factor = factor
        self._skipped = 0.0

    @property
    def elapsed(self) -> float:
        """Seconds since the clock was made, by its own measure."""
        return (time.monotonic() - self._began) * self._factor + self._skipped

    def monotonic(self) -> float:
        return self._began + self.elapsed

    def now(self) -> datetime:
        return self._began_at + timedelta(seconds=self.elapsed)

    def sleep(self, seconds: float) -> None:
        self.cancellation.check()
        self._skipped += max(seconds, 0.0)


class Uninterrupted(SignalHandler):
    """Runs the work where it stands; no signal ends it."""

    def __init__(self) -> None:
        """Leave the process's signal handlers alone."""

    def run(self, work: Work) -> None:
        work.run()


def run_inside(
    inputs: Mapping[str, str],
    *,
    workspace: Path,
    clock: Clock | None = None,
    debug: bool = False,
    env: Mapping[str, str] | None = None,
) -> Ended:
    """Run the action with inputs by their own names, and `action.yml`'s defaults for the others, to its end.

    Pauses take no time, unless another clock is handed in. `env` comes on top of the runner's environment.
    """
    with tempfile.TemporaryDirectory(prefix="action-run-") as temporary:
        folder = Path(temporary)
        given = with_defaults(inputs, ENTRYPOINT.with_name("action.yml"))
        environment = runner_environment(inputs=given, folder=folder, workspace=workspace, debug=debug) | dict(env or {})
        stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace", newline="\n", write_through=True)
        exit_code = run(environment, stream, Uninterrupted(), clock=clock or QuickClock())
        assert isinstance(stream.buffer, io.BytesIO)
        return ended(
            ActionRun(
                exit_code=exit_code,
                stdout=stream.buffer.getvalue().decode(),
                stderr="",
                outputs=parse_outputs(read_text(folder / "output")),
                summary=read_text(folder / "summary"),
                left=left_files(folder),
            ),
            key=read_key(environment),
        )


@contextlib.contextmanager
def other_constants(values: Mapping[str, float]) -> Iterator[None]:
    """Have constants, named `module__CONSTANT` with the packages before it, hold other values."""
    with contextlib.ExitStack() as stack:
        for name, value in values.items():
            module, _, constant = name.replace("__", ".").rpartition(".")
            stack.enter_context(mock.patch.object(importlib.import_module(f"docs_platform_action.{module}"), constant, value))
        yield


@contextlib.contextmanager
def unmeasured() -> Iterator[None]:
    """Have no coverage measured, which takes longer than the runs do: for thousands of them, whose lines other tests hold."""
    measuring: list[coverage.Coverage] = []
    while (found := coverage.Coverage.current()) is not None:  # one worker of several has another, which stands by
        found.stop()
        measuring.append(found)
    try:
        yield
    finally:
        for found in reversed(measuring):
            found.start()
