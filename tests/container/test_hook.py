"""Kubernetes modes of ARC start the image in their own ways, which these tests imitate without a cluster.

Source: actions/runner-container-hooks, `packages/k8s/src`, `hooks/run-container-step.ts` and `k8s/utils.ts`.

- Mode `kubernetes` (0.7.0) runs `runs.entrypoint` and `runs.args` in a pod, with the work volume's folders as mounts.
- Mode `kubernetes-novolume` (0.8.1) starts `tail -f /dev/null` in a pod, copies the job's files there, and executes a script with
  `sh -e`. The script moves the files to where the runner promises them, and replaces itself with `env` and the entry point.
"""

import json
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from admin_api_simulator import Simulator
from admin_api_simulator.runner import parse_outputs, read_text, variable_of, with_defaults
from tests.container.runner import FIXED_VARIABLES, GRACE_SECONDS
from tests.ended import without_key
from tests.engine import LABEL, ROOT, docker, remove_labelled_containers
from tests.keys import ADMIN_KEY

pytestmark = pytest.mark.timeout(900)  # the first test of a session builds the image

RUNS = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]
FOLDERS = {
    "_temp/_github_home": "/github/home",
    "_temp/_github_workflow": "/github/workflow",
    "_temp/_runner_file_commands": "/github/file_commands",
    "docs/docs": "/github/workspace",
}
"""The job's folders in the work folder, and their places for a container action. None of the modes has `/github/runner_temp`."""

COMMAND = " ".join([RUNS["entrypoint"], *RUNS["args"]])


class Pod:
    """The work folder of a job, and a container for one step."""

    def __init__(self, image: str, *, folder: Path, logs: Path) -> None:
        self.name = uuid.uuid4().hex[:12]
        self.work = folder / "work"
        self.github = folder / "github"
        self._image = image
        self._log = logs / "log"
        self._client: subprocess.Popen[bytes] | None = None
        for name in FOLDERS:
            (self.work / name).mkdir(parents=True)
        self.github.mkdir()

    def start_as_volume_mode(self, inputs: Mapping[str, str]) -> None:
        """Start the entry point, with mounts of the work folder, as hooks 0.7.0 do."""
        (self.work / "_temp/_runner_file_commands/output").touch()
        variables = environment(inputs)
        mounts = [f"{self.work}:/__w", *(f"{self.work / name}:{inside}" for name, inside in FOLDERS.items())]
        self._start(
            ["run", "--rm", *self._options("/github/workspace", mounts)]
            # a Kubernetes secret, which takes hyphens in names
            + [argument for name in variables for argument in ("-e", name)]
            + ["--entrypoint", RUNS["entrypoint"], self._image, *RUNS["args"]],
            variables,
        )

    def start_as_novolume_mode(self, inputs: Mapping[str, str]) -> None:
        """Start a container that does nothing, and execute the script there, as hooks 0.8.1 do."""
        mounts = [f"{self.work}:/__w", f"{self.github}:/github"]
        options = self._options("/__w", mounts)
        docker("run", "--detach", "--rm", *options, "--entrypoint", "tail", self._image, "-f", "/dev/null")
        (self.work / "_temp/step.sh").write_text(script(environment(inputs)))
        self._start(["exec", self.name, "sh", "-e", "/__w/_temp/step.sh"], {})

    def log(self) -> str:
        return without_key(read_text(self._log))

    def outputs(self) -> dict[str, str]:
        """Return the outputs in the step's container, whether or not the hook copies them back."""
        candidates = (self.github / "file_commands/output", self.work / "_temp/_runner_file_commands/output")
        text = "".join(read_text(file) for file in candidates if file.exists())
        return parse_outputs(without_key(text))

    def wait(self, *, timeout_seconds: float = 300) -> int:
        assert self._client is not None
        try:
            return self._client.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the step still runs after {timeout_seconds} s:\n{self.log()}") from None

    def wait_for_log(self, text: str) -> None:
        deadline = time.monotonic() + 300
        while text not in self.log():
            assert self._client is not None
            assert self._client.poll() is None, f"the step ended before its log contained {text!r}:\n{self.log()}"
            assert time.monotonic() < deadline, f"the log does not say {text!r}:\n{self.log()}"
            time.sleep(0.05)

    def interrupt_hook(self) -> None:
        """End the process that executes the script from outside, as the runner does with the hook on a cancel."""
        assert self._client is not None
        self._client.send_signal(signal.SIGINT)
        self._client.wait(GRACE_SECONDS)

    def processes(self) -> list[str]:
        """Return the command lines of the container's processes."""
        listed = without_key(docker("top", self.name, "-eo", "pid,args", "-ww"))
        return [line.split(maxsplit=1)[1] for line in listed.splitlines()[1:]]

    def signal_action(self, name: str) -> None:
        """Send a signal to the action's process, which is not the container's first one."""
        code = f"""
import os, pathlib, signal
for arguments in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    if {RUNS["args"][-1].encode()!r} in arguments.read_bytes().split(bytes(1)):
        os.kill(int(arguments.parent.name), signal.{name})
"""
        docker("exec", self.name, RUNS["entrypoint"], "-I", "-c", code)

    def clean_up(self) -> None:
        if self._client is not None:
            self._client.kill()
            self._client.wait()
        remove_labelled_containers(f"{LABEL}={self.name}")

    def _options(self, folder: str, mounts: list[str]) -> list[str]:
        labels = ["--name", self.name, "--label", f"{LABEL}={self.name}"]
        return [*labels, "--network=host", "--workdir", folder, *(argument for mount in mounts for argument in ("-v", mount))]

    def _start(self, arguments: list[str], variables: Mapping[str, str]) -> None:
        with self._log.open("wb") as stream:
            self._client = subprocess.Popen(
                ["docker", *arguments],
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
            )


@pytest.fixture
def pod(image: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pod]:
    # a log contains the mask of the key, which a job's files must not
    pod = Pod(image, folder=tmp_path, logs=tmp_path_factory.mktemp("logs"))
    yield pod
    pod.clean_up()


def environment(inputs: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that the runner gives the hook for a step."""
    return {
        **{variable_of(name): value for name, value in with_defaults(inputs, ROOT / "action.yml").items()},
        **FIXED_VARIABLES,
        "GITHUB_OUTPUT": "/github/file_commands/output",
        "GITHUB_STEP_SUMMARY": "/github/file_commands/summary",
        "GITHUB_ACTIONS": "true",
        "CI": "true",
    }


def script(variables: Mapping[str, str]) -> str:
    """Return the script of a step.

    The variables are arguments of `env`, because a shell cannot export a name with a hyphen. The runner has put quotation marks
    around the arguments in action.yml.
    """
    *before, file_commands, workspace = [f"mv /__w/{name} {inside}" for name, inside in FOLDERS.items()]
    arguments = " ".join(f'"{argument}"' for argument in RUNS["args"])
    moves = " && ".join([*before, f"{file_commands} || true"])
    assignments = " ".join(f'"{quoted(f"{name}={value}")}"' for name, value in variables.items())
    command = f"exec env {assignments} {RUNS['entrypoint']} {arguments}"
    return f'#!/bin/sh -l\nrm "$0"\n{moves} && {workspace} && cd /github/workspace && {command}\n'


def quoted(text: str) -> str:
    """Escape what a shell interprets between double quotation marks."""
    return "".join(f"\\{character}" if character in '\\"$`' else character for character in text)


def export(platform: Simulator, **more: str) -> dict[str, str]:
    return {"base-url": platform.base_url, "admin-key": ADMIN_KEY, "domain": "docs.example.com"} | {
        name.replace("_", "-"): value for name, value in more.items()
    }


def waiting_export(platform: Simulator) -> dict[str, str]:
    # only a signal ends this pause within the test's time
    return export(platform, poll_interval="30s", timeout="30m")


class TestVolumeMode:
    def test_the_step_succeeds_without_a_temporary_folder_of_the_runner(self, pod: Pod, platform: Simulator) -> None:
        pod.start_as_volume_mode(export(platform, site_path="site"))

        assert pod.wait() == 0, pod.log()
        assert pod.outputs()["sitePath"] == "site"
        assert (pod.work / "docs/docs/site/index.html").exists()


class TestNoVolumeMode:
    def test_the_step_succeeds_and_nothing_arrives_in_the_folders_that_later_steps_use(
        self, pod: Pod, platform: Simulator
    ) -> None:
        options = {"note": 'it\'s "quoted", $HOME, `id`, \\ and\na line'}

        pod.start_as_novolume_mode(export(platform, site_path="site", start_options=json.dumps(options)))

        assert pod.wait() == 0, pod.log()
        assert json.loads(platform.requests[0].body) == {**options, "domain": "docs.example.com"}
        # the hook copies the job's pod, which does not have the files that the runner has just made for this step
        assert (pod.outputs()["status"], pod.outputs()["sitePath"]) == ("completed", "site")
        assert "docs.example.com" in (pod.github / "file_commands/summary").read_text()
        assert (pod.github / "workspace/site/index.html").exists()
        assert [path for path in pod.work.rglob("*") if path.is_file()] == []

    def test_without_the_folder_of_these_files_it_stops_before_any_request(self, pod: Pod, platform: Simulator) -> None:
        # the job's pod has this folder after a `run:` step only, because the runner makes it in the first step
        (pod.work / "_temp/_runner_file_commands").rmdir()

        pod.start_as_novolume_mode(export(platform))

        assert pod.wait() == 1, pod.log()
        assert "GITHUB_OUTPUT" in pod.log()
        assert platform.requests == []

    def test_a_cancel_of_the_hook_does_not_reach_the_action(self, pod: Pod, platform: Simulator) -> None:
        pod.start_as_novolume_mode(waiting_export(platform))
        pod.wait_for_log("job-id: ")
        assert sorted(pod.processes()) == [COMMAND, "tail -f /dev/null"], "no shell stays between the hook and the action"

        pod.interrupt_hook()
        docker("kill", "--signal=SIGTERM", pod.name)  # the first process is `tail`, which ignores it there

        assert COMMAND in pod.processes()
        docker("kill", pod.name)  # the hook deletes the pod at the end of the job, with a grace period of 0 s
        assert pod.outputs().keys() == {"jobId"}

    @pytest.mark.parametrize(("name", "exit_code"), [("SIGINT", 130), ("SIGTERM", 143)])
    def test_a_signal_that_is_forwarded_would_end_the_action(
        self, pod: Pod, platform: Simulator, name: str, exit_code: int
    ) -> None:
        pod.start_as_novolume_mode(waiting_export(platform))
        pod.wait_for_log("job-id: ")

        pod.signal_action(name)

        assert pod.wait(timeout_seconds=GRACE_SECONDS) == exit_code, pod.log()
        assert pod.outputs()["failureReason"] == "cancelled"
