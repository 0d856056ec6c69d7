"""The image, a simulated platform, and the runner that starts the image."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from admin_api_simulator import Simulator
from tests.container.runner import Runner
from tests.engine import action_image, need_engine
from tests.keys import ADMIN_KEY


def pytest_runtest_setup() -> None:
    # not in a fixture, so that pytest's summary shows the reason once, not for each test
    need_engine("Container tests")


@pytest.fixture(scope="session")
def image() -> str:
    return action_image()


@pytest.fixture
def platform() -> Iterator[Simulator]:
    with Simulator(key=ADMIN_KEY, export_seconds=0.3, pages=12, host="127.0.0.1") as platform:
        yield platform


@pytest.fixture
def runner(image: str, tmp_path: Path) -> Iterator[Runner]:
    runner = Runner(image=image, folder=tmp_path)
    yield runner
    runner.clean_up()
