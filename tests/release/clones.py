"""A clone of a small repository, and the repository that it was cloned from."""

import os
import shutil
import subprocess
from pathlib import Path

from release.action_file import parse_image

ROOT = Path(__file__).parents[2]
FILES = ("action.yml", ".github/workflows/release.yml", ".github/workflows/major-tag.yml")
PACKAGE = "src/docs_platform_action/__init__.py"
IMAGE = parse_image("ghcr.io/owner/docs-platform-action", f"sha256:{'5a' * 32}")
CHANGELOG = """\
# Changelog

## [Unreleased]

## [1.2.0] - 2026-11-20

### Added

- Something new.

## [1.1.0] - 2026-10-01

- Something old.

[1.2.0]: https://example.com/1.2.0
"""
GIT_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    **{f"GIT_{role}_NAME": "Somebody" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_EMAIL": "somebody@example.com" for role in ("AUTHOR", "COMMITTER")},
}


class Clone:
    """A clone of a repository whose main can be released as 1.2.0."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "clone"
        self.origin = folder / "origin.git"
        subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", self.origin], check=True)
        subprocess.run(["git", "clone", "--quiet", self.origin, self.folder], check=True, stderr=subprocess.DEVNULL)
        for name in FILES:
            self.folder.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.folder / name)
        self.write("CHANGELOG.md", CHANGELOG)
        self.write("pyproject.toml", '[project]\nversion = "1.2.0"\n')
        self.write(PACKAGE, '__version__: Final = "1.2.0"\n')
        self.push("The first commit")

    def git(self, *arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=self.folder, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL
        ).stdout.strip()

    def write(self, name: str, text: str) -> None:
        self.folder.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        self.folder.joinpath(name).write_text(text)

    def read(self, name: str) -> str:
        return self.folder.joinpath(name).read_text()

    def push(self, message: str) -> None:
        """Commit all files, and push main."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        self.git("push", "--quiet", "origin", "HEAD:main")

    def push_others_commit(self) -> None:
        """Push a commit to main that this clone does not have."""
        commit = self.git("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "From somebody else")
        self.git("push", "--quiet", "origin", f"{commit}:refs/heads/main")

    def delete_main_of_origin(self) -> None:
        subprocess.run(["git", "update-ref", "-d", "refs/heads/main"], cwd=self.origin, check=True)

    def state(self) -> dict[str, object]:
        """Return everything that a command could change, the index and the objects included."""
        files = {str(path): path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        return {"files": files, "origin": self.git("ls-remote", "origin")}
