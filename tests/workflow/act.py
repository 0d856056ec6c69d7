"""Runs a workflow with act, in a repository and a home of its own."""

import os
import re
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.engine import build_image, copy_action, docker, job_image, remember_output

WORKFLOWS = Path(__file__).with_name("workflows")
AUTHOR = {"NAME": "Docs", "EMAIL": "docs@example.com"}


@dataclass(frozen=True, kw_only=True)
class WorkflowRun:
    """A workflow that is over."""

    succeeded: bool
    log: str

    def printed(self, label: str) -> list[str]:
        """Return what the workflow's own steps printed after a label such as `reason:`."""
        return re.findall(rf"^\[.*?\]\s+\| {re.escape(label)} (.*?)\s*$", self.log, re.MULTILINE)


class Act:
    """A repository with the action in it, and the workflows that run there."""

    def __init__(self, *, program: str, folder: Path) -> None:
        self._program = program
        self._home = folder / "home"
        self._repository = copy_action(folder / "docs")
        self._home.mkdir()
        workflows = self._repository / ".github" / "workflows"
        shutil.copytree(WORKFLOWS, workflows)
        # act asks on its first run which image it shall use, unless a file of settings is there
        (self._home / "act").mkdir()
        (self._home / "act" / "actrc").write_text(f"-P ubuntu-latest={job_image()}\n")
        for arguments in (
            ["init", "--quiet", "--initial-branch=main"],
            ["remote", "add", "origin", "https://github.com/example/docs.git"],
            ["add", "--all"],
            ["commit", "--quiet", "--message=The documentation and how it is published"],
        ):
            subprocess.run(["git", *arguments], cwd=self._repository, env=self._env(), check=True, timeout=60)

    def build_ahead(self, tag: str) -> None:
        """Build the action's image, so that act, which builds it for every `uses: ./`, finds each step of the build done.

        act gives a build no network of its own choice, and there are engines with no other than the host's. A step counts as
        done for the same files only if they come with the same attributes: hence the way through a container, which act
        takes too.
        """
        container = docker("create", "--network=host", job_image(), "true").strip()
        try:
            docker("cp", f"{self._repository}/.", f"{container}:/action")
            with tempfile.TemporaryFile() as context:
                subprocess.run(["docker", "cp", f"{container}:/action/.", "-"], stdout=context, check=True, timeout=60)
                context.seek(0)
                build_image(tag, context)
        finally:
            docker("rm", container)

    def push(self, workflow: str, *, variables: Mapping[str, str], secrets: Mapping[str, str]) -> WorkflowRun:
        """Run a workflow as a push does."""
        secret_file = self._home / f"secrets-{uuid.uuid4().hex}"
        secret_file.write_text("".join(f"{name}={value}\n" for name, value in secrets.items()))
        done = subprocess.run(
            [self._program, "push", "--workflows", f".github/workflows/{workflow}"]
            + ["--pull=false", "--rebuild", "--rm", "--action-offline-mode", "--no-cache-server"]
            + ["--container-daemon-socket", "-", "--secret-file", str(secret_file)]
            + [part for name, value in variables.items() for part in ("--var", f"{name}={value}")],
            cwd=self._repository,
            env=self._env(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        return WorkflowRun(succeeded=done.returncode == 0, log=remember_output(done.stdout))

    def _env(self) -> dict[str, str]:
        kept = ("PATH", "DOCKER_HOST", "DOCKER_BUILDKIT", "TMPDIR")
        author = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in AUTHOR.items()}
        return {
            **{name: os.environ[name] for name in kept if name in os.environ},
            **author,
            "HOME": str(self._home),
            "XDG_CONFIG_HOME": str(self._home),
            "XDG_CACHE_HOME": str(self._home / "cache"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "LANG": "C.UTF-8",
        }
