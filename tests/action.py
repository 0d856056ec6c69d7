"""Runs the action against a platform, in a separate process where a test needs one."""

import contextlib
import io
import os
import re
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self
from unittest import mock

from admin_api_simulator import Simulator
from admin_api_simulator.runner import StartedAction, start_action
from docs_platform_action.clock import Clock
from docs_platform_action.inputs.validators import trimmed
from tests.ended import ENTRYPOINT, Ended, search_and_convert
from tests.engine import remember_output
from tests.inside import other_constants, run_inside
from tests.keys import ADMIN_KEY

QUICK = {"poll-interval": "20ms", "outage-tolerance": "400ms"}
"""Pauses short enough for a test; a test about pauses sets its own."""

MAX_WAIT_SECONDS = 100.0
"""How long to wait for a log line or for the end of a run; pytest ends a test after two minutes."""

READ_LATE = re.compile(r"(?:https?|all|no)_proxy", re.IGNORECASE)
"""Variables that are read when a request is sent. All others need a separate process, which reads them when it starts."""


class Running:
    """A run in a separate process. Leaving `with` ends it if it is still running."""

    def __init__(self, started: StartedAction, *, key: str) -> None:
        self._started = started
        self._key = key
        self.pid = started.pid
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has already ended
            arguments = Path(f"/proc/{self.pid}/cmdline").read_bytes().decode("utf-8", "replace")
            remember_output(arguments, where="the process's arguments")

    def wait_for(self, text: str) -> str:
        """Return the first line of the log that contains a text, after waiting for it."""
        return self._started.wait_for_line(text, timeout_seconds=MAX_WAIT_SECONDS)

    def signal(self, *numbers: signal.Signals) -> None:
        """Send signals, one right after the other."""
        for number in numbers:
            self._started.send_signal(number)

    def wait(self) -> Ended:
        """Wait until the run ends."""
        return search_and_convert(self._started.collect(timeout_seconds=MAX_WAIT_SECONDS), key=self._key)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._started.__exit__(kind, error, traceback)


class Action:
    """The action with a workspace. `clock` applies to runs in the test's process."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.python: Path | str = sys.executable
        self.entrypoint = ENTRYPOINT
        self.debug = False
        self.clock: Clock | None = None
        self._constants: dict[str, float] = {}

    def start(self, platform: Simulator | str, *, env: Mapping[str, str | None] | None = None, **inputs: str) -> Running:
        """Start a process for a platform or a base URL; `poll_interval` is the input `poll-interval`.

        `env` is added to the runner's environment; `None` stands for an empty value, which the action treats as unset.
        """
        assert self.clock is None, "a separate process uses the machine's clock"
        given = self._inputs(platform, inputs)
        started = start_action(
            given,
            entrypoint=self._entrypoint_with_constants() if self._constants else self.entrypoint,
            workspace=self.workspace,
            python=self.python,
            env={name: value or "" for name, value in (env or {}).items()},
            debug=self.debug,
        )
        return Running(started, key=trimmed(given["admin-key"]))

    def run(self, platform: Simulator | str, *, env: Mapping[str, str | None] | None = None, **inputs: str) -> Ended:
        """Run to the end, in the test's process if possible, which takes a tenth of the time.

        An entry point, an interpreter or environment variables other than proxies need a separate process.
        """
        variables = {name: value or "" for name, value in (env or {}).items()}
        is_prepared = (self.entrypoint, self.python) != (ENTRYPOINT, sys.executable)
        if is_prepared or not all(READ_LATE.fullmatch(name) for name in variables):
            with self.start(platform, env=env, **inputs) as running:
                return running.wait()
        with (
            other_constants(self._constants),
            mock.patch.dict(os.environ, variables, clear=True),
            contextlib.chdir(self.workspace),
            contextlib.redirect_stderr(io.StringIO()) as stderr,
        ):
            found = run_inside(
                self._inputs(platform, inputs), workspace=self.workspace, clock=self.clock or Clock(), debug=self.debug
            )
        remember_output(stderr.getvalue(), where="stderr")
        return replace(found, stderr=stderr.getvalue())

    def export(self, platform: Simulator | str, *, env: Mapping[str, str | None] | None = None, **inputs: str) -> Ended:
        """Run an export of `docs.example.com`, or of the inputs' domain, to the end."""
        return self.run(platform, env=env, **{"domain": "docs.example.com", **inputs})

    def set_constants(self, **values: float) -> None:
        """Override constants in later runs; a name such as `http__retry__CONSTANT` includes the packages."""
        self._constants |= values

    def begin_with(self, statements: str) -> None:
        """Run Python statements at the start of later runs."""
        self.entrypoint = self._write_entrypoint(f"{statements}\n{ENTRYPOINT.read_text()}")

    def _entrypoint_with_constants(self) -> Path:
        assert self.entrypoint == ENTRYPOINT
        statements = "".join(
            f"    import docs_platform_action.{module}; docs_platform_action.{module}.{constant} = {value!r}\n"
            for (module, _, constant), value in (
                (name.replace("__", ".").rpartition("."), value) for name, value in self._constants.items()
            )
        )
        text, late = ENTRYPOINT.read_text(), "    return main(signal_handler, clock)\n"
        assert text.count(late) == 1
        return self._write_entrypoint(text.replace(late, f"{statements}{late}"))

    def _write_entrypoint(self, text: str) -> Path:
        file = self.workspace.parent / "entrypoint.py"
        file.write_text(text)
        return file

    def _inputs(self, platform: Simulator | str, inputs: Mapping[str, str]) -> dict[str, str]:
        base_url = platform if isinstance(platform, str) else platform.base_url
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        return {"admin-key": ADMIN_KEY, "base-url": base_url, **QUICK, **given}


def shell_python(folder: Path, script: str) -> Path:
    """Write a shell script to run in place of Python; `$@` are Python's arguments."""
    wrapper = folder / "python"
    wrapper.write_text(f"#!/bin/bash\npython='{sys.executable}'\n{script}\n")
    wrapper.chmod(0o755)
    return wrapper
