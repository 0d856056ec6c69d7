"""The scripts of the workflows, run by bash as the runner does, with a folder as `origin` and a fake `gh`."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.release.clones import IMAGE, ROOT, Clone

PUBLISHED = {
    "IMAGE": IMAGE.name,
    "DIGEST": IMAGE.digest,
    "VERSION": "1.2.0",
    "GH_TOKEN": "made-up",
    "GITHUB_REPOSITORY": "Owner/docs-platform-action",
}
GH = """\
#!/bin/sh
echo "$@" >>"$ASKED"
if [ "$1" = "api" ]; then echo "$RUNS"; fi
if [ "$1 $2" = "release list" ]; then printf '%s\\n' $TAGS; fi
if [ "$1 $2" = "release view" ]; then echo "${DRAFT:?release not found}"; fi
"""


@pytest.fixture
def programs(clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a fake `gh` and this Python on PATH, and return the file with what `gh` was asked."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "gh").write_text(GH)
    (folder / "gh").chmod(0o755)
    (folder / "python3").symlink_to(sys.executable)
    asked = tmp_path / "asked"
    asked.touch()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # the clone must stay clean
    monkeypatch.setenv("ASKED", str(asked))
    monkeypatch.setenv("RUNNER_TEMP", str(tmp_path))
    monkeypatch.chdir(clone.folder)
    return asked


def scripts(workflow: str, job: str) -> list[str]:
    steps = yaml.safe_load((ROOT / ".github" / "workflows" / workflow).read_text())["jobs"][job]["steps"]
    return [step["run"] for step in steps if "run" in step]


def run(script: str, **env: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["bash", "-e", "-c", script], env={**os.environ, **env}, capture_output=True, text=True, check=False)


def run_last_script(workflow: str, job: str, **env: str) -> "subprocess.CompletedProcess[str]":
    return run(scripts(workflow, job)[-1], **env)


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("text", ["-h", "--help"])
@pytest.mark.parametrize(
    ("workflow", "job", "calls"),
    [
        ("release.yml", "check", 1),
        ("release.yml", "image", 1),
        ("release.yml", "tag", 2),
        ("release.yml", "draft", 1),
        ("major-tag.yml", "move", 1),
    ],
)
def test_a_version_that_looks_like_an_option_is_refused_by_every_call(workflow: str, job: str, calls: int, text: str) -> None:
    lines = re.findall(r"python3 -m release [^)<>|\n\\]*", "\n".join(scripts(workflow, job)))
    assert len(lines) == calls

    for line in lines:
        done = run(line.replace("--github", ""), **(PUBLISHED | {"VERSION": text, "TAG": text, "commit": "made-up"}))

        assert done.returncode == 1, done.stderr
        assert "Error: " in done.stderr


def test_the_owner_is_lower_case_in_the_images_name(programs: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"

    done = run_last_script("release.yml", "check", GITHUB_REPOSITORY_OWNER="Some-Owner", GITHUB_OUTPUT=str(output))

    assert done.returncode == 0, done.stderr
    assert output.read_text() == "name=ghcr.io/some-owner/docs-platform-action\n"
    assert programs.read_text() == ""


@pytest.mark.parametrize(("conclusion", "exit_code"), [("success", 0), ("failure", 1)])
def test_a_release_starts_only_after_ci_has_passed(programs: Path, conclusion: str, exit_code: int) -> None:
    run_of_ci = {"event": "push", "run_number": 1, "status": "completed", "conclusion": conclusion, "html_url": "made-up"}

    done = run(scripts("release.yml", "check")[0], **PUBLISHED, RUNS=json.dumps({"workflow_runs": [run_of_ci]}))

    assert done.returncode == exit_code, done.stderr
    assert programs.read_text().startswith("api repos/")


@pytest.mark.usefixtures("programs")
def test_no_image_is_built_if_main_has_moved(clone: Clone) -> None:
    assert run(scripts("release.yml", "image")[0], **PUBLISHED).returncode == 0

    clone.push_others_commit()

    assert run(scripts("release.yml", "image")[0], **PUBLISHED).returncode == 1


class TestTag:
    def test_it_is_pushed_alone(self, clone: Clone, programs: Path) -> None:
        before = clone.git("ls-remote", "origin")

        done = run_last_script("release.yml", "tag", **PUBLISHED)

        assert done.returncode == 0, done.stderr
        commit = clone.git("rev-parse", "v1.2.0")
        assert clone.git("ls-remote", "origin") == f"{before}\n{commit}\trefs/tags/v1.2.0"
        assert clone.git("diff", "--numstat", "origin/main", commit) == "1\t1\taction.yml"
        assert programs.read_text() == "auth setup-git\n"

    def test_a_job_that_ended_after_its_push_can_run_again(self, clone: Clone, programs: Path, tmp_path: Path) -> None:
        run_last_script("release.yml", "tag", **PUBLISHED)
        pushed = clone.git("ls-remote", "origin")
        again = tmp_path / "again"
        subprocess.run(["git", "clone", "--quiet", "--no-tags", clone.origin, again], check=True)

        script = scripts("release.yml", "tag")[-1]
        done = run(f"cd '{again}'\n{script}", **PUBLISHED)

        assert done.returncode == 0, done.stdout + done.stderr
        assert clone.git("ls-remote", "origin") == pushed
        assert programs.read_text() == "auth setup-git\n" * 2

    @pytest.mark.usefixtures("programs")
    def test_another_image_is_refused_under_a_tag_that_was_pushed(self, clone: Clone) -> None:
        run_last_script("release.yml", "tag", **PUBLISHED)
        pushed = clone.git("ls-remote", "origin")
        clone.git("tag", "--delete", "v1.2.0")

        done = run_last_script("release.yml", "tag", **(PUBLISHED | {"DIGEST": f"sha256:{'b0' * 32}"}))

        assert done.returncode == 1
        assert "refused  The tag v1.2.0 exists on origin." in done.stdout
        assert clone.git("ls-remote", "origin") == pushed

    @pytest.mark.usefixtures("programs")
    def test_it_is_not_pushed_if_main_has_moved(self, clone: Clone) -> None:
        clone.push_others_commit()

        done = run_last_script("release.yml", "tag", **PUBLISHED)

        assert done.returncode == 1
        assert "and main on origin is" in done.stdout
        assert clone.git("ls-remote", "origin", "refs/tags/*") == ""


class TestDraft:
    @pytest.mark.usefixtures("clone")
    def test_it_has_the_tag_and_the_notes(self, programs: Path, tmp_path: Path) -> None:
        done = run_last_script("release.yml", "draft", **PUBLISHED)

        assert done.returncode == 0, done.stderr
        assert programs.read_text() == (
            "release view v1.2.0 --json isDraft --jq .isDraft\n"
            f"release create v1.2.0 --draft --verify-tag --title v1.2.0 --notes-file {tmp_path}/notes.md\n"
        )
        notes = (tmp_path / "notes.md").read_text()
        assert f"This version runs `{IMAGE}`." in notes
        assert "--signer-workflow Owner/docs-platform-action/.github/workflows/release.yml\n" in notes

    @pytest.mark.usefixtures("clone")
    @pytest.mark.parametrize(("draft", "action"), [("true", "edit"), ("false", "create")])
    def test_a_draft_that_exists_is_replaced(self, programs: Path, draft: str, action: str) -> None:
        done = run_last_script("release.yml", "draft", **PUBLISHED, DRAFT=draft)

        assert done.returncode == 0, done.stderr
        assert programs.read_text().splitlines()[-1].startswith(f"release {action} v1.2.0 --draft ")

    def test_a_prerelease_is_marked_as_one(self, clone: Clone, programs: Path) -> None:
        clone.write("CHANGELOG.md", clone.read("CHANGELOG.md").replace("[1.2.0] -", "[1.2.0-rc.1] -"))
        clone.push("A prerelease")

        done = run_last_script("release.yml", "draft", **(PUBLISHED | {"VERSION": "1.2.0-rc.1"}))

        assert done.returncode == 0, done.stderr
        assert programs.read_text().endswith("notes.md --prerelease\n")

    @pytest.mark.usefixtures("clone")
    def test_without_notes_there_is_no_draft(self, programs: Path) -> None:
        done = run_last_script("release.yml", "draft", **(PUBLISHED | {"VERSION": "1.3.0"}))

        assert done.returncode == 1
        assert programs.read_text() == ""


class TestMajorTag:
    def test_it_moves_to_the_newest_release(self, clone: Clone, programs: Path) -> None:
        clone.git("push", "--quiet", "origin", "HEAD:refs/tags/v1")
        clone.git("commit", "--quiet", "--allow-empty", "--message", "The release")

        done = run_last_script("major-tag.yml", "move", TAG="v1.2.0", TAGS="v1.2.0 v1.1.0")

        assert done.returncode == 0, done.stderr
        assert clone.git("ls-remote", "origin", "refs/tags/*") == f"{clone.git('rev-parse', 'HEAD')}\trefs/tags/v1"
        asked = programs.read_text().splitlines()
        assert asked[0].startswith("release list --exclude-drafts --exclude-pre-releases ")
        assert asked[1:] == ["auth setup-git"]

    @pytest.mark.usefixtures("programs")
    @pytest.mark.parametrize(
        ("tag", "tags", "reason"),
        [
            ("v1.3.0-rc.1", "v1.2.0 v1.3.0-rc.1", "1.3.0-rc.1 is a prerelease."),
            ("v1.1.1", "v1.2.0 v1.1.1", "1.2.0 is newer."),
            ("v1.3.0", "v1.2.0", "v1.3.0 is not among the published releases."),
        ],
    )
    def test_it_stays_otherwise(self, clone: Clone, tag: str, tags: str, reason: str) -> None:
        done = run_last_script("major-tag.yml", "move", TAG=tag, TAGS=tags)

        assert done.returncode == 0, done.stderr
        assert f"v1 stays where it is: {reason}" in done.stderr
        assert clone.git("ls-remote", "origin", "refs/tags/*") == ""

    def test_it_stays_if_another_run_has_moved_it_meanwhile(self, clone: Clone, programs: Path) -> None:
        clone.git("push", "--quiet", "origin", "HEAD:refs/tags/v1")
        clone.git("commit", "--quiet", "--allow-empty", "--message", "The newer release")
        newer = clone.git("rev-parse", "HEAD")
        gh = programs.with_name("bin") / "gh"
        gh.write_text(f"{GH}if [ $1 = release ]; then git push --quiet --force origin {newer}:refs/tags/v1; fi\n")
        clone.git("switch", "--quiet", "--detach", "HEAD^")

        done = run_last_script("major-tag.yml", "move", TAG="v1.2.0", TAGS="v1.2.0")

        assert done.returncode == 1
        assert "::error::v1 was not moved. If another run has moved it, re-run this one." in done.stdout
        assert clone.git("ls-remote", "origin", "refs/tags/*") == f"{newer}\trefs/tags/v1"

    @pytest.mark.usefixtures("programs")
    def test_a_refused_push_says_what_to_do(self, clone: Clone) -> None:
        hook = clone.origin / "hooks" / "pre-receive"
        hook.write_text("#!/bin/sh\necho 'refusing to allow a GitHub App to create or update workflow' >&2\nexit 1\n")
        hook.chmod(0o755)

        done = run_last_script("major-tag.yml", "move", TAG="v1.2.0", TAGS="v1.2.0")

        assert done.returncode == 1
        assert "::error::v1 was not moved." in done.stdout
        assert "push it yourself, as RELEASING.md describes" in done.stdout

    @pytest.mark.usefixtures("programs")
    @pytest.mark.parametrize("tag", ["v1", "latest", "v1.0.0; id", "-v1.0.0"])
    def test_another_tag_moves_nothing(self, clone: Clone, tag: str) -> None:
        done = run_last_script("major-tag.yml", "move", TAG=tag, TAGS="v1.2.0")

        assert done.returncode != 0
        assert clone.git("ls-remote", "origin", "refs/tags/*") == ""
