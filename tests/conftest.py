"""What holds for every test: the admin key shows up nowhere."""

import re
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from tests.engine import on_output
from tests.keys import ADMIN_KEY

_remembered: list[str] = []
on_output(_remembered.append)


@pytest.fixture
def remember_output() -> Callable[[str], str]:
    """Hand in a text that people or later steps would see, to have it searched for the key."""

    def remember(text: str) -> str:
        _remembered.append(text)
        return text

    return remember


@pytest.fixture(autouse=True)
def _no_key_in_any_output(tmp_path: Path) -> Generator[None]:
    """Search logs, outputs, summaries and files left behind for the admin key, when a test has ended.

    The runner takes the `::add-mask::` command out of the log, so it may hold the key, once and first.
    """
    _remembered.clear()
    yield
    for text in _remembered:
        shown = re.sub(rf"^::add-mask::{re.escape(ADMIN_KEY)}$", "", text, count=1, flags=re.MULTILINE)
        assert ADMIN_KEY not in shown
    for file in tmp_path.rglob("*"):
        # a file that a test wrote to hold the key, as GitHub's store of secrets does
        if file.is_file() and not file.is_symlink() and file.suffix != ".secret":
            assert ADMIN_KEY.encode() not in file.read_bytes(), f"the key is in {file.relative_to(tmp_path)}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that let the key through to its own output."""
    report = yield
    shown = re.sub(rf"^::add-mask::{re.escape(ADMIN_KEY)}$", "", report.capstdout + report.capstderr, flags=re.MULTILINE)
    if report.passed and ADMIN_KEY in shown:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} printed the admin key"
    return report
