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

    def git_bytes(self, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
        """Run git and return its output. Raises ReleaseError with git's own message if it fails."""
        try:
            done = subprocess.run(
                ["git", *arguments],
                cwd=self.folder,
                input=stdin,
                capture_output=True,
                check=False,
                # no question for a password, and no refreshed index after `git status`
                env={**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", **(env or {})},
            )
        except FileNotFoundError:
            raise ReleaseError("The program git is missing. Install it.") from None
        if done.returncode:
            raise ReleaseError(f"git {arguments[0]} failed: {done.stderr.decode('utf-8', 'replace').strip()}")
        return done.stdout

    def git(self, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> str:
        """Run git and return its output without spaces around it."""
        return self.git_bytes(*arguments, stdin=stdin, env=env).decode("utf-8", "replace").strip()

    def head(self) -> str:
        """Return the commit of HEAD."""
        return self.git("rev-parse", "--verify", "HEAD^{commit}")

    def branch(self) -> str:
        """Return the name of the branch, empty with a detached HEAD."""
        return self.git("branch", "--show-current")

    def changed_files(self) -> list[str]:
        """Return the files that are not committed, untracked ones included."""
        # whatever status.showUntrackedFiles says
        status = self.git_bytes("status", "--porcelain", "--untracked-files=normal").decode("utf-8", "replace")
        return [line[3:] for line in status.splitlines()]

    def tag_commit(self, tag: str) -> str | None:
        """Return the commit of a local tag, or `None` if there is no such tag."""
        found = self.git("for-each-ref", "--format=%(objectname) %(*objectname)", f"refs/tags/{tag}").split()
        return found[-1] if found else None

    def has_origin(self) -> bool:
        """Return whether there is a remote `origin`."""
        return "origin" in self.git("remote").split()

    def refs_of_origin(self, *names: str) -> dict[str, str]:
        """Return the refs of `origin` whose names end with these, and their objects."""
        lines = (line.split("\t") for line in self.git("ls-remote", "origin", *names).splitlines())
        return {name: commit for commit, name in lines}

    def read(self, path: str) -> str:
        """Return a file of the work tree, with its own ends of lines. Raises ReleaseError if it is missing."""
        try:
            return _text(path, (self.folder / path).read_bytes())
        except FileNotFoundError:
            raise ReleaseError(f"{path} is missing. Restore or add it.") from None

    def read_head(self, path: str) -> str:
        """Return a file as HEAD has it, with its own ends of lines. Raises ReleaseError if it is missing."""
        if not self.git("ls-tree", "--full-tree", "HEAD", "--", path):
            raise ReleaseError(f"{path} is missing. Restore or add it.")
        return _text(path, self.git_bytes("cat-file", "blob", f"HEAD:{path}"))

    def commit_with(self, path: str, text: str, message: str) -> str:
        """Make a child of HEAD that changes one line of one file in the top folder, and return it.

        No branch, index or work tree is touched. The same HEAD and text make the same commit.
        """
        entries = self.git_bytes("ls-tree", "--full-tree", "-z", "HEAD").split(b"\0")
        before = self.git("rev-parse", f"HEAD:{path}").encode()
        after = self.git("hash-object", "-w", "--stdin", stdin=text.encode()).encode()
        ours = f"\t{path}".encode()
        changed = (entry.replace(before, after) if entry.endswith(ours) else entry for entry in entries)
        tree = self.git("mktree", "-z", stdin=b"\0".join(changed))
        date = self.git("show", "--no-patch", "--format=%cI", "HEAD")
        identity = {
            f"GIT_{role}_{key}": value
            for role in ("AUTHOR", "COMMITTER")
            for key, value in {"NAME": _NAME, "EMAIL": _EMAIL, "DATE": date}.items()
        }
        commit = self.git("commit-tree", tree, "-p", "HEAD", stdin=message.encode(), env=identity)
        if (change := self.git("diff-tree", "-r", "--numstat", "HEAD", commit)) != f"1\t1\t{path}":
            raise ReleaseError(
                f"The release's commit {commit} would change more than one line of {path}: {change!r}. This is an error of "
                "the release program: fix it before you release."
            )
        return commit

    def create_tag(self, tag: str, commit: str) -> None:
        """Create a lightweight tag, which must not exist yet."""
        self.git("update-ref", f"refs/tags/{tag}", commit, "0" * 40)


def _text(path: str, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ReleaseError(f"{path} is not UTF-8. Save it as UTF-8.") from None
