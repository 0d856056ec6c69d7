"""What all tests share."""

import functools
import os
from typing import Final

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from docs_platform_action import main
from docs_platform_action.http import trust

GROUPS: Final = {
    "tests/rehearsal/": "release",
    "tests/workflow/": "act",
    "tests/container/": "image",
    "tests/test_measurements.py": "image",  # the engine fails a build if another process removes images with the same layers
    "tests/scenarios/": None,
}
"""The longest tests, which start first. One worker runs all tests of a group, because they share a server."""

# Reading the public certificate authorities takes 50 ms, half the time of a run in the test's own process. Test modules import
# this function by name, so it is replaced before they are.
trust.create_ssl_context = main.create_ssl_context = functools.cache(trust.create_ssl_context)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give way to the workflow tests, which one worker runs and which end last."""
    if hasattr(item.config, "workerinput") and not item.nodeid.startswith("tests/workflow/"):
        os.nice(10 - os.nice(0))


class ByGroup(LoadScopeScheduling):
    """Sends each worker the tests of a group, or of a file, in collection order."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((group for path, group in GROUPS.items() if group and file.startswith(path)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByGroup:
    """Keep together the tests of a group. The markers of pytest-xdist need an older pytest than 9.2."""
    config.option.loadscopereorder = False
    return ByGroup(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Start with the longest tests if there are several workers; a single process keeps the order of the files' names."""
    if hasattr(config, "workerinput"):
        paths = [*GROUPS]
        items.sort(key=lambda item: next((n for n, path in enumerate(paths) if item.nodeid.startswith(path)), len(paths)))
