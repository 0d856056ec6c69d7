"""Kubernetes modes of ARC start the image in their own ways, imitated here without a cluster.

Source: actions/runner-container-hooks, `packages/k8s/src`, `hooks/run-container-step.ts` and
`k8s/utils.ts`.

- Mode `kubernetes` (0.7.0) runs `runs.entrypoint` and `runs.args` in a pod, with the work volume's
  folders as mounts.
- Mode `kubernetes-novolume` (0.8.1) starts `tail -f /dev/null` in a pod, copies the job's files
  there, and executes a script with `sh -e`. The script moves the files to where the runner promises
  them, and replaces itself with `env` and the entry point.
"""

import json
import re
import signal
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from admin_api_simulator import ExportPlan, Simulator
from tests.container.runner import (
    FIXED_VARIABLES,
    GRACE_SECONDS,
    MAX_SECONDS,
    RUNS,
    Step,
    input_variables,
)
from tests.engine import LABEL, docker, remove_labelled_containers
from tests.keys import ADMIN_KEY

pytestmark = pytest.mark.timeout(900)  # the first test of a session builds the image

FOLDERS = {
    "_temp/_github_home": "/github/home",
    "_temp/_github_workflow": "/github/workflow",
    "_temp/_runner_file_commands": "/github/file_commands",
    "docs/docs": "/github/workspace",
}
"""The job's folders in the work folder, and their places for a container action.

None of the modes has `/github/runner_temp`.
"""

VARIABLES = {
    **FIXED_VARIABLES,
    "GITHUB_OUTPUT": "/github/file_commands/output",
    "GITHUB_STEP_SUMMARY": "/github/file_commands/summary",
    "GITHUB_ACTIONS": "true",
    "CI": "true",
}
COMMAND = " ".join([RUNS["entrypoint"], *RUNS["args"]])


class Pod:
    """The work folder of a job, and a container for one step."""

    def __init__(self, image: str, folder: Path) -> None:
        self.name = uuid.uuid4().hex[:12]
        self.work = folder / "work"
        self.github = folder / "github"
        self._image = image
        self._log = folder / "log"
        for name in FOLDERS:
            (self.work / name).mkdir(parents=True)
        self.github.mkdir()

    def start_in_volume_mode(self, inputs: Mapping[str, str]) -> Step:
        """Start the entry point, with mounts of the work folder, as hooks 0.7.0 do."""
        variables = input_variables(inputs) | VARIABLES
        mounts = {self.work: "/__w"}
        for name, inside in FOLDERS.items():
            mounts[self.work / name] = inside
        command = ["run", *self._options("/github/workspace", mounts)]
        # a Kubernetes secret, which takes hyphens in names
        for name in variables:
            command += ["-e", name]
        command += ["--entrypoint", RUNS["entrypoint"], self._image, *RUNS["args"]]
        return self._step(command, variables, self.work / "_temp/_runner_file_commands")

    def start_in_novolume_mode(self, inputs: Mapping[str, str]) -> Step:
        """Start a container that does nothing, and execute the script there, as hooks 0.8.1 do."""
        options = self._options("/__w", {self.work: "/__w", self.github: "/github"})
        docker("run", "--detach", *options, "--entrypoint", "tail", self._image, "-f", "/dev/null")
        (self.work / "_temp/step.sh").write_text(script(input_variables(inputs) | VARIABLES))
        command = ["exec", self.name, "sh", "-e", "/__w/_temp/step.sh"]
        return self._step(command, {}, self.github / "file_commands")

    def processes(self) -> list[str]:
        """Return the command lines of the container's processes."""
        listed = docker("top", self.name, "-eo", "pid,args", "-ww").splitlines()[1:]
        return sorted(line.split(maxsplit=1)[1] for line in listed)

    def signal_action(self, name: str) -> None:
        """Send a signal to the action's process, which is not the container's first one."""
        code = f"""
import os, pathlib, signal
for arguments in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    if {RUNS["args"][-1].encode()!r} in arguments.read_bytes().split(bytes(1)):
        os.kill(int(arguments.parent.name), signal.{name})
"""
        docker("exec", self.name, RUNS["entrypoint"], "-I", "-c", code)

    def _options(self, folder: str, mounts: Mapping[Path, str]) -> list[str]:
        options = ["--rm", "--name", self.name, "--label", f"{LABEL}={self.name}"]
        options += ["--network=host", "--workdir", folder]
        for outside, inside in mounts.items():
            options += ["-v", f"{outside}:{inside}"]
        return options

    def _step(self, command: list[str], variables: Mapping[str, str], files: Path) -> Step:
        return Step(
            command,
            name=self.name,
            env=variables,
            log=self._log,
            output=files / "output",
            summary=files / "summary",
        )


@pytest.fixture
def pod(image: str, tmp_path: Path) -> Iterator[Pod]:
    pod = Pod(image, tmp_path)
    yield pod
    remove_labelled_containers(f"{LABEL}={pod.name}")


def script(variables: Mapping[str, str]) -> str:
    """Return the script of a step.

    The variables are arguments of `env`, because a shell cannot export a name with a hyphen. The
    runner has put quotation marks around the arguments in action.yml.
    """
    commands = []
    for name, inside in FOLDERS.items():
        move = f"mv /__w/{name} {inside}"
        if inside == "/github/file_commands":
            move += " || true"
        commands.append(move)
    commands.append("cd /github/workspace")

    assignments = [quoted(f"{name}={value}") for name, value in variables.items()]
    arguments = [f'"{argument}"' for argument in RUNS["args"]]
    commands.append(" ".join(["exec env", *assignments, RUNS["entrypoint"], *arguments]))

    return f'#!/bin/sh -l\nrm "$0"\n{" && ".join(commands)}\n'


def quoted(text: str) -> str:
    """Put double quotation marks around a text, and escape what a shell interprets there."""
    escaped = re.sub(r'[\\"$`]', r"\\\g<0>", text)
    return f'"{escaped}"'


def export(platform: Simulator, **more: str) -> dict[str, str]:
    inputs = {
        "base-url": platform.base_url,
        "admin-key": ADMIN_KEY,
        "domain": "docs.example.com",
        "poll-interval": "100ms",
    }
    for name, value in more.items():
        inputs[name.replace("_", "-")] = value
    return inputs


def test_in_volume_mode_the_step_succeeds_without_a_temporary_folder_of_the_runner(
    pod: Pod, platform: Simulator
) -> None:
    ended = pod.start_in_volume_mode(export(platform, site_path="site")).wait()

    assert ended.end == (0, None), ended.stdout
    assert ended.outputs["sitePath"] == "site", ended.stdout
    assert (pod.work / "docs/docs/site/index.html").exists()


def test_without_a_volume_the_step_succeeds_and_nothing_arrives_in_the_folders_that_later_steps_use(
    pod: Pod, platform: Simulator
) -> None:
    options = {"note": 'it\'s "quoted", $HOME, `id`, \\ and\na line'}
    inputs = export(platform, site_path="site", start_options=json.dumps(options))

    ended = pod.start_in_novolume_mode(inputs).wait()

    assert ended.end == (0, None), ended.stdout
    assert ended.outputs["sitePath"] == "site", ended.stdout
    assert json.loads(platform.requests[0].body) == {**options, "domain": "docs.example.com"}
    # the hook copies the job's pod, which does not have the files that the runner has just made for
    # this step
    assert "docs.example.com" in ended.summary
    assert (pod.github / "workspace/site/index.html").exists()
    assert [path for path in pod.work.rglob("*") if path.is_file()] == []


def test_without_the_folder_of_outputs_it_stops_before_any_request(
    pod: Pod, platform: Simulator
) -> None:
    # the job's pod has this folder only after a `run:` step, because the runner makes it in the
    # first step
    (pod.work / "_temp/_runner_file_commands").rmdir()

    ended = pod.start_in_novolume_mode(export(platform)).wait()

    assert ended.exit_code == 1, ended.stdout
    assert platform.requests == [], ended.stdout
    assert "GITHUB_OUTPUT" in ended.error


def test_a_cancel_of_the_hook_does_not_reach_the_action_but_a_forwarded_signal_would_end_it(
    pod: Pod, platform: Simulator
) -> None:
    platform.plan_export("docs.example.com", ExportPlan(seconds=3600))
    step = pod.start_in_novolume_mode(export(platform, poll_interval="30s"))
    step.wait_for_log("job-id: ")
    without_a_shell_between = [COMMAND, "tail -f /dev/null"]
    assert pod.processes() == without_a_shell_between

    # the runner ends the hook
    step.client.send_signal(signal.SIGINT)
    step.client.wait(GRACE_SECONDS)
    # the first process is `tail`, which ignores it there
    docker("kill", "--signal=SIGTERM", pod.name)

    assert COMMAND in pod.processes()
    assert step.outputs().keys() == {"jobId"}

    pod.signal_action("SIGTERM")

    deadline = time.monotonic() + MAX_SECONDS
    while COMMAND in pod.processes():
        assert time.monotonic() < deadline, "the action still runs"
        time.sleep(0.05)
    assert step.outputs()["failureReason"] == "cancelled"
