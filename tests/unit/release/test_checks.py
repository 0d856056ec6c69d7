"""The checks before a release, in real clones."""

import json
import shutil
from pathlib import Path

import pytest

from release.checks import check_release
from release.repository import Repository
from release.tag import tag_release
from release.version import parse_version
from tests.unit.release.clones import CHANGELOG, IMAGE, PACKAGE, Clone


def refusals(clone: Clone, version: str = "1.2.0", *, ask_github: bool = False) -> list[str]:
    findings = check_release(Repository(clone.folder), version, ask_github=ask_github)
    return [finding.text for finding in findings if finding.state == "refused"]


def test_a_clean_clone_of_main_can_be_released(clone: Clone) -> None:
    findings = check_release(Repository(clone.folder), "1.2.0")

    assert {finding.state for finding in findings} == {"ok"}
    assert len(findings) == 10


@pytest.mark.parametrize("name", ["pyproject.toml", PACKAGE])
def test_another_version_in_the_project_is_refused(clone: Clone, name: str) -> None:
    clone.write(name, clone.read(name).replace("1.2.0", "1.1.0"))
    clone.push("Another version")

    assert refusals(clone) == [f"{name} has version 1.1.0. Release that version, or change it to 1.2.0 on main."]


@pytest.mark.parametrize("name", ["pyproject.toml", PACKAGE])
def test_a_file_without_a_version_is_refused(clone: Clone, name: str) -> None:
    clone.write(name, "# nothing\n")
    clone.push("No version")

    assert refusals(clone) == [f"{name} has version None. Release that version, or change it to 1.2.0 on main."]


def test_a_version_without_a_section_in_the_changelog_is_refused(clone: Clone) -> None:
    clone.write("CHANGELOG.md", CHANGELOG.replace("## [1.2.0] - 2026-11-20\n", ""))
    clone.push("No section")

    assert refusals(clone) == ["CHANGELOG.md has no section for 1.2.0. Rename “Unreleased” to '## [1.2.0] - YYYY-MM-DD'."]


def test_a_missing_changelog_is_refused(clone: Clone) -> None:
    (clone.folder / "CHANGELOG.md").unlink()
    clone.push("No changelog")

    assert refusals(clone) == ["CHANGELOG.md is missing. Restore or add it."]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("pyproject.toml", b"[project\nversion=", "pyproject.toml is not valid TOML: "),
        ("pyproject.toml", b"project = 1\n", "pyproject.toml has version None. "),
        ("CHANGELOG.md", CHANGELOG.encode("utf-16"), "CHANGELOG.md is not UTF-8. Save it as UTF-8."),
        ("action.yml", b"runs:\n  image: ./Dockerfile\n", "action.yml has ./Dockerfile as its image instead of Dockerfile."),
    ],
)
def test_a_file_that_cannot_be_used_is_one_refusal(clone: Clone, name: str, content: bytes, message: str) -> None:
    (clone.folder / name).write_bytes(content)
    clone.push("A mistake")

    (refusal,) = refusals(clone)
    assert message in refusal


def test_files_with_windows_ends_of_lines_can_be_released(clone: Clone) -> None:
    for name in ("pyproject.toml", PACKAGE, "CHANGELOG.md", "action.yml"):
        (clone.folder / name).write_bytes(clone.read(name).replace("\n", "\r\n").encode())
    clone.push("Other ends of lines")

    assert refusals(clone) == []


def test_the_commit_is_checked_and_not_the_work_tree(clone: Clone) -> None:
    clone.write("pyproject.toml", '[project]\nversion = "1.3.0"\n')
    clone.push("Another version")
    clone.write("pyproject.toml", '[project]\nversion = "1.2.0"\n')
    clone.git("update-index", "--skip-worktree", "pyproject.toml")

    assert refusals(clone) == ["pyproject.toml has version 1.3.0. Release that version, or change it to 1.2.0 on main."]


def test_untracked_files_are_refused_whatever_the_settings_of_git(clone: Clone) -> None:
    clone.git("config", "status.showUntrackedFiles", "no")
    clone.write("new", "")

    assert refusals(clone) == ["Files are not committed: new. Commit or remove them."]


def test_a_folder_without_a_repository_is_refused_in_each_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

    findings = check_release(Repository(tmp_path), "1.2.0")

    assert [finding.state for finding in findings] == ["ok", *["refused"] * 8]
    assert {"not a git repository" in finding.text for finding in findings[1:]} == {True}


def test_a_missing_git_is_reported(clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert {*refusals(clone)} == {"The program git is missing. Install it."}


def test_files_that_are_not_committed_are_refused_and_named(clone: Clone) -> None:
    clone.write("action.yml", "changed")
    for number in range(6):
        clone.write(f"new-{number}", "")

    assert refusals(clone) == [
        "Files are not committed: action.yml, new-0, new-1, new-2, new-3 and 2 more. Commit or remove them."
    ]


def test_another_branch_is_refused(clone: Clone) -> None:
    clone.git("switch", "--quiet", "--create", "feature")

    assert refusals(clone) == ["The branch is feature. Releases are made from main: git switch main."]


def test_a_detached_head_is_refused(clone: Clone) -> None:
    clone.git("switch", "--quiet", "--detach")

    assert refusals(clone) == ["The branch is a detached HEAD. Releases are made from main: git switch main."]


@pytest.mark.parametrize("kind", [[], ["--annotate", "--message=notes"]], ids=["lightweight", "annotated"])
def test_a_tag_in_this_clone_is_refused(clone: Clone, kind: list[str]) -> None:
    clone.git("tag", *kind, "v1.2.0")
    head = clone.git("rev-parse", "HEAD")

    (refusal,) = refusals(clone)
    assert refusal == (
        f"The tag v1.2.0 exists in this clone, at {head}. Release the next version, or remove the tag if it was "
        "never pushed: git tag --delete v1.2.0."
    )


def test_a_tag_on_origin_is_refused(clone: Clone) -> None:
    clone.git("push", "--quiet", "origin", "HEAD:refs/tags/v1.2.0")

    (refusal,) = refusals(clone)
    assert refusal == (
        "The tag v1.2.0 exists on origin. Release the next version. If its release was never published, RELEASING.md says "
        "how to continue."
    )


def test_the_tag_of_the_release_that_was_made_is_accepted(clone: Clone) -> None:
    made = tag_release(Repository(clone.folder), parse_version("1.2.0"), IMAGE)
    clone.git("push", "--quiet", "origin", "refs/tags/v1.2.0")

    findings = check_release(Repository(clone.folder), "1.2.0", made=made)
    other = check_release(Repository(clone.folder), "1.2.0", made=clone.git("rev-parse", "HEAD"))

    assert {finding.state for finding in findings} == {"ok"}
    assert f"The tag v1.2.0 names the release's commit, {made[:12]}, on origin." in {finding.text for finding in findings}
    assert len([finding for finding in other if finding.state == "refused"]) == 2


def test_similar_tags_are_not_confused(clone: Clone) -> None:
    names = ("tags/v1.2.0-rc.1", "tags/old/v1.2.0", "heads/old/main", "heads/refs/tags/v1.2.0")
    clone.git("push", "--quiet", "origin", *(f"HEAD:refs/{name}" for name in names))
    clone.git("tag", "v1.2.0-rc.1")

    assert refusals(clone) == []


def test_a_commit_that_is_not_the_tip_of_main_is_refused(clone: Clone) -> None:
    clone.push_others_commit()
    head, tip = clone.git("rev-parse", "HEAD")[:12], clone.git("ls-remote", "origin", "refs/heads/main")[:12]

    (refusal,) = refusals(clone)
    assert refusal == (
        f"HEAD is {head}, and main on origin is {tip}. Pull or push, and release the tip. If main moved during a release, start "
        "the workflow again."
    )


def test_an_origin_without_main_is_refused(clone: Clone) -> None:
    clone.delete_main_of_origin()

    assert refusals(clone) == ["origin has no branch main. Push it first."]


def test_an_origin_that_does_not_respond_is_refused(clone: Clone) -> None:
    clone.git("remote", "set-url", "origin", "nowhere")

    (refusal,) = refusals(clone)
    assert refusal.startswith("origin does not respond: git ls-remote failed: ")
    assert refusal.endswith("Check the network and the address of origin.")


def test_a_clone_without_origin_skips_its_checks_and_says_so(clone: Clone) -> None:
    clone.git("remote", "remove", "origin")

    findings = check_release(Repository(clone.folder), "1.2.0")

    assert [finding.text for finding in findings if finding.state != "ok"] == [
        "There is no remote origin: neither its tags nor the tip of main can be checked."
    ]


def test_all_mistakes_are_reported_together(clone: Clone) -> None:
    clone.git("switch", "--quiet", "--create", "feature")
    clone.write("CHANGELOG.md", "")
    clone.write("pyproject.toml", "")
    clone.write("action.yml", "")
    clone.push("Mistakes")
    clone.write("new", "")
    clone.git("tag", "v1.2.0")

    assert len(refusals(clone)) == 6


def test_a_malformed_version_is_reported_with_the_mistakes_that_do_not_depend_on_it(clone: Clone) -> None:
    clone.git("switch", "--quiet", "--create", "feature")

    malformed, branch = refusals(clone, "v1.2")

    assert malformed == "'v1.2' is not a version. Write 1.2.3, or 1.2.3-rc.1 for a prerelease, without a v."
    assert branch.startswith("The branch is feature.")


class TestCi:
    """What GitHub's answer means, through a fake `gh`, because the real one only connects to GitHub."""

    URL = "https://github.com/OWNER/docs-platform-action/actions/runs/7"

    def gh(self, monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
        (folder / "bin").mkdir()
        (folder / "bin" / "gh").write_text(f"#!/bin/sh\n{script}\n")
        (folder / "bin" / "gh").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder / 'bin'}:/usr/bin:/bin")

    def answer(self, folder: Path, *runs: dict[str, object]) -> str:
        (folder / "answer").write_text(
            json.dumps({"workflow_runs": [{"html_url": self.URL, "event": "push", **run} for run in runs]})
        )
        return f'echo "$@" >{folder / "asked"}; cat {folder / "answer"}'

    def test_the_newest_run_of_the_commit_decides(self, clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        older = {"run_number": 3, "status": "completed", "conclusion": "failure"}
        newer = {"run_number": 4, "status": "completed", "conclusion": "success"}
        self.gh(monkeypatch, tmp_path, self.answer(tmp_path, older, newer))

        assert refusals(clone, ask_github=True) == []
        assert (tmp_path / "asked").read_text().strip() == (
            "api repos/{owner}/{repo}/actions/workflows/ci.yml/runs?branch=main&head_sha="
            + clone.git("rev-parse", "HEAD")
            + "&per_page=100"
        )

    def test_a_run_for_a_pull_request_does_not_count(self, clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        on_main = {"run_number": 3, "status": "completed", "conclusion": "failure", "event": "workflow_dispatch"}
        from_fork = {"run_number": 4, "status": "completed", "conclusion": "success", "event": "pull_request"}
        self.gh(monkeypatch, tmp_path, self.answer(tmp_path, on_main, from_fork))

        (refusal,) = refusals(clone, ask_github=True)
        assert refusal.startswith("CI ended with failure")

    @pytest.mark.parametrize("answer", ["not JSON", "[]", "{}", '{"workflow_runs": 1}', '{"workflow_runs": [{}]}'])
    def test_an_answer_of_another_form_is_refused(
        self, clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
    ) -> None:
        self.gh(monkeypatch, tmp_path, f"echo '{answer}'")

        assert refusals(clone, ask_github=True) == ["GitHub's answer is not a list of the runs of CI. Try again."]

    @pytest.mark.parametrize(
        ("runs", "message"),
        [
            ([], "CI has not run on HEAD. Start it, and release when it has passed: gh workflow run ci.yml."),
            (
                [{"run_number": 1, "status": "in_progress", "conclusion": None}],
                f"CI still runs on HEAD. Wait until it has passed: {URL}",
            ),
            (
                [{"run_number": 1, "status": "completed", "conclusion": "failure"}],
                f"CI ended with failure on HEAD. Fix main first: {URL}",
            ),
            (
                [{"run_number": 1, "status": "completed", "conclusion": "cancelled"}],
                f"CI ended with cancelled on HEAD. Fix main first: {URL}",
            ),
        ],
    )
    def test_another_result_is_refused(
        self, clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: list[dict[str, object]], message: str
    ) -> None:
        self.gh(monkeypatch, tmp_path, self.answer(tmp_path, *runs))

        assert refusals(clone, ask_github=True) == [message.replace("HEAD", clone.git("rev-parse", "HEAD")[:12])]

    def test_an_error_of_gh_is_reported(self, clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gh(monkeypatch, tmp_path, "echo 'HTTP 403: rate limit' >&2; exit 1")

        assert refusals(clone, ask_github=True) == ["GitHub did not report the result of CI: HTTP 403: rate limit"]

    def test_a_missing_gh_is_reported(self, clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "git").symlink_to(str(shutil.which("git")))
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))

        assert refusals(clone, ask_github=True) == [
            "The program gh is missing. Install GitHub's command line, or leave out --github."
        ]

    def test_github_is_not_asked_by_default(self, clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gh(monkeypatch, tmp_path, "exit 1")

        assert refusals(clone) == []
