"""Runs from the environment to the exit code, with a fake transport."""

import contextlib
import gzip
import io
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest
import requests

from docs_platform_action import main
from docs_platform_action.clock import Clock
from docs_platform_action.errors import Cancelled
from docs_platform_action.job import Job
from docs_platform_action.jobs.runner import CLEANUP_GRACE_SECONDS, START_GRACE_SECONDS
from docs_platform_action.signals import ABORT_GRACE_SECONDS, SignalHandler, Work
from tests.archives import SMALL_SITE, tar
from tests.folders import files_of_at_most
from tests.keys import ADMIN_KEY
from tests.unit.fakes import BASE_URL, FakeTransport
from tests.unit.test_outputs import read_outputs
from tests.virtual_platform import Sent
from tests.virtual_time import VirtualClock

LINK = "https://storage.example.com/se_1/bundle.tar.gz?X-Signature=s3cr3t"
EXPORT = {"base-url": BASE_URL, "admin-key": ADMIN_KEY, "domain": "docs.example.com", "poll-interval": "1ms"}
AGENT = {"mode": "agent", "base-url": BASE_URL, "admin-key": ADMIN_KEY, "project-id": "prj_1", "job-id": "aj_1"}
PLATFORM = {
    "POST /v1/static-export/jobs": {"jobId": "se_1", "status": "queued"},
    "GET /v1/static-export/jobs/se_1": {"status": "completed", "pageCount": 412},
    "POST /v1/static-export/jobs/se_1/bundle": {"bundleUrl": LINK, "expiresAt": "2099-05-04T15:04:00Z"},
    "GET /v2/agent/prj_1/job/aj_1": {"status": "completed", "prLink": "https://git.example.com/docs/pull/7"},
}

Answers = Mapping[str, Any]


def as_json(value: object) -> bytes:
    return json.dumps(value).encode()


class Wire(FakeTransport):
    """Responds by method and target: with a JSON value, raw bytes, a status or an error, or a function's result."""

    def __init__(self, answers: Answers) -> None:
        super().__init__()
        self._answers = answers
        self.seen: list[str] = []

    def respond(self, sent: Sent) -> requests.Response:
        asked = f"{sent.method} {sent.target}"
        self.seen.append(asked)
        answer = self._answers[asked]
        answer = answer(sent) if callable(answer) else answer
        self._status = answer if isinstance(answer, int) else 200
        self._error = answer if isinstance(answer, Exception) else None
        self._body = b"{}" if isinstance(answer, int | Exception) else answer if isinstance(answer, bytes) else as_json(answer)
        sent.exchange.begin()
        return super().respond(sent)


class Quiet(SignalHandler):
    """Runs the work in this thread. A signal comes before the work, or with `in_work` when the work is cancelled."""

    def __init__(self, received: signal.Signals | None = None, *, in_work: bool = False) -> None:
        self._received = received
        self._in_work = in_work
        self.work: Work
        self.ignored = False

    def ignore(self) -> None:
        self.ignored = True

    def run(self, work: Work) -> signal.Signals | None:
        self.work = work
        if self._received is None:
            work.run()
        elif self._in_work:
            with contextlib.suppress(Cancelled):
                work.run()
        return self._received


@dataclass
class Ended:
    """The results of a run."""

    exit_code: int
    log: str
    outputs: dict[str, str]
    summary: str
    seen: list[str] = field(default_factory=list)

    @property
    def errors(self) -> list[str]:
        return [line for line in self.log.splitlines() if line.startswith("::error ")]

    @property
    def result(self) -> dict[str, Any]:
        (row,) = json.loads(self.outputs["results"])
        assert isinstance(row, dict)
        return row


Runner = Callable[..., Ended]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remember_output: Callable[[str], str]) -> Runner:
    def run(
        inputs: Mapping[str, str],
        answers: Answers = PLATFORM,
        *,
        signal_handler: SignalHandler | None = None,
        environ: Mapping[str, str] | None = None,
        before: Callable[[Sent], None] = lambda _request: None,
        clock: Clock | None = None,
    ) -> Ended:
        wire = Wire(answers)
        wire.before = before
        monkeypatch.setattr(main, "Transport", lambda _context: wire)
        output, summary = tmp_path / "output", tmp_path / "summary"
        in_workflow = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_WORKSPACE": str(tmp_path),
            "RUNNER_TEMP": str(tmp_path),
        }
        given = {f"INPUT_{name.upper()}": value for name, value in inputs.items()}
        stream = io.StringIO()
        exit_code = main.run(
            {**in_workflow, **given, **(environ or {})}, stream, signal_handler or Quiet(), clock or VirtualClock()
        )
        return Ended(
            exit_code=exit_code,
            log=remember_output(stream.getvalue()),
            outputs=dict(read_outputs(output.read_text())) if output.is_file() else {},
            summary=summary.read_text() if summary.is_file() else "",
            seen=wire.seen,
        )

    return run


class TestExport:
    def test_a_good_run_ends_with_0_and_its_outputs(self, run: Runner) -> None:
        ended = run(EXPORT)

        assert ended.exit_code == 0
        assert {name: ended.outputs[name] for name in ended.outputs if name not in {"results", "durationSeconds"}} == {
            "jobId": "se_1",
            "status": "completed",
            "bundleUrl": LINK,
            "expiresAt": "2099-05-04T15:04:00Z",
            "pageCount": "412",
        }
        assert tuple(ended.result) == tuple(Job(mode=None).result(0.0))
        assert ended.result["bundleUrl"] == LINK
        assert ended.errors == []

    def test_an_input_without_effect_is_warned_of_once(self, run: Runner) -> None:
        ended = run({**EXPORT, "project-id": "prj_1"})

        assert (ended.exit_code, ended.log.count("::warning::")) == (0, 1)

    def test_an_unknown_name_is_warned_of_even_if_an_input_is_invalid(self, run: Runner) -> None:
        ended = run({**EXPORT, "timeout": "soon", "unrelated": "x"})

        assert (ended.exit_code, len(ended.errors), ended.log.count("::warning::"), ended.seen) == (1, 1, 1, [])

    def test_the_job_is_an_output_before_it_is_first_read(self, run: Runner, tmp_path: Path) -> None:
        seen: dict[str, str] = {}

        def look(request: Sent) -> None:
            if request.method == "GET":
                seen.update(read_outputs((tmp_path / "output").read_text()))

        run(EXPORT, before=look)

        assert seen == {"jobId": "se_1"}

    def test_its_requests_are_limited_by_its_clock(self, run: Runner) -> None:
        clocks: list[Clock] = []
        clock = VirtualClock()

        run(EXPORT, before=lambda request: clocks.append(request.exchange.clock), clock=clock)

        assert {*clocks} == {clock}


ARCHIVE = gzip.compress(tar(SMALL_SITE), mtime=0)
STORED = {**PLATFORM, "GET /se_1/bundle.tar.gz?X-Signature=s3cr3t": ARCHIVE}


class TestDelivery:
    @pytest.mark.parametrize(("is_masked", "count"), [("true", 1), ("false", 0)])
    def test_a_masked_link_is_an_output_that_the_runner_hides(self, run: Runner, is_masked: str, count: int) -> None:
        ended = run({**EXPORT, "mask-bundle-url": is_masked})

        assert ended.log.count(f"::add-mask::{LINK}\n") == count
        assert ended.outputs["bundleUrl"] == LINK

    @pytest.mark.parametrize(
        ("changes", "has_commands"),
        [
            ({"GITHUB_ACTIONS": ""}, True),
            ({"GITHUB_OUTPUT": ""}, True),
            ({"GITHUB_ACTIONS": "", "GITHUB_OUTPUT": ""}, False),
        ],
    )
    def test_only_a_workflow_gets_commands(self, run: Runner, changes: Mapping[str, str], has_commands: bool) -> None:
        ended = run(EXPORT, environ=changes)

        assert ended.log.startswith("::add-mask::") is has_commands


class TestSeveral:
    SEVERAL: Mapping[str, str] = {**EXPORT, "domain": "a.example.com\nb.example.com", "max-parallel": "1"}
    PLATFORM: Mapping[str, Any] = {
        "POST /v1/static-export/jobs": lambda request: {"jobId": f"se_{json.loads(request.body)['domain'][0]}"},
        **{f"GET /v1/static-export/jobs/se_{name}": {"status": "completed"} for name in "ab"},
        **{f"POST /v1/static-export/jobs/se_{name}/bundle": {"bundleUrl": LINK} for name in "ab"},
    }

    def test_the_log_is_a_board_and_then_one_of_each(self, run: Runner) -> None:
        log = run(self.SEVERAL, self.PLATFORM).log

        assert "1 at a time\n" in log
        assert re.findall("^::group::(.*?):", log, re.MULTILINE) == ["a.example.com", "b.example.com"]

    def test_results_that_no_other_job_can_get_are_warned_of(self, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("docs_platform_action.report.console.MAX_JOB_OUTPUT_BYTES", 1024)

        ended = run(self.SEVERAL, self.PLATFORM)

        assert ended.exit_code == 0
        assert ended.log.count("::warning::") == 1
        assert "results" in ended.outputs

    def test_a_cancel_before_the_first_leaves_a_row_of_each(self, run: Runner) -> None:
        ended = run(self.SEVERAL, self.PLATFORM, signal_handler=Quiet(signal.SIGINT))

        assert ended.exit_code == 130
        assert [row["failureReason"] for row in json.loads(ended.outputs["results"])] == ["cancelled"] * 2


class TestFiles:
    def test_it_is_checked_before_the_first_request(self, run: Runner, tmp_path: Path) -> None:
        ended = run(EXPORT, environ={"GITHUB_OUTPUT": str(tmp_path / "missing" / "output")})

        assert (ended.exit_code, len(ended.errors), ended.seen) == (1, 1, [])

    def test_one_that_breaks_at_the_end_fails_it_too(self, run: Runner, tmp_path: Path) -> None:
        def break_it(request: Sent) -> None:
            if request.url.endswith("/bundle"):
                (tmp_path / "output").unlink()
                (tmp_path / "output").mkdir()

        ended = run(EXPORT, before=break_it)

        assert ended.exit_code == 1
        assert len(ended.errors) == 1
        assert "failed" in ended.summary

    def test_one_that_does_not_fit_at_the_end_fails_the_run_and_gets_what_is_short(self, run: Runner) -> None:
        endless = {**PLATFORM, "POST /v1/static-export/jobs/se_1/bundle": {"bundleUrl": f"{LINK}{'x' * 5000}", "expiresAt": "x"}}

        with files_of_at_most(4000):
            ended = run(EXPORT, endless)

        assert (ended.exit_code, ended.outputs["failureReason"]) == (1, "internal-error")
        assert (ended.outputs["jobId"], ended.outputs["pageCount"]) == ("se_1", "412")
        assert not {"bundleUrl", "expiresAt"} & {*ended.outputs}
        assert "`mode: collect, job-id: se_1`" in ended.errors[0]

    def test_a_full_disk_of_the_environment_file_is_a_failure_that_says_how_to_collect_the_job(
        self, run: Runner, tmp_path: Path
    ) -> None:
        file = tmp_path / "outputs.env"

        with files_of_at_most(100):
            ended = run(EXPORT, environ={"GITHUB_ACTIONS": "", "GITHUB_OUTPUT": "", "OUTPUT_ENV_FILE": str(file)})

        assert ended.exit_code == 1
        assert f"{file}: File too large." in ended.log
        assert "`mode: collect, job-id: se_1`" in ended.log
        assert "jobId=se_1\n" in ended.log
        assert not file.exists()


class TestFaultsOfTheAction:
    def test_one_before_any_job_is_reported_in_the_same_way(self, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object, **__: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr("docs_platform_action.main.Reader.read", fail)

        ended = run(AGENT)

        assert (ended.exit_code, ended.outputs["failureReason"], ended.seen) == (1, "internal-error", [])
        assert "ZeroDivisionError at test_main.py" in ended.errors[0]
        assert ended.result["mode"] == "agent"


class TestCancel:
    @pytest.mark.parametrize(("received", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    def test_a_signal_gives_its_exit_code_and_one_annotation(self, run: Runner, received: signal.Signals, exit_code: int) -> None:
        ended = run(EXPORT, signal_handler=Quiet(received))

        assert (ended.exit_code, ended.outputs["failureReason"]) == (exit_code, "cancelled")
        assert ended.seen == []
        assert len(ended.errors) == 1
        assert received.name in ended.errors[0]
        assert "`cancelled`" in ended.summary

    def test_a_start_request_in_flight_is_reported_and_had_its_grace(self, run: Runner) -> None:
        signal_handler = Quiet(signal.SIGTERM, in_work=True)

        ended = run(EXPORT, {"POST /v1/static-export/jobs": Cancelled("cancelled")}, signal_handler=signal_handler)

        assert "in flight" in ended.errors[0]
        assert signal_handler.work.stop() == START_GRACE_SECONDS

    def test_once_it_is_stopped_nothing_more_is_asked(self, run: Runner) -> None:
        signal_handler = Quiet(signal.SIGTERM, in_work=True)

        ended = run(EXPORT, signal_handler=signal_handler, before=lambda _request: signal_handler.work.stop())

        assert ended.seen == ["POST /v1/static-export/jobs"]
        assert ended.outputs["jobId"] == "se_1"

    @pytest.mark.parametrize(
        ("asked", "seconds"), [("https://api.", ABORT_GRACE_SECONDS), ("https://storage.", CLEANUP_GRACE_SECONDS)]
    )
    def test_during_a_delivery_there_is_time_to_clean_up(self, run: Runner, asked: str, seconds: float) -> None:
        signal_handler, given = Quiet(signal.SIGTERM, in_work=True), []

        def abort(request: Sent) -> None:
            if request.url.startswith(asked):
                signal_handler.work.stop()
                given.append(signal_handler.work.abort())

        run({**EXPORT, "bundle-path": "bundle"}, STORED, signal_handler=signal_handler, before=abort)

        assert given == [seconds]

    @pytest.mark.parametrize("answered", [502, {}], ids=["502", "no-job"])
    def test_one_with_an_unclear_response_may_have_been_processed(self, run: Runner, answered: object) -> None:
        signal_handler = Quiet(signal.SIGTERM, in_work=True)

        ended = run(
            EXPORT,
            {"POST /v1/static-export/jobs": answered},
            signal_handler=signal_handler,
            before=lambda _request: signal_handler.work.stop(),
        )

        assert (ended.exit_code, ended.outputs["failureReason"]) == (143, "cancelled")
        assert "in flight" in ended.errors[0]


def broken(*_: object, **__: object) -> NoReturn:
    raise KeyError("pages")


class TestBugs:
    """A bug anywhere in what people or later steps read changes no exit code but that of a good run, and shows no stack trace."""

    SEVERAL: Mapping[str, str] = {**TestSeveral.SEVERAL, "bundle-path": "{domain}.tar.gz"}

    AFTER_THE_OUTPUTS = (
        *("main.annotate_failures", "main.write_summary", "report.summary.timeline_of", "report.summary.Summary.page"),
        *("report.failures.failure_lines", "report.log.Log.close", "report.console.Console.warn_of_size"),
        *("report.console.Console.group", "report.console.Console.error"),
    )
    IN_THE_RUN = (
        *("report.console.Console.line", "report.log.Log.job_begun", "report.log.Log.status_read", "report.log.Log.job_ended"),
    )
    FAILED: Mapping[str, Any] = {**TestSeveral.PLATFORM, "GET /v1/static-export/jobs/se_b": {"status": "failed", "error": "x"}}

    def patch(self, monkeypatch: pytest.MonkeyPatch, function: str) -> None:
        monkeypatch.setattr(f"docs_platform_action.{function}", broken)

    @pytest.mark.parametrize("function", AFTER_THE_OUTPUTS)
    @pytest.mark.parametrize(("platform", "exit_code"), [(TestSeveral.PLATFORM, 0), (FAILED, 1)], ids=["good", "failed"])
    def test_after_the_outputs_it_changes_nothing(
        self, run: Runner, monkeypatch: pytest.MonkeyPatch, function: str, platform: Mapping[str, Any], exit_code: int
    ) -> None:
        expected = [row["failureReason"] for row in json.loads(run(TestSeveral.SEVERAL, platform).outputs["results"])]
        self.patch(monkeypatch, function)

        ended = run(TestSeveral.SEVERAL, platform)

        assert ended.exit_code == exit_code
        assert [row["failureReason"] for row in json.loads(ended.outputs["results"])] == expected
        assert "Traceback" not in ended.log

    @pytest.mark.parametrize("function", IN_THE_RUN)
    def test_elsewhere_it_fails_the_run(self, run: Runner, monkeypatch: pytest.MonkeyPatch, function: str) -> None:
        self.patch(monkeypatch, function)

        ended = run(TestSeveral.SEVERAL, TestSeveral.PLATFORM)

        assert (ended.exit_code, ended.outputs["failureReason"]) == (1, "internal-error")
        assert "Traceback" not in ended.log

    @pytest.mark.parametrize("function", [*AFTER_THE_OUTPUTS, "report.log.Log.job_ended"])
    def test_after_a_cancel_its_exit_code_stays(self, run: Runner, monkeypatch: pytest.MonkeyPatch, function: str) -> None:
        self.patch(monkeypatch, function)

        ended = run(TestSeveral.SEVERAL, TestSeveral.PLATFORM, signal_handler=Quiet(signal.SIGTERM))

        assert ended.exit_code == 143
        assert "Traceback" not in ended.log


class TestMain:
    @pytest.fixture(autouse=True)
    def _no_inputs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("GITHUB_OUTPUT", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "RUNNER_DEBUG"):
            monkeypatch.delenv(name, raising=False)

    def test_it_writes_utf_8_whatever_the_locale(self, monkeypatch: pytest.MonkeyPatch) -> None:
        written = io.BytesIO()
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding="ascii"))
        monkeypatch.setenv("INPUT_DOMAIN", "ü…")

        assert main.main(Quiet(), Clock()) == 1
        assert "ü…" in written.getvalue().decode()

    def test_a_bug_before_the_log_shows_no_stack_trace(self, monkeypatch: pytest.MonkeyPatch) -> None:
        written = io.BytesIO()
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written))
        monkeypatch.setattr("docs_platform_action.report.console.Redactor", broken)

        assert main.main(Quiet(), Clock()) == 1
        assert (written.getvalue().count(b"KeyError"), written.getvalue().count(b"\n")) == (1, 1)

    def test_signals_are_ignored_once_all_is_reported(self) -> None:
        signal_handler = Quiet()

        main.main(signal_handler, Clock())

        assert signal_handler.ignored

    def test_it_does_without_a_standard_output(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.stdout", None)

        assert main.main(Quiet(), Clock()) == 1


def test_a_log_that_stays_unwritable_changes_no_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("INPUT_", "GITHUB_"))]:
        monkeypatch.delenv(name)
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)

        assert main.main(Quiet(), Clock()) == 1

        full.flush()  # what Python does when it ends: it fails no more
