"""What a run accesses according to Python's audit events: the two named hosts and the requested files, but no program."""

import ast
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from admin_api_simulator import Fault, Simulator
from tests.action import Action
from tests.ended import ENTRYPOINT, Ended

AUDIT_HOOK = """
import sys

_log = open({log!r}, "a", buffering=1)


def _record(event, args):
    if event.partition(".")[0] in ("socket", "subprocess", "open", "ctypes") or event in (
        "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "os.mkdir", "os.rename", "os.link",
        "os.symlink", "os.remove", "os.rmdir", "os.chmod", "os.chown", "os.truncate", "pty.spawn",
    ):
        _log.write(repr((event, tuple(arg if isinstance(arg, (str, bytes, int, tuple)) else str(arg) for arg in args))) + "\\n")


sys.addaudithook(_record)
"""
PROGRAMS = ("subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.system", "pty.", "ctypes.")
CHANGES = ("os.mkdir", "os.rename", "os.link", "os.symlink", "os.remove", "os.rmdir", "os.chmod", "os.chown", "os.truncate")
CHECKS_FOR_IPV6 = "urllib3 binds a socket to this machine's own address once, to see whether there is IPv6"
DELIVERED = {"bundle_path": "bundle.tar.gz", "site_path": "out/site", "values_file": "values.yaml"}


@dataclass(frozen=True, kw_only=True)
class Watched:
    """A run and its Python audit events (source: PEP 578)."""

    ended: Ended
    events: list[tuple[str, tuple[Any, ...]]]

    def of(self, *beginnings: str) -> list[tuple[str, tuple[Any, ...]]]:
        return [(event, args) for event, args in self.events if event.startswith(beginnings)]


@pytest.fixture
def watched(action: Action, tmp_path: Path) -> Callable[..., Watched]:
    """Return a function that runs the action with an audit hook from its first line."""
    log = tmp_path / "events"
    text = ENTRYPOINT.read_text()
    docstring, rest = text.split("\n", 1)
    action.entrypoint = tmp_path / "entrypoint.py"
    action.entrypoint.write_text(f"{docstring}\n{AUDIT_HOOK.format(log=str(log))}{rest}")

    def run(platform: Simulator, **inputs: str) -> Watched:
        ended = action.export(platform, **inputs)
        return Watched(ended=ended, events=[ast.literal_eval(line) for line in log.read_text().splitlines()])

    return run


@pytest.fixture(params=["a good run", "a run that fails"])
def exit_code(request: pytest.FixtureRequest, platform: Simulator) -> int:
    """Let the run succeed or fail, and return its exit code."""
    if request.param == "a good run":
        return 0
    platform.script("read_export", Fault(json={"status": "failed", "error": "no theme"}))
    return 1


def test_it_connects_only_to_the_api_and_the_storage(
    watched: Callable[..., Watched], platform: Simulator, exit_code: int
) -> None:
    run = watched(platform, **DELIVERED)

    assert run.ended.exit_code == exit_code, run.ended.stdout
    named = {
        url.removeprefix("http://") for url in (platform.base_url, platform.storage_url if exit_code == 0 else platform.base_url)
    }
    assert {f"{host}:{port}" for _, (_, (host, port)) in run.of("socket.connect")} == named
    assert {f"{args[0]}:{args[1]}" for _, args in run.of("socket.getaddrinfo")} == named
    others = [(event, args) for event, args in run.of("socket.") if event not in {"socket.__new__", "socket.connect"}]
    assert [found for found in others if found[0] != "socket.getaddrinfo" and found[1][1] != ("::1", 0)] == [], CHECKS_FOR_IPV6


def test_it_starts_no_program_and_loads_no_library(watched: Callable[..., Watched], platform: Simulator, exit_code: int) -> None:
    run = watched(platform, **DELIVERED)

    assert run.ended.exit_code == exit_code, run.ended.stdout
    assert run.of("socket.connect"), "the audit hook ran"
    assert run.of(*PROGRAMS) == []


def test_it_writes_only_the_requested_and_the_runners_files(
    watched: Callable[..., Watched], action: Action, platform: Simulator, exit_code: int
) -> None:
    run = watched(platform, **DELIVERED)

    assert run.ended.exit_code == exit_code, run.ended.stdout
    opened = [os.fsdecode(path) for _, (path, _, flags) in run.of("open") if is_written(path, flags)]
    changed = [os.fsdecode(args[0]) for _, args in run.of(*CHANGES) if is_named(args[0])]
    places = {place_of(path, action.workspace) for path in [*opened, *changed]}
    expected = {"GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "workspace"}
    assert places == (expected | {"below the site's part"} if exit_code == 0 else expected)


def is_written(path: object, flags: int) -> bool:
    """Return whether a file is opened by its path for writing."""
    return bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)) and is_named(path)


def is_named(path: object) -> bool:
    """Return whether this is a path, but not of byte code, which the image already has."""
    return isinstance(path, str | bytes) and "__pycache__" not in os.fsdecode(path)


def place_of(path: str, workspace: Path) -> str:
    if path.startswith(f"{workspace}/") or path == str(workspace):
        return "workspace"
    if not path.startswith("/"):
        return "below the site's part"
    return {"output": "GITHUB_OUTPUT", "summary": "GITHUB_STEP_SUMMARY"}.get(Path(path).name, path)
