"""Runs the action's entry point as GitHub's runner does, for tests and the demo.

Source: actions/runner, `Handler.AddInputsToEnvironment` and `FileCommandManager`.
"""

import functools
import io
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import yaml

MINIMAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DEFAULT_TIMEOUT_SECONDS = 60.0
OnLine = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class ActionRun:
    """The result of a run. `exit_code` is negative if a signal killed the process.

    `left` are the other files in the runner's folders, such as HOME and RUNNER_TEMP, by their
    relative paths.
    """

    exit_code: int
    stdout: str
    stderr: str
    outputs: Mapping[str, str]
    summary: str
    left: Mapping[str, bytes] = field(default_factory=dict)


def run_action(
    inputs: Mapping[str, str], *, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS, **options: Any
) -> ActionRun:
    """Run the action; `options` are those of `start_action`.

    Raises TimeoutError and ValueError as `collect` does.
    """
    with start_action(inputs, **options) as started:
        return started.collect(timeout_seconds=timeout_seconds)


def start_action(
    inputs: Mapping[str, str],
    *,
    entrypoint: Path,
    workspace: Path,
    python: Path | str = sys.executable,
    env: Mapping[str, str] | None = None,
    debug: bool = False,
    on_line: OnLine | None = None,
) -> "StartedAction":
    """Start the action with these inputs, and the defaults in the action.yml next to `entrypoint`.

    `env` overrides variables, as a workflow's own `env` does. `on_line` is called with each line of
    stdout and stderr.
    """
    folder = tempfile.TemporaryDirectory(prefix="action-run-")
    try:
        environment = runner_environment(
            inputs=with_defaults(inputs, entrypoint.with_name("action.yml")),
            folder=Path(folder.name),
            workspace=workspace,
            debug=debug,
        )
        process = subprocess.Popen(  # noqa: S603 - runs the given program without a shell
            [str(python), "-I", "-u", str(entrypoint.resolve())],
            cwd=workspace,
            env=environment | dict(env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C in the tests does not reach the action
        )
    except BaseException:
        folder.cleanup()
        raise
    return StartedAction(process=process, folder=folder, on_line=on_line)


class StartedAction:
    """A running action. Leaving `with` kills it."""

    def __init__(
        self,
        *,
        process: subprocess.Popen[bytes],
        folder: tempfile.TemporaryDirectory[str],
        on_line: OnLine | None,
    ) -> None:
        self._process = process
        self._folder = folder
        self._on_line = on_line
        self._lines: dict[str, list[str]] = {"stdout": [], "stderr": []}
        self._changed = threading.Condition()
        self._readers: list[threading.Thread] = []
        for name, stream in (("stdout", process.stdout), ("stderr", process.stderr)):
            reader = threading.Thread(target=self._read, args=(name, stream), daemon=True)
            self._readers.append(reader)
            reader.start()

    @property
    def pid(self) -> int:
        """The process ID."""
        return self._process.pid

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the process."""
        self._process.send_signal(number)

    def wait_for_line(self, text: str, *, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS) -> str:
        """Wait for the first line of stdout that contains a text.

        Raises TimeoutError, or EOFError if the action ends.
        """
        deadline = time.monotonic() + timeout_seconds
        with self._changed:
            while True:
                for line in self._lines["stdout"]:
                    if text in line:
                        return line.rstrip("\n")
                if not any(reader.is_alive() for reader in self._readers):
                    stdout = "".join(self._lines["stdout"])
                    raise EOFError(f"the action ended without a line with {text!r}:\n{stdout}")
                if time.monotonic() > deadline:
                    raise TimeoutError(f"no line with {text!r} in {timeout_seconds:g} s")
                self._changed.wait(timeout=0.05)

    def collect(self, *, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS) -> ActionRun:
        """Wait for the end.

        Raises TimeoutError, after killing the action, and ValueError for outputs that are invalid.
        """
        try:
            exit_code = self._process.wait(timeout=timeout_seconds)
        except subprocess.TimeoutExpired:
            self._end()
            output = "".join(self._lines["stdout"] + self._lines["stderr"])
            raise TimeoutError(
                f"the action was still running after {timeout_seconds:g} s; its output:\n{output}"
            ) from None
        self._join()
        folder = Path(self._folder.name)
        try:
            return ActionRun(
                exit_code=exit_code,
                stdout="".join(self._lines["stdout"]),
                stderr="".join(self._lines["stderr"]),
                outputs=parse_outputs(read_text(folder / "output")),
                summary=read_text(folder / "summary"),
                left=left_files(folder),
            )
        finally:
            self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end()
        self._folder.cleanup()

    def _end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._join()

    def _join(self) -> None:
        for reader in self._readers:
            reader.join(timeout=5)

    def _read(self, name: str, stream: IO[bytes]) -> None:
        # Only \n ends a line: tests check for \r, which ends a line for the runner too.
        with io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline="\n") as lines:
            for line in lines:
                with self._changed:
                    self._lines[name].append(line)
                    self._changed.notify_all()
                if self._on_line is not None:
                    self._on_line(line.rstrip("\n"))


def with_defaults(inputs: Mapping[str, str], action_file: Path) -> dict[str, str]:
    """Return the inputs, and the defaults of the others.

    An input without a default is an empty string.
    """
    if not action_file.exists():
        return dict(inputs)
    return _defaults(action_file.read_text(encoding="utf-8")) | dict(inputs)


@functools.cache  # tests run the same action thousands of times
def _defaults(action_file: str) -> dict[str, str]:
    declared = yaml.safe_load(action_file).get("inputs") or {}
    return {name: _as_text((about or {}).get("default")) for name, about in declared.items()}


def runner_environment(
    *, inputs: Mapping[str, str], folder: Path, workspace: Path, debug: bool
) -> dict[str, str]:
    """Return the environment of a step; create its files in `folder`."""
    for name in ("output", "summary", "env", "path", "state"):
        (folder / name).touch()
    for name in ("home", "temp"):
        (folder / name).mkdir()
    environment = {
        "PATH": MINIMAL_PATH,
        "HOME": str(folder / "home"),
        "LANG": "C.UTF-8",
        "CI": "true",
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": "https://api.github.com",
        "GITHUB_ENV": str(folder / "env"),
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_PATH": str(folder / "path"),
        "GITHUB_REPOSITORY": "demo/docs",
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_STATE": str(folder / "state"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        "GITHUB_WORKSPACE": str(workspace.resolve()),
        "RUNNER_OS": "Linux",
        "RUNNER_TEMP": str(folder / "temp"),
    }
    if debug:
        environment["RUNNER_DEBUG"] = "1"
    return environment | {variable_of(name): text for name, text in inputs.items()}


def variable_of(input_name: str) -> str:
    """Return the environment variable of an input.

    It is in upper case, with `_` for spaces; hyphens are kept.
    """
    return "INPUT_" + input_name.replace(" ", "_").upper()


def parse_outputs(text: str) -> dict[str, str]:
    """Parse an output file like the runner, and as strictly as act.

    act rejects blank lines between records. Raises ValueError.
    """
    if not text:
        return {}
    outputs: dict[str, str] = {}
    lines = iter(text.removesuffix("\n").split("\n"))
    for line in lines:
        record = re.fullmatch("(.+?)(=|<<(?=.))(.*)", line, re.DOTALL)
        if record is None or not record[1].strip():
            raise ValueError(f"neither key=value nor key<<DELIMITER: {line!r}")
        key, separator, value = record.groups()
        if separator == "<<":
            value = _until(value, lines)
        outputs[key] = value
    return outputs


def _until(delimiter: str, lines: Iterator[str]) -> str:
    content: list[str] = []
    for line in lines:
        if line == delimiter:
            return "\n".join(content)
        content.append(line)
    raise ValueError(f"a value has no closing delimiter {delimiter!r}")


def left_files(folder: Path) -> dict[str, bytes]:
    """Return the files in the runner's folders except outputs and summary."""
    left = {}
    for file in sorted(folder.rglob("*")):
        path = str(file.relative_to(folder))
        if file.is_file() and path not in {"output", "summary"}:
            left[path] = file.read_bytes()
    return left


def read_text(path: Path) -> str:
    """Return a file's text with its line endings, or an empty string if it does not exist."""
    if not path.exists():
        return ""
    return path.read_bytes().decode("utf-8")


def _as_text(default: object) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    return "" if default is None else str(default)
