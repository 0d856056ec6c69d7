"""The checks before a release, in real clones."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from release.checks import check_release
from release.repository import Repository
from release.tag import tag_release
from release.version import parse_version
from tests.release.clones import CHANGELOG, IMAGE, PACKAGE, Clone


def refusals(clone: Clone, version: str = "1.2.0", *, ask_github: bool = False) -> list[str]:
    findings = check_release(Repository(clone.folder), version, ask_github=ask_github)
    return [finding.text for finding in findings if finding.state == "refused"]


def test_a_clean_clone_of_main_can_be_released(clone: Clone) -> None:
    findings = check_release(Repository(clone.folder), "1.2.0")

    assert {finding.state for finding in findings} == {"ok"}
    assert len(findings) == 10


def pushed(name: str, content: str | bytes) -> Callable[[Clone], object]:
    """Return a change that writes a file, commits it and pushes main."""

    def change(clone: Clone) -> None:
        (clone.folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        clone.push("A mistake")

    return change


def without_changelog(clone: Clone) -> None:
    (clone.folder / "CHANGELOG.md").unlink()
    clone.push("No changelog")


def with_many_files(clone: Clone) -> None:
    clone.write("action.yml", "changed")
    for number in range(6):
        clone.write(f"new-{number}", "")


def with_hidden_untracked_file(clone: Clone) -> None:
    clone.git("config", "status.showUntrackedFiles", "no")
    clone.write("new", "")


OTHER_VERSION = "{} has version {}. Release that version, or change it to 1.2.0 on main."


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        (pushed("pyproject.toml", '[project]\nversion = "1.1.0"\n'), OTHER_VERSION.format("pyproject.toml", "1.1.0")),
        (pushed(PACKAGE, '__version__: Final = "1.1.0"\n'), OTHER_VERSION.format(PACKAGE, "1.1.0")),
        (pushed("pyproject.toml", "# nothing\n"), OTHER_VERSION.format("pyproject.toml", None)),
        (pushed("pyproject.toml", "project = 1\n"), OTHER_VERSION.format("pyproject.toml", None)),
        (pushed(PACKAGE, "# nothing\n"), OTHER_VERSION.format(PACKAGE, None)),
        (
            pushed("CHANGELOG.md", CHANGELOG.replace("## [1.2.0] - 2026-11-20\n", "")),
            "CHANGELOG.md has no section for 1.2.0. Rename “Unreleased” to '## [1.2.0] - YYYY-MM-DD'.",
        ),
        (pushed("CHANGELOG.md", CHANGELOG.encode("utf-16")), "CHANGELOG.md is not UTF-8. Save it as UTF-8."),
        (without_changelog, "CHANGELOG.md is missing. Restore or add it."),
        (
            pushed("action.yml", "runs:\n  image: ./Dockerfile\n"),
            "action.yml has ./Dockerfile as its image instead of Dockerfile. Start from main, which is never pinned.",
        ),
        (with_many_files, "Files are not committed: action.yml, new-0, new-1, new-2, new-3 and 2 more. Commit or remove them."),
        (with_hidden_untracked_file, "Files are not committed: new. Commit or remove them."),
        (
            lambda clone: clone.git("switch", "--quiet", "--create", "feature"),
            "The branch is feature. Releases are made from main: git switch main.",
        ),
        (
            lambda clone: clone.git("switch", "--quiet", "--detach"),
            "The branch is a detached HEAD. Releases are made from main: git switch main.",
        ),
        (
            lambda clone: clone.git("push", "--quiet", "origin", "HEAD:refs/tags/v1.2.0"),
            (
                "The tag v1.2.0 exists on origin. Release the next version. If its release was never published, "
                "RELEASING.md says how to continue."
            ),
        ),
        (Clone.delete_main_of_origin, "origin has no branch main. Push it first."),
    ],
)
def test_each_mistake_is_one_refusal(clone: Clone, change: Callable[[Clone], object], refusal: str) -> None:
    change(clone)

    (found,) = refusals(clone)
    assert found == refusal


@pytest.mark.parametrize(
    ("change", "start", "end"),
    [
        (pushed("pyproject.toml", "[project\nversion="), "pyproject.toml is not valid TOML: ", ""),
        (
            lambda clone: clone.git("remote", "set-url", "origin", "nowhere"),
            "origin does not respond: git ls-remote failed: ",
            "Check the network and the address of origin.",
        ),
    ],
)
def test_an_error_of_another_program_is_quoted(clone: Clone, change: Callable[[Clone], object], start: str, end: str) -> None:
    change(clone)

    (found,) = refusals(clone)
    assert found.startswith(start)
    assert found.endswith(end)


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


def test_a_folder_without_a_repository_is_refused_in_each_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

    findings = check_release(Repository(tmp_path), "1.2.0")

    assert [finding.state for finding in findings] == ["ok", *["refused"] * 8]
    assert {"not a git repository" in finding.text for finding in findings[1:]} == {True}


def test_a_missing_git_is_reported(clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert {*refusals(clone)} == {"The program git is missing. Install it."}


@pytest.mark.parametrize("kind", [[], ["--annotate", "--message=notes"]], ids=["lightweight", "annotated"])
def test_a_tag_in_this_clone_is_refused(clone: Clone, kind: list[str]) -> None:
    clone.git("tag", *kind, "v1.2.0")
    head = clone.git("rev-parse", "HEAD")

    (refusal,) = refusals(clone)
    assert refusal == (
        f"The tag v1.2.0 exists in this clone, at {head}. Release the next version, or remove the tag if it was "
        "never pushed: git tag --delete v1.2.0."
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

    @pytest.mark.parametrize(
        ("runs", "found"),
        [
            ([(3, "completed", "failure", "push"), (4, "completed", "success", "push")], []),
            (
                [(3, "completed", "failure", "workflow_dispatch"), (4, "completed", "success", "pull_request")],
                [f"CI ended with failure on HEAD. Fix main first: {URL}"],
            ),
            ([], ["CI has not run on HEAD. Start it, and release when it has passed: gh workflow run ci.yml."]),
            ([(1, "in_progress", None, "push")], [f"CI still runs on HEAD. Wait until it has passed: {URL}"]),
            ([(1, "completed", "cancelled", "push")], [f"CI ended with cancelled on HEAD. Fix main first: {URL}"]),
        ],
    )
    def test_the_newest_run_of_the_commit_on_main_decides(
        self,
        clone: Clone,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        runs: list[tuple[int, str, str | None, str]],
        found: list[str],
    ) -> None:
        names = ("run_number", "status", "conclusion", "event")
        listed = [{"html_url": self.URL, **dict(zip(names, run, strict=True))} for run in runs]
        (tmp_path / "answer").write_text(json.dumps({"workflow_runs": listed}))
        self.gh(monkeypatch, tmp_path, f'echo "$@" >{tmp_path / "asked"}; cat {tmp_path / "answer"}')
        head = clone.git("rev-parse", "HEAD")

        assert refusals(clone, ask_github=True) == [text.replace("HEAD", head[:12]) for text in found]
        assert (tmp_path / "asked").read_text() == (
            f"api repos/{{owner}}/{{repo}}/actions/workflows/ci.yml/runs?branch=main&head_sha={head}&per_page=100\n"
        )

    @pytest.mark.parametrize(
        ("script", "refusal"),
        [
            *(
                (f"echo '{answer}'", "GitHub's answer is not a list of the runs of CI. Try again.")
                for answer in ("not JSON", "[]", "{}", '{"workflow_runs": 1}', '{"workflow_runs": [{}]}')
            ),
            ("echo 'HTTP 403: rate limit' >&2; exit 1", "GitHub did not report the result of CI: HTTP 403: rate limit"),
        ],
    )
    def test_another_answer_is_refused(
        self, clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, refusal: str
    ) -> None:
        self.gh(monkeypatch, tmp_path, script)

        assert refusals(clone, ask_github=True) == [refusal]

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
