"""Runs the action in the test's own process, over real sockets, so that a thousand runs take a minute.

`tests.action` also starts separate processes, for signals, exit codes and the interpreter's own messages on stderr.
"""

import contextlib
import gc
import importlib
import io
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from unittest import mock

import coverage

from admin_api_simulator.runner import ActionRun, left_files, parse_outputs, read_text, runner_environment, with_defaults
from docs_platform_action.clock import Clock
from docs_platform_action.inputs.validators import trimmed
from docs_platform_action.main import run
from docs_platform_action.signals import SignalHandler, Work
from tests.ended import ENTRYPOINT, Ended, search_and_convert
from tests.virtual_time import VirtualClock


class Uninterrupted(SignalHandler):
    """Runs the work without handling signals."""

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
    """Run the action to the end with the given inputs, and `action.yml`'s defaults for the others.

    Pauses take no time unless another clock is passed. `env` is added to the runner's environment.
    """
    with tempfile.TemporaryDirectory(prefix="action-run-") as temporary:
        folder = Path(temporary)
        given = with_defaults(inputs, ENTRYPOINT.with_name("action.yml"))
        environment = runner_environment(inputs=given, folder=folder, workspace=workspace, debug=debug) | dict(env or {})
        stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace", newline="\n", write_through=True)
        exit_code = run(environment, stream, Uninterrupted(), clock or VirtualClock(real_rate=1.0))
        assert isinstance(stream.buffer, io.BytesIO)
        return search_and_convert(
            ActionRun(
                exit_code=exit_code,
                stdout=stream.buffer.getvalue().decode(),
                stderr="",
                outputs=parse_outputs(read_text(folder / "output")),
                summary=read_text(folder / "summary"),
                left=left_files(folder),
            ),
            key=trimmed(environment.get("INPUT_ADMIN-KEY", "")),
        )


@contextlib.contextmanager
def other_constants(values: Mapping[str, float]) -> Iterator[None]:
    """Override constants; a name such as `http__retry__CONSTANT` includes the packages."""
    with contextlib.ExitStack() as stack:
        for name, value in values.items():
            module, _, constant = name.replace("__", ".").rpartition(".")
            stack.enter_context(mock.patch.object(importlib.import_module(f"docs_platform_action.{module}"), constant, value))
        yield


def count_descriptors() -> int:
    """Count the open file descriptors, without those of ended runs in this process."""
    gc.collect()  # closes the sockets of ended runs
    return len(list(Path("/proc/self/fd").iterdir()))


@contextlib.contextmanager
def unmeasured() -> Iterator[None]:
    """Disable coverage, which takes longer than the runs themselves. For thousands of runs whose lines other tests cover."""
    measuring: list[coverage.Coverage] = []
    while (found := coverage.Coverage.current()) is not None:  # a worker process has two
        found.stop()
        measuring.append(found)
    try:
        yield
    finally:
        for found in reversed(measuring):
            found.start()
