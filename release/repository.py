"""The git repository that is released."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from release.errors import ReleaseError

# the account that GitHub shows for the commits of a workflow
_NAME = "github-actions[bot]"
_EMAIL = "41898282+github-actions[bot]@users.noreply.github.com"


class Repository:
    """A clone, and what a release asks it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def git(self, *arguments: str, text: str | None = None, env: Mapping[str, str] | None = None) -> str:
        """Run git and return its output. Raises ReleaseError with git's own message if it fails."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            input=text,
            stdin=subprocess.DEVNULL if text is None else None,
            capture_output=True,
            encoding="utf-8",
            check=False,
            # no question for a password, and no refreshed index after `git status`
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", **(env or {})},
        )
        if done.returncode:
            raise ReleaseError(f"git {arguments[0]} failed: {done.stderr.strip()}")
        return done.stdout

    def head(self) -> str:
        """Return the commit of HEAD."""
        return self.git("rev-parse", "--verify", "HEAD^{commit}").strip()

    def branch(self) -> str:
        """Return the name of the branch, empty with a detached HEAD."""
        return self.git("branch", "--show-current").strip()

    def changed_files(self) -> list[str]:
        """Return the files that are not committed, untracked ones included."""
        return [line[3:] for line in self.git("status", "--porcelain").splitlines()]

    def tag_commit(self, tag: str) -> str | None:
        """Return the commit of a local tag, or `None` if there is no such tag."""
        found = self.git("for-each-ref", "--format=%(objectname) %(*objectname)", f"refs/tags/{tag}").split()
        return found[-1] if found else None

    def has_origin(self) -> bool:
        """Return whether there is a remote `origin`."""
        return "origin" in self.git("remote").split()

    def refs_of_origin(self, *names: str) -> dict[str, str]:
        """Return the refs with exactly these names that `origin` has, and their objects."""
        lines = (line.split("\t") for line in self.git("ls-remote", "origin", *names).splitlines())
        # git matches the end of a name
        return {name: commit for commit, name in lines if name in names}

    def read(self, path: str) -> str:
        """Return a file of the work tree. Raises ReleaseError if it is missing."""
        try:
            return (self.folder / path).read_text("utf-8")
        except FileNotFoundError:
            raise ReleaseError(f"{path} is missing. Restore or add it.") from None

    def read_head(self, path: str) -> str:
        """Return a file as HEAD has it."""
        return self.git("show", f"HEAD:{path}")

    def commit_with(self, path: str, text: str, message: str) -> str:
        """Make a child of HEAD that changes one file of the top folder, and return it.

        No branch, index or work tree is touched. The same HEAD and text make the same commit.
        """
        entries = self.git("ls-tree", "-z", "HEAD").split("\0")
        before = self.git("rev-parse", f"HEAD:{path}").strip()
        after = self.git("hash-object", "-w", "--stdin", text=text).strip()
        tree = self.git(
            *("mktree", "-z"),
            text="\0".join(entry.replace(before, after) if entry.endswith(f"\t{path}") else entry for entry in entries),
        )
        date = self.git("show", "--no-patch", "--format=%cI", "HEAD").strip()
        identity = {
            f"GIT_{role}_{key}": value
            for role in ("AUTHOR", "COMMITTER")
            for key, value in {"NAME": _NAME, "EMAIL": _EMAIL, "DATE": date}.items()
        }
        return self.git("commit-tree", tree.strip(), "-p", "HEAD", text=message, env=identity).strip()

    def create_tag(self, tag: str, commit: str) -> None:
        """Create a lightweight tag, which must not exist yet."""
        self.git("update-ref", f"refs/tags/{tag}", commit, "0" * 40)
