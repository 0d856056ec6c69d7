"""A release in a local registry."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine import need_act, need_engine, need_installed
from tests.rehearsal.registry import need_registry_tools, registry
from tests.rehearsal.release import LOG, Release, make_release

NAME = "owner/docs-platform-action"
WHAT = "Tests that rehearse a release"


def pytest_runtest_setup(item: pytest.Function) -> None:
    if "release" not in item.fixturenames:
        return
    # not in a fixture, so that pytest's summary shows the reason once, not for each test
    need_engine(WHAT)
    need_registry_tools()
    need_act()
    need_installed("syft", WHAT)


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    # not pytest's own folder, which keeps the images of earlier sessions
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def release(folder: Path) -> Iterator[Release]:
    """Make a release in a registry that is served as long as it is used."""
    LOG.info("\nThe release")
    with registry(folder / "public") as public:
        yield make_release(f"{public}/{NAME}", folder=folder)
