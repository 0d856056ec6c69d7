"""Starts the image with the command line that GitHub's runner uses for a container action (actions/runner v2.336)."""

import os
import subprocess
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from admin_api_simulator.runner import parse_outputs, read_text, variable_of, with_defaults
from tests.ended import without_key
from tests.engine import LABEL, ROOT, docker, remove_labelled_containers

FOLDERS = {
    "runner_temp": "/github/runner_temp",
    "home": "/github/home",
    "workflow": "/github/workflow",
    "file_commands": "/github/file_commands",
    "workspace": "/github/workspace",
}
FILE_COMMANDS = {
    "GITHUB_OUTPUT": "set_output",
    "GITHUB_STEP_SUMMARY": "step_summary",
    "GITHUB_ENV": "set_env",
    "GITHUB_PATH": "add_path",
    "GITHUB_STATE": "save_state",
}
FIXED_VARIABLES = {
    "HOME": "/github/home",
    "GITHUB_WORKSPACE": "/github/workspace",
    "GITHUB_REPOSITORY": "example/docs",
    "GITHUB_RUN_ID": "1",
    "GITHUB_SERVER_URL": "https://github.com",
    "RUNNER_TEMP": "/github/runner_temp",
    "RUNNER_OS": "Linux",
}
GRACE_SECONDS = 7.5
"""The time between the runner's SIGINT and SIGTERM."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A finished step, as the runner sees it."""

    exit_code: int
    log: str
    outputs: Mapping[str, str]
    summary: str

    @property
    def errors(self) -> list[str]:
        return [line for line in self.log.splitlines() if line.startswith("::error")]


class Step:
    """A running step."""

    def __init__(self, *, name: str, client: "subprocess.Popen[bytes]", log: Path, output: Path, summary: Path) -> None:
        self.name = name
        self._client = client
        self._log = log
        self._output = output
        self._summary = summary

    def log(self) -> str:
        return without_key(read_text(self._log))

    def wait_for_log(self, text: str, *, timeout_seconds: float = 300) -> None:
        deadline = time.monotonic() + timeout_seconds
        while text not in self.log():
            assert self._client.poll() is None, f"the step ended before its log contained {text!r}:\n{self.log()}"
            assert time.monotonic() < deadline, f"the log does not say {text!r}:\n{self.log()}"
            time.sleep(0.05)

    def is_running(self) -> bool:
        return self._client.poll() is None

    def signal(self, name: str) -> None:
        docker("kill", f"--signal={name}", self.name)

    def processes(self) -> str:
        """Return the command lines of the step's processes."""
        return without_key(docker("top", self.name, "-eo", "pid,args", "-ww"))

    def changed_files(self) -> list[str]:
        """Return the step's changes in its container's file system."""
        return docker("diff", self.name).splitlines()

    def wait(self, *, timeout_seconds: float = 300) -> Ended:
        try:
            exit_code = self._client.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the step still runs after {timeout_seconds} s:\n{self.log()}") from None
        return Ended(
            exit_code=exit_code,
            log=self.log(),
            outputs=parse_outputs(without_key(read_text(self._output))),
            summary=without_key(read_text(self._summary)),
        )


class Runner:
    """The folders of a job, and its steps."""

    def __init__(self, *, image: str, folder: Path, logs: Path) -> None:
        self.label = f"{LABEL}={uuid.uuid4().hex[:12]}"
        self._image = image
        self._folder = folder
        self._logs = logs
        for name in FOLDERS:
            (folder / name).mkdir()
        self._clients: list[subprocess.Popen[bytes]] = []
        self.workspace = folder / "workspace"
        self.home = folder / "home"

    def start(self, inputs: Mapping[str, str], *, env: Mapping[str, str] | None = None, keep: bool = False) -> Step:
        """Start the action with inputs and environment variables.

        With `keep` the container stays until `clean_up`, for inspection; the runner keeps none.
        """
        step = uuid.uuid4().hex[:12]
        files = {variable: f"{kind}_{step}" for variable, kind in FILE_COMMANDS.items()}
        for file in files.values():
            (self._folder / "file_commands" / file).touch()
        variables = {
            **(env or {}),
            **_variables_of(inputs),
            **{variable: f"/github/file_commands/{file}" for variable, file in files.items()},
            **FIXED_VARIABLES,
        }
        runs = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]
        mounts = [f"{self._folder / name}:{inside}" for name, inside in FOLDERS.items()]
        log = self._logs / f"{step}.log"
        with log.open("wb") as stream:
            client = subprocess.Popen(
                ["docker", "run", "--name", step, "--label", self.label, "--workdir", "/github/workspace"]
                + ([] if keep else ["--rm"])
                # like the runner, only names; the docker client gets the values
                + [argument for variable in variables for argument in ("-e", variable)]
                + ["-e", "GITHUB_ACTIONS=true", "-e", "CI=true", "--network", "host"]
                + [argument for mount in mounts for argument in ("-v", mount)]
                + ["--entrypoint", runs["entrypoint"], self._image, *runs["args"]],
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
            )
        self._clients.append(client)
        commands = self._folder / "file_commands"
        return Step(
            name=step,
            client=client,
            log=log,
            output=commands / files["GITHUB_OUTPUT"],
            summary=commands / files["GITHUB_STEP_SUMMARY"],
        )

    def run(self, inputs: Mapping[str, str], *, env: Mapping[str, str] | None = None) -> Ended:
        """Run the action with inputs to the end."""
        return self.start(inputs, env=env).wait()

    def clean_up(self) -> None:
        """Remove the containers that a failed test left."""
        remove_labelled_containers(self.label)
        for client in self._clients:
            client.kill()
            client.wait()


def _variables_of(inputs: Mapping[str, str]) -> dict[str, str]:
    return {variable_of(name): value for name, value in with_defaults(inputs, ROOT / "action.yml").items()}
