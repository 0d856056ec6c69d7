"""The image, a simulated platform, and the runner that starts the image."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from admin_api_simulator import Simulator
from tests.container.runner import Runner
from tests.engine import build_image, copy_action, need_engine, remove_image, temporary_tag
from tests.keys import ADMIN_KEY


def pytest_runtest_setup() -> None:
    # not in a fixture, so that pytest's summary shows the reason once, not for each test
    need_engine("Container tests")


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if given := os.environ.get("ACTION_IMAGE"):
        yield given  # a release tests the image that it has published
        return
    tag = temporary_tag()
    build_image(tag, copy_action(tmp_path_factory.mktemp("action")))
    yield tag
    remove_image(tag)


@pytest.fixture
def platform() -> Iterator[Simulator]:
    with Simulator(key=ADMIN_KEY, export_seconds=0.3, agent_seconds=0.3, pages=12, host="127.0.0.1") as platform:
        yield platform


@pytest.fixture
def runner(image: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    # a log contains the mask of the key, which a job's files must not
    runner = Runner(image=image, folder=tmp_path, logs=tmp_path_factory.mktemp("logs"))
    yield runner
    runner.clean_up()
