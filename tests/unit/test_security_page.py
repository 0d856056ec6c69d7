"""SECURITY.md gives the README's advice in full, its workflow follows that advice, and its facts are those of the code."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from docs_platform_action.report import signed_links
from tests.readme import readme_workflows

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text("utf-8")
FLOWING = " ".join(PAGE.split())
README = (ROOT / "README.md").read_text("utf-8")
ZIZMOR = Path(sys.executable).with_name("zizmor")


class TestReadme:
    def test_it_links_to_the_page(self) -> None:
        assert "](SECURITY.md)" in README
        assert "\n## Security\n" in README

    @pytest.mark.parametrize(
        "advice",
        [
            *("permissions: {}", "pull_request_target", "`mask-bundle-url", "`invalid-input`", "`env:`", "# v1"),
            *("`base-url`", "`jobId`", "verified", "expiresAt"),
        ],
    )
    def test_the_page_contains_the_advice_of_the_readme(self, advice: str) -> None:
        sections = re.findall(r"\n## (?:Running it in production|Security)\n(.*?)(?=\n## )", README, flags=re.DOTALL)

        assert len(sections) == 2
        assert advice in "".join(sections)
        assert advice in PAGE


class TestWorkflowsOfTheReadme:
    """They are copied first, so they are held to the same rules as the examples."""

    WORKFLOWS: Final = readme_workflows()

    @pytest.mark.parametrize(("name", "persona"), [("readme-publish.yml", "pedantic"), ("readme-comment.yml", "regular")])
    def test_zizmor_finds_nothing(self, tmp_path: Path, name: str, persona: str) -> None:
        folder = tmp_path / ".github" / "workflows"
        folder.mkdir(parents=True)
        (folder / name).write_text(self.WORKFLOWS[name])

        found = subprocess.run(
            [
                ZIZMOR,
                "--offline",
                "--quiet",
                f"--persona={persona}",
                f"--config={ROOT / '.github' / 'zizmor.yml'}",
                str(tmp_path),
            ],
            capture_output=True,
            text=True,
            check=False,
        )

        assert found.returncode == 0, found.stdout + found.stderr

    @pytest.mark.parametrize(
        ("name", "permissions"),
        [("readme-publish.yml", {"id-token": "write"}), ("readme-comment.yml", {"pull-requests": "write"})],
    )
    def test_its_only_job_has_the_permission_that_it_needs(self, name: str, permissions: dict[str, str]) -> None:
        (job,) = yaml.safe_load(self.WORKFLOWS[name])["jobs"].values()

        assert job["permissions"] == permissions
        assert job["environment"] == "production"
        assert job["timeout-minutes"] > 60  # the default of `timeout`

    def test_the_role_trusts_the_environment_of_the_job(self) -> None:
        assert "`repo:ORGANIZATION/REPOSITORY:environment:production`" in README

    def test_no_export_is_cancelled(self) -> None:
        assert yaml.safe_load(self.WORKFLOWS["readme-publish.yml"])["concurrency"] == {"group": "docs-production"}


class TestSnippets:
    BLOCKS = tuple(re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL))

    def test_zizmor_finds_nothing(self, tmp_path: Path) -> None:
        assert self.BLOCKS
        workflows = tmp_path / ".github" / "workflows"
        workflows.mkdir(parents=True)
        for number, block in enumerate(self.BLOCKS):
            (workflows / f"{number}.yml").write_text(block)

        found = subprocess.run(
            [ZIZMOR, "--offline", "--color=never", "--no-progress", "--persona=pedantic", str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
        )

        assert (found.returncode, found.stdout) == (0, "No findings to report. Good job!\n"), found.stdout + found.stderr

    def test_inputs_and_outputs_of_the_page_exist(self) -> None:
        action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
        steps = [step for block in self.BLOCKS for job in yaml.safe_load(block)["jobs"].values() for step in job["steps"]]
        inputs = {name for step in steps if "docs-platform-action@" in step.get("uses", "") for name in step["with"]}

        assert inputs
        assert inputs <= {*action["inputs"]}
        assert {*re.findall(r"steps\.docs\.outputs\.(\w+)", PAGE)} <= {*action["outputs"]}

    @pytest.mark.parametrize("block", re.findall(r"```yaml\n(.*?)```", README, flags=re.DOTALL))
    def test_snippets_of_the_readme_use_no_expression_in_a_script_and_a_secret_as_key(self, block: str) -> None:
        scripts = [str(step["run"]) for step in steps_in(yaml.safe_load(block)) if "run" in step]
        keys = {step["with"]["admin-key"] for step in steps_in(yaml.safe_load(block)) if "admin-key" in step.get("with", {})}

        assert [script for script in scripts if "${{" in script] == []
        assert keys <= {"${{ secrets.DOCS_ADMIN_KEY }}"}


def steps_in(value: Any) -> list[dict[str, Any]]:
    """Return all steps in a part of a workflow."""
    if isinstance(value, dict):
        own = [value] if {"run", "uses"} & {*value} else []
        return own + [step for inner in value.values() for step in steps_in(inner)]
    return [step for inner in value for step in steps_in(inner)] if isinstance(value, list) else []


def test_the_page_has_the_same_limit_for_secrets_in_links_as_the_code() -> None:
    assert signed_links.MIN_RANDOM_SECRET_LENGTH == 16
    assert "if its value looks random and has 16 characters or more." in FLOWING


def test_the_page_names_the_base_image() -> None:
    used = {*re.findall(r"(?m)^FROM (\S+)", (ROOT / "Dockerfile").read_text("utf-8"))}

    assert used == {*re.findall(r"Not the base image, `(python:[^`]+)`", FLOWING)}


def test_the_supported_release_is_the_one_in_the_readme() -> None:
    (supported,) = re.findall(r"\| the newest release of `(v\d+)` \| yes \|", PAGE)

    assert {*re.findall(r"OWNER/docs-platform-action@(v\d+)", README)} == {supported}
