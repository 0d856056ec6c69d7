"""Has no coverage measured, and tells how many examples each target had, where a person asked for more than the usual."""

from collections.abc import Iterator

import pytest

from tests.fuzz import BY_HAND, tried
from tests.inside import unmeasured


@pytest.fixture(scope="module", autouse=True)
def _unmeasured() -> Iterator[None]:
    """Leave lines to the tests that look at one each: measured, thousands of examples take three times as long."""
    with unmeasured():
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give a target that a person explores all the time it takes."""
    for item in items:
        if BY_HAND and "fuzz" in item.path.parts:
            item.add_marker(pytest.mark.timeout(0))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the counts."""
    if BY_HAND and tried:
        terminalreporter.section("examples tried")
        for target, count in tried.items():
            terminalreporter.write_line(f"{count:>9,}  {target}")
