"""A demo of the action with the simulated platform: `python -m admin_api_simulator.demo`."""

import json
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from admin_api_simulator.github import COMMIT, CREATOR
from admin_api_simulator.github_markdown import page_html
from admin_api_simulator.jobs import DEMO_PROJECT, ExportPlan
from admin_api_simulator.runner import ActionRun, run_action
from admin_api_simulator.runner_log import RunnerLog
from admin_api_simulator.simulator import Simulator
from admin_api_simulator.site import UNCHANGED, SiteChange

ENTRYPOINT = Path(__file__).resolve().parents[2] / "entrypoint.py"
PAGE = Path("demo", "summary.html")
DEPLOY_SECONDS = 5.0
EXPORT_SECONDS = 3.0
AGENT_SECONDS = 1.0
PAGES = 412
LONGEST_RUN_SECONDS = 60.0
POLL_INTERVAL = "1s"
LINE_LENGTH = 130
MANIFEST = "site.manifest"
PROJECT = {"project-id": "docs", "domain": "docs.example.com"}
RESULT_KEYS = ("domain", "status", "sitePath", "failureReason")


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One run of the demo.

    - `repository`: one of the simulated GitHub's, in which the platform deploys a commit; the run
      waits for it.
    - `change`: what differs in `docs.example.com` from the earlier exports.
    - `cut`: a regular expression for lines of the log that are only counted.
    - `outputs`: the outputs to show, which the run must set.
    - `failure_reason`: the expected one, None for a successful run.
    """

    title: str
    inputs: Mapping[str, str]
    repository: str | None = None
    change: SiteChange = UNCHANGED
    cut: str | None = None
    outputs: Sequence[str]
    failure_reason: str | None = None

    def ended_as_expected(self, run: ActionRun) -> bool:
        """Return whether a run succeeded or failed as expected, and set its outputs."""
        expected_code = 1 if self.failure_reason else 0
        if run.exit_code != expected_code:
            return False
        if run.outputs.get("failureReason") != self.failure_reason:
            return False
        return all(run.outputs.get(name) for name in self.outputs)


SCENES = (
    Scene(
        title="A merged commit, by project",
        inputs={**PROJECT, "site-path": "site", "manifest-path": MANIFEST, "commit": COMMIT},
        repository="demo/deployed",
        outputs=("deployedCommit", "bundleUrl", "sitePath"),
    ),
    Scene(
        title="The next export, compared with the first",
        inputs={**PROJECT, "site-path": "next", "compare-with": MANIFEST, "max-removed": "10%"},
        change=SiteChange(added=3, changed=12, removed=1),
        cut=r"^(?!Static|  Changes|  Unpacked)",
        outputs=("changed",),
    ),
    Scene(
        title="Several sites, by domain, one fails",
        inputs={
            "domain": "docs.example.com\nfailing.example.com\napi.example.com",
            "site-path": "sites/{domain}",
        },
        cut=r"  started, job-id: |  running$|^The log of each site|^▶",
        outputs=("results", "failureReason"),
        failure_reason="job-failed",
    ),
    Scene(
        title="An agent job",
        inputs={"mode": "agent", "project-id": DEMO_PROJECT, "job-id": "agent-pull-request"},
        outputs=("status", "prLink"),
    ),
)


def main(*, out: TextIO | None = None) -> int:
    """Run the demo, and write the page with the summaries.

    Returns 0 if every run ended as expected.
    """
    out = out or sys.stdout
    summaries = {}
    unexpected = []
    with (
        Simulator(
            deploy_seconds=DEPLOY_SECONDS,
            export_seconds=EXPORT_SECONDS,
            agent_seconds=AGENT_SECONDS,
            pages=PAGES,
        ) as platform,
        tempfile.TemporaryDirectory(prefix="demo-workspace-") as workspace,
    ):
        _write(
            out,
            f"The action runs {len(SCENES)} times on a simulated platform at {platform.base_url}",
        )
        for number, scene in enumerate(SCENES, start=1):
            heading = f"{number}. {scene.title}"
            _write(out, "", _shortened(f"{heading} ({_inputs(scene.inputs)})"))
            run = _play(scene, platform, Path(workspace), out)
            summaries[heading] = run.summary
            if not scene.ended_as_expected(run):
                unexpected.append(
                    f"Run {heading}: unexpected exit code {run.exit_code} or outputs."
                )
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page_html("Job summaries of the demo", summaries), encoding="utf-8")
    verdict = unexpected or ["All runs ended as expected."]
    _write(
        out,
        "",
        *verdict,
        f"The job summaries as GitHub shows them, with diagrams as text: {PAGE}",
        "To run the action with inputs of your own: make simulator",
    )
    return 1 if unexpected else 0


def _play(scene: Scene, platform: Simulator, workspace: Path, out: TextIO) -> ActionRun:
    platform.plan_export("docs.example.com", ExportPlan(change=scene.change))
    inputs = {
        "base-url": platform.base_url,
        "admin-key": platform.key,
        "poll-interval": POLL_INTERVAL,
        "max-poll-interval": POLL_INTERVAL,
        **scene.inputs,
    }
    if scene.repository:
        inputs["github-token"] = platform.token
        inputs["deployment-creator"] = CREATOR
    log = RunnerLog(lambda line: _write(out, _shortened(f"   {line}")), cut=scene.cut)
    run = run_action(
        inputs,
        entrypoint=ENTRYPOINT,
        workspace=workspace,
        env={"GITHUB_API_URL": platform.github_url, "GITHUB_REPOSITORY": scene.repository or ""},
        timeout_seconds=LONGEST_RUN_SECONDS,
        on_line=log.show,
    )
    log.end()
    _write(out, *_outputs(run.outputs, scene.outputs))
    return run


def _inputs(inputs: Mapping[str, str]) -> str:
    text = ", ".join(f"{name}: {value}" for name, value in inputs.items())
    return text.replace("\n", "\\n")


def _outputs(outputs: Mapping[str, str], names: Sequence[str]) -> list[str]:
    """Return lines with these outputs and the number of the others."""
    text = "\n".join(f"{name} = {_value(name, outputs.get(name, ''))}" for name in names)
    text += f"   (and {len(outputs.keys() - set(names))} more)"
    margin = "   Outputs: "
    lines = []
    for line in text.split("\n"):
        lines.append(_shortened(margin + line))
        margin = " " * len(margin)
    return lines


def _value(name: str, value: str) -> str:
    """Return an output's value.

    `results` has a line for each job, with the keys that matter here.
    """
    if name != "results" or not value:
        return value
    rows = []
    for job in json.loads(value):
        shown = {key: job[key] for key in RESULT_KEYS if job.get(key)}
        unclosed = json.dumps(shown).removesuffix("}")
        rows.append(unclosed + ", …}")
    return "[" + ",\n   ".join(rows) + "]"


def _shortened(line: str) -> str:
    if len(line) <= LINE_LENGTH:
        return line
    return line[: LINE_LENGTH - 1] + "…"


def _write(out: TextIO, *lines: str) -> None:
    for line in lines:
        out.write(f"{line}\n")
    out.flush()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # everything has been removed on the way here
        sys.exit(128 + signal.SIGINT)
