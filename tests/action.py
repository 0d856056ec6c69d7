"""Runs the action's real entry point against a platform, and hands all that it leaves to the search for the key."""

import contextlib
import json
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from admin_api_simulator import Simulator
from admin_api_simulator.runner import ActionRun, StartedAction, start_action
from docs_platform_action.redaction import SHORTEST_TO_RECOGNISE
from docs_platform_action.settings import read_key
from tests.commands import Command, commands_in, lines_of
from tests.engine import remember_output
from tests.keys import ADMIN_KEY
from tests.search import SEARCH

ENTRYPOINT = Path(__file__).parents[1] / "entrypoint.py"
QUICK = {"poll-interval": "20ms", "outage-tolerance": "400ms"}
"""Pauses that a test can wait for; a test of theirs sets its own."""

UNMEASURED = {"COVERAGE_PROCESS_CONFIG": "", "COVERAGE_PROCESS_START": ""}
"""An environment that keeps coverage out of a process: it writes files of its own, and costs half as much again as a run."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a run ended, as the runner and people see it; `left` are the further files of the runner's folders."""

    exit_code: int
    stdout: str
    stderr: str
    outputs: Mapping[str, str]
    summary: str
    key: str = ADMIN_KEY
    left: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def commands(self) -> list[Command]:
        """What the runner would carry out, of either stream; but the mask of the key, which every run begins with."""
        found = commands_in(self.stdout, self.stderr)
        return [command for command in found if (command.name, command.value) != ("add-mask", self.key)]

    @property
    def errors(self) -> list[str]:
        """The messages of the error annotations."""
        return [found.value for found in self.commands if found.name == "error"]

    @property
    def error(self) -> str:
        """The message of the only error annotation."""
        (message,) = self.errors
        return message

    @property
    def warnings(self) -> list[str]:
        """The messages of the warning annotations."""
        return [found.value for found in self.commands if found.name == "warning"]

    @property
    def log(self) -> str:
        """The lines that are no commands."""
        return "".join(line + "\n" for line in lines_of(self.stdout) if not commands_in(line))

    @property
    def reason(self) -> str | None:
        """The `failureReason`."""
        return self.outputs.get("failureReason")

    @property
    def result(self) -> dict[str, Any]:
        """The only job in `results`."""
        (row,) = json.loads(self.outputs["results"])
        return dict(row)


class Running:
    """A run under way. Leaving `with` ends what is left of it."""

    def __init__(self, started: StartedAction, *, key: str) -> None:
        self._started = started
        self._key = key
        self.pid = started.pid
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it is over already
            arguments = Path(f"/proc/{self.pid}/cmdline").read_bytes().decode("utf-8", "replace")
            remember_output(arguments, where="the process's arguments")

    def wait_for(self, text: str) -> str:
        """Wait for a line of the log that holds a text, and give the line."""
        return self._started.wait_for_line(text)

    def signal(self, *numbers: signal.Signals) -> None:
        """Send signals, one right after the other."""
        for number in numbers:
            self._started.send_signal(number)

    def end(self) -> Ended:
        """Wait for the run's end."""
        return ended(self._started.collect(), key=self._key)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._started.__exit__(kind, error, traceback)


class Action:
    """The action in a workspace of its own."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.python: Path | str = sys.executable
        self.entrypoint = ENTRYPOINT
        self.debug = False
        self._constants: dict[str, float] = {}

    def start(self, platform: Simulator | str, *, env: Mapping[str, str | None] | None = None, **inputs: str) -> Running:
        """Start a run against a platform or a base URL; `poll_interval` is the input `poll-interval`.

        `env` comes on top of the runner's; `None` there stands for an empty text, which the action takes as unset.
        """
        given = {"admin-key": ADMIN_KEY, **QUICK, **{name.replace("_", "-"): value for name, value in inputs.items()}}
        given.setdefault("base-url", platform if isinstance(platform, str) else platform.base_url)
        started = start_action(
            given,
            entrypoint=self.entrypoint,
            workspace=self.workspace,
            python=self.python,
            env={name: value or "" for name, value in (env or {}).items()},
            debug=self.debug,
        )
        return Running(started, key=read_key({"INPUT_ADMIN-KEY": given["admin-key"]}))

    def run(self, platform: Simulator | str, *, env: Mapping[str, str | None] | None = None, **inputs: str) -> Ended:
        """Run to the end."""
        with self.start(platform, env=env, **inputs) as running:
            return running.end()

    def export(self, platform: Simulator | str, *, env: Mapping[str, str | None] | None = None, **inputs: str) -> Ended:
        """Export `docs.example.com` to the end, or what the inputs say."""
        return self.run(platform, env=env, **{"domain": "docs.example.com", **inputs})

    def set_constants(self, **values: float) -> None:
        """Have the runs to come take other values for constants, named `module__CONSTANT` with the packages before it."""
        self._constants |= values
        statements = "".join(
            f"    import docs_platform_action.{module}; docs_platform_action.{module}.{constant} = {value!r}\n"
            for (module, _, constant), value in (
                (name.replace("__", ".").rpartition("."), value) for name, value in self._constants.items()
            )
        )
        text, late = ENTRYPOINT.read_text(), "    return main(interruptions)\n"
        assert text.count(late) == 1
        self._use_entrypoint(text.replace(late, f"{statements}{late}"))

    def begin_with(self, statements: str) -> None:
        """Have the runs to come begin with Python statements of the test's own."""
        self._use_entrypoint(f"{statements}\n{ENTRYPOINT.read_text()}")

    def _use_entrypoint(self, text: str) -> None:
        self.entrypoint = self.workspace.parent / "entrypoint.py"
        self.entrypoint.write_text(text)


def shell_python(folder: Path, script: str) -> Path:
    """Write a stand-in for Python that a shell starts in surroundings of its own; `$@` are Python's arguments."""
    wrapper = folder / "python"
    wrapper.write_text(f"#!/bin/bash\npython='{sys.executable}'\n{script}\n")
    wrapper.chmod(0o755)
    return wrapper


def ended(run: ActionRun, *, key: str = ADMIN_KEY) -> Ended:
    """Have what a run left searched for its key and for links, and give it."""
    if len(key) >= SHORTEST_TO_RECOGNISE:
        SEARCH.keys.add(key)
    for where, text in {"stdout": run.stdout, "stderr": run.stderr, "the summary": run.summary}.items():
        remember_output(text, where=where)
    for name, text in run.outputs.items():
        remember_output(text, where=f"the output {name}", holds_links=True)
    for name, content in run.left.items():
        remember_output(content.decode("latin-1"), where=f"the file {name}")
    return Ended(
        exit_code=run.exit_code,
        stdout=run.stdout,
        stderr=run.stderr,
        outputs=run.outputs,
        summary=run.summary,
        key=key,
        left=run.left,
    )
