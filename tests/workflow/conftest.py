"""act, repositories with the action and the examples, and a simulated platform."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from admin_api_simulator import Simulator
from tests.engine import (
    ROOT,
    copy_action,
    examples_job_image,
    need_act,
    need_engine,
    remove_image,
    temporary_tag,
)
from tests.keys import ADMIN_KEY
from tests.readme import readme_workflows
from tests.workflow.act import Act
from tests.workflow.storage import S3, running_storage

BUILT_BY_ACT = "act-dockeraction:latest"
"""act's name for the image of `uses: ./`."""

BUILT_OF_PUBLISHED = "act-owner-docs-platform-action-v1-dockeraction:latest"
"""act's name for the image of the published action."""

EXAMPLES = ROOT / "examples"

STAND_INS = Path(__file__).with_name("actions")
"""Actions that stand in for those that need GitHub or AWS."""


def pytest_runtest_setup() -> None:
    # not in a fixture, so that pytest's summary shows the reason once, not for each test
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
    """Return a user's repository with the unchanged examples and the README's workflows."""
    folder = tmp_path_factory.mktemp("examples")
    workflows = shutil.copytree(EXAMPLES, folder / "workflows")
    for name, workflow in readme_workflows().items():
        (workflows / name).write_text(workflow, encoding="utf-8")
    published = copy_action(folder / "action")
    act = Act(
        program=need_act(),
        folder=folder,
        workflows=workflows,
        image=examples_image,
        published=published,
        stand_ins=stand_ins(),
    )
    tag = temporary_tag()
    act.build_ahead(tag)
    yield act
    remove_image(BUILT_OF_PUBLISHED)
    remove_image(tag)


def stand_ins() -> dict[str, Path]:
    """Return the folders of the actions that stand in, by the names and commits in the examples."""
    text = "".join(path.read_text("utf-8") for path in EXAMPLES.glob("*.yml"))
    used = {*re.findall(r"uses: ([\w.-]+/[\w.-]+)@([0-9a-f]{40})", text)}
    return {f"{name}@{commit}": STAND_INS / name for name, commit in used}


@pytest.fixture
def platform() -> Iterator[Simulator]:
    with Simulator(key=ADMIN_KEY, export_seconds=0.3, agent_seconds=0.3, pages=12, host="127.0.0.1") as platform:
        yield platform


@pytest.fixture
def storage() -> Iterator[S3]:
    """Serve S3 with an empty bucket."""
    with running_storage() as storage:
        yield storage
