"""Runs the action as GitHub's runner does.

It runs in the test's process, or in a separate one for signals and the interpreter's start.
The platform is a simulator with real sockets, or a `VirtualPlatform` without any, in virtual time.
"""

import contextlib
import importlib
import io
import os
import random
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from unittest import mock

from admin_api_simulator import Simulator
from admin_api_simulator.runner import (
    ActionRun,
    StartedAction,
    left_files,
    parse_outputs,
    read_text,
    runner_environment,
    start_action,
    with_defaults,
)
from docs_platform_action import main
from docs_platform_action.inputs.validators import trimmed
from docs_platform_action.jobs import runner
from docs_platform_action.signals import SignalHandler, Work
from tests.ended import ENTRYPOINT, Ended, ended_of
from tests.forms import BY_DOMAIN, BY_PROJECT, by_project
from tests.keys import ADMIN_KEY
from tests.virtual_platform import API_URL, VirtualPlatform
from tests.virtual_time import VirtualClock

QUICK = {"poll-interval": "20ms", "outage-tolerance": "400ms"}
"""Pauses short enough for real sockets; a test about pauses sets its own."""

IDLE_SECONDS = 11.0
"""How often the virtual main thread checks whether a heartbeat is due.

The real one checks every second.
"""

Inputs = Mapping[str, str]
Platform = Simulator | VirtualPlatform | str


class Action:
    """The action with a workspace.

    Inputs are given as keywords: `poll_interval` is the input `poll-interval`. `env` is added to
    the runner's environment. `constants` overrides the package's constants, such as
    `http.attempts.MAX_PAUSE_SECONDS`. With the `form` `BY_PROJECT`, the simulator's project of each
    domain is exported, which has the domain as its label.
    """

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.python: Path | str = sys.executable
        self.entrypoint = ENTRYPOINT
        self.debug = False
        self.form = BY_DOMAIN
        self.constants: dict[str, float] = {}

    def run(
        self, platform: Platform, *, env: Mapping[str, str] | None = None, **inputs: str
    ) -> Ended:
        """Run to the end in the test's process.

        Without sockets, the virtual clock moves; with them, only pauses take no time.
        """
        given = self._inputs(platform, inputs)
        with (
            other_constants(self.constants),
            mock.patch.dict(os.environ, env or {}, clear=True),
            contextlib.chdir(self.workspace),
        ):
            return run_in_process(
                given, platform, workspace=self.workspace, env=env, debug=self.debug
            )

    def export(
        self, platform: Platform, *, env: Mapping[str, str] | None = None, **inputs: str
    ) -> Ended:
        """Run an export to the end in the test's process.

        It exports `docs.example.com` unless the inputs name another domain.
        """
        return self.run(platform, env=env, **{"domain": "docs.example.com", **inputs})

    def start(
        self, platform: Simulator | str, *, env: Mapping[str, str] | None = None, **inputs: str
    ) -> StartedAction:
        """Start a separate process. Leaving `with` ends it if it is still running."""
        entrypoint = self.entrypoint
        if self.constants:
            entrypoint = self._entrypoint_with_constants()
        environment: dict[str, str] = {}
        if isinstance(platform, Simulator):
            environment["GITHUB_API_URL"] = platform.github_url
        environment |= env or {}
        return start_action(
            self._inputs(platform, inputs),
            entrypoint=entrypoint,
            workspace=self.workspace,
            python=self.python,
            env=environment,
            debug=self.debug,
        )

    def run_process(
        self, platform: Simulator | str, *, env: Mapping[str, str] | None = None, **inputs: str
    ) -> Ended:
        """Run to the end in a separate process."""
        with self.start(platform, env=env, **inputs) as running:
            return ended_of(running.collect())

    def _entrypoint_with_constants(self) -> Path:
        statements = ""
        for name, value in self.constants.items():
            module, _, constant = f"docs_platform_action.{name}".rpartition(".")
            statements += f"    import {module}\n    {module}.{constant} = {value!r}\n"
        text = self.entrypoint.read_text()
        late = "    return main(signal_handler, clock)\n"
        assert text.count(late) == 1
        file = self.workspace.parent / "entrypoint.py"
        file.write_text(text.replace(late, f"{statements}{late}"))
        # the defaults of the inputs are read from the file beside the entry point
        shutil.copy(ENTRYPOINT.with_name("action.yml"), file.parent)
        return file

    def _inputs(self, platform: Platform, inputs: Inputs) -> dict[str, str]:
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        if self.form == BY_PROJECT:
            given = by_project(given)
        base_url = platform if isinstance(platform, str) else platform.base_url
        quick = {} if isinstance(platform, VirtualPlatform) else QUICK
        return {"admin-key": ADMIN_KEY, "base-url": base_url, **quick, **given}


def run_virtually(
    platform: VirtualPlatform,
    inputs: Inputs,
    *,
    seed: int = 1,
    idle_seconds: float = IDLE_SECONDS,
    stream: io.StringIO | None = None,
    files: Mapping[str, bytes] = MappingProxyType({}),
) -> Ended:
    """Run the whole action to the end in virtual time.

    It runs in a new workspace with these files. All files of the workspace are in `left`.
    """
    given = {"base-url": API_URL, "admin-key": ADMIN_KEY, **inputs}
    with tempfile.TemporaryDirectory(prefix="virtual-run-") as folder:
        for name, content in files.items():
            Path(folder, name).write_bytes(content)
        return run_in_process(
            given,
            platform,
            workspace=Path(folder),
            seed=seed,
            idle_seconds=idle_seconds,
            stream=stream,
        )


def run_in_process(
    inputs: Inputs,
    platform: Platform,
    *,
    workspace: Path,
    env: Mapping[str, str] | None = None,
    debug: bool = False,
    seed: int = 1,
    idle_seconds: float = IDLE_SECONDS,
    stream: io.StringIO | None = None,
) -> Ended:
    """Run the action to the end.

    Inputs that are not given have the defaults of `action.yml`.
    """
    given = with_defaults(inputs, ENTRYPOINT.with_name("action.yml"))
    output = stream or io.StringIO()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="action-run-")))
        stderr = stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        environment = runner_environment(
            inputs=given, folder=folder, workspace=workspace, debug=debug
        )
        if isinstance(platform, VirtualPlatform):
            stack.enter_context(in_virtual_time(platform, seed))
            clock = platform.clock
            handler = InProcessHandler(clock, idle_seconds=idle_seconds)
            environment["GITHUB_API_URL"] = platform.simulator.github_url
        else:
            clock = VirtualClock(real_rate=1.0)
            handler = InProcessHandler(clock)
        if isinstance(platform, Simulator):
            environment["GITHUB_API_URL"] = platform.github_url
        environment |= env or {}
        exit_code = main.run(environment, output, handler, clock)
        left = left_files(folder)
        if isinstance(platform, VirtualPlatform):
            left |= left_files(workspace)
        found = ActionRun(
            exit_code=exit_code,
            stdout=output.getvalue(),
            stderr=stderr.getvalue(),
            outputs=parse_outputs(read_text(folder / "output")),
            summary=read_text(folder / "summary"),
            left=left,
        )
    return ended_of(found, key=trimmed(environment.get("INPUT_ADMIN-KEY", "")))


class InProcessHandler(SignalHandler):
    """Runs the work without handling signals.

    With `idle_seconds`, it runs the work in virtual time: as a thread of the clock, which reports
    its progress.
    """

    def __init__(self, clock: VirtualClock, *, idle_seconds: float | None = None) -> None:
        """Leave the process's signal handlers alone."""
        self._virtual = clock
        self._idle_seconds = idle_seconds

    def run(self, work: Work) -> None:
        if self._idle_seconds is None:
            work.run()
            return
        self._virtual.call_every(self._idle_seconds, work.tick)
        self._virtual.run(work.run)


@contextlib.contextmanager
def in_virtual_time(platform: VirtualPlatform, seed: int) -> Iterator[None]:
    """Replace the action's transport and threads with virtual ones, and seed its random numbers."""
    random_state = random.getstate()
    random.seed(seed)
    virtual_threading = SimpleNamespace(Thread=platform.clock.Thread, Lock=threading.Lock)
    with (
        mock.patch.object(main, "Transport", return_value=platform),
        # reading all authorities takes longer than a run
        mock.patch.object(main, "create_ssl_context", return_value=None),
        mock.patch.object(runner, "threading", virtual_threading),
    ):
        try:
            yield
        finally:
            random.setstate(random_state)


@contextlib.contextmanager
def other_constants(values: Mapping[str, float]) -> Iterator[None]:
    """Override constants of the package, such as `http.attempts.MAX_PAUSE_SECONDS`."""
    with contextlib.ExitStack() as stack:
        for name, value in values.items():
            path, _, constant = name.rpartition(".")
            module = importlib.import_module(f"docs_platform_action.{path}")
            stack.enter_context(mock.patch.object(module, constant, value))
        yield


def shell_python(folder: Path, script: str) -> Path:
    """Write a shell script to run in place of Python; `$@` are Python's arguments."""
    wrapper = folder / "python"
    wrapper.write_text(f"#!/bin/bash\npython='{sys.executable}'\n{script}\n")
    wrapper.chmod(0o755)
    return wrapper
