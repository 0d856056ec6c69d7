"""What holds for every test: the admin key, and what opens a bundle's link, are nowhere but where they belong."""

import contextlib
import functools
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from xdist.remote import Producer

from docs_platform_action import main
from docs_platform_action.http import connection
from tests import engine
from tests.inside import unmeasured
from tests.keys import ADMIN_KEY
from tests.leaks import leaked_in_part
from tests.search import SEARCH, watch, without_mask
from tests.workers import BySharing, turn_of

# Reading the public certificate authorities takes 50 ms, half the time of a run in the test's own process. Test modules import
# this function by name, so it is replaced before they are.
connection.create_ssl_context = main.create_ssl_context = functools.cache(connection.create_ssl_context)


@pytest.fixture
def remember_output() -> Callable[[str], str]:
    """Hand in a text that people or later steps would see, to have it searched."""
    return engine.remember_output


@pytest.fixture(scope="session", autouse=True)
def _watch_simulators() -> Generator[None]:
    with pytest.MonkeyPatch.context() as patch:
        watch(patch.setattr)
        yield


@pytest.fixture(autouse=True)
def _no_secret_where_it_does_not_belong(request: pytest.FixtureRequest) -> Generator[None]:
    """Search logs, outputs, summaries, arguments, requests and files left behind, when a test has ended."""
    # a folder takes 5 ms to make, and most tests write no files
    folder: Path | None = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    SEARCH.clear()
    yield
    assert SEARCH.found(folder) == []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Have no coverage measured of property tests: they take twice as long measured, and what they reach is left to chance."""
    is_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    with unmeasured() if is_property else contextlib.nullcontext():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that let the key through to its own output."""
    report = yield
    if report.passed and leaked_in_part(ADMIN_KEY, without_mask(report.capstdout + report.capstderr, ADMIN_KEY)):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} printed the admin key"
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> BySharing:
    """Hand out together what is made once for several tests, in the order that the workers collected."""
    config.option.loadscopereorder = False
    return BySharing(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Have workers begin with what takes longest; a process on its own goes by the files' names."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: turn_of(item.nodeid))
