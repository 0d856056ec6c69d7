"""What the release's script refuses and makes.

It runs in a small clone with a folder as `origin` and a fake `gh`.
"""

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from release.__main__ import PACKAGE, main, release_notes
from tests.engine import ROOT

IMAGE = f"ghcr.io/owner/docs-platform-action@sha256:{'5a' * 32}"
OTHER_IMAGE = IMAGE.replace("5a", "b0")
CHANGELOG = """\
# Changelog

## [Unreleased]

## [1.2.0] - 2026-11-20

### Added

- Something new, in
  two lines.
- Something else.

## [1.1.0] - 2026-10-01

- Something old.
"""
GH = '#!/bin/sh\nif [ "$1" = run ]; then cat "$(dirname "$0")/runs"; fi\n'
PASSED = {"status": "completed", "conclusion": "success", "url": "https://example.com/runs/7"}


class Clone:
    """A clone whose main can be released as 1.2.0."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "clone"
        self.programs = folder / "bin"
        origin = folder / "origin.git"
        self.programs.mkdir()
        (self.programs / "gh").write_text(GH)
        (self.programs / "gh").chmod(0o755)
        (self.programs / "python3").symlink_to(sys.executable)
        self.ran_ci(PASSED)
        init = ["git", "init", "--quiet", "--bare", "--initial-branch=main", str(origin)]
        subprocess.run(init, check=True)
        clone = ["git", "clone", "--quiet", str(origin), str(self.folder)]
        subprocess.run(clone, check=True, stderr=subprocess.DEVNULL)
        (self.folder / PACKAGE).parent.mkdir(parents=True)
        (self.folder / "action.yml").write_text((ROOT / "action.yml").read_text())
        (self.folder / "CHANGELOG.md").write_text(CHANGELOG)
        (self.folder / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
        self.push(PACKAGE, '__version__: Final = "1.2.0"\n')

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def push(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", name)
        self.git("push", "--quiet", "origin", "HEAD:main")

    def ran_ci(self, *runs: dict[str, str]) -> None:
        (self.programs / "runs").write_text(json.dumps(runs))


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clone:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Somebody")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "somebody@example.com")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    clone = Clone(tmp_path)
    monkeypatch.setenv("PATH", f"{clone.programs}:{os.environ['PATH']}")
    monkeypatch.chdir(clone.folder)
    return clone


def pushed(name: str, text: str) -> Callable[[Clone], object]:
    return lambda clone: clone.push(name, text)


def several_mistakes(clone: Clone) -> None:
    clone.push("action.yml", f"runs:\n  image: docker://{IMAGE}\n")
    (clone.folder / "new").touch()
    clone.git("tag", "v1.2.0")


@pytest.mark.parametrize(
    ("change", "refusals"),
    [
        (lambda _: None, []),
        (
            pushed("pyproject.toml", '[project]\nversion = "1.1.0"\n'),
            ["pyproject.toml has version 1.1.0."],
        ),
        (pushed(PACKAGE, '__version__: Final = "1.1.0"\n'), [f"{PACKAGE} has version 1.1.0."]),
        (
            pushed("CHANGELOG.md", CHANGELOG.replace("[1.2.0] - 2026-11-20", "[1.2.0]")),
            ["CHANGELOG.md has no changes below "],
        ),
        (
            pushed("CHANGELOG.md", "## [1.2.0] - 2026-11-20\n\n## [1.1.0]\n"),
            ["CHANGELOG.md has no changes below "],
        ),
        (
            pushed("action.yml", f"runs:\n  image: docker://{IMAGE}\n"),
            ["action.yml does not have "],
        ),
        (lambda clone: (clone.folder / "new").touch(), ["Files are not committed: new."]),
        (
            lambda clone: clone.git("commit", "--quiet", "--allow-empty", "--message=Not pushed"),
            ["HEAD is "],
        ),
        (lambda clone: clone.git("tag", "v1.2.0"), ["The tag v1.2.0 exists in this clone, "]),
        (
            lambda clone: clone.git("push", "--quiet", "origin", "HEAD:refs/tags/v1.2.0"),
            ["The tag v1.2.0 exists on origin."],
        ),
        (
            lambda clone: clone.git("push", "--quiet", "origin", "HEAD:refs/heads/release/v1.2.0"),
            ["The branch release/v1.2.0 exists on origin."],
        ),
        (
            lambda clone: clone.git("push", "--quiet", "origin", "HEAD:refs/heads/release"),
            ["The branch release on origin prevents "],
        ),
        (
            lambda clone: clone.git(
                "push", "--quiet", "origin", "HEAD:refs/heads/release/v1.2.0/x"
            ),
            ["The branch release/v1.2.0/x on origin prevents "],
        ),
        (lambda clone: clone.git("tag", "v1.2.0-rc.1"), []),
        (Clone.ran_ci, ["CI has not run on "]),
        (lambda clone: clone.ran_ci({**PASSED, "status": "in_progress"}), ["CI still runs on "]),
        (
            lambda clone: clone.ran_ci({**PASSED, "conclusion": "failure"}),
            ["CI ended with failure on "],
        ),
        (
            several_mistakes,
            ["action.yml does not ", "Files are not committed", "The tag v1.2.0 exists in "],
        ),
    ],
)
def test_each_mistake_is_refused(
    clone: Clone,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[Clone], object],
    refusals: list[str],
) -> None:
    change(clone)

    assert main(["check", "--github", "1.2.0"]) == (1 if refusals else 0)

    found = re.findall(r"^refused  (.*)$", capsys.readouterr().out, re.MULTILINE)
    for line, refusal in zip(found, refusals, strict=True):
        assert line.startswith(refusal)


@pytest.mark.parametrize("text", ["v1.2.0", "1.2", "1.2.0-beta", "01.2.0", "1.2.0+1", "", "--help"])
def test_what_is_not_a_version_is_refused(capsys: pytest.CaptureFixture[str], text: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["check", "--", text])

    refusal = f"{text!r} is not a version. Write 1.2.3, or 1.2.3-rc.1 for a prerelease"
    assert refusal in capsys.readouterr().err


def test_the_tag_changes_only_the_line_of_the_image(
    clone: Clone, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tag", f"--image={IMAGE}", "1.2.0"]) == 0

    commit = clone.git("rev-parse", "refs/tags/v1.2.0")
    assert capsys.readouterr().out == f"{commit}\n"
    assert clone.git("rev-parse", f"{commit}^@") == clone.git("rev-parse", "HEAD")
    assert clone.git("diff", "--numstat", "HEAD", commit) == "1\t1\taction.yml"
    changed = clone.git("diff", "--unified=0", "HEAD", commit).splitlines()[-2:]
    assert changed == ["-  image: Dockerfile", f"+  image: docker://{IMAGE} # v1.2.0"]


def test_the_job_tag_can_run_again_but_not_with_another_image(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    steps = workflow["jobs"]["tag"]["steps"]
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")

    def run_job(image: str, date: str) -> "subprocess.CompletedProcess[str]":
        env = {**os.environ, "VERSION": "1.2.0", "IMAGE": image, "GIT_COMMITTER_DATE": date}
        return subprocess.run(
            ["bash", "-e", "-c", steps[-1]["run"]],
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )

    assert run_job(IMAGE, "2030-01-01T00:00:00Z").returncode == 0
    pushed = clone.git("ls-remote", "origin", "refs/tags/*", "refs/heads/release/*").split()
    assert pushed == [pushed[0], "refs/heads/release/v1.2.0", pushed[0], "refs/tags/v1.2.0"]
    clone.git("tag", "--delete", "v1.2.0")  # the job's next clone has no tags
    assert run_job(IMAGE, "2031-01-01T00:00:00Z").returncode == 0
    clone.git("tag", "--delete", "v1.2.0")
    refused = run_job(OTHER_IMAGE, "2032-01-01T00:00:00Z").stdout
    assert re.findall(r"refused  The (\S+ \S+) exists on origin\.", refused) == [
        "tag v1.2.0",
        "branch release/v1.2.0",
    ]
    assert clone.git("ls-remote", "origin", "refs/tags/*", "refs/heads/release/*").split() == pushed


@pytest.mark.usefixtures("clone")
def test_the_notes_are_the_changes_and_the_command_of_the_security_page() -> None:
    notes = release_notes(
        "1.2.0", "ghcr.io/OWNER/docs-platform-action@sha256:…", "OWNER/docs-platform-action"
    )

    assert notes.startswith(
        "### Added\n\n- Something new, in two lines.\n- Something else.\n\n### Image\n"
    )
    assert notes.partition("```sh\n")[2] in (ROOT / "SECURITY.md").read_text()


@pytest.mark.parametrize(
    ("version", "moves"),
    [
        ("1.10.0", True),
        ("1.9.0", False),
        ("1.11.0-rc.1", False),
        ("1.11.0", False),
        ("2.0.0", True),
    ],
)
def test_the_major_tag_moves_to_the_newest_published_release_of_its_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], version: str, moves: bool
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("v1.9.0\nv1.10.0\nv1.11.0-rc.1\nv2.0.0\nv1\n"))

    assert main(["major", version]) == 0

    assert capsys.readouterr().out == (f"v{version[0]}\n" if moves else "")
