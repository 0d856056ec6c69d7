"""A demo of the action with the simulated platform: `python -m admin_api_simulator.demo`."""

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import yaml

from admin_api_simulator.jobs import DEMO_PROJECT
from admin_api_simulator.runner import ActionRun, run_action
from admin_api_simulator.runner_log import RunnerLog
from admin_api_simulator.simulator import Simulator

ENTRYPOINT = Path(__file__).resolve().parents[2] / "entrypoint.py"
EXPORT_SECONDS = 5.0
AGENT_SECONDS = 3.0
PAGES = 412
LONGEST_RUN_SECONDS = 60.0
RULE = "─" * 78


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One run of the demo, with the output that it must set."""

    title: str
    inputs: Mapping[str, str]
    expected_output: str


def scenes() -> tuple[Scene, ...]:
    """Return the runs of the demo."""
    export = Scene(
        title="Export mode: one domain",
        inputs={
            "domain": "docs.example.com",
            "site-path": "site",
            "values-file": "export-values.yaml",
            "max-poll-interval": "1s",
        },
        expected_output="bundleUrl",
    )
    several = Scene(
        title="Export mode: several domains in one step",
        inputs={
            "domain": "docs.example.com\ndevelopers.example.com\npartners.example.com\n",
            "site-path": "sites/{domain}",
            "max-poll-interval": "1s",
        },
        expected_output="results",
    )
    agent = Scene(
        title="Agent mode: wait for a job and its pull request",
        inputs={
            "mode": "agent",
            "project-id": DEMO_PROJECT,
            "job-id": "agent-pull-request",
            "max-poll-interval": "1s",
        },
        expected_output="prLink",
    )
    return export, several, agent


def main(arguments: Sequence[str] | None = None, *, out: TextIO | None = None) -> int:
    """Run the demo; return 0 if every run succeeded and set its output."""
    parser = argparse.ArgumentParser(prog="python -m admin_api_simulator.demo", description=__doc__)
    parser.add_argument("--entrypoint", type=Path, default=ENTRYPOINT, help="the action's entry point")
    parser.add_argument("--export-seconds", type=float, default=EXPORT_SECONDS, help="how long an export takes")
    parser.add_argument("--agent-seconds", type=float, default=AGENT_SECONDS, help="how long the agent job is active")
    parser.add_argument("--debug", action="store_true", help="show debug lines")
    options = parser.parse_args(arguments)
    out = out or sys.stdout
    failures = []
    with (
        Simulator(export_seconds=options.export_seconds, agent_seconds=options.agent_seconds, pages=PAGES) as platform,
        tempfile.TemporaryDirectory(prefix="demo-workspace-") as workspace,
    ):
        _write(out, f"The simulated platform serves at {platform.base_url}")
        for scene in scenes():
            run = _play(scene, platform, options.entrypoint, Path(workspace), out, debug=options.debug)
            output = run.outputs.get(scene.expected_output)
            if run.exit_code != 0 or not output:
                failures.append(f"{scene.title}: exit code {run.exit_code}, {scene.expected_output} {output!r}")
    _write(out, RULE, *(failures or ["All runs succeeded."]))
    return 1 if failures else 0


def _play(scene: Scene, platform: Simulator, entrypoint: Path, workspace: Path, out: TextIO, *, debug: bool) -> ActionRun:
    log = RunnerLog(debug=debug)
    _write(out, "", RULE, scene.title, RULE, "", "The step:", "", _indented(step_yaml(scene.inputs, platform.base_url)))
    _write(out, "The log:", "")
    run = run_action(
        {"base-url": platform.base_url, "admin-key": platform.key, **scene.inputs},
        entrypoint=entrypoint,
        workspace=workspace,
        debug=debug,
        timeout_seconds=LONGEST_RUN_SECONDS,
        on_line=lambda line: _write(out, *(f"    {shown}" for shown in log.show(line))),
    )
    outputs = "".join(f"{name} = {value}\n" for name, value in run.outputs.items())
    _write(out, "", "The outputs:", "", _indented(outputs), "The summary's Markdown:", "", _indented(run.summary))
    return run


def step_yaml(inputs: Mapping[str, str], base_url: str) -> str:
    """Return a workflow step with these inputs."""
    step = {
        "uses": "OWNER/docs-platform-action@v1",
        "with": {"base-url": base_url, "admin-key": "${{ secrets.DOCS_ADMIN_KEY }}", **inputs},
    }
    return yaml.dump([step], Dumper=_Dumper, sort_keys=False, width=1000)


class _Dumper(yaml.SafeDumper):
    """Writes multi-line strings as blocks."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


def _indented(text: str) -> str:
    return "".join(f"    {line}".rstrip() + "\n" for line in text.rstrip("\n").split("\n"))


def _write(out: TextIO, *lines: str) -> None:
    for line in lines:
        out.write(f"{line}\n")
    out.flush()


if __name__ == "__main__":
    sys.exit(main())
