"""Starts the image with the command line that GitHub's runner uses for a container action.

Source: actions/runner v2.336.
"""

import os
import subprocess
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

import yaml

from admin_api_simulator.runner import (
    ActionRun,
    parse_outputs,
    read_text,
    variable_of,
    with_defaults,
)
from tests.ended import Ended, ended_of, without_key
from tests.engine import LABEL, ROOT, remove_labelled_containers

RUNS = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]
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
MAX_SECONDS = 300.0


class Step:
    """A running docker command whose container writes `output` and `summary`."""

    def __init__(
        self,
        command: list[str],
        *,
        name: str,
        env: Mapping[str, str],
        log: Path,
        output: Path,
        summary: Path,
    ) -> None:
        self.name = name
        self._log = log
        self._output = output
        self._summary = summary
        with log.open("wb") as stream:
            self.client = subprocess.Popen(
                ["docker", *command],
                env={**os.environ, **env},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
            )

    def log(self) -> str:
        return without_key(read_text(self._log))

    def outputs(self) -> dict[str, str]:
        return parse_outputs(without_key(read_text(self._output)))

    def is_running(self) -> bool:
        return self.client.poll() is None

    def wait_for_log(self, text: str) -> None:
        deadline = time.monotonic() + MAX_SECONDS
        while text not in self.log():
            assert self.is_running(), f"the step ended before it said {text!r}:\n{self.log()}"
            assert time.monotonic() < deadline, f"the log does not say {text!r}:\n{self.log()}"
            time.sleep(0.05)

    def wait(self, *, timeout_seconds: float = MAX_SECONDS) -> Ended:
        """Wait for the end, and return what the runner sees; its log has stdout and stderr."""
        exit_code = self.client.wait(timeout_seconds)
        run = ActionRun(
            exit_code=exit_code,
            stdout=read_text(self._log),
            stderr="",
            outputs=self.outputs(),
            summary=read_text(self._summary),
        )
        return ended_of(run)


class Runner:
    """The folders of a job, and its steps."""

    def __init__(self, *, image: str, folder: Path) -> None:
        self.workspace = folder / "workspace"
        self.home = folder / "home"
        self._image = image
        self._folder = folder
        self._label = f"{LABEL}={uuid.uuid4().hex[:12]}"
        self._steps: list[Step] = []
        for name in FOLDERS:
            (folder / name).mkdir(parents=True)

    def start(
        self, inputs: Mapping[str, str], *, env: Mapping[str, str] | None = None, keep: bool = False
    ) -> Step:
        """Start the action.

        With `keep`, the container stays for inspection until `clean_up`. The runner keeps none.
        """
        step = uuid.uuid4().hex[:12]
        file_commands = self._folder / "file_commands"
        files = {variable: f"{kind}_{step}" for variable, kind in FILE_COMMANDS.items()}
        for file in files.values():
            (file_commands / file).touch()

        variables = dict(env or {})
        variables |= input_variables(inputs)
        for variable, file in files.items():
            variables[variable] = f"/github/file_commands/{file}"
        variables |= FIXED_VARIABLES

        command = ["run", "--name", step, "--label", self._label, "--workdir", "/github/workspace"]
        if not keep:
            command.append("--rm")
        # like the runner, only names; the docker client gets the values
        for variable in variables:
            command += ["-e", variable]
        command += ["-e", "GITHUB_ACTIONS=true", "-e", "CI=true", "--network", "host"]
        for name, inside in FOLDERS.items():
            command += ["-v", f"{self._folder / name}:{inside}"]
        command += ["--entrypoint", RUNS["entrypoint"], self._image, *RUNS["args"]]

        started = Step(
            command,
            name=step,
            env=variables,
            log=self._folder / f"{step}.log",
            output=file_commands / files["GITHUB_OUTPUT"],
            summary=file_commands / files["GITHUB_STEP_SUMMARY"],
        )
        self._steps.append(started)
        return started

    def clean_up(self) -> None:
        """Remove the containers that are left."""
        remove_labelled_containers(self._label)
        for step in self._steps:
            step.client.kill()
            step.client.wait()


def input_variables(inputs: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of inputs, and of the defaults of the others."""
    values = with_defaults(inputs, ROOT / "action.yml")
    return {variable_of(name): value for name, value in values.items()}
