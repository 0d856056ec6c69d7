"""The scripts on the page about other CI systems use inputs, outputs and failure reasons that exist, and stop at errors."""

import re
from pathlib import Path

import pytest
import yaml

from docs_platform_action.errors import ActionError
from tests.outside_page import PAGE, block, jenkins_script

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
SCRIPTS = {"export-docs.sh": block("In a shell", "sh"), "refresh-docs": block("Cron", "sh"), "Jenkins": jenkins_script()}


def test_inputs_and_outputs_exist() -> None:
    outputs = {name for script in SCRIPTS.values() for name in re.findall(r"\$\{?([a-z]+[A-Z]\w+)", script)}

    assert {*re.findall(r"INPUT_([A-Z_-]+)", PAGE)} <= {name.upper().replace("-", "_") for name in ACTION["inputs"]}
    assert outputs >= {"jobId", "sitePath", "failureReason"}
    assert outputs <= {*ACTION["outputs"]}


def test_failure_reasons_exist() -> None:
    reasons = re.findall(r"^    ([a-z| -]+)\)", SCRIPTS["export-docs.sh"], flags=re.MULTILINE)

    assert len(reasons) == 2
    known = {kind.failure_reason for kind in ActionError.__subclasses__()}
    assert {reason for line in reasons for reason in line.split(" | ")} <= known


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_end_at_the_first_error_and_name_their_shell(name: str) -> None:
    assert re.match(r"#!/bin/sh\n\s*set -eu\n", SCRIPTS[name])
