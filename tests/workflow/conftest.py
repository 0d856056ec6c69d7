"""act with the action in a repository, and a simulated platform."""

from collections.abc import Iterator

import pytest

from admin_api_simulator import Simulator
from tests.engine import ROOT, examples_job_image, need_act, need_engine, remember_output, remove_image, temporary_tag
from tests.keys import ADMIN_KEY
from tests.workflow.act import Act

BUILT_BY_ACT = "act-dockeraction:latest"
"""The name that act gives to the image of `uses: ./`."""

BUILT_OF_PUBLISHED = "act-owner-docs-platform-action-v1-dockeraction:latest"
"""The name that it gives to that of the published action."""

EXAMPLES = ROOT / "examples"


def pytest_runtest_setup() -> None:
    # here and not in a fixture, so that pytest's summary tells the reason once, not once a test
    need_engine("Workflow tests")
    need_act()


@pytest.fixture(scope="session")
def act(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Act]:
    act = Act(program=need_act(), folder=tmp_path_factory.mktemp("act"))
    tag = temporary_tag()
    act.build_ahead(tag)
    yield act
    remove_image(BUILT_BY_ACT)
    remove_image(tag)


@pytest.fixture(scope="session")
def examples_image() -> str:
    return examples_job_image()


@pytest.fixture(scope="session")
def examples(tmp_path_factory: pytest.TempPathFactory, examples_image: str) -> Iterator[Act]:
    """Give a user's repository with the examples in it, unchanged."""
    folder = tmp_path_factory.mktemp("examples")
    act = Act(program=need_act(), folder=folder, workflows=EXAMPLES, image=examples_image, published=True)
    tag = temporary_tag()
    act.build_ahead(tag)
    yield act
    remove_image(BUILT_OF_PUBLISHED)
    remove_image(tag)


@pytest.fixture(scope="class")
def platform() -> Iterator[Simulator]:
    with Simulator(key=ADMIN_KEY, export_seconds=0.3, agent_seconds=0.3, pages=12, host="127.0.0.1") as platform:
        yield platform


@pytest.fixture(autouse=True)
def _look_at_the_log(request: pytest.FixtureRequest) -> None:
    # a run is older than the test that first looks at it
    if "run" in request.fixturenames:
        remember_output(request.getfixturevalue("run").log, where="the log of act", holds_links=True)
