"""The dependencies of the image are pinned by hash, and workflows have no unnecessary permissions.

zizmor, in `make lint`, finds actions without a commit, expressions in scripts, and events that give pull requests access.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCKERFILE = re.sub(r"\\\n\s*", " ", (ROOT / "Dockerfile").read_text("utf-8"))
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
WORKFLOWS = ROOT / ".github" / "workflows"
RELEASE = {
    "release.yml": {
        "check": {"actions": "read", "contents": "read"},
        "image": {"contents": "read", "packages": "write"},
        "attest": {"attestations": "write", "id-token": "write", "packages": "write"},
        "try": {"contents": "read"},
        "tag": {"contents": "write"},
        "draft": {"contents": "write"},
    },
    "major-tag.yml": {"move": {"contents": "write"}},
}
"""The workflows of a release, and the permissions of each job."""
CI = sorted(path for path in WORKFLOWS.glob("*.yml") if path.name not in RELEASE)
EXAMPLES = sorted((ROOT / "examples").glob("*.yml"))
STAND_INS = ROOT / "tests" / "workflow" / "actions"
REQUIREMENT = re.compile(r"[A-Za-z0-9][\w.-]*==[\w.!+]+(?: ; [^;@]+)?(?: --hash=sha256:[0-9a-f]{64})+")


def named(path: Path) -> str:
    return path.name


def read(path: Path) -> dict[str, Any]:
    found = yaml.safe_load(path.read_text("utf-8"))
    assert isinstance(found, dict)
    return found


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job.get("steps", [])]


def exports(job: dict[str, Any]) -> bool:
    """Return whether a job of an example starts an export, itself or in the workflow that it calls."""
    given = [step.get("with", {}) for step in job.get("steps", []) if "docs-platform-action@" in step.get("uses", "")]
    return "uses" in job or any("domain" in inputs and "job-id" not in inputs for inputs in given)


def credentials_of_checkouts(workflow: Path) -> set[bool]:
    checkouts = [step for step in steps(read(workflow)) if step.get("uses", "").startswith("actions/checkout@")]
    return {step["with"]["persist-credentials"] for step in checkouts}


class TestDependencies:
    @pytest.mark.parametrize("lock", LOCKS, ids=named)
    def test_each_is_pinned_to_a_version_and_its_hash(self, lock: Path) -> None:
        lines = re.sub(r" \\\n +", " ", lock.read_text("utf-8")).splitlines()

        assert lines
        assert [line for line in lines if not REQUIREMENT.fullmatch(line)] == []

    def test_each_node_package_is_pinned_to_its_hash_without_an_address(self) -> None:
        packages = json.loads((ROOT / "tests" / "package-lock.json").read_text("utf-8"))["packages"]
        installed = {name: package for name, package in packages.items() if name}

        assert installed
        assert [name for name, package in installed.items() if not package.get("integrity", "").startswith("sha512-")] == []
        assert [name for name, package in installed.items() if "resolved" in package] == []

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
    def test_jobs_have_at_most_read_access_to_the_code(self, workflow: Path) -> None:
        found = read(workflow)

        assert found["permissions"] == {}
        assert [job for job in found["jobs"].values() if job.get("permissions", {}) not in ({}, {"contents": "read"})] == []

    def test_pull_requests_have_no_access_to_secrets(self, workflow: Path) -> None:
        assert "secrets." not in workflow.read_text("utf-8")
        assert credentials_of_checkouts(workflow) == {False}


@pytest.mark.parametrize("workflow", EXAMPLES, ids=named)
class TestExamples:
    def test_no_job_can_change_the_code(self, workflow: Path) -> None:
        found = read(workflow)

        assert found["permissions"] == {}
        permissions = {permission for job in found["jobs"].values() for permission in job.get("permissions", {})}
        assert permissions <= {"id-token", "pages", "pull-requests"}

    def test_pull_requests_start_them_only_after_the_merge(self, workflow: Path) -> None:
        found = read(workflow)

        if "pull_request" in found[True]:  # YAML 1.1 reads the key `on` as true
            assert found[True]["pull_request"]["types"] == ["closed"]
            for job in found["jobs"].values():
                assert job["if"].split(" && ")[0] == "github.event.pull_request.merged"

    def test_no_export_is_cancelled_by_a_newer_run(self, workflow: Path) -> None:
        # an export that is cancelled here still runs on the platform
        assert "cancel-in-progress" not in workflow.read_text("utf-8")

    def test_exports_of_the_same_workflow_run_one_at_a_time(self, workflow: Path) -> None:
        found = read(workflow)
        at_once = [name for name, job in found["jobs"].items() if exports(job) and "concurrency" not in {*found, *job}]

        # the workflow that calls another one has the group
        assert at_once == [] or "workflow_call" in found[True]

    def test_upgrades_of_the_release_run_one_at_a_time(self, workflow: Path) -> None:
        found = read(workflow)
        jobs = [job for job in found["jobs"].values() if "helm upgrade" in str(job)]

        # Helm rejects simultaneous upgrades
        assert [job for job in jobs if job.get("concurrency") != {"group": "docs-release"}] == []

    def test_other_actions_get_inputs_that_they_have(self, workflow: Path) -> None:
        others = [step for step in steps(read(workflow)) if "uses" in step and not step["uses"].startswith("OWNER/")]

        for step in others:
            inputs = read(STAND_INS / step["uses"].partition("@")[0] / "action.yml")["inputs"]
            required = {name for name, given in inputs.items() if given.get("required") and "default" not in given}
            assert required <= {*step.get("with", {})} <= {*inputs}

    def test_the_key_is_a_secret_and_the_address_a_variable(self, workflow: Path) -> None:
        ours = [step["with"] for step in steps(read(workflow)) if "docs-platform-action@" in step.get("uses", "")]

        assert ours
        assert {given["admin-key"] for given in ours} == {"${{ secrets.DOCS_ADMIN_KEY }}"}
        assert {given["base-url"] for given in ours} == {"${{ vars.DOCS_API_URL }}"}


def test_the_subjects_of_the_aws_role_name_the_environment_of_each_job_that_assumes_it() -> None:
    pages = [ROOT / "README.md", ROOT / "examples" / "README.md", ROOT / "examples" / "upload-to-s3.yml"]
    old, new = "repo:ORGANIZATION/REPOSITORY:environment:", "repo:\\(.owner.login)@\\(.owner.id)/\\(.name)@\\(.id):environment:"
    subjects = [re.findall(rf"{re.escape(form)}(\w+)", page.read_text("utf-8")) for page in pages for form in (old, new)]
    assuming = {
        job.get("environment")
        for path in EXAMPLES
        for job in read(path)["jobs"].values()
        if "configure-aws-credentials@" in str(job)
    }

    assert len(assuming) == 1
    assert subjects == [[*assuming]] * 6


@pytest.mark.parametrize("name", RELEASE)
class TestReleaseWorkflows:
    def test_jobs_have_only_the_permissions_of_the_table(self, name: str) -> None:
        found = read(WORKFLOWS / name)

        assert found["permissions"] == {}
        assert {job: settings["permissions"] for job, settings in found["jobs"].items()} == RELEASE[name]

    def test_there_is_no_long_lived_secret(self, name: str) -> None:
        assert "secrets." not in (WORKFLOWS / name).read_text("utf-8")
        assert credentials_of_checkouts(WORKFLOWS / name) == {False}

    def test_only_people_start_them(self, name: str) -> None:
        started_by = read(WORKFLOWS / name)[True]  # YAML 1.1 reads the key `on` as true

        assert list(started_by) in (["workflow_dispatch"], ["release"])

    def test_none_is_interrupted(self, name: str) -> None:
        assert read(WORKFLOWS / name)["concurrency"]["cancel-in-progress"] is False


class TestRelease:
    JOBS = read(WORKFLOWS / "release.yml")["jobs"]

    def test_only_one_runs_at_a_time_and_none_cancels_the_waiting_run_of_another(self) -> None:
        assert read(WORKFLOWS / "release.yml")["concurrency"]["group"] == "release"
        assert read(WORKFLOWS / "major-tag.yml")["concurrency"]["group"] == "major-tag-${{ github.event.release.tag_name }}"

    def test_each_job_waits_for_those_before_it(self) -> None:
        assert {name: job.get("needs") for name, job in self.JOBS.items()} == {
            "check": None,
            "image": "check",
            "attest": ["check", "image"],
            "try": ["check", "image", "attest"],
            "tag": ["check", "image", "try"],
            "draft": ["check", "image", "tag"],
        }

    @pytest.mark.parametrize(
        ("job", "action", "settings"),
        [
            ("image", "docker/setup-qemu-action", {"platforms": "arm64", "cache-image": False}),
            ("image", "docker/setup-buildx-action", {"cache-binary": False}),
            (
                "image",
                "docker/build-push-action",
                {
                    "context": ".",
                    "platforms": "linux/amd64,linux/arm64",
                    "pull": True,
                    "push": True,
                    "provenance": "mode=max",
                    "sbom": True,
                    "tags": "${{ needs.check.outputs.image }}:${{ inputs.version }}",
                },
            ),
            (
                "attest",
                "actions/attest",
                {
                    "subject-name": "${{ needs.check.outputs.image }}",
                    "subject-digest": "${{ needs.image.outputs.digest }}",
                    "push-to-registry": True,
                    "create-storage-record": False,
                },
            ),
        ],
    )
    def test_other_actions_get_these_settings(self, job: str, action: str, settings: dict[str, object]) -> None:
        (found,) = [step["with"] for step in self.JOBS[job]["steps"] if step.get("uses", "").startswith(f"{action}@")]

        assert {name: value for name, value in found.items() if name not in ("labels", "annotations")} == settings

    def test_the_labels_and_annotations_say_what_was_built(self) -> None:
        (found,) = [step["with"] for step in self.JOBS["image"]["steps"] if "build-push-action" in step.get("uses", "")]
        origin = {
            "source=${{ github.server_url }}/${{ github.repository }}",
            "revision=${{ github.sha }}",
            "version=${{ inputs.version }}",
        }

        assert {*found["labels"].splitlines()} == {f"org.opencontainers.image.{line}" for line in origin}
        assert {*found["annotations"].splitlines()} >= {f"index,manifest:org.opencontainers.image.{line}" for line in origin}

    def test_every_job_gets_the_digest_of_the_image_that_was_pushed(self) -> None:
        (push,) = [step for step in self.JOBS["image"]["steps"] if step.get("id") == "push"]

        assert push["uses"].startswith("docker/build-push-action@")
        assert self.JOBS["image"]["outputs"] == {"digest": "${{ steps.push.outputs.digest }}"}
        assert self.JOBS["check"]["outputs"] == {"image": "${{ steps.image.outputs.name }}"}
        published = {"IMAGE": "${{ needs.check.outputs.image }}", "DIGEST": "${{ needs.image.outputs.digest }}"}
        for name in ("tag", "draft"):
            assert self.JOBS[name]["steps"][-1]["env"].items() >= published.items()

    def test_the_published_image_is_pulled_and_tested_on_both_platforms(self) -> None:
        job = self.JOBS["try"]

        assert job["strategy"]["matrix"] == {"runner": ["ubuntu-26.04", "ubuntu-26.04-arm"]}
        assert job["env"]["REQUIRE_ENGINE"] == "1"
        pull, _, run = [step["run"] for step in job["steps"] if "run" in step]
        assert pull.splitlines()[:2] == ["docker logout ghcr.io", 'docker pull "$ACTION_IMAGE" || {']
        assert run == ".venv/bin/python -m pytest tests/container"

    def test_a_reviewer_approves_before_anything_is_published(self) -> None:
        assert "write" not in self.JOBS["check"]["permissions"].values()
        assert self.JOBS["image"]["environment"] == "release"
        assert [name for name in RELEASE["release.yml"] if "image" in self.JOBS[name].get("needs", [])] == [
            *("attest", "try", "tag", "draft")
        ]

    def test_the_commit_is_checked_right_before_each_push(self) -> None:
        commands = {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in self.JOBS.items()}

        assert commands["image"][0] == 'python3 -m release check -- "$VERSION"'
        (push,) = commands["tag"]
        assert [line.split()[:4] for line in push.splitlines()] == [
            ["commit=$(python3", "-m", "release", "tag"],
            ["python3", "-m", "release", "check"],
            ["gh", "auth", "setup-git"],
            ["git", "push", "origin", '"refs/tags/v$VERSION"'],
        ]

    def test_the_published_image_is_tested_without_credentials(self) -> None:
        assert self.JOBS["try"]["env"]["ACTION_IMAGE"] == "${{ needs.check.outputs.image }}@${{ needs.image.outputs.digest }}"
        assert not re.search("token|docker login", str(self.JOBS["try"]), re.IGNORECASE)
