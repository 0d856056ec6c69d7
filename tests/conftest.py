"""Checks for every test that the admin key and the signatures of bundle links are only where they belong."""

import contextlib
import functools
import json
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from xdist.remote import Producer

from docs_platform_action import main
from docs_platform_action.http import trust
from tests import engine
from tests.garbage import without_collection
from tests.inside import unmeasured
from tests.keys import ADMIN_KEY
from tests.leaks import leaked
from tests.search import SEARCH, watch, without_mask
from tests.workers import BySharing, priority_of

# Reading the public certificate authorities takes 50 ms, half the time of a run in the test's own process. Test modules import
# this function by name, so it is replaced before they are.
trust.create_ssl_context = main.create_ssl_context = functools.cache(trust.create_ssl_context)
json.loads = without_collection(json.loads)  # of every module, for tests of deeply nested JSON


@pytest.fixture
def remember_output() -> Callable[[str], str]:
    """Return a function that registers a text which people or later steps would see, for the search."""
    return engine.remember_output


@pytest.fixture(scope="session", autouse=True)
def _watch_simulators() -> Generator[None]:
    with pytest.MonkeyPatch.context() as patch:
        watch(patch.setattr)
        yield


@pytest.fixture(autouse=True)
def _no_secret_where_it_does_not_belong(request: pytest.FixtureRequest) -> Generator[None]:
    """Search logs, outputs, summaries, arguments, requests and remaining files after a test."""
    # a folder takes 5 ms to make, and most tests write no files
    folder: Path | None = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    SEARCH.clear()
    yield
    assert SEARCH.found(folder) == []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Disable coverage for property tests: it doubles their time, and which lines they reach depends on chance."""
    is_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    with unmeasured() if is_property else contextlib.nullcontext():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that printed the key."""
    report = yield
    if report.passed and leaked(ADMIN_KEY, without_mask(report.capstdout + report.capstderr, ADMIN_KEY)):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} printed the admin key"
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> BySharing:
    """Send tests that share an expensive object to the same worker, in collection order."""
    config.option.loadscopereorder = False
    return BySharing(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Start with the longest tests if there are several workers; a single process keeps the order of the files' names.

    Of several tests with one name, the workers would run a single one.
    """
    assert len({item.nodeid for item in items}) == len(items), "two tests have the same name"
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: priority_of(item.nodeid))
