"""Every `failureReason`, over a real socket, with its message and outputs."""

import contextlib
import json
import os
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from admin_api_simulator import Fault, Simulator
from admin_api_simulator.faults import Operation
from admin_api_simulator.runner import parse_outputs
from tests.action import Action, shell_python
from tests.archives import SEVEN_ZIP
from tests.keys import ADMIN_KEY
from tests.ports import refusing_port

AGENT = {"mode": "agent", "project_id": "demo-project"}
ATTACH = {"domain": "", "job_id": "export-finished"}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A run that must fail: an export of docs.example.com with `inputs`, on a platform with `faults`."""

    reason: str
    parts: tuple[str, ...]
    inputs: Mapping[str, str] = field(default_factory=dict)
    faults: Mapping[Operation, Fault] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    bundle: bytes | None = None
    job: bool = True
    request_id: bool = True


CASES = {
    "an input is missing": Case(
        reason="invalid-input",
        parts=("base-url", "Correct the inputs of the step."),
        inputs={"base_url": ""},
        job=False,
        request_id=False,
    ),
    "inputs are malformed": Case(
        reason="invalid-input",
        parts=("4 invalid inputs", "`domain`", "docs.example.com", "`timeout`", "`wait`", "`max-poll-interval`"),
        inputs={"domain": "https://docs.example.com/", "timeout": "soon", "wait": "yes", "max_poll_interval": "1ms"},
        job=False,
        request_id=False,
    ),
    "unknown mode": Case(
        reason="invalid-input", parts=("`export`", "`agent`"), inputs={"mode": "import"}, job=False, request_id=False
    ),
    "unknown mode among others": Case(
        reason="invalid-input",
        parts=("4 invalid inputs", "`domain`", "`wait`", "`require-pr`"),
        inputs={"mode": "import", "domain": "https://docs.example.com/", "wait": "yes", "require_pr": "no"},
        job=False,
        request_id=False,
    ),
    "the key is refused": Case(
        reason="unauthorized",
        parts=("401", "invalid token", "Check the secret", "API keys page"),
        options={"key": "another"},
        job=False,
    ),
    "the key ends in the middle": Case(
        reason="unauthorized",
        parts=("401", "key expired", "job-id: "),
        faults={"make_bundle": Fault(status=401, json={"error": "key expired"}, headers={"X-Request-Id": "req-7"})},
    ),
    "the plan has no export": Case(
        reason="forbidden", parts=("403", "Enterprise plan", "permission"), options={"plan": False}, job=False
    ),
    "no such deployment": Case(
        reason="not-found", parts=("404", "unknown.example.com"), inputs={"domain": "unknown.example.com"}, job=False
    ),
    "no such job": Case(reason="not-found", parts=("404", "nowhere"), inputs={"domain": "", "job_id": "nowhere"}),
    "no such agent job": Case(
        reason="not-found", parts=("404", "agent job not found"), inputs={**AGENT, "job_id": "nowhere", "domain": ""}
    ),
    "the request is rejected": Case(
        reason="rejected",
        parts=("422", "no such version"),
        faults={"start_export": Fault(status=422, json={"error": "no such version"}, headers={"X-Request-Id": "req-7"})},
        job=False,
    ),
    "the job is gone": Case(
        reason="rejected",
        parts=("410", "gone for good"),
        faults={"read_export": Fault(status=410, json={"message": "gone for good"}, headers={"x-correlation-id": "c-1"})},
    ),
    "the export fails": Case(
        reason="job-failed",
        parts=("component <Tabs> could not be rendered", "dashboard"),
        inputs={"domain": "failing.example.com"},
        request_id=False,
    ),
    "the agent fails": Case(
        reason="job-failed", parts=("agent failed",), inputs={**AGENT, "job_id": "agent-failed", "domain": ""}, request_id=False
    ),
    "no pull request": Case(
        reason="no-pull-request",
        parts=("require-pr",),
        inputs={**AGENT, "job_id": "agent-no-change", "domain": "", "require_pr": "true"},
        request_id=False,
    ),
    "the job takes too long": Case(
        reason="timeout",
        parts=("`timeout`", "job-id: "),
        inputs={"timeout": "200ms"},
        options={"export_seconds": 3600},
        request_id=False,
    ),
    "the API is down": Case(
        reason="unavailable",
        parts=("503", "outage-tolerance", "upstream down", "job-id: "),
        faults={"read_export": Fault(status=503, json={"error": "upstream down"}, headers={"X-Request-Id": "req-7"})},
    ),
    "no link in the bundle's answer": Case(
        reason="bad-response",
        parts=("bundleUrl", "base-url", "job-id: "),
        faults={"make_bundle": Fault(json={"expiresAt": "2030-01-01T00:00:00Z"}, headers={"X-Request-Id": "req-7"})},
    ),
    "a link that is none": Case(
        reason="bad-response",
        parts=("bundleUrl",),
        inputs=ATTACH,
        faults={"make_bundle": Fault(json={"bundleUrl": "http://storage.example.com/bundle"})},
        request_id=False,
    ),
    "a start that names no job": Case(
        reason="bad-response", parts=("jobId",), faults={"start_export": Fault(json={"jobId": 7})}, job=False, request_id=False
    ),
    "a start that answers a page": Case(
        reason="bad-response",
        parts=("text/html", "15 bytes"),
        faults={"start_export": Fault(body="<html>\n</html>\n", headers={"Content-Type": "text/html; charset=utf-8"})},
        job=False,
        request_id=False,
    ),
    "the storage is down": Case(
        reason="download-failed",
        parts=("could not be downloaded completely", "503 (SlowDown)", "`outage-tolerance`", "job-id: "),
        inputs={**ATTACH, "site_path": "site"},
        faults={"download": Fault(status=503, body="<Error><Code>SlowDown</Code></Error>")},
        request_id=False,
    ),
    "the bundle is a web page": Case(
        reason="download-failed",
        parts=("looks like a web page", "a login page", "job-id: "),
        inputs={**ATTACH, "bundle_path": "bundle.tar.gz"},
        bundle=b"<!doctype html><title>Sign in</title>",
        request_id=False,
    ),
    "the bundle is an archive that cannot be opened": Case(
        reason="invalid-bundle",
        parts=("looks like a 7z archive", "job-id: "),
        inputs={**ATTACH, "site_path": "site"},
        bundle=SEVEN_ZIP,
        request_id=False,
    ),
    "a start without an answer": Case(
        reason="start-unconfirmed",
        parts=("dashboard", "`job-id`"),
        faults={"start_export": Fault(cut="before_response", processed=True)},
        job=False,
        request_id=False,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_failure_names_its_reason_cause_and_remedy(action: Action, make_platform: Callable[..., Simulator], name: str) -> None:
    case = CASES[name]
    platform = make_platform(**case.options)
    for operation, fault in case.faults.items():
        platform.script_forever(operation, fault)
    if case.bundle is not None:
        platform.put_bundle("export-finished", case.bundle)

    ended = action.export(platform, **case.inputs)

    assert (ended.exit_code, ended.reason) == (1, case.reason), ended.stdout
    assert ended.error == "\n  ".join(line.strip() for line in ended.error.splitlines())
    for text in case.parts:
        assert text in ended.error
    assert ("Request id " in ended.error) == case.request_id
    assert ("jobId" in ended.outputs) == case.job
    assert "bundleUrl" not in ended.outputs
    assert ended.result["failureReason"] == case.reason
    assert ended.result["message"].startswith(ended.error.splitlines()[0])
    assert f"`{case.reason}`" in ended.summary
    assert "Traceback" not in ended.stdout + ended.stderr


AGENT_JOB = {"mode": "agent", "project_id": "demo-project"}
COMPLETED = "Job {job} is completed. A run with `job-id: {job}` makes its bundle link without exporting again."
CONTINUES = "Job {job} continues at the platform. Collect it in a later run with `job-id: {job}`."
RUNNING = Fault(json={"status": "running"})


@pytest.mark.parametrize(
    ("operation", "message", "status", "reason"),
    [
        ("make_bundle", COMPLETED, 401, "unauthorized"),
        ("make_bundle", COMPLETED, 403, "forbidden"),
        ("make_bundle", COMPLETED, 422, "rejected"),
        ("read_export", CONTINUES, 422, "rejected"),
        ("read_export", CONTINUES, 302, "bad-response"),
    ],
)
def test_an_existing_job_is_named_for_a_later_run(
    action: Action, platform: Simulator, operation: Operation, message: str, status: int, reason: str
) -> None:
    platform.script_forever(operation, Fault(status=status), after=[RUNNING] if operation == "read_export" else [])

    ended = action.run(platform, job_id="export-finished")

    assert ended.reason == reason
    assert message.format(job="export-finished") in [line.strip() for line in ended.error.splitlines()]


@pytest.mark.parametrize(
    ("inputs", "faults", "reason"),
    [
        ({**AGENT_JOB, "job_id": "agent-failed"}, [], "job-failed"),
        ({**AGENT_JOB, "job_id": "agent-no-change", "require_pr": "true"}, [], "no-pull-request"),
        ({**AGENT_JOB, "job_id": "agent-no-change"}, [Fault(status=404)], "not-found"),
        ({"job_id": "export-finished"}, [RUNNING, Fault(status=404)], "not-found"),
        ({"job_id": "export-finished"}, [Fault(status=422)], "rejected"),
        ({"job_id": "export-finished"}, [RUNNING, Fault(json={"status": "failed"})], "job-failed"),
    ],
)
def test_an_ended_or_unknown_job_is_not_named_for_a_later_run(
    action: Action, platform: Simulator, inputs: dict[str, str], faults: list[Fault], reason: str
) -> None:
    platform.script("read_agent_job" if "mode" in inputs else "read_export", *faults)

    ended = action.run(platform, **inputs)

    assert ended.reason == reason
    assert "continues at the platform" not in ended.error
    assert "makes its bundle link" not in ended.error


@pytest.mark.parametrize(
    ("operation", "fault", "cause", "remedy"),
    [
        ("read_export", Fault(status=503), "is down or overloaded", "`outage-tolerance`"),
        ("read_export", Fault(cut="before_response"), "is down or overloaded", "`outage-tolerance`"),
        ("read_export", Fault(status=429), "send more requests", "`poll-interval`"),
        ("read_export", Fault(body="<html></html>"), "Something other than the API responds at `base-url`", "Check `base-url`"),
        ("read_export", Fault(json=["no", "object"]), "Something other than the API responds", "Check `base-url`"),
        ("make_bundle", Fault(status=409), "has not finished the export's bundle", "`outage-tolerance`"),
    ],
)
def test_the_likely_cause_of_an_outage_depends_on_its_kind(
    action: Action, platform: Simulator, operation: Operation, fault: Fault, cause: str, remedy: str
) -> None:
    platform.script_forever(operation, fault)

    ended = action.run(platform, job_id="export-finished", outage_tolerance="1ms")

    assert (ended.exit_code, ended.reason) == (1, "unavailable")
    assert cause in ended.error
    assert remedy in ended.error


def test_an_unreachable_host_may_be_mistyped(action: Action) -> None:
    with refusing_port() as (host, port):
        ended = action.run(f"http://{host}:{port}", job_id="j-1", outage_tolerance="1ms")

    assert ended.reason == "unavailable"
    assert "The host or port in `base-url` is mistyped" in ended.error


def test_an_error_that_is_an_object_is_read(action: Action, platform: Simulator) -> None:
    platform.script("read_export", Fault(json={"status": "failed", "error": {"code": 7, "message": "page /a is empty"}}))

    ended = action.run(platform, job_id="export-finished")

    assert ended.reason == "job-failed"
    assert 'said: "page /a is empty"' in ended.error


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({"domain": "unknown.example.com"}, "the platform does not know the domain unknown.example.com (404)"),
        ({"domain": "", "job_id": "nowhere"}, "the platform does not know the job nowhere (404)"),
        ({**AGENT_JOB, "domain": "", "job_id": "nowhere"}, "not know the project demo-project or its job nowhere (404)"),
    ],
)
def test_a_missing_object_is_named(action: Action, platform: Simulator, inputs: dict[str, str], expected: str) -> None:
    ended = action.export(platform, **inputs)

    assert expected in ended.error.splitlines()[0]
    assert "is mistyped" in ended.error


@pytest.mark.parametrize("prefix", ["", "/dashboard", "/api/v2"])
def test_a_wrong_base_url_is_not_taken_for_an_unknown_domain(action: Action, prefix: str) -> None:
    with Simulator(key=ADMIN_KEY, base_path="/api") as platform:  # the requests are deliberately outside the base path
        wrong = platform.base_url.removesuffix("/api") + prefix
        ended = action.export(wrong)

    assert (ended.exit_code, ended.reason) == (1, "not-found")
    headline = f"`base-url` is probably wrong: {wrong} has no static-export endpoint (404)"
    assert ended.error.splitlines()[0] == headline
    assert 'said: "no such endpoint"' in ended.error
    assert f"{wrong}/v1/static-export/jobs" in ended.error


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault(status=404, body="<html>Not here</html>", headers={"Content-Type": "text/html"}), "not-found"),
        (Fault(status=404, json={"detail": "Not Found"}), "not-found"),
        (Fault(status=405, body="<html>405 Not Allowed</html>", headers={"Content-Type": "text/html"}), "rejected"),
    ],
)
def test_another_server_is_not_taken_for_an_unknown_domain(
    action: Action, platform: Simulator, fault: Fault, reason: str
) -> None:
    platform.script_forever("start_export", fault)

    ended = action.export(platform)

    assert ended.reason == reason
    assert f"`base-url` is probably wrong: {platform.base_url} has no " in ended.error.splitlines()[0]


def test_a_web_page_instead_of_a_job_names_base_url_as_the_likely_cause(action: Action, platform: Simulator) -> None:
    platform.script_forever("read_export", Fault(status=404, body="<html></html>", headers={"Content-Type": "text/html"}))

    ended = action.run(platform, job_id="export-finished")

    assert ended.reason == "not-found"
    assert "\n  `base-url` is probably wrong: " in ended.error


def test_contradictory_pauses_are_reported_with_both_values(action: Action, platform: Simulator) -> None:
    ended = action.export(platform, poll_interval="2m", max_poll_interval="")

    assert ended.reason == "invalid-input"
    assert "Invalid input `max-poll-interval`: 30s is less than poll-interval, 2m" in ended.error


def test_every_failure_reason_is_tested() -> None:
    interface_rows = {
        *("invalid-input", "unauthorized", "forbidden", "not-found", "rejected", "job-failed", "no-pull-request", "timeout"),
        *("unavailable", "bad-response", "start-unconfirmed", "download-failed", "invalid-bundle"),
    }

    assert {case.reason for case in CASES.values()} == interface_rows


def test_misspelled_inputs_are_named_with_missing_ones(action: Action, platform: Simulator) -> None:
    ended = action.run(platform, domian="docs.example.com", retention_days="3")

    assert ended.reason == "invalid-input"
    assert ended.warnings == [
        "`domian` is not an input; did you mean `domain`?",
        "`retention-days` is not an input; it has no effect.",
    ]


def test_a_misspelled_input_is_only_a_warning_without_its_value(action: Action, platform: Simulator) -> None:
    ended = action.run(platform, job_id="export-finished", env={"INPUT_SITE_PTH": "unlisted-value"})

    assert (ended.exit_code, ended.warnings) == (0, ["`site_pth` is not an input; did you mean `site-path`?"])
    assert "unlisted-value" not in ended.stdout + ended.summary


def test_a_name_that_is_not_an_input_cannot_write_a_command(action: Action, platform: Simulator) -> None:
    name = "X\n::error::b\r##[error]\x1b[31mred"

    ended = action.run(platform, job_id="export-finished", env={f"INPUT_{name}": "x"})

    assert (ended.exit_code, ended.errors) == (0, [])
    assert ended.warnings == ["`x : :error: :b # #[error][31mred` is not an input; it has no effect."]
    assert "\x1b" not in ended.stdout


def test_an_export_with_a_project_suggests_mode_agent(action: Action, platform: Simulator) -> None:
    ended = action.run(platform, job_id="export-finished", project_id="demo-project")

    assert ended.exit_code == 0
    assert ended.warnings == [
        "Input `project-id` has no effect in mode `export`; it belongs to mode `agent`. Did you mean `mode: agent`?"
    ]


def test_invalid_input_sends_no_request(action: Action, platform: Simulator) -> None:
    action.export(platform, timeout="0s")

    assert platform.requests == []


def test_an_internal_error_is_reported_as_one(action: Action, platform: Simulator, tmp_path: Path) -> None:
    # a thread's stack takes all available memory, so no thread can be started
    action.python = shell_python(tmp_path, 'ulimit -S -s 2000000 && ulimit -S -v 1900000 && exec "$python" "$@"')

    ended = action.export(platform)

    assert (ended.exit_code, ended.reason) == (1, "internal-error")
    assert "RuntimeError at threading.py, line " in ended.error
    assert "debug logging" in ended.error
    assert "bug report" in ended.error
    assert ended.result["failureReason"] == "internal-error"
    assert "`internal-error`" in ended.summary
    assert "Traceback" not in ended.stdout + ended.stderr


BROKEN = (
    "import docs_platform_action.report.{module} as patched\ndef broken(*_, **__): raise KeyError('x')\npatched.{name} = broken"
)


@pytest.mark.parametrize("domains", ["docs.example.com", "docs.example.com\nfailing.example.com"])
@pytest.mark.parametrize(
    ("module", "name"), [("summary", "timeline_of"), ("failures", "failure_lines"), ("final_report", "size_warning")]
)
def test_a_bug_in_the_report_changes_neither_outputs_nor_exit_code(
    action: Action, platform: Simulator, domains: str, module: str, name: str
) -> None:
    action.begin_with(BROKEN.format(module=module, name=name))

    ended = action.export(platform, domain=domains)

    failed = "failing" in domains
    assert (ended.exit_code, ended.reason) == ((1, "job-failed") if failed else (0, None))
    assert [row["failureReason"] for row in json.loads(ended.outputs["results"])] == [None, *(["job-failed"] if failed else [])]
    assert len(ended.warnings) == (failed or name != "failure_lines")
    assert all("cannot be written (KeyError)" in warning for warning in ended.warnings)
    assert "Traceback" not in ended.stdout + ended.stderr


def test_an_internal_error_shows_its_traceback_with_debug_logging(action: Action, platform: Simulator, tmp_path: Path) -> None:
    action.python = shell_python(tmp_path, 'ulimit -S -s 2000000 && ulimit -S -v 1900000 && exec "$python" "$@"')
    action.debug = True

    ended = action.export(platform)

    debug_lines = [command.value for command in ended.commands if command.name == "debug"]
    assert any(line.startswith("Traceback (most recent call last)") for line in debug_lines)
    assert debug_lines[-1] == "RuntimeError: can't start new thread"


@pytest.mark.parametrize(
    "place",
    [
        "{folder}",
        "{folder}/missing/output",
        "/proc/nowhere/output",
        "/dev/full",
        "{folder}/pipe",
        "{folder}/link",
        "{folder}/socket",
    ],
)
@pytest.mark.usefixtures("unread")
def test_an_output_file_that_cannot_be_opened_fails_the_run_before_any_request(
    action: Action, platform: Simulator, tmp_path: Path, place: str
) -> None:
    ended = action.export(platform, env={"GITHUB_OUTPUT": place.format(folder=tmp_path)})

    assert ended.exit_code == 1
    assert "the step's output file cannot be written" in ended.error
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


@pytest.fixture
def unread(tmp_path: Path) -> Iterator[None]:
    """Create a pipe that nobody reads, a link to it, and a socket."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    with socket.socket(socket.AF_UNIX) as listening, contextlib.chdir(tmp_path):  # the address of a socket has a short limit
        listening.bind("socket")
        yield


LIKELY = "SELinux on the runner, or user namespaces (rootless Docker, `userns-remap`)"


@pytest.mark.parametrize("name", ["bundle_path", "site_path", "values_file"])
def test_a_folder_without_write_access_names_the_likely_causes(
    action: Action, platform: Simulator, denied: Path, name: str
) -> None:
    ended = action.export(platform, **{name: f"{denied.name}/x"})

    assert (ended.exit_code, ended.reason, platform.requests) == (1, "invalid-input", [])
    assert f"the folder 'denied' cannot be written to (Permission denied; likely causes: {LIKELY})" in ended.error
    assert "label the runner's work folder" in ended.error
    assert "Correct the inputs" not in ended.error


def test_a_folder_without_write_access_hides_no_other_error(action: Action, platform: Simulator, denied: Path) -> None:
    ended = action.export(platform, site_path=f"{denied.name}/site", wait="perhaps")

    assert LIKELY in ended.error
    assert "Correct the inputs of the step." in ended.error


def test_an_output_file_without_write_access_names_the_likely_causes(action: Action, platform: Simulator, denied: Path) -> None:
    ended = action.export(platform, env={"GITHUB_OUTPUT": str(denied / "output")})

    assert (ended.exit_code, platform.requests) == (1, [])
    assert "The file that GITHUB_OUTPUT names: Permission denied." in ended.error
    assert LIKELY in ended.error


def test_a_summary_without_write_access_names_the_likely_causes(action: Action, platform: Simulator, denied: Path) -> None:
    ended = action.run(platform, job_id="export-finished", env={"GITHUB_STEP_SUMMARY": str(denied / "summary")})

    assert (ended.exit_code, len(ended.warnings)) == (0, 1)
    assert LIKELY in ended.warnings[0]


@pytest.mark.parametrize("length", [300, 520, 4000])
def test_an_output_that_does_not_fit_leaves_the_others_complete(
    action: Action, platform: Simulator, tmp_path: Path, length: int
) -> None:
    # files are limited to 1 KiB: `results` does not fit, and a long `bundleUrl` does not either
    action.python = shell_python(tmp_path, 'ulimit -f 1 && exec "$python" "$@"')
    platform.override("make_bundle", {"bundleUrl": f"https://storage.example.com/{'x' * length}"})

    ended = action.run(platform, job_id="export-finished")

    assert ended.exit_code == 1
    assert "the step's output file cannot be written" in ended.error
    assert "File too large" in ended.error
    assert (ended.outputs["jobId"], ended.outputs["status"]) == ("export-finished", "completed")
    assert "results" not in ended.outputs
    assert len(ended.outputs.get("bundleUrl", "")) in {0, len("https://storage.example.com/") + length}


def test_a_job_that_cannot_be_an_output_is_named_in_the_log(
    action: Action, make_platform: Callable[..., Simulator], tmp_path: Path
) -> None:
    platform = make_platform(job_ids=[f"job-{'x' * 2000}"])
    action.python = shell_python(tmp_path, 'ulimit -f 1 && exec "$python" "$@"')

    ended = action.export(platform)

    assert (ended.exit_code, "jobId" in ended.outputs, ended.reason) == (1, False, "internal-error")
    assert "\n  Job job-xxx" in ended.error


def test_outputs_may_be_written_to_a_pipe(action: Action, platform: Simulator) -> None:
    ended = action.run(platform, job_id="export-finished", env={"GITHUB_OUTPUT": "/dev/stderr"})

    assert (ended.exit_code, ended.errors) == (0, [])
    assert "jobId<<" in ended.stderr


def test_a_program_may_read_outputs_and_summary_from_pipes(action: Action, platform: Simulator, tmp_path: Path) -> None:
    names = ("output", "summary")
    for name in names:
        os.mkfifo(tmp_path / name)
    readers = [subprocess.Popen(["cat", tmp_path / name], stdout=subprocess.PIPE) for name in names]

    # a pipe has its reader once it can be opened for writing; the action opens that of the summary at its end
    output_writer, summary_writer = (os.open(tmp_path / name, os.O_WRONLY) for name in names)
    env = {"GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    with action.start(platform, job_id="export-finished", env=env) as running:
        running.wait_for("Attaching")
        os.close(output_writer)
        ended = running.wait()
    os.close(summary_writer)
    output, summary = (reader.communicate()[0].decode() for reader in readers)

    assert (ended.exit_code, ended.commands) == (0, [])
    assert parse_outputs(output).keys() >= {"jobId", "bundleUrl", "results"}
    assert "done" in summary


def test_a_pipe_that_is_full_fails_the_run_before_any_request(action: Action, platform: Simulator, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "output")
    pipe = os.open(tmp_path / "output", os.O_RDWR | os.O_NONBLOCK)
    with contextlib.closing(os.fdopen(pipe, "rb")), contextlib.suppress(BlockingIOError):
        while True:
            os.write(pipe, bytes(65536))

    ended = action.export(platform, env={"GITHUB_OUTPUT": str(tmp_path / "output")})

    assert (ended.exit_code, platform.requests) == (1, [])
    assert "the step's output file cannot be written" in ended.error


def test_outputs_and_summary_may_go_to_devices(action: Action, platform: Simulator) -> None:
    env = {"GITHUB_OUTPUT": "/dev/null", "GITHUB_STEP_SUMMARY": "/dev/stdout"}

    ended = action.run(platform, job_id="export-finished", env=env)

    assert (ended.exit_code, ended.commands) == (0, [])
    assert "### ✅ Static export: done" in ended.stdout


def test_a_failure_without_an_output_file_is_reported_unchanged(action: Action, platform: Simulator, tmp_path: Path) -> None:
    ended = action.export(platform, env={"GITHUB_OUTPUT": str(tmp_path / "missing" / "output")}, timeout="never")

    assert ended.exit_code == 1
    assert "`timeout`" in ended.error


@pytest.mark.parametrize(
    "place", ["/dev/full", "/proc/nowhere/summary", "{folder}", "{folder}/pipe", "{folder}/link", "{folder}/socket"]
)
@pytest.mark.usefixtures("unread")
def test_a_summary_that_cannot_be_written_is_a_warning(action: Action, platform: Simulator, tmp_path: Path, place: str) -> None:
    ended = action.run(platform, job_id="export-finished", env={"GITHUB_STEP_SUMMARY": place.format(folder=tmp_path)})

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

    ended = action.run(platform, job_id="export-finished")

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
