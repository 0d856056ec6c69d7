"""The part of CI that uses the action like a workflow of a user."""

from pathlib import Path

import pytest

from tests.engine import ROOT, need_act, remove_image, temporary_tag
from tests.workflow.act import Act
from tests.workflow.conftest import BUILT_BY_ACT

pytestmark = pytest.mark.timeout(900)  # the first test of a session builds the images


def test_ci_exports_fails_and_waits_for_an_agent_and_another_job_reads_the_outputs(tmp_path: Path, examples_image: str) -> None:
    act = Act(program=need_act(), folder=tmp_path, workflows=ROOT / ".github" / "workflows", image=examples_image)
    tag = temporary_tag()
    act.build_ahead(tag)

    run = act.run("push", "ci.yml", variables={}, secrets={}, job="outputs")

    remove_image(BUILT_BY_ACT)
    remove_image(tag)
    assert run.succeeded, run.log
    (printed,) = run.printed("outputs of the action:")
    assert printed.startswith("12 pages; failed: job-failed; pull request: https://"), run.log
