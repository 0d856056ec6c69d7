"""Runs workflows with act, in a separate repository and home folder."""

import json
import os
import re
import subprocess
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from admin_api_simulator import Simulator
from admin_api_simulator.github import CREATOR
from admin_api_simulator.jobs import DOCS_PROJECT
from tests.ended import without_key
from tests.engine import TEST_RUN, need_act

DOMAIN = "docs.example.com"
PROJECT = {"DOCS_PROJECT_ID": DOCS_PROJECT}
"""The variable with which workflows export `DOMAIN` by project."""
REPOSITORY = "example/docs"
PUBLISHED_AS = "OWNER/docs-platform-action@v1"
DEPLOYMENT = re.compile(r"^ +deployment: false( #.*)?$", re.MULTILINE)
"""A key of `environment`, which act 0.2.89 does not know: it runs workflows without it."""
NAME = re.compile("^name: ", re.MULTILINE)
"""What a workflow's name follows.

The names of act's containers and volumes begin with the workflow's name and the job's.
"""
PASSED_VARIABLES = ("PATH", "DOCKER_HOST", "DOCKER_BUILDKIT", "TMPDIR")
RUNNER_LABELS = ("ubuntu-latest", "ubuntu-26.04", "docs-internal")
ACT_OPTIONS = (
    "--pull=false",
    "--rebuild",
    "--rm",
    "--action-offline-mode",
    "--no-cache-server",
    "--container-daemon-socket",
    "-",
)

GIT_SETTINGS = "[user]\nname = Docs\nemail = docs@example.com\n[safe]\ndirectory = *\n"


@dataclass(frozen=True, kw_only=True)
class WorkflowRun:
    """A finished workflow run."""

    succeeded: bool
    log: str

    def printed(self, label: str) -> list[str]:
        """Return what the workflow's steps printed after a label such as `reason:`."""
        return re.findall(rf"^\[.*?\]\s+\| {re.escape(label)} (.*?)\s*$", self.log, re.MULTILINE)


class Act:
    """A repository with workflows, and with what is in its folder already.

    `image` is that of the jobs. `actions` are folders that act uses for other actions, by their
    names with versions. The name of each workflow gets a prefix, so that the same one can run for
    several tests at once.
    """

    def __init__(
        self, *, folder: Path, workflows: Mapping[str, str], image: str, actions: Mapping[str, Path]
    ) -> None:
        self._home = folder / "home"
        self.repository = folder / "docs"
        self._actions = actions
        self._write_workflows(workflows)
        self._home.mkdir()
        (self._home / ".gitconfig").write_text(GIT_SETTINGS)
        # without a settings file act asks on its first run which image to use
        platforms = [f"-P {label}={image}\n" for label in RUNNER_LABELS]
        (self._home / ".actrc").write_text("".join(platforms))
        self._commit_everything()

    def _write_workflows(self, workflows: Mapping[str, str]) -> None:
        folder = self.repository / ".github" / "workflows"
        folder.mkdir(parents=True)
        own = f"{TEST_RUN}-{uuid.uuid4().hex[:4]}"
        for name, text in workflows.items():
            named, count = NAME.subn(rf"\g<0>{own} ", text)
            if count == 0:
                named = f"name: {own}\n{text}"
            (folder / name).write_text(DEPLOYMENT.sub("", named), encoding="utf-8")

    def _commit_everything(self) -> None:
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("remote", "add", "origin", f"https://github.com/{REPOSITORY}.git")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=The documentation and how it is published")

    def git(self, *arguments: str) -> str:
        return subprocess.check_output(
            ["git", *arguments], cwd=self.repository, env=self._env(), text=True, timeout=60
        )

    @property
    def commit(self) -> str:
        """The commit of the events."""
        return self.git("rev-parse", "HEAD").strip()

    def run(
        self,
        workflow: str,
        platform: Simulator,
        *,
        event: str = "push",
        variables: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        inputs: Mapping[str, str] | None = None,
        payload: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
        job: str | None = None,
    ) -> WorkflowRun:
        """Run a workflow for an event, or only one of its jobs with those that it needs.

        `inputs` are for `workflow_dispatch`, `payload` is the event as GitHub sends it, and
        `environment` is that of every step.
        """
        port = platform.github_url.rpartition(":")[2]
        all_variables = {
            "DOCS_API_URL": platform.base_url,
            "DOCS_DOMAIN": DOMAIN,
            "DOCS_DEPLOYMENT_CREATOR": CREATOR,
            **(variables or {}),
        }
        all_secrets = {
            "DOCS_ADMIN_KEY": platform.key,
            "GITHUB_TOKEN": platform.token,
            **(secrets or {}),
        }
        whole_environment = {
            "GITHUB_API_URL": platform.github_url,
            "ARTIFACTS": f"{TEST_RUN}-{port}",
            **(environment or {}),
        }
        arguments = [event, "--workflows", f".github/workflows/{workflow}", *ACT_OPTIONS]
        arguments += options("--var", all_variables)
        arguments += options("--secret", all_secrets)
        arguments += options("--input", inputs or {})
        arguments += options("--env", whole_environment)
        arguments += options("--local-repository", self._actions)
        if payload:
            event_file = self._home / "event.json"
            event_file.write_text(json.dumps(payload))
            arguments += ["--eventpath", str(event_file)]
        if job:
            arguments += ["--job", job]
        return self._act(arguments)

    def _act(self, arguments: list[str]) -> WorkflowRun:
        done = subprocess.run(
            [need_act(), *arguments],
            cwd=self.repository,
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
        env = {"HOME": str(self._home), "GIT_CONFIG_NOSYSTEM": "1", "LANG": "C.UTF-8"}
        for name in PASSED_VARIABLES:
            if name in os.environ:
                env[name] = os.environ[name]
        return env


def options(option: str, values: Mapping[str, object]) -> list[str]:
    """Return the arguments that pass each value under its name, with one option each."""
    arguments = []
    for name, value in values.items():
        arguments += [option, f"{name}={value}"]
    return arguments
