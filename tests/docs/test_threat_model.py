"""A run reads only the environment variables that docs/threat-model.md names."""

import io
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from admin_api_simulator.runner import runner_environment
from docs_platform_action.main import run
from tests.action import InProcessHandler
from tests.keys import ADMIN_KEY
from tests.virtual_time import VirtualClock

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "threat-model.md").read_text("utf-8")


class RecordingEnvironment(dict[str, str]):
    """An environment that records which variables are read."""

    def __init__(self, values: dict[str, str]) -> None:
        super().__init__(values)
        self.read_names: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.read_names.add(name)
        return super().get(name, default)

    def __getitem__(self, name: str) -> str:
        self.read_names.add(name)
        return super().__getitem__(name)

    def values(self) -> Any:
        raise AssertionError("the action must not read all values; it may list the names")

    items = values


@pytest.mark.parametrize("mode", ["export", "collect", "agent"])
def test_a_run_reads_only_the_variables_that_the_page_names(tmp_path: Path, mode: str) -> None:
    # nothing listens on the port, so the run is short
    inputs = {
        "mode": mode,
        "base-url": "http://127.0.0.1:9",
        "admin-key": ADMIN_KEY,
        "project-id": "p",
    }
    if mode != "export":
        inputs["job-id"] = "j"
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    given = dict.fromkeys(action["inputs"], "") | inputs
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    variables = runner_environment(inputs=given, folder=tmp_path, workspace=workspace, debug=False)
    variables["INPUT_DOMAIN"] = "docs.example.com"
    variables["ANOTHERS_SECRET"] = "s3cr3t"
    # empty, so that the run also checks the other variables for a workflow
    variables["GITHUB_OUTPUT"] = ""
    environment = RecordingEnvironment(variables)
    clock = VirtualClock(real_rate=1.0)
    exit_code = run(environment, io.StringIO(), InProcessHandler(clock), clock)

    section = PAGE.partition("\n## What it reads from the environment\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([A-Z_]+)`", section))
    # those of proxies are not read for a loopback host
    named = {name for name in named if not name.endswith("_PROXY")}
    declared = {f"INPUT_{name.upper()}" for name in given}
    declared |= {"INPUT_ADMIN_KEY", "INPUT_GITHUB_TOKEN"}  # the secrets' other forms
    assert exit_code == 1
    assert environment.read_names - declared == named
