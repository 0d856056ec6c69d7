"""The dependencies of the image and CI are pinned by hash or commit, and workflows have no unnecessary permissions."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCKERFILE = re.sub(r"\\\n\s*", " ", (ROOT / "Dockerfile").read_text("utf-8"))
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
CI = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
EXAMPLES = sorted((ROOT / "examples").glob("*.yml"))
REQUIREMENT = re.compile(r"[A-Za-z0-9][\w.-]*==[\w.!+]+(?: ; [^;@]+)?(?: --hash=sha256:[0-9a-f]{64})+")


def named(path: Path) -> str:
    return path.name


def read(path: Path) -> dict[str, Any]:
    found = yaml.safe_load(path.read_text("utf-8"))
    assert isinstance(found, dict)
    return found


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job.get("steps", [])]


class TestDependencies:
    @pytest.mark.parametrize("lock", LOCKS, ids=named)
    def test_each_is_pinned_to_a_version_and_its_hash(self, lock: Path) -> None:
        lines = re.sub(r" \\\n +", " ", lock.read_text("utf-8")).splitlines()

        assert lines
        assert [line for line in lines if not REQUIREMENT.fullmatch(line)] == []

    def test_the_image_installs_only_hashed_wheels_and_runs_no_build(self) -> None:
        installs = re.findall(r"pip --python \S+ (?:install|wheel) .*?(?=&&|$)", DOCKERFILE, flags=re.MULTILINE)

        from_an_index = [command for command in installs if "--no-index" not in command]
        assert len(installs) == 4
        assert len(from_an_index) == 2
        for command in from_an_index:
            assert {"--require-hashes", "--no-deps", "--only-binary"} <= {*command.split()}
            assert "--only-binary :all:" in command

    def test_the_image_downloads_nothing_else(self) -> None:
        assert not re.search(r"\b(?:curl|wget|apt-get|apk|git clone|ADD)\b|https?://", re.sub("(?m)^#.*$", "", DOCKERFILE))

    def test_all_stages_use_the_same_base_image(self) -> None:
        assert {*re.findall(r"(?m)^FROM (\S+)", DOCKERFILE)} == {"python:3.13-slim-trixie"}


@pytest.mark.parametrize("workflow", CI, ids=named)
class TestCi:
    def test_every_other_action_is_pinned_to_a_commit(self, workflow: Path) -> None:
        used = [step["uses"] for step in steps(read(workflow)) if "uses" in step]

        assert [name for name in used if not re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", name)] == []

    def test_jobs_have_read_access_to_the_code_only(self, workflow: Path) -> None:
        found = read(workflow)

        assert found["permissions"] == {}
        assert [
            job.get("permissions", {}) for job in found["jobs"].values() if job.get("permissions", {}) != {"contents": "read"}
        ] == []

    def test_pull_requests_have_no_access_to_secrets(self, workflow: Path) -> None:
        text = workflow.read_text("utf-8")

        assert "pull_request_target" not in text
        assert "secrets." not in text
        checkouts = [step for step in steps(read(workflow)) if step.get("uses", "").startswith("actions/checkout@")]
        assert {step["with"]["persist-credentials"] for step in checkouts} == {False}


@pytest.mark.parametrize("workflow", EXAMPLES, ids=named)
class TestExamples:
    def test_no_token_permissions_are_requested(self, workflow: Path) -> None:
        found = read(workflow)

        assert found["permissions"] == {}
        assert [name for name, job in found["jobs"].items() if "permissions" in job] == []

    def test_pull_requests_do_not_start_them(self, workflow: Path) -> None:
        started_by = read(workflow)[True]  # YAML 1.1 reads the key `on` as true

        assert {*started_by} <= {"push", "schedule", "workflow_dispatch"}

    def test_scripts_contain_no_expressions(self, workflow: Path) -> None:
        scripts = [step["run"] for step in steps(read(workflow)) if "run" in step]

        assert [script for script in scripts if "${{" in script] == []

    def test_the_key_is_a_secret_and_the_address_a_variable(self, workflow: Path) -> None:
        ours = [step["with"] for step in steps(read(workflow)) if "docs-platform-action@" in step.get("uses", "")]

        assert ours
        assert {given["admin-key"] for given in ours} == {"${{ secrets.DOCS_ADMIN_KEY }}"}
        assert {given["base-url"] for given in ours} == {"${{ vars.DOCS_API_URL }}"}
