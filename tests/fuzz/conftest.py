"""Disables coverage, and prints the number of examples with `FUZZ_EXAMPLES`."""

from collections.abc import Iterator

import pytest

from tests.fuzz import RANDOM_EXAMPLES, tried
from tests.inside import unmeasured


@pytest.fixture(scope="module", autouse=True)
def _unmeasured() -> Iterator[None]:
    """Disable coverage, with which thousands of examples take three times as long."""
    with unmeasured():
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Remove the timeout of tests with random examples."""
    for item in items:
        if RANDOM_EXAMPLES and "fuzz" in item.path.parts:
            item.add_marker(pytest.mark.timeout(0))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if RANDOM_EXAMPLES and tried:
        terminalreporter.section("examples tried")
        for target, count in tried.items():
            terminalreporter.write_line(f"{count:>9,}  {target}")
