"""Every `failureReason`, over a real socket, with its outputs, and what a run leaves that cannot report."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from admin_api_simulator import Fault, Simulator
from admin_api_simulator.faults import Operation
from docs_platform_action.errors import DENIED, DENIED_BY, InvalidInput
from tests.action import Action, shell_python
from tests.archives import SEVEN_ZIP

AGENT = {"mode": "agent", "project_id": "demo-project", "domain": ""}
COLLECT = {"domain": "", "mode": "collect", "job_id": "export-finished"}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A run that must fail: an export of docs.example.com with `inputs`, on a platform with `faults`."""

    reason: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    faults: Mapping[Operation, Fault] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    bundle: bytes | None = None
    job: bool = True
    request_id: bool = True


NO_REQUEST: dict[str, Any] = {"job": False, "request_id": False}
REQUEST_ID = {"X-Request-Id": "req-7"}

CASES = {
    "an input is missing": Case(reason="invalid-input", inputs={"base_url": ""}, **NO_REQUEST),
    "the mode is unknown": Case(reason="invalid-input", inputs={"mode": "import"}, **NO_REQUEST),
    "the key is refused": Case(reason="unauthorized", options={"key": "another"}, job=False),
    "the key ends in the middle": Case(reason="unauthorized", faults={"make_bundle": Fault(status=401, headers=REQUEST_ID)}),
    "the plan has no export": Case(reason="forbidden", options={"plan": False}, job=False),
    "no such deployment": Case(reason="not-found", inputs={"domain": "unknown.example.com"}, job=False),
    "no such job": Case(reason="not-found", inputs={**COLLECT, "job_id": "nowhere"}),
    "no such agent job": Case(reason="not-found", inputs={**AGENT, "job_id": "nowhere"}),
    "the request is rejected": Case(reason="rejected", faults={"start_export": Fault(status=422, headers=REQUEST_ID)}, job=False),
    "the job is gone": Case(reason="rejected", faults={"read_export": Fault(status=410, headers={"x-correlation-id": "c-1"})}),
    "the export fails": Case(reason="job-failed", inputs={"domain": "failing.example.com"}, request_id=False),
    "the agent fails": Case(reason="job-failed", inputs={**AGENT, "job_id": "agent-failed"}, request_id=False),
    "no pull request": Case(
        reason="no-pull-request", inputs={**AGENT, "job_id": "agent-no-change", "require_pr": "true"}, request_id=False
    ),
    "the job takes too long": Case(
        reason="timeout", inputs={"timeout": "200ms"}, options={"export_seconds": 3600}, request_id=False
    ),
    "the API is down": Case(reason="unavailable", faults={"read_export": Fault(status=503, headers=REQUEST_ID)}),
    "no link in the bundle's answer": Case(
        reason="bad-response", faults={"make_bundle": Fault(json={"expiresAt": "2030-01-01T00:00:00Z"}, headers=REQUEST_ID)}
    ),
    "a start that names no job": Case(reason="bad-response", faults={"start_export": Fault(json={"jobId": ""})}, **NO_REQUEST),
    "the storage is down": Case(
        reason="download-failed",
        inputs={**COLLECT, "site_path": "site"},
        faults={"download": Fault(status=503, body="<Error><Code>SlowDown</Code></Error>")},
        request_id=False,
    ),
    "the bundle is a web page": Case(
        reason="download-failed",
        inputs={**COLLECT, "bundle_path": "bundle.tar.gz"},
        bundle=b"<!doctype html><title>Sign in</title>",
        request_id=False,
    ),
    "the bundle is an archive that cannot be opened": Case(
        reason="invalid-bundle", inputs={**COLLECT, "site_path": "site"}, bundle=SEVEN_ZIP, request_id=False
    ),
    "a start without an answer": Case(
        reason="start-unconfirmed", faults={"start_export": Fault(cut="before_response", processed=True)}, **NO_REQUEST
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_failure_has_its_reason_everywhere(action: Action, make_platform: Callable[..., Simulator], name: str) -> None:
    case = CASES[name]
    platform = make_platform(**case.options)
    action.set_constants(api__admin_api__SETTLING_SECONDS=0.0)
    for operation, fault in case.faults.items():
        platform.script_forever(operation, fault)
    if case.bundle is not None:
        platform.put_bundle("export-finished", case.bundle)

    ended = action.export(platform, **case.inputs)

    assert (ended.exit_code, ended.reason) == (1, case.reason), ended.stdout
    assert ended.error == "\n  ".join(line.strip() for line in ended.error.splitlines())
    assert ("Request ID " in ended.error) == case.request_id
    assert ("jobId" in ended.outputs) == case.job
    assert "bundleUrl" not in ended.outputs
    assert ended.result["failureReason"] == case.reason
    assert ended.result["message"].startswith(ended.error.splitlines()[0])
    assert f"`{case.reason}`" in ended.summary
    assert "Traceback" not in ended.stdout + ended.stderr


def test_every_failure_reason_is_tested() -> None:
    interface_rows = {
        *("invalid-input", "unauthorized", "forbidden", "not-found", "rejected", "job-failed", "no-pull-request", "timeout"),
        *("unavailable", "bad-response", "start-unconfirmed", "download-failed", "invalid-bundle"),
    }

    assert {case.reason for case in CASES.values()} == interface_rows


@pytest.mark.parametrize(("variable", "reason", "warnings"), [("INPUT_SITE_PTH", "invalid-input", 0), ("INPUT_COLOR", None, 1)])
def test_a_name_that_is_not_an_input_is_reported_without_its_value(
    action: Action, platform: Simulator, variable: str, reason: str | None, warnings: int
) -> None:
    ended = action.export(platform, env={variable: "unlisted-value"})

    assert (ended.reason, len(ended.warnings), platform.requests == []) == (reason, warnings, reason is not None)
    assert "unlisted-value" not in ended.stdout + ended.summary


def test_an_internal_error_is_reported_as_one(action: Action, platform: Simulator, tmp_path: Path) -> None:
    # a thread's stack takes all available memory, so no thread can be started
    action.python = shell_python(tmp_path, 'ulimit -S -s 2000000 && ulimit -S -v 1900000 && exec "$python" "$@"')

    ended = action.export(platform)

    assert (ended.exit_code, ended.reason) == (1, "internal-error")
    assert "RuntimeError at threading.py" in ended.error
    assert ended.result["failureReason"] == "internal-error"
    assert "`internal-error`" in ended.summary
    assert "Traceback" not in ended.stdout + ended.stderr


def test_an_internal_error_shows_its_traceback_with_debug_logging(action: Action, platform: Simulator, tmp_path: Path) -> None:
    action.python = shell_python(tmp_path, 'ulimit -S -s 2000000 && ulimit -S -v 1900000 && exec "$python" "$@"')
    action.debug = True

    ended = action.export(platform)

    debug_lines = [command.value for command in ended.commands if command.name == "debug"]
    assert any(line.startswith("Traceback (most recent call last)") for line in debug_lines)
    assert debug_lines[-1] == "RuntimeError: can't start new thread"


@pytest.mark.parametrize("place", ["{folder}", "{folder}/missing/output", "/proc/nowhere/output"])
def test_an_output_file_that_cannot_be_opened_fails_the_run_before_any_request(
    action: Action, platform: Simulator, tmp_path: Path, place: str
) -> None:
    ended = action.export(platform, env={"GITHUB_OUTPUT": place.format(folder=tmp_path)})

    assert ended.exit_code == 1
    assert "GITHUB_OUTPUT" in ended.error
    assert "`internal-error`" in ended.summary
    assert platform.requests == []


@pytest.fixture
def denied(action: Action, tmp_path: Path) -> Path:
    """Create a folder without write access for the action, which runs without root's privileges."""
    action.python = shell_python(
        tmp_path,
        'drop="setpriv --bounding-set=-dac_override,-dac_read_search"; [ "$(id -u)" = 0 ] || drop=""; exec $drop "$python" "$@"',
    )
    folder = action.workspace / "denied"
    folder.mkdir(mode=0o555)
    return folder


@pytest.mark.parametrize("name", ["bundle_path", "site_path", "values_file"])
def test_a_folder_without_write_access_names_the_likely_causes(
    action: Action, platform: Simulator, denied: Path, name: str
) -> None:
    ended = action.export(platform, **{name: f"{denied.name}/x"})

    assert (ended.exit_code, ended.reason, platform.requests) == (1, "invalid-input", [])
    assert DENIED_BY in ended.error
    assert DENIED["remedy"] in ended.error
    assert InvalidInput.default_remedy not in ended.error


def test_a_folder_without_write_access_hides_no_other_error(action: Action, platform: Simulator, denied: Path) -> None:
    ended = action.export(platform, site_path=f"{denied.name}/site", wait="perhaps")

    assert DENIED_BY in ended.error
    assert InvalidInput.default_remedy in ended.error


def test_an_output_file_without_write_access_names_the_likely_causes(action: Action, platform: Simulator, denied: Path) -> None:
    ended = action.export(platform, env={"GITHUB_OUTPUT": str(denied / "output")})

    assert (ended.exit_code, platform.requests) == (1, [])
    assert DENIED_BY in ended.error


def test_a_summary_without_write_access_names_the_likely_causes(action: Action, platform: Simulator, denied: Path) -> None:
    ended = action.run(platform, mode="collect", job_id="export-finished", env={"GITHUB_STEP_SUMMARY": str(denied / "summary")})

    assert (ended.exit_code, len(ended.warnings)) == (0, 1)
    assert DENIED_BY in ended.warnings[0]


def test_outputs_that_do_not_fit_fail_the_run_and_leave_no_part_of_a_record(
    action: Action, platform: Simulator, tmp_path: Path
) -> None:
    # files are limited to 1 KiB, which `jobId` does not need
    action.python = shell_python(tmp_path, 'ulimit -f 1 && exec "$python" "$@"')
    platform.override("make_bundle", {"bundleUrl": f"https://storage.example.com/{'x' * 1000}"})

    ended = action.run(platform, mode="collect", job_id="export-finished")

    known = {"jobId": "export-finished", "status": "completed", "pageCount": "12", "failureReason": "internal-error"}
    assert (ended.exit_code, known.items() <= ended.outputs.items()) == (1, True)
    assert not {"results", "bundleUrl"} & {*ended.outputs}
    assert "GITHUB_OUTPUT" in ended.error


def test_a_job_that_cannot_be_an_output_is_named_in_the_annotation(
    action: Action, make_platform: Callable[..., Simulator], tmp_path: Path
) -> None:
    platform = make_platform(job_ids=[f"job-{'x' * 2000}"])
    action.python = shell_python(tmp_path, 'ulimit -f 1 && exec "$python" "$@"')

    ended = action.export(platform)

    assert (ended.exit_code, ended.outputs, platform.count("read_export")) == (1, {}, 0)
    assert "job-xxx" in ended.error


def test_a_failure_without_an_output_file_is_reported_unchanged(action: Action, platform: Simulator, tmp_path: Path) -> None:
    ended = action.export(platform, env={"GITHUB_OUTPUT": str(tmp_path / "missing" / "output")}, timeout="never")

    assert ended.exit_code == 1
    assert "`timeout`" in ended.error


@pytest.mark.parametrize("place", ["/dev/full", "/proc/nowhere/summary", "{folder}"])
def test_a_summary_that_cannot_be_written_is_a_warning(action: Action, platform: Simulator, tmp_path: Path, place: str) -> None:
    ended = action.run(
        platform, mode="collect", job_id="export-finished", env={"GITHUB_STEP_SUMMARY": place.format(folder=tmp_path)}
    )

    assert (ended.exit_code, ended.errors, len(ended.warnings)) == (0, [], 1)
    assert "GITHUB_STEP_SUMMARY" in ended.warnings[0]
    assert ended.outputs["bundleUrl"]


@pytest.mark.parametrize(
    "redirection",
    ["> >(exit 0)", "> /dev/full", ">&-", "> /dev/full 2>&-", ">&- 2>&-", "<&- >&- 2>&-", "> /dev/full 2> /dev/full"],
)
def test_a_log_that_cannot_be_written_does_not_stop_the_run(
    action: Action, platform: Simulator, tmp_path: Path, redirection: str
) -> None:
    action.python = shell_python(tmp_path, f'exec "$python" "$@" {redirection}')

    ended = action.run(platform, mode="collect", job_id="export-finished")

    assert (ended.exit_code, ended.stdout, ended.reason) == (0, "", None)
    assert ended.outputs["bundleUrl"]
    assert "done" in ended.summary
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("name", ["missing.pem", ".", "loop.pem", "empty.pem", "fifo.pem", "../outside.pem"])
def test_an_unusable_authority_file_is_an_invalid_input(action: Action, platform: Simulator, name: str) -> None:
    (action.workspace / "loop.pem").symlink_to("loop.pem")
    (action.workspace / "empty.pem").touch()
    os.mkfifo(action.workspace / "fifo.pem")

    ended = action.export(platform, ca_bundle=name)

    assert (ended.exit_code, ended.reason, platform.requests) == (1, "invalid-input", [])
    assert "`ca-bundle`" in ended.error
