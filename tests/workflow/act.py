"""Runs workflows with act, in a separate repository and home folder."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.ended import without_key
from tests.engine import build_image, copy_action, docker, job_image

WORKFLOWS = Path(__file__).with_name("workflows")
PUBLISHED_AS = "OWNER/docs-platform-action@v1"
AUTHOR = {"NAME": "Docs", "EMAIL": "docs@example.com"}


@dataclass(frozen=True, kw_only=True)
class WorkflowRun:
    """A finished workflow run."""

    succeeded: bool
    log: str

    def printed(self, label: str) -> list[str]:
        """Return what the workflow's steps printed after a label such as `reason:`."""
        return re.findall(rf"^\[.*?\]\s+\| {re.escape(label)} (.*?)\s*$", self.log, re.MULTILINE)


class Act:
    """A repository with workflows.

    It also contains the action, for `uses: ./`; or the action is in the folder `published`, which act uses for the published
    action. `stand_ins` are folders that act uses for other actions, by their names with commits.
    """

    def __init__(
        self,
        *,
        program: str,
        folder: Path,
        workflows: Path = WORKFLOWS,
        image: str | None = None,
        published: Path | None = None,
        stand_ins: Mapping[str, Path] | None = None,
    ) -> None:
        self._program = program
        self._home = folder / "home"
        self._repository = folder / "docs"
        self._published = published
        self._local_actions = {**(stand_ins or {}), **({PUBLISHED_AS: published} if published else {})}
        if published is None:
            copy_action(self._repository)
        self._home.mkdir(parents=True)
        shutil.copytree(workflows, self._repository / ".github" / "workflows", ignore=shutil.ignore_patterns("*.md"))
        # without a settings file act asks on its first run which image to use
        (self._home / "act").mkdir()
        labels = ("ubuntu-latest", "ubuntu-26.04")
        (self._home / "act" / "actrc").write_text("".join(f"-P {label}={image or job_image()}\n" for label in labels))
        for arguments in (
            ["init", "--quiet", "--initial-branch=main"],
            ["remote", "add", "origin", "https://github.com/example/docs.git"],
            ["add", "--all"],
            ["commit", "--quiet", "--message=The documentation and how it is published"],
        ):
            subprocess.run(["git", *arguments], cwd=self._repository, env=self._env(), check=True, timeout=60)

    def commit(self) -> str:
        """Return the commit of the repository, which is a workflow's `github.sha`."""
        command = ["git", "rev-parse", "HEAD"]
        return subprocess.check_output(command, cwd=self._repository, env=self._env(), text=True, timeout=60).strip()

    def build_ahead(self, tag: str) -> None:
        """Build the action's image, so that act's builds, one for each step, find everything in the cache.

        act cannot choose a build's network, and some engines have only the host's. The cache requires files with the same
        attributes. act copies the action in a repository through a container, so this does too; it sends the published
        action like the docker command. act uses the classic builder: where BuildKit is the default, act's first build finds
        nothing in the cache.
        """
        if self._published is not None:
            build_image(tag, self._published)
            return
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
        """Run a workflow for a push event."""
        return self.run("push", workflow, variables=variables, secrets=secrets)

    def run(
        self,
        event: str,
        workflow: str,
        *,
        variables: Mapping[str, str],
        secrets: Mapping[str, str],
        inputs: Mapping[str, str] | None = None,
        payload: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
        job: str | None = None,
    ) -> WorkflowRun:
        """Run a workflow for an event, or only one of its jobs with those that it needs.

        `inputs` are for `workflow_dispatch`, `payload` is the event as GitHub sends it, and `environment` is that of every step.
        """
        secret_file = self._home / f"secrets-{uuid.uuid4().hex}"
        secret_file.write_text("".join(f"{name}='{value}'\n" for name, value in secrets.items()))
        event_file = self._home / f"event-{uuid.uuid4().hex}.json"
        event_file.write_text(json.dumps(payload))
        done = subprocess.run(
            [self._program, event, "--workflows", f".github/workflows/{workflow}"]
            + ["--pull=false", "--rebuild", "--rm", "--action-offline-mode", "--no-cache-server"]
            + ["--container-daemon-socket", "-", "--secret-file", str(secret_file)]
            + [part for name, value in variables.items() for part in ("--var", f"{name}={value}")]
            + [part for name, value in (inputs or {}).items() for part in ("--input", f"{name}={value}")]
            + [part for name, value in (environment or {}).items() for part in ("--env", f"{name}={value}")]
            + [part for name, folder in self._local_actions.items() for part in ("--local-repository", f"{name}={folder}")]
            + (["--eventpath", str(event_file)] if payload else [])
            + (["--job", job] if job else []),
            cwd=self._repository,
            env=self._env(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=800,
            check=False,
        )
        return WorkflowRun(succeeded=done.returncode == 0, log=without_key(done.stdout))

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
