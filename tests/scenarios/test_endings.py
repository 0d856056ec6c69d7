"""Every way in which a run ends: exit code, `failureReason`, and which outputs are set."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from admin_api_simulator import ExportPlan, Fault, Simulator
from tests.action import Action
from tests.archives import SEVEN_ZIP
from tests.forms import BY_DOMAIN, BY_PROJECT, FORMS
from tests.keys import ADMIN_KEY
from tests.virtual_platform import STORAGE_URL, Sent, Trouble, VirtualPlatform
from tests.virtual_time import VirtualClock

EXPORT: Final = {"domain": "docs.example.com"}
COLLECT: Final = {"mode": "collect", "job_id": "export-finished"}
ALWAYS: Final = {"durationSeconds", "results"}

DOMAIN_ONLY: Final = (BY_DOMAIN,)

Plan = Callable[[Simulator], Any]


def always(operation: Any, **fault: Any) -> Plan:
    return lambda simulator: simulator.script_forever(operation, Fault(**fault))


@dataclass(frozen=True)
class Case:
    """A run with these inputs, what it outputs, and the platform that it needs."""

    inputs: Mapping[str, str]
    outputs: set[str]
    """The outputs besides those of every run."""
    plan: Plan = lambda _simulator: None
    options: Mapping[str, Any] = field(default_factory=dict)
    warnings: int = 0
    forms: Sequence[str] = FORMS

    def outputs_of(self, form: str) -> set[str]:
        """Return the outputs of a run: by project, there is no number of pages."""
        return self.outputs if form == BY_DOMAIN else self.outputs - {"pageCount"}

    @property
    def tested_forms(self) -> list[str]:
        """The forms of the export API to run this case with. An agent job has only one."""
        if self.inputs.get("mode") == "agent":
            return [BY_DOMAIN]
        return [*self.forms]


def overriding(operation: Any, json: Any) -> Plan:
    return lambda simulator: simulator.override(operation, json)


JOB: Final = {"jobId", "status"}
ENDED: Final = {"jobId", "status", "pageCount"}
LINK: Final = {*ENDED, "bundleUrl", "expiresAt"}
BUNDLE: Final = {"bundleSize", "bundleSha256"}
SITE: Final = {*BUNDLE, "sitePath"}
FILES: Final = {
    "site_path": "site",
    "bundle_path": "b.tar.gz",
    "values_file": "v.yaml",
    "export_version": "1",
}
NO_PAGES: Final = {"status": "completed", "pageCount": None}
NO_WEB_ADDRESS: Final = overriding(
    "read_agent_job", lambda job: {**job, "prLink": "git.example.com/7"}
)
NEVER_A_LINK: Final = always("read_export", json={"status": "completed"})
PAGE: Final = "<!doctype html><title>Log in</title>"


def agent(outcome: str, **inputs: str) -> dict[str, str]:
    return {"mode": "agent", "project_id": "demo-project", "job_id": f"agent-{outcome}", **inputs}


GOOD: Final = {
    "a link": Case(EXPORT, LINK),
    "a site, an archive and a values file": Case(
        {**EXPORT, **FILES}, {*LINK, *SITE, "bundlePath", "valuesFile"}
    ),
    "a site alone": Case({**EXPORT, "site_path": "site"}, {*LINK, *SITE}),
    "an export of an earlier run": Case(COLLECT, LINK),
    "a start without a status": Case(
        {**EXPORT, "wait": "false"}, {"jobId"}, overriding("start_export", {"jobId": "se_1"})
    ),
    "a site with enough pages": Case(
        {**EXPORT, "site_path": "site", "min_pages": "12"}, {*LINK, *SITE}
    ),
    "a start without a wait": Case({**EXPORT, "wait": "false"}, JOB),
    "a start whose inputs for delivery have no effect": Case(
        {**EXPORT, "wait": "false", "site_path": "site"}, JOB, warnings=1
    ),
    "an export without page count": Case(
        EXPORT, LINK - {"pageCount"}, overriding("read_export", NO_PAGES), forms=DOMAIN_ONLY
    ),
    "a link without expiry": Case(
        EXPORT,
        LINK - {"expiresAt"},
        overriding("make_bundle", {"bundleUrl": f"{STORAGE_URL}/b"}),
        forms=DOMAIN_ONLY,
    ),
    "a pull request": Case(agent("pull-request"), {*JOB, "prLink"}),
    "an agent job without a pull request": Case(agent("no-change"), JOB),
    "an archived agent job": Case(agent("archived"), JOB, warnings=1),
    "an agent job with a link that cannot be used": Case(
        agent("pull-request"), JOB, NO_WEB_ADDRESS, warnings=1
    ),
    "an input of another mode": Case({**COLLECT, "require_pr": "true"}, LINK, warnings=1),
}

FAILED: Final = {
    "invalid-input": {
        "an input is missing": Case({}, set()),
        "the mode is unknown": Case({**EXPORT, "mode": "import"}, set()),
        "a guard is misspelt": Case({**EXPORT, "min_pagse": "3"}, set()),
        "no job to collect": Case({"mode": "collect", "job_id": ""}, set()),
    },
    "unauthorized": {
        "the key is refused": Case(EXPORT, set(), options={"key": "another-key"}),
        "the key ends in the middle": Case(
            EXPORT, ENDED, always("make_bundle", status=401), forms=DOMAIN_ONLY
        ),
        "the key has ended when the job is read": Case(
            EXPORT, JOB, always("read_export", status=401)
        ),
    },
    "forbidden": {
        "the plan has no export": Case({"domain": "no-plan.example.com"}, set()),
        "the site is behind a sign-in": Case({"domain": "private.example.com"}, set()),
        "the key may only read": Case(
            EXPORT, set(), options={"key": "another-key", "read_key": ADMIN_KEY}
        ),
    },
    "not-found": {
        "no such deployment": Case({"domain": "unknown.example.com"}, set()),
        "no such job": Case({**COLLECT, "job_id": "nowhere"}, {"jobId"}),
        "no such agent job": Case(agent("of-nobody"), {"jobId"}),
    },
    "rejected": {
        "the start is rejected": Case(
            EXPORT, set(), always("start_export", status=422, json={"detail": "no theme"})
        ),
        "an export runs already": Case(
            EXPORT, set(), always("start_export", status=409, json={"jobId": "se_7"})
        ),
        "the job is gone": Case(COLLECT, {"jobId"}, always("read_export", status=410)),
    },
    "job-failed": {
        "the export fails": Case({"domain": "failing.example.com"}, JOB),
        "the agent fails": Case(agent("failed"), JOB),
    },
    "no-pull-request": {
        "none": Case(agent("no-change", require_pr="true"), JOB),
        "a link that cannot be used": Case(
            agent("pull-request", require_pr="true"), JOB, NO_WEB_ADDRESS
        ),
    },
    "too-few-pages": {
        "fewer": Case({**EXPORT, **FILES, "min_pages": "13"}, ENDED, forms=DOMAIN_ONLY),
        "fewer in the bundle": Case(
            {**EXPORT, **FILES, "min_pages": "14"}, {*JOB, *BUNDLE}, forms=(BY_PROJECT,)
        ),
        "an unknown number": Case(
            {**EXPORT, "min_pages": "1"},
            JOB,
            overriding("read_export", NO_PAGES),
            forms=DOMAIN_ONLY,
        ),
        "fewer in the bundle than the API counts": Case(
            {**EXPORT, **FILES, "min_pages": "400"},
            {*ENDED, *BUNDLE},
            overriding("read_export", lambda job: {**job, "pageCount": 400}),
            forms=DOMAIN_ONLY,
        ),
    },
    "timeout": {
        "the job takes too long": Case(
            {**EXPORT, "timeout": "1m"}, JOB, options={"export_seconds": 3600}
        )
    },
    "unavailable": {"the API is down": Case(COLLECT, {"jobId"}, always("read_export", status=503))},
    "bad-response": {
        "a web page at the start": Case(EXPORT, set(), always("start_export", body=PAGE)),
        "no link": Case(
            COLLECT, ENDED, always("make_bundle", json={"expiresAt": "x"}), forms=DOMAIN_ONLY
        ),
        "a completed job that never has a link": Case(
            EXPORT, JOB, NEVER_A_LINK, forms=(BY_PROJECT,)
        ),
        "a start that names no job": Case(
            EXPORT, set(), always("start_export", json={"jobId": ""})
        ),
        "another agent job": Case(
            agent("failed"),
            {"jobId"},
            always("read_agent_job", json={"id": "another", "status": "active"}),
        ),
    },
    "start-unconfirmed": {
        "no answer": Case(
            EXPORT, set(), always("start_export", cut="before_response", processed=True)
        )
    },
    "download-failed": {
        "the storage is down": Case(
            {**COLLECT, "site_path": "site"}, ENDED, always("download", status=503)
        ),
        "the bundle is a web page": Case(
            {**COLLECT, "bundle_path": "b"}, ENDED, always("download", body=PAGE)
        ),
    },
    "invalid-bundle": {
        "an unknown kind": Case(
            {**COLLECT, "site_path": "site"}, ENDED, always("download", body=SEVEN_ZIP)
        )
    },
}
"""By `failureReason`."""


def in_each_form(cases: Mapping[str, Case]) -> list[tuple[str, str]]:
    """Return the forms of the export API that the cases are about, with the cases' names."""
    found: list[tuple[str, str]] = []
    for name, case in cases.items():
        found += [(form, name) for form in case.tested_forms]
    return found


def failed_in_each_form() -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    for reason, cases in FAILED.items():
        found += [(reason, form, name) for form, name in in_each_form(cases)]
    return found


def run(action: Action, case: Case) -> tuple[Any, VirtualPlatform]:
    platform = VirtualPlatform(VirtualClock(), pages=12, **case.options)
    case.plan(platform.simulator)
    return action.run(platform, **case.inputs), platform


@pytest.mark.parametrize(("form", "name"), in_each_form(GOOD))
def test_a_good_run_sets_the_outputs_of_its_mode(action: Action, form: str, name: str) -> None:
    case = GOOD[name]

    ended, _ = run(action, case)

    assert ended.end == (0, None), ended.stdout
    assert ended.errors == []
    assert len(ended.warnings) == case.warnings
    assert {*ended.outputs} == case.outputs_of(form) | ALWAYS
    values = ended.outputs.values()
    texts = {value for value in values if not value.isdecimal() and "[" not in value}
    assert texts <= {*ended.result.values()}
    assert ended.summary.startswith("### ")


@pytest.mark.parametrize(("reason", "form", "name"), failed_in_each_form())
def test_a_failed_run_says_why_everywhere(
    action: Action, reason: str, form: str, name: str
) -> None:
    case = FAILED[reason][name]

    ended, platform = run(action, case)

    assert ended.end == (1, reason), ended.stdout
    assert {*ended.outputs} == case.outputs_of(form) | ALWAYS | {"failureReason"}
    assert ended.result["failureReason"] == reason
    assert f"`{reason}`" in ended.summary
    assert ended.result["message"].startswith(ended.error.splitlines()[0])
    assert "Traceback" not in ended.stdout
    assert [*action.workspace.iterdir()] == []
    assert (reason == "invalid-input") == (platform.simulator.requests == [])


@pytest.mark.parametrize(
    "name", ["x-correlation-id", "X-Request-Id", "X-Amz-Request-Id", "X-Goog-Request-Id"]
)
def test_the_request_id_of_a_failure_is_in_its_message(action: Action, name: str) -> None:
    platform = VirtualPlatform(VirtualClock())
    platform.simulator.script_forever("read_export", Fault(status=410, headers={name: "c-17"}))

    ended = action.run(platform, **COLLECT)

    assert "c-17" in ended.error


def test_a_run_that_times_out_names_the_job_that_a_later_run_collects(action: Action) -> None:
    platform = VirtualPlatform(VirtualClock())
    platform.simulator.plan_export("docs.example.com", ExportPlan(job_id="se_42", seconds=90))
    timed_out = action.run(platform, **EXPORT, timeout="1m")

    collected = action.run(platform, mode="collect", job_id="se_42", site_path="site")

    assert timed_out.reason == "timeout"
    assert "se_42" in timed_out.error
    assert collected.end == (0, None)


def test_an_export_of_six_hours_survives_an_outage_in_each_hour(action: Action) -> None:
    clock = VirtualClock()
    hour = 3600.0

    def trouble(_sent: Sent) -> Trouble:
        is_down = clock.elapsed % hour > hour - 290
        return Fault(status=503) if is_down else None

    platform = VirtualPlatform(clock, trouble=trouble)
    platform.simulator.plan_export("docs.example.com", ExportPlan(seconds=6 * hour - 60))

    ended = action.run(platform, **EXPORT, timeout="7h", outage_tolerance="5m")

    assert ended.end == (0, None), ended.stdout
    assert ended.log.count("Retrying") == 6
    assert clock.elapsed < 6 * hour + 60  # soon after the last outage
    assert platform.simulator.count("read_export") < 6 * hour / 15


@pytest.mark.parametrize("inputs", [{"mask_bundle_url": "true"}, {}])
def test_a_link_is_masked_only_on_request(action: Action, inputs: dict[str, str]) -> None:
    ended = action.run(VirtualPlatform(VirtualClock()), **COLLECT, **inputs)

    masked = [command.value for command in ended.commands if command.name == "add-mask"]
    expected = [ended.outputs["bundleUrl"]] if inputs else []
    assert masked == expected


@pytest.mark.parametrize(
    ("inputs", "options"),
    [
        ({"start_options": '{"version": "v2"}'}, {"version": "v2"}),
        ({}, {}),
    ],
)
def test_a_start_sends_the_domain_and_the_start_options(
    action: Action, inputs: dict[str, str], options: dict[str, str]
) -> None:
    platform = VirtualPlatform(VirtualClock())

    action.run(platform, **EXPORT, **inputs, wait="false")

    (start,) = platform.simulator.requests
    assert json.loads(start.body) == {**EXPORT, **options}
