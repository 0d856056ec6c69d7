"""weekly.yml under act, without published images.

tests/rehearsal runs its steps with a registry.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from admin_api_simulator import Simulator
from tests.engine import ROOT, copy_action
from tests.keys import ADMIN_KEY
from tests.workflow.act import REPOSITORY, Act, WorkflowRun
from tests.workflow.conftest import HERE

pytestmark = pytest.mark.timeout(900)  # the first test of a session builds the image

WEEKLY = (ROOT / ".github" / "workflows" / "weekly.yml").read_text("utf-8")


def run(folder: Path, image: str, releases: list[dict[str, Any]]) -> WorkflowRun:
    """Run the workflow in a repository with these releases, and no open issue."""
    repository = copy_action(folder / "docs")
    byte_code = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "release", repository / "release", ignore=byte_code)
    (commit,) = set(re.findall(r"uses: actions/setup-python@(\w+)", WEEKLY))
    setup_python = HERE / "actions" / "actions" / "setup-python"
    actions = {f"actions/setup-python@{commit}": setup_python}
    act = Act(folder=folder, workflows={"weekly.yml": WEEKLY}, image=image, actions=actions)
    answers = {
        f"repos/{REPOSITORY}/releases?per_page=100": releases,
        f"repos/{REPOSITORY}/issues?state=open&per_page=100": [],
    }
    with Simulator(key=ADMIN_KEY, host="127.0.0.1") as unused:
        return act.run(
            "weekly.yml",
            unused,
            event="workflow_dispatch",
            environment={"GH_ANSWERS": json.dumps(answers)},
        )


def test_before_the_first_release_it_passes(tmp_path: Path, examples_image: str) -> None:
    passed = run(tmp_path, examples_image, [{"tag_name": "v1.0.0", "draft": True}])

    assert passed.succeeded, passed.log
    assert "There is no published release of a version yet.\n" in passed.log
    assert "Write the issue" not in passed.log


def test_a_finding_opens_an_issue(tmp_path: Path, examples_image: str) -> None:
    failed = run(tmp_path, examples_image, [{"tag_name": "v1.0.0", "draft": False}])

    assert not failed.succeeded, failed.log
    (asked,) = failed.printed("asked of gh:")
    request = f"api --method POST repos/{REPOSITORY}/issues --raw-field title=Weekly check: "
    assert asked.startswith(request), failed.log
    assert "body=- v1.0.0: a check could not run: " in asked
