"""Every way in which a run ends: exit code, `failureReason`, and which outputs are set."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from admin_api_simulator import ExportPlan, Fault, Simulator
from tests.action import Action
from tests.archives import SEVEN_ZIP
from tests.virtual_platform import STORAGE_URL, VirtualPlatform
from tests.virtual_time import VirtualClock

EXPORT: Final = {"domain": "docs.example.com"}
COLLECT: Final = {"mode": "collect", "job_id": "export-finished"}
AGENT: Final = {"mode": "agent", "project_id": "demo-project"}
ALWAYS: Final = {"durationSeconds", "results"}
LINK: Final = {"jobId", "status", "pageCount", "bundleUrl", "expiresAt"}
ARCHIVE: Final = {"bundleSize", "bundleSha256"}

Plan = Callable[[Simulator], Any]


def always(operation: Any, **fault: Any) -> Plan:
    return lambda simulator: simulator.script_forever(operation, Fault(**fault))


def no_web_address(simulator: Simulator) -> None:
    simulator.override("read_agent_job", lambda job: {**job, "prLink": "git.example.com/7"})


@dataclass(frozen=True, kw_only=True)
class Case:
    """A run with these inputs on a platform after `plan`, its reason, and the outputs besides those of every run."""

    inputs: Mapping[str, str]
    outputs: set[str]
    reason: str | None = None
    plan: Plan = lambda _simulator: None
    options: Mapping[str, Any] = field(default_factory=dict)
    warnings: int = 0


GOOD: Final = {
    "a link": Case(inputs=EXPORT, outputs=LINK),
    "a site, an archive and a values file": Case(
        inputs={**EXPORT, "site_path": "site", "bundle_path": "b.tar.gz", "values_file": "v.yaml", "export_version": "1"},
        outputs={*LINK, *ARCHIVE, "bundlePath", "sitePath", "valuesFile"},
    ),
    "a site alone": Case(inputs={**EXPORT, "site_path": "site"}, outputs={*LINK, *ARCHIVE, "sitePath"}),
    "an export of an earlier run": Case(inputs=COLLECT, outputs=LINK),
    "a start without a status": Case(
        inputs={**EXPORT, "wait": "false"},
        outputs={"jobId"},
        plan=lambda simulator: simulator.override("start_export", {"jobId": "se_1"}),
    ),
    "a site with fewer pages than the API counts": Case(
        inputs={**EXPORT, "site_path": "site", "min_pages": "500"},
        outputs={*LINK, *ARCHIVE, "sitePath"},
        plan=lambda simulator: simulator.override("read_export", lambda job: {**job, "pageCount": 500}),
    ),
    "a start without a wait": Case(inputs={**EXPORT, "wait": "false"}, outputs={"jobId", "status"}),
    "a start whose inputs for delivery have no effect": Case(
        inputs={**EXPORT, "wait": "false", "site_path": "site"}, outputs={"jobId", "status"}, warnings=1
    ),
    "an export without page count and expiry": Case(
        inputs=EXPORT,
        outputs={"jobId", "status", "bundleUrl"},
        plan=lambda simulator: (
            simulator.override("read_export", {"status": "completed", "pageCount": None}),
            simulator.override("make_bundle", {"bundleUrl": f"{STORAGE_URL}/b"}),
        ),
    ),
    "a pull request": Case(inputs={**AGENT, "job_id": "agent-pull-request"}, outputs={"jobId", "status", "prLink"}),
    "an agent job without a pull request": Case(inputs={**AGENT, "job_id": "agent-no-change"}, outputs={"jobId", "status"}),
    "an archived agent job": Case(inputs={**AGENT, "job_id": "agent-archived"}, outputs={"jobId", "status"}, warnings=1),
    "an agent job with a link that cannot be used": Case(
        inputs={**AGENT, "job_id": "agent-pull-request"}, outputs={"jobId", "status"}, plan=no_web_address, warnings=1
    ),
    "an input of another mode": Case(inputs={**COLLECT, "require_pr": "true"}, outputs=LINK, warnings=1),
}

JOB: Final = {"jobId", "status"}
ENDED: Final = {"jobId", "status", "pageCount"}

FAILED: Final = {
    "an input is missing": Case(reason="invalid-input", inputs={}, outputs=set()),
    "the mode is unknown": Case(reason="invalid-input", inputs={**EXPORT, "mode": "import"}, outputs=set()),
    "a guard is misspelt": Case(reason="invalid-input", inputs={**EXPORT, "min_pagse": "3"}, outputs=set()),
    "no job to collect": Case(reason="invalid-input", inputs={"mode": "collect", "job_id": ""}, outputs=set()),
    "the key is refused": Case(reason="unauthorized", inputs=EXPORT, outputs=set(), options={"key": "another-key"}),
    "the key ends in the middle": Case(
        reason="unauthorized", inputs=EXPORT, outputs=ENDED, plan=always("make_bundle", status=401)
    ),
    "the plan has no export": Case(reason="forbidden", inputs={"domain": "no-plan.example.com"}, outputs=set()),
    "no such deployment": Case(reason="not-found", inputs={"domain": "unknown.example.com"}, outputs=set()),
    "no such job": Case(reason="not-found", inputs={**COLLECT, "job_id": "nowhere"}, outputs={"jobId"}),
    "no such agent job": Case(reason="not-found", inputs={**AGENT, "job_id": "nowhere"}, outputs={"jobId"}),
    "the start is rejected": Case(
        reason="rejected", inputs=EXPORT, outputs=set(), plan=always("start_export", status=422, json={"detail": "no theme"})
    ),
    "an export of the domain runs already": Case(
        reason="rejected", inputs=EXPORT, outputs=set(), plan=always("start_export", status=409, json={"jobId": "se_7"})
    ),
    "the job is gone": Case(reason="rejected", inputs=COLLECT, outputs={"jobId"}, plan=always("read_export", status=410)),
    "the export fails": Case(reason="job-failed", inputs={"domain": "failing.example.com"}, outputs=JOB),
    "the agent fails": Case(reason="job-failed", inputs={**AGENT, "job_id": "agent-failed"}, outputs=JOB),
    "no pull request": Case(
        reason="no-pull-request", inputs={**AGENT, "job_id": "agent-no-change", "require_pr": "true"}, outputs=JOB
    ),
    "a pull request whose link cannot be used": Case(
        reason="no-pull-request",
        inputs={**AGENT, "job_id": "agent-pull-request", "require_pr": "true"},
        outputs=JOB,
        plan=no_web_address,
    ),
    "too few pages": Case(
        reason="too-few-pages", inputs={**EXPORT, "min_pages": "13", "site_path": "site", "bundle_path": "b"}, outputs=ENDED
    ),
    "an unknown number of pages": Case(
        reason="too-few-pages",
        inputs={**EXPORT, "min_pages": "1"},
        outputs=JOB,
        plan=lambda simulator: simulator.override("read_export", {"status": "completed", "pageCount": None}),
    ),
    "the job takes too long": Case(
        reason="timeout", inputs={**EXPORT, "timeout": "1m"}, outputs=JOB, options={"export_seconds": 3600}
    ),
    "the API is down": Case(reason="unavailable", inputs=COLLECT, outputs={"jobId"}, plan=always("read_export", status=503)),
    "a web page at the start": Case(
        reason="bad-response",
        inputs=EXPORT,
        outputs=set(),
        plan=always("start_export", body="<!doctype html><title>Log in</title>"),
    ),
    "no link": Case(reason="bad-response", inputs=COLLECT, outputs=ENDED, plan=always("make_bundle", json={"expiresAt": "x"})),
    "a start that names no job": Case(
        reason="bad-response", inputs=EXPORT, outputs=set(), plan=always("start_export", json={"jobId": ""})
    ),
    "another agent job": Case(
        reason="bad-response",
        inputs={**AGENT, "job_id": "agent-pull-request"},
        outputs={"jobId"},
        plan=always("read_agent_job", json={"id": "another", "status": "completed"}),
    ),
    "a start without an answer": Case(
        reason="start-unconfirmed",
        inputs=EXPORT,
        outputs=set(),
        plan=always("start_export", cut="before_response", processed=True),
    ),
    "the storage is down": Case(
        reason="download-failed", inputs={**COLLECT, "site_path": "site"}, outputs=ENDED, plan=always("download", status=503)
    ),
    "the bundle is a web page": Case(
        reason="download-failed",
        inputs={**COLLECT, "bundle_path": "b"},
        outputs=ENDED,
        plan=always("download", body="<!doctype html><title>Sign in</title>"),
    ),
    "the bundle is of an unknown kind": Case(
        reason="invalid-bundle",
        inputs={**COLLECT, "site_path": "site"},
        outputs=ENDED,
        plan=always("download", body=SEVEN_ZIP),
    ),
}


def run(action: Action, case: Case) -> tuple[Any, VirtualPlatform]:
    platform = VirtualPlatform(VirtualClock(), pages=12, **case.options)
    case.plan(platform.simulator)
    return action.run(platform, **case.inputs), platform


@pytest.mark.parametrize("name", GOOD)
def test_a_good_run_sets_the_outputs_of_its_mode(action: Action, name: str) -> None:
    case = GOOD[name]

    ended, _ = run(action, case)

    assert (ended.end, ended.errors, len(ended.warnings)) == ((0, None), [], case.warnings), ended.stdout
    assert {*ended.outputs} == case.outputs | ALWAYS
    assert {*ended.result.values()} >= {value for value in ended.outputs.values() if not value.isdecimal() and "[" not in value}
    assert ended.summary.startswith("### ")


@pytest.mark.parametrize("name", FAILED)
def test_a_failed_run_says_why_everywhere(action: Action, name: str) -> None:
    case = FAILED[name]

    ended, platform = run(action, case)

    assert ended.end == (1, case.reason), ended.stdout
    assert {*ended.outputs} == case.outputs | ALWAYS | {"failureReason"}
    assert (ended.result["failureReason"], f"`{case.reason}`" in ended.summary) == (case.reason, True)
    assert ended.result["message"].startswith(ended.error.splitlines()[0])
    assert "Traceback" not in ended.stdout
    assert [*action.workspace.iterdir()] == []
    assert (case.reason == "invalid-input") == (platform.simulator.requests == [])


@pytest.mark.parametrize("name", ["x-correlation-id", "X-Request-Id", "X-Amz-Request-Id", "X-Goog-Request-Id"])
def test_the_request_id_of_a_failure_is_in_its_message(action: Action, name: str) -> None:
    platform = VirtualPlatform(VirtualClock())
    platform.simulator.script_forever("read_export", Fault(status=410, headers={name: "c-17"}))

    assert "c-17" in action.run(platform, **COLLECT).error


def test_a_run_that_times_out_names_the_job_that_a_later_run_collects(action: Action) -> None:
    platform = VirtualPlatform(VirtualClock())
    platform.simulator.plan_export("docs.example.com", ExportPlan(job_id="se_42", seconds=90))
    timed_out = action.run(platform, **EXPORT, timeout="1m")

    collected = action.run(platform, mode="collect", job_id="se_42", site_path="site")

    assert (timed_out.reason, "se_42" in timed_out.error, collected.end) == ("timeout", True, (0, None))


@pytest.mark.parametrize("inputs", [{**COLLECT, "mask_bundle_url": "true"}, COLLECT])
def test_a_link_is_masked_only_on_request(action: Action, inputs: dict[str, str]) -> None:
    ended = action.run(VirtualPlatform(VirtualClock()), **inputs)

    masked = [command.value for command in ended.commands if command.name == "add-mask"]
    assert masked == ([ended.outputs["bundleUrl"]] if "mask_bundle_url" in inputs else [])


@pytest.mark.parametrize(("inputs", "options"), [({"start_options": '{"version": "v2"}'}, {"version": "v2"}), ({}, {})])
def test_a_start_sends_the_domain_and_the_start_options(action: Action, inputs: dict[str, str], options: dict[str, str]) -> None:
    platform = VirtualPlatform(VirtualClock())

    action.run(platform, **EXPORT, **inputs, wait="false")

    assert [json.loads(request.body) for request in platform.simulator.requests] == [{**EXPORT, **options}]
