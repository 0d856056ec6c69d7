"""CONTRIBUTING.md is true: its example applies to the code, and the tests of the new input pass."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
TESTS = ("tests/unit/test_contract.py", "tests/unit/inputs", "tests/fuzz/test_settings.py", "tests/integration/test_export.py")
"""The tests that the page runs."""

SELECTED = "test_contract or user-agent or UserAgent or user_agent"
"""Those of them that depend on the new input."""


def apply(diff: str, folder: Path) -> None:
    """Apply a diff whose hunks have no line numbers, except hunks that are already there: a reader may have followed the page."""
    for name, changes in re.findall(r"^--- a/.*\n\+\+\+ b/(.*)\n((?:[@ +-](?!-- a/).*\n|\n)+)", diff, flags=re.MULTILINE):
        file = folder / name
        for hunk in changes.removeprefix("@@\n").split("\n@@\n"):
            lines = [line for line in hunk.splitlines() if line]
            old, new = ("\n".join(line[1:] for line in lines if line[0] in kept) for kept in (" -", " +"))
            text = file.read_text("utf-8")
            if f"\n{new}\n" in text and (old in new or f"\n{old}\n" not in text):
                continue
            assert text.count(f"\n{old}\n") == 1, f"CONTRIBUTING.md no longer fits {name}:\n{hunk}"
            file.write_text(text.replace(f"\n{old}\n", f"\n{new}\n"))


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a Python module in a copy of the repository."""
    environ = {**os.environ, "PYTHONPATH": str(folder / "src")}
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=folder, env=environ, capture_output=True, text=True, check=False
    )


def test_the_example_gives_an_input_whose_tests_pass(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("contribution") / "clone"  # not in `tmp_path`, which is searched for the key of the tests
    others = shutil.ignore_patterns(".git", ".venv*", "node_modules", ".*_cache")
    shutil.copytree(ROOT, folder, symlinks=True, ignore=others)

    for diff in re.findall(r"```diff\n(.*?)```", PAGE, flags=re.DOTALL):
        apply(diff, folder)
    assert "$ make reference\n" in PAGE
    assert "$ make wording\n" in PAGE
    written = run(folder, "tests.reference_page")  # which is what `make reference` runs
    worded = run(folder, "tests.wording")  # which is what `make wording` runs
    ended = run(folder, "pytest", "-p", "no:cacheprovider", "-k", SELECTED, *TESTS)

    assert written.returncode == 0, written.stderr
    assert worded.returncode == 0, worded.stderr
    assert "Invalid input `user-agent-suffix`: " in (folder / "tests" / "wording" / "inputs.md").read_text("utf-8")
    assert ended.returncode == 0, ended.stdout + ended.stderr
