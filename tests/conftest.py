"""What all tests share."""

import functools
from typing import Final

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from docs_platform_action import main
from docs_platform_action.http import trust
from tests.engine import remove_what_this_run_left

LONGEST: Final = (
    "tests/workflow/test_approvals.py::test_exactly_the_approved_archive",
    "tests/rehearsal/test_published.py",
    "tests/scenarios/test_faults.py",
    "tests/test_measurements.py",
    "tests/workflow/",
    "tests/rehearsal/",
    "tests/container/",
    "tests/scenarios/",
)
"""The longest tests, which start first.

Those that need no image fill the time in which the first test builds them.
"""

# Reading the public certificate authorities takes 50 ms, half the time of a run in the test's own
# process. Test modules import this function by name, so it is replaced before they are.
trust.create_ssl_context = functools.cache(trust.create_ssl_context)
main.create_ssl_context = trust.create_ssl_context


class ByFile(LoadScopeScheduling):
    """Sends each worker the tests of a file, or one workflow test, in collection order."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith("tests/workflow/"):
            return nodeid
        return nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    """Keep together the tests of a file.

    The markers of pytest-xdist need an older pytest than 9.2.
    """
    config.option.loadscopereorder = False
    return ByFile(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Start with the longest tests if there are several workers.

    A single process keeps the order of the files' names.
    """
    if hasattr(config, "workerinput"):
        items.sort(key=position)


def position(item: pytest.Item) -> int:
    """Return a test's position in `LONGEST`, or the one behind its last."""
    for number, path in enumerate(LONGEST):
        if item.nodeid.startswith(path):
            return number
    return len(LONGEST)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove what the tests have made in the container engine.

    This happens after the results, once no worker uses it.
    """
    if not hasattr(config, "workerinput"):
        remove_what_this_run_left()
