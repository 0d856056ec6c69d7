"""The workflows on pages and in the examples are valid and safe to copy.

`make lint` checks the files of the examples.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from admin_api_simulator.simulator import DEFAULT_KEY
from docs.pages import block_outside, markdown_pages, readme_workflows
from docs_platform_action.inputs.table import DEFAULTS
from docs_platform_action.inputs.validators import parse_duration

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yml"))


def blocks_on_pages() -> dict[str, str]:
    """Return the parts of workflows on all pages."""
    blocks = {}
    for page in sorted(markdown_pages()):
        if page.name == "outside-github-actions.md":
            continue  # it has a pipeline for GitLab
        sources = re.findall(r"```yaml\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL)
        for number, source in enumerate(sources):
            blocks[f"{page.relative_to(ROOT)}-{number}"] = source
    return blocks


BLOCKS = blocks_on_pages()


def run(program: str, *arguments: str | Path) -> None:
    command = [Path(sys.executable).with_name(program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def workflow_of(source: str) -> dict[str, Any] | None:
    """Return a part of a workflow as a complete one, if it has steps."""
    part = yaml.safe_load(source)
    if isinstance(part, list):
        jobs = {"docs": {"name": "Docs", "runs-on": "ubuntu-latest", "steps": part}}
    else:
        jobs = part.get("jobs")
    if not jobs:
        return None
    return {
        "name": "Docs",
        "on": {"push": {"branches": ["main"]}},
        "permissions": {},
        "jobs": jobs,
    }


def test_those_on_pages_follow_the_schema(tmp_path: Path) -> None:
    for name, source in BLOCKS.items():
        workflow = workflow_of(source)
        if workflow is not None:
            file = tmp_path / f"{name.replace('/', '-')}.yml"
            file.write_text(yaml.safe_dump(workflow, sort_keys=False))

    run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *tmp_path.iterdir())


def test_pipelines_for_gitlab_follow_the_schema(tmp_path: Path) -> None:
    pipeline = tmp_path / ".gitlab-ci.yml"
    pipeline.write_text(block_outside("GitLab CI", "yaml"))

    run(
        "check-jsonschema",
        "--builtin-schema",
        "vendor.gitlab-ci",
        pipeline,
        ROOT / "examples" / "outside" / "gitlab-ci.yml",
    )


def test_zizmor_finds_nothing_in_the_workflows_of_the_readme(tmp_path: Path) -> None:
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    for name, source in readme_workflows().items():
        (folder / name).write_text(source)

    run("zizmor", "--offline", "--quiet", f"--config={ROOT / '.github' / 'zizmor.yml'}", tmp_path)


@pytest.mark.parametrize("source", BLOCKS.values(), ids=BLOCKS)
def test_keys_on_pages_are_secrets(source: str) -> None:
    keys = set(re.findall(r"admin-key: (.*)", source))

    assert keys <= {"${{ secrets.DOCS_ADMIN_KEY }}", DEFAULT_KEY, f'"{DEFAULT_KEY}"'}


@pytest.mark.parametrize("workflow", EXAMPLES, ids=lambda path: path.name)
def test_an_example_takes_the_key_from_a_secret_and_is_not_cancelled_by_a_newer_run(
    workflow: Path,
) -> None:
    text = workflow.read_text("utf-8")

    assert set(re.findall(r"admin-key: (.*)", text)) <= {"${{ secrets.DOCS_ADMIN_KEY }}"}
    assert set(re.findall(r"base-url: (.*)", text)) <= {"${{ vars.DOCS_API_URL }}"}
    # an export that is cancelled here still runs on the platform
    assert "cancel-in-progress" not in text


def starts_export(step: Mapping[str, Any]) -> bool:
    """Return whether a step is one of the action that may start an export."""
    mode = step.get("with", {}).get("mode", "export")
    return "docs-platform-action@" in str(step.get("uses")) and "export" in mode


def longest_wait_seconds(step: Mapping[str, Any]) -> float:
    """Return how long a step that starts an export may wait, besides the delivery."""
    inputs = {**DEFAULTS, **step["with"]}
    limits = ["start-timeout"]
    if inputs["wait"] is not False:
        limits.append("timeout")
    if inputs["commit"]:
        limits.append("commit-timeout")
    return sum(parse_duration(str(inputs[name])) for name in limits)


def starting_jobs() -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    """Yield the jobs that start exports: their names, `timeout-minutes`, and their steps."""
    workflows = {path.name: path.read_text("utf-8") for path in EXAMPLES}
    for name, source in {**workflows, **readme_workflows()}.items():
        for job, body in yaml.safe_load(source)["jobs"].items():
            for step in body.get("steps", []):
                if starts_export(step):
                    yield f"{name}: {job}", body["timeout-minutes"], step


@pytest.mark.parametrize(("name", "minutes", "step"), [*starting_jobs()])
def test_a_job_may_take_longer_than_its_export_may_wait(
    name: str, minutes: int, step: Mapping[str, Any]
) -> None:
    assert longest_wait_seconds(step) < minutes * 60, name


def test_the_lock_files_have_hashes_and_no_addresses() -> None:
    for lock in (ROOT / "requirements").glob("*.txt"):
        for line in re.sub(r" \\\n +", " ", lock.read_text("utf-8")).splitlines():
            assert "==" in line
            assert "--hash=sha256:" in line
            assert "://" not in line
    locked = json.loads((ROOT / "tests" / "package-lock.json").read_text("utf-8"))["packages"]
    for name, package in locked.items():
        if name:  # the one without a name is these tests
            assert "integrity" in package, name
            assert "resolved" not in package, name


OF_BUCKET = " --exclude 'publication/*'"  # where a whole bucket is published to
UPLOADING = [
    ROOT / "README.md",
    ROOT / "docs" / "plan.md",
    ROOT / "examples" / "outside" / "gitlab-ci.yml",
    *[file for file in EXAMPLES if "aws s3 sync" in file.read_text("utf-8")],
]


def upload_commands(file: Path) -> list[str]:
    return re.findall(
        r"^[ -]*(aws s3 (?:cp --recursive|sync) .*)$", file.read_text("utf-8"), flags=re.MULTILINE
    )


@pytest.mark.parametrize("file", UPLOADING, ids=lambda file: file.name)
def test_every_upload_has_the_same_order_and_caching(file: Path) -> None:
    expected = upload_commands(ROOT / "examples" / "upload-to-s3.yml")
    assert len(expected) == 4
    if file.name == "export-many-deploy-each.yml":
        expected = [line.replace("$BUCKET", "$FOLDER").replace(OF_BUCKET, "") for line in expected]

    assert upload_commands(file) == expected


@pytest.mark.parametrize("file", [*UPLOADING[3:], ROOT / "README.md"], ids=lambda file: file.name)
def test_an_upload_holds_the_lock_of_its_bucket(file: Path) -> None:
    if file.suffix == ".md":
        text, group = readme_workflows()["readme-publish.yml"], "docs-publish-docs-example-com"
    else:
        text, group = file.read_text("utf-8"), r"docs-publish-\$\{\{ .*vars\.DOCS_BUCKET \}\}"
    workflow = yaml.safe_load(text)

    for job in workflow["jobs"].values():
        if "aws s3 sync" not in str(job):
            continue
        lock = job.get("concurrency", workflow.get("concurrency"))
        assert re.fullmatch(group, lock["group"])
        assert "cancel-in-progress" not in lock
