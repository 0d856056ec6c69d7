"""Runs one step of an example as a script, without a workflow around it."""

from collections.abc import Mapping

import yaml

from tests.engine import ROOT, docker


def run_step(
    image: str, example: str, name: str, variables: Mapping[str, str], *, prepare: str = "true"
) -> tuple[int, str]:
    """Run the script of a step in an empty folder, after commands that prepare it; return its exit code and its log."""
    jobs = yaml.safe_load((ROOT / "examples" / example).read_text("utf-8"))["jobs"].values()
    (step,) = [step for job in jobs for step in job["steps"] if step["name"] == name]
    assert {*step} <= {"name", "id", "if", "env", "run"}, (
        "nothing that changes how it runs, or what its failure means"
    )
    settings = [
        part
        for name, value in {**variables, "STEP": step["run"]}.items()
        for part in ("--env", f"{name}={value}")
    ]
    run = f'mkdir /work; cd /work; {prepare}\nstatus=0; bash -ec "$STEP" 2>&1 || status=$?; echo "exit status $status"'

    log, _, status = docker(
        "run", "--rm", "--network=host", *settings, image, "bash", "-ec", run
    ).rpartition("exit status ")

    return int(status), log
