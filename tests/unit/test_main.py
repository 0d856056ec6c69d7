"""The outermost part: what is left to do when nothing can report a failure any more."""

import io
import sys
from typing import Any

import pytest

from docs_platform_action import main
from docs_platform_action.clock import Clock
from docs_platform_action.inputs.table import Mode
from docs_platform_action.signals import SignalHandler, Work


class Quiet(SignalHandler):
    """Runs the work without handling signals, and records whether they are ignored at the end."""

    def __init__(self) -> None:
        self.is_ignoring = False

    def run(self, work: Work) -> None:
        work.run()

    def ignore(self) -> None:
        self.is_ignoring = True


def replaced_stdout(
    monkeypatch: pytest.MonkeyPatch, raw: io.RawIOBase | io.BufferedIOBase | None = None
) -> io.TextIOWrapper:
    """Replace the process's output. A fixture cannot: pytest replaces it again before the test."""
    buffer: Any = raw or io.BytesIO()
    stream = io.TextIOWrapper(buffer, "ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    return stream


def written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()


def test_a_bug_outside_of_the_run_is_reported_without_a_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_given: object) -> int:
        raise LookupError("a secret \u2028")

    monkeypatch.setattr(main, "run", fail)
    handler = Quiet()
    stdout = replaced_stdout(monkeypatch)

    assert main.main(handler, Clock()) == 1
    assert handler.is_ignoring
    assert "LookupError" in written(stdout)
    assert "secret" not in written(stdout)


def test_a_log_that_cannot_be_flushed_does_not_change_the_exit_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    full = replaced_stdout(monkeypatch, io.BufferedWriter(io.FileIO("/dev/full", "w")))
    monkeypatch.setattr(main, "run", lambda _environ, stream, *_given: stream.write("x") - 1)

    assert main.main(Quiet(), Clock()) == 0
    full.close()


def test_each_mode_makes_jobs_of_a_kind_of_its_own() -> None:
    assert [*main.MODES] == [*Mode]
    assert [mode.kind.mode for mode in main.MODES.values()] == [*Mode]
