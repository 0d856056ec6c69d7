"""Runs the jobs of a GitLab pipeline like GitLab Runner's Docker executor.

Each job is a container of the job's image, which gets its script on stdin.

Source: GitLab Runner, `shells/bash.go`, and gitlab-runner!4446 for a cancel.
"""

import re
import shlex
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.ended import without_key
from tests.engine import LABEL, docker

HEADER = """\
trap exit 1 TERM

if set -o | grep pipefail > /dev/null; then set -o pipefail; fi; set -o errexit
set +o noclobber
"""
SHELL = "if [ -x /bin/bash ]; then exec /bin/bash; else exec /bin/sh; fi"
CANCEL = """\
for process in $(ls /proc | grep -E '^[0-9]+$' | sort -rn); do
    if [ "$process" -gt 1 ] && [ "$process" != $$ ]; then
        kill -TERM "$process" 2> /dev/null || :
    fi
done
"""


class Pipeline:
    """A pipeline whose jobs run one by one.

    `images` replace those of the jobs, `variables` are the project's.
    """

    def __init__(
        self,
        text: Mapping[str, Any],
        *,
        folder: Path,
        images: Mapping[str, str],
        variables: Mapping[str, str],
    ) -> None:
        self._text = text
        self._images = images
        self._variables = variables
        self._folder = folder
        self.label = f"{LABEL}={uuid.uuid4().hex[:12]}"

    def job(self, name: str) -> dict[str, Any]:
        """Return a job with what it extends, and with its variables expanded."""
        job: dict[str, Any] = self._text[name]
        template = self._text.get(job.get("extends", ""), {})
        variables: dict[str, str] = {}
        for part in (self._text, template, job):
            variables |= part.get("variables", {})
        variables |= self._variables
        expanded = {key: _expand(text, variables) for key, text in variables.items()}
        return {**template, **job, "variables": expanded}

    def project(self, name: str) -> Path:
        """Return the folder in which a job runs, with the artifacts of those that it needs."""
        folder = self._folder / name
        if folder.exists():
            return folder
        folder.mkdir(parents=True)
        needs = self.job(name).get("needs")
        if needs is None:
            needs = self._jobs_of_earlier_stages(name)
        for needed in needs:
            for path in self.job(needed)["artifacts"]["paths"]:
                made = self._folder / needed / path
                if made.is_dir():
                    shutil.copytree(made, folder / path)
                elif made.exists():
                    shutil.copy(made, folder / path)
        return folder

    def _jobs_of_earlier_stages(self, name: str) -> list[str]:
        stage = self.job(name).get("stage")
        if stage is None:
            return []
        stages = self._text["stages"]
        earlier_stages = stages[: stages.index(stage)]
        jobs = []
        for other, job in self._text.items():
            if isinstance(job, dict) and job.get("stage") in earlier_stages:
                jobs.append(other)
        return jobs

    def start(self, name: str, part: str = "script") -> "subprocess.Popen[str]":
        """Start a job's `script`, or its `after_script`, in a new container."""
        job = self.job(name)
        image = job["image"]
        assert image["entrypoint"] == [""]
        command = ["docker", "run", "--rm", "--interactive", "--init"]
        command += ["--network=host", "--entrypoint="]
        command += ["--name", f"gitlab-{uuid.uuid4().hex[:12]}", "--label", self.label]
        command += ["--volume", f"{self.project(name)}:/builds/docs"]
        command += [f"--env={key}={text}" for key, text in job["variables"].items()]
        command += [self._images[image["name"]], "sh", "-c", SHELL]
        lines = "\n".join(["cd /builds/docs", *job[part]])
        with tempfile.TemporaryFile("w+") as stdin:
            stdin.write(f"{HEADER}: | (eval {shlex.quote(lines)})\nexit 0\n")
            stdin.seek(0)
            return subprocess.Popen(
                command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )

    def cancel(self) -> None:
        """Stop the processes of the one job that runs."""
        (container,) = docker("ps", "--quiet", "--filter", f"label={self.label}").split()
        docker("exec", container, "sh", "-c", CANCEL)

    def finish(self, name: str, process: "subprocess.Popen[str]") -> tuple[int, str]:
        """Wait for a job's script, and run its `after_script`.

        Returns the exit code and the log of the script.
        """
        log, _ = process.communicate(timeout=300)
        if "after_script" in self.job(name):
            self.start(name, "after_script").communicate(timeout=60)
        return process.returncode, without_key(log)

    def run(self, name: str) -> tuple[int, str]:
        """Run a job to its end, and return the exit code and the log of its script."""
        return self.finish(name, self.start(name))


def _expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace each `$NAME` by the variable's value, and by nothing if there is no such variable."""
    return re.sub(r"\$(\w+)", lambda found: variables.get(found[1], ""), text)
