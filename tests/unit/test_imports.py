"""What a run imports before its first request, and what only when it comes to it: until then a step's user waits for nothing."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ENTRYPOINT = str(Path(__file__).parents[2] / "entrypoint.py")

LATE = {
    "asyncio": "comes with backoff",
    "backoff": "draws the pauses between attempts",
    "docs_platform_action.archive": "opens a bundle, which a job has when it ends",
    "docs_platform_action.bundle": "delivers it",
    "docs_platform_action.jobs.polling": "waits for a job that was started",
    "docs_platform_action.report.domain_text": "belongs to the log of several jobs",
    "docs_platform_action.report.failures": "describes what failed",
    "docs_platform_action.report.final_report": "writes the report",
    "docs_platform_action.report.multi_log": "shows several jobs",
    "docs_platform_action.report.signed_links": "reads the link of a bundle",
    "docs_platform_action.report.summary": "writes the summary",
    "yaml": "writes the values file",
}
"""Modules that no run needs before its first request. Of the report only the console, the outputs and the log of one job are."""

SCRIPT = """
import json, os, runpy, socket, sys

def connect(*_):
    print(json.dumps(sorted(sys.modules)))
    sys.stdout.flush()
    os._exit(0)

socket.socket.connect = connect
runpy.run_path(sys.argv[1], run_name="__main__")
"""
"""Runs the action to where it would connect for the first time."""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """Tell which modules a run in a fresh interpreter has when it is about to connect."""
    environment = {
        "GITHUB_WORKSPACE": str(tmp_path_factory.mktemp("workspace")),
        "INPUT_BASE-URL": "http://127.0.0.1:9",
        "INPUT_ADMIN-KEY": "key-of-the-test-of-imports",
        "INPUT_DOMAIN": "docs.example.com",
        "INPUT_BUNDLE-PATH": "bundle",
        "INPUT_SITE-PATH": "site",
        "INPUT_VALUES-FILE": "values.yaml",
    }
    done = run(SCRIPT, env=environment)
    return frozenset(json.loads(done[-1]))


def test_what_is_asked_for_later_is_imported_later(imported: frozenset[str]) -> None:
    assert "docs_platform_action.main" in imported, "the run came as far as its first request"
    assert {name: why for name, why in LATE.items() if name in imported} == {}


def test_each_of_these_is_a_module() -> None:
    code = f"import importlib; print([importlib.import_module(name).__name__ for name in {sorted(LATE)}])"

    assert run(code) == [str(sorted(LATE))]


def test_what_is_imported_is_not_searched_for_garbage() -> None:
    code = "import gc, runpy, sys; runpy.run_path(sys.argv[1])['run'](); print(gc.isenabled(), gc.get_freeze_count() > 10_000)"

    assert run(code)[-1] == "True True"


def run(code: str, *, env: Mapping[str, str] | None = None) -> list[str]:
    """Run code in a fresh interpreter, with the entry point as its argument; return the lines that it prints."""
    command = [sys.executable, "-c", code, ENTRYPOINT]
    done = subprocess.run(command, env=env or {}, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
