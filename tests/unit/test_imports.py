"""What a run imports before its first request; everything else is imported when it is needed, to keep the start short."""

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
    "docs_platform_action.bundle": "delivers the bundle",
    "docs_platform_action.jobs.polling": "waits for a started job",
    "docs_platform_action.report.domain_text": "belongs to the log of several jobs",
    "docs_platform_action.report.failures": "describes failures",
    "docs_platform_action.report.final_report": "writes the report",
    "docs_platform_action.report.multi_log": "shows several jobs",
    "docs_platform_action.report.signed_links": "reads the link of a bundle",
    "docs_platform_action.report.summary": "writes the summary",
    "yaml": "writes the values file",
}
"""Modules that no run needs before its first request. Of `report` a run needs only the console, the outputs and a job's log."""

SCRIPT = """
import json, os, runpy, socket, sys

def connect(*_):
    print(json.dumps(sorted(sys.modules)))
    sys.stdout.flush()
    os._exit(0)

socket.socket.connect = connect
runpy.run_path(sys.argv[1], run_name="__main__")
"""
"""Runs the action until its first connection."""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """Return the modules that a run in a new interpreter has imported before its first connection."""
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


def test_modules_are_not_imported_before_they_are_needed(imported: frozenset[str]) -> None:
    assert "docs_platform_action.main" in imported, "the run reached its first request"
    assert {name: why for name, why in LATE.items() if name in imported} == {}


def test_imported_modules_are_frozen_for_the_garbage_collector() -> None:
    code = "import gc, runpy, sys; runpy.run_path(sys.argv[1])['run'](); print(gc.isenabled(), gc.get_freeze_count() > 10_000)"

    assert run(code)[-1] == "True True"


def run(code: str, *, env: Mapping[str, str] | None = None) -> list[str]:
    """Run code in a new interpreter with the entry point as its argument, and return the printed lines."""
    command = [sys.executable, "-c", code, ENTRYPOINT]
    done = subprocess.run(command, env=env or {}, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
