"""The workflows on pages are valid and safe to copy. `test_contract.py` compares their inputs and outputs with `action.yml`."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from admin_api_simulator.simulator import DEFAULT_KEY
from docs_platform_action.bundle.helm_values import values_text
from docs_platform_action.inputs.settings import Mode
from docs_platform_action.job import Job
from docs_platform_action.models import Bundle
from tests.outside_page import block, gitlab_job
from tests.pages import markdown_pages
from tests.readme import readme_workflows
from tests.virtual_time import NOON

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(sys.executable).parent
BLOCKS = [
    (f"{page.relative_to(ROOT)}-{number}", source)
    for page in sorted(markdown_pages())
    for number, source in enumerate(re.findall(r"```yaml\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL))
    if page.name != "outside-github-actions.md"  # a pipeline for GitLab
]
"""The parts of workflows on all pages."""

README = readme_workflows()


def steps_in(value: Any) -> list[dict[str, Any]]:
    """Return all steps in a part of a workflow."""
    if isinstance(value, dict):
        own = [value] if {"run", "uses"} & {*value} else []
        return own + [step for inner in value.values() for step in steps_in(inner)]
    return [step for inner in value for step in steps_in(inner)] if isinstance(value, list) else []


def workflow_of(source: str) -> dict[str, Any] | None:
    """Return a part of a workflow as a complete one, if it has steps."""
    part = yaml.safe_load(source)
    jobs = {"docs": {"name": "Docs", "runs-on": "ubuntu-latest", "steps": part}} if isinstance(part, list) else part.get("jobs")
    return {"name": "Docs", "on": {"push": {"branches": ["main"]}}, "permissions": {}, "jobs": jobs} if jobs else None


@pytest.mark.parametrize("source", [source for _, source in BLOCKS], ids=[name for name, _ in BLOCKS])
def test_scripts_contain_no_expressions_and_keys_are_secrets(source: str) -> None:
    steps = steps_in(yaml.safe_load(source))
    keys = {step["with"]["admin-key"] for step in steps if "admin-key" in step.get("with", {})}

    assert [step["run"] for step in steps if "${{" in str(step.get("run", ""))] == []
    assert keys <= {"${{ secrets.DOCS_ADMIN_KEY }}", DEFAULT_KEY}


def test_they_follow_the_schema(tmp_path: Path) -> None:
    for name, source in BLOCKS:
        if workflow := workflow_of(source):
            (tmp_path / f"{name.replace('/', '-')}.yml").write_text(yaml.safe_dump(workflow, sort_keys=False))
    files = [*tmp_path.iterdir()]

    assert len(files) > 15
    run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *files)


@pytest.mark.parametrize(
    ("persona", "workflows"),
    [
        ("pedantic", {name: source for name, source in BLOCKS if name.startswith("SECURITY.md")}),
        ("pedantic", {"publish": README["readme-publish.yml"]}),
        ("regular", {"comment": README["readme-comment.yml"]}),
    ],
)
def test_zizmor_finds_nothing_in_those_of_the_readme_and_the_security_page(
    tmp_path: Path, persona: str, workflows: dict[str, str]
) -> None:
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    for name, source in workflows.items():
        (folder / f"{name}.yml").write_text(source)

    assert workflows
    config = ROOT / ".github" / "zizmor.yml"
    run("zizmor", "--offline", "--quiet", f"--persona={persona}", f"--config={config}", tmp_path)


@pytest.mark.parametrize(
    ("name", "permissions"),
    [("readme-publish.yml", {"id-token": "write"}), ("readme-comment.yml", {"pull-requests": "write"})],
)
def test_the_only_job_of_one_in_the_readme_has_the_permission_that_it_needs(name: str, permissions: dict[str, str]) -> None:
    workflow = yaml.safe_load(README[name])
    (job,) = workflow["jobs"].values()

    assert (job["permissions"], job["environment"]) == (permissions, "production")
    assert job["timeout-minutes"] > 60  # the default of `timeout`
    assert "cancel-in-progress" not in workflow.get("concurrency", {})


def test_the_gitlab_job_follows_the_schema_and_does_not_store_the_link(tmp_path: Path) -> None:
    pipeline = tmp_path / ".gitlab-ci.yml"
    pipeline.write_text(block("GitLab CI", "yaml"))

    run("check-jsonschema", "--builtin-schema", "vendor.gitlab-ci", pipeline)
    artifacts = gitlab_job()["artifacts"]
    assert (artifacts["paths"], artifacts["reports"]) == (["site"], {"dotenv": "job.env"})


def test_the_helm_values_are_those_that_the_action_writes() -> None:
    (shown,) = (part["staticExport"] for part in (yaml.safe_load(source) for _, source in BLOCKS) if "staticExport" in part)
    job = Job(mode=Mode.EXPORT, link=Bundle(url="https://storage.example.com/b"))
    written = yaml.safe_load(values_text(job, "1", NOON))["staticExport"]

    assert [*shown] == [*written]


def run(program: str, *arguments: str | Path) -> None:
    """Run a program of the development dependencies, which must find nothing."""
    found = subprocess.run([PROGRAMS / program, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
