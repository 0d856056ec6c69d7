"""The page `runs.md`: some whole runs on the simulated platform, as people see them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from admin_api_simulator import ExportPlan, Fault, Simulator, StartQuota
from admin_api_simulator.github import COMMIT, CREATOR, NEWER, OLDER
from admin_api_simulator.simulator import DEFAULT_TOKEN
from admin_api_simulator.site import SiteChange
from tests.action import Inputs, run_virtually
from tests.virtual_platform import VirtualPlatform
from tests.virtual_time import VirtualClock

EXPORT: Final = {"domain": "docs.example.com"}
SITE: Final = {**EXPORT, "site-path": "site"}
MANIFEST: Final = "published.manifest"
AGENT: Final = {"mode": "agent", "project-id": "demo-project"}
SEVERAL: Final = {"domain": "docs.example.com\nunknown.example.com"}


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run with these inputs on a platform after `plan`. Its summary is shown only on request.

    With a `change`, it is the next export after one whose manifest it is compared with.
    """

    inputs: Inputs
    plan: Callable[[Simulator], object] = lambda _simulator: None
    options: Mapping[str, Any] = field(default_factory=dict)
    with_summary: bool = False
    change: SiteChange | None = None


def _troubled(simulator: Simulator) -> None:
    simulator.plan_export("docs.example.com", ExportPlan(job_id="se_1", seconds=120, pages=1412))
    simulator.script("read_export", None, None, *[Fault(status=502)] * 4)
    simulator.script("download", Fault(stall_after_bytes=900_000), Fault(status=403))


def _busy(simulator: Simulator) -> None:
    simulator.add_export_job("se_5", seconds=150)


def _deployed(simulator: Simulator) -> None:
    simulator.github.add(OLDER)
    simulator.github.add(NEWER, seconds=70)
    simulator.script("list_deployments", None, None, Fault(status=502))


RUNS: Final = {
    "A site is delivered": Run(
        inputs={**SITE, "bundle-path": "docs.tar.gz", "values-file": "values.yaml"},
        options={"export_seconds": 80, "job_ids": ["se_1"]},
    ),
    "A project": Run(
        inputs={"project-id": "docs.example.com: docs", "site-path": "site"},
        options={"export_seconds": 80, "job_ids": ["se_1"]},
        with_summary=True,
    ),
    "Two projects": Run(
        inputs={"project-id": "Guides: guides\nAPI: private"},
        options={"export_seconds": 60, "job_ids": ["se_1"]},
        with_summary=True,
    ),
    "The platform and the storage have an outage": Run(
        inputs=SITE, plan=_troubled, options={"asset_bytes": 2 * 1024**2}
    ),
    "A merged commit, without waiting": Run(
        inputs={
            **EXPORT,
            "commit": COMMIT,
            "github-token": DEFAULT_TOKEN,
            "deployment-creator": CREATOR,
            "wait": "false",
        },
        plan=_deployed,
        options={"job_ids": ["se_1"]},
    ),
    "The next export, compared with the last": Run(
        inputs={
            **SITE,
            "values-file": "values.yaml",
            "compare-with": MANIFEST,
            "changes-path": "changes.json",
            "max-removed": "20%",
        },
        options={"job_ids": ["se_1", "se_2"], "pages": 4},
        change=SiteChange(added=1, changed=1, removed=1),
        with_summary=True,
    ),
    "Another export is running": Run(
        inputs={"project-id": "docs.example.com: docs", "site-path": "site"},
        plan=_busy,
        options={"export_seconds": 120, "job_ids": ["se_7", "se_8"], "one_active_export": True},
        with_summary=True,
    ),
    "A limit of starts, and one site that is busy": Run(
        inputs={"project-id": "A: guides\nB: busy\nC: docs\nD: api"},
        options={"export_seconds": 100, "start_quota": StartQuota(starts=2, hour_seconds=200)},
    ),
    "The export fails": Run(
        inputs={"domain": "failing.example.com"},
        options={"export_seconds": 20, "job_ids": ["se_1"]},
    ),
    "Several domains": Run(inputs=SEVERAL, options={"export_seconds": 60, "job_ids": ["se_1"]}),
    "A pull request": Run(
        inputs={**AGENT, "job-id": "agent-pull-request"},
        options={"agent_seconds": 40},
        with_summary=True,
    ),
    "An archived agent job, and a warning": Run(
        inputs={**AGENT, "job-id": "agent-archived", "site-path": "site"},
        options={"agent_seconds": 40},
    ),
}


FILE: Final = Path(__file__).with_name("runs.md")


def page() -> str:
    """Return the page."""
    sections = [f"## {title}\n\n~~~text\n{_shown(run)}~~~\n" for title, run in RUNS.items()]
    return "\n".join([_INTRODUCTION, *sections])


_INTRODUCTION: Final = """\
# Runs

Whole runs: the log and, for some, the job summary. Written by `make wording`.
"""


def _shown(run: Run) -> str:
    # a compressed size depends on zlib's version
    platform = VirtualPlatform(VirtualClock(), archive="tar", **run.options)
    run.plan(platform.simulator)
    files: Mapping[str, bytes] = {}
    if run.change is not None:
        published = run_virtually(platform, {**SITE, "manifest-path": MANIFEST})
        files = {MANIFEST: published.left[MANIFEST]}
        platform.simulator.plan_export("docs.example.com", ExportPlan(change=run.change))
    inputs = {"poll-interval": "45s", "max-poll-interval": "45s", **run.inputs}
    ended = run_virtually(platform, inputs, files=files)
    log = re.sub("(?m)^::add-mask::.*\n", "", ended.stdout)  # which the runner does not show
    if not run.with_summary:
        return log
    summary = re.sub(r"---\n(?:.*\n)+?---\n", "…\n", ended.summary)  # the timeline's colors
    return f"{log}\n{summary}"


def test_the_page_has_the_sentences_of_the_package() -> None:
    written = FILE.read_text(encoding="utf-8")

    assert written == page(), "read the difference that `make wording` makes"
