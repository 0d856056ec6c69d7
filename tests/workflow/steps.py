"""Runs one step of an example as a script, without a workflow around it."""

from collections.abc import Mapping

import yaml

from tests.engine import ROOT, docker


def run_step(
    image: str, example: str, name: str, variables: Mapping[str, str], *, prepare: str = "true"
) -> tuple[int, str]:
    """Run the script of a step in an empty folder, after commands that prepare it.

    Returns its exit code and its log.
    """
    step = read_step(example, name)
    # nothing changes how it runs, or what its failure means
    assert set(step) <= {"name", "id", "if", "env", "run"}

    command = ["run", "--rm", "--network=host"]
    for variable, value in {**variables, "STEP": step["run"]}.items():
        command += ["--env", f"{variable}={value}"]
    script = (
        f"mkdir /work; cd /work; {prepare}\n"
        'status=0; bash -ec "$STEP" 2>&1 || status=$?; echo "exit status $status"'
    )
    command += [image, "bash", "-ec", script]

    log, _, status = docker(*command).rpartition("exit status ")
    return int(status), log


def read_step(example: str, name: str) -> dict[str, str]:
    """Return the step of an example that has this name."""
    workflow = yaml.safe_load((ROOT / "examples" / example).read_text("utf-8"))
    found: list[dict[str, str]] = []
    for job in workflow["jobs"].values():
        found += [step for step in job["steps"] if step["name"] == name]
    (step,) = found
    return step
