"""The log cannot decide how a run ends, neither by blocking nor by failing."""

import contextlib
import io
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from unittest import mock

import pytest

from admin_api_simulator import Fault, Simulator
from docs_platform_action.errors import Cancelled
from docs_platform_action.events import Listener
from docs_platform_action.outputs import Outputs
from docs_platform_action.report import console
from docs_platform_action.report.live import LiveLines
from docs_platform_action.report.log import Log
from docs_platform_action.signals import SignalHandler, Work
from tests.action import Action, InProcessHandler, run_in_process
from tests.ended import Ended
from tests.keys import ADMIN_KEY
from tests.virtual_platform import VirtualPlatform
from tests.virtual_time import VirtualClock

DOMAIN: Final = "docs.example.com"
DOMAINS: Final = [DOMAIN, "a.example.com", "b.example.com"]
METHODS: Final = [*(name for name in vars(Listener) if not name.startswith("_")), "close"]
MAX_SECONDS: Final = 60.0  # of a wait that ends at once unless a test fails


class Terminated(SignalHandler):
    """Runs the work in a thread, and takes SIGTERM for received once this thread is `blocked`."""

    def __init__(self, blocked: threading.Event) -> None:
        """Leave the process's signal handlers alone."""
        self._blocked = blocked

    def run(self, work: Work) -> signal.Signals:
        def run() -> None:
            with contextlib.suppress(Cancelled):
                work.run()

        threading.Thread(target=run, daemon=True).start()
        assert self._blocked.wait(MAX_SECONDS)
        self.received = signal.SIGTERM
        work.stop()
        work.abort()
        return signal.SIGTERM


class BlockedLog(io.StringIO):
    """A log that blocks at a line with this text until it is `read`."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text
        self.blocked = threading.Event()
        self.read = threading.Event()

    def write(self, line: str) -> int:
        if self._text in line and not self.blocked.is_set():
            self.blocked.set()
            assert self.read.wait(MAX_SECONDS)
        return super().write(line)


def terminated(
    platform: Simulator, action: Action, blocked: threading.Event, **options: Any
) -> Ended:
    """Run an export that gets SIGTERM once something is blocked."""
    inputs = {"base-url": platform.base_url, "admin-key": ADMIN_KEY, "domain": DOMAIN}
    with mock.patch("tests.action.InProcessHandler", return_value=Terminated(blocked)):
        return run_in_process(inputs, platform, workspace=action.workspace, **options)


class TestTheStart:
    """A job that was started is never denied.

    This holds whatever blocks when the response to its start has arrived.
    """

    def check(self, ended: Ended, job_id: str) -> None:
        assert ended.exit_code == 143
        assert f"Job {job_id} continues" in ended.error
        assert "Nothing was started" not in ended.stdout + ended.summary

    @pytest.mark.parametrize(
        "text",
        ["responding again", "accepted the start", "POST /v1/static-export/jobs: 2", " started ("],
    )
    def test_a_log_that_blocks_at_any_line_about_it_keeps_no_id_from_being_written(
        self, action: Action, make_platform: Callable[..., Simulator], text: str
    ) -> None:
        platform = make_platform(export_seconds=3600.0)
        log = BlockedLog(text)
        status = 429 if text.startswith("accepted") else 503
        platform.script("start_export", Fault(status=status, headers={"Retry-After": "1"}))
        write_all = Outputs.write_all

        def write_all_then_read(outputs: Outputs, *given: Any, **options: Any) -> None:
            write_all(outputs, *given, **options)
            log.read.set()

        with mock.patch.object(Outputs, "write_all", write_all_then_read):
            ended = terminated(platform, action, log.blocked, stream=log, debug=True)

        self.check(ended, ended.outputs["jobId"])
        assert ended.reason == "cancelled"
        assert ended.result["jobId"] == ended.outputs["jobId"]

    def test_its_id_is_written_before_a_line_about_it(
        self, action: Action, platform: Simulator
    ) -> None:
        output = action.workspace / "output"
        output.touch()
        written: list[bool] = []
        announce = Log.request_ended

        def look(log: Log, *given: Any, **options: Any) -> None:
            written.append("jobId" in output.read_text())
            announce(log, *given, **options)

        with mock.patch.object(Log, "request_ended", look):
            action.export(platform, wait="false", env={"GITHUB_OUTPUT": str(output)})

        assert written == [True]

    def test_an_output_file_that_blocks_does_not_keep_the_id_from_the_annotation(
        self, action: Action, make_platform: Callable[..., Simulator]
    ) -> None:
        platform = make_platform(export_seconds=3600.0, job_ids=["se_42"])
        blocked = threading.Event()
        output = action.workspace / "output"
        check = Outputs.check
        write_job_id = Outputs.write_job_id

        def check_then_block(outputs: Outputs) -> None:
            check(outputs)
            output.unlink()
            os.mkfifo(output)  # which nothing reads

        def write(outputs: Outputs, job: Any) -> None:
            blocked.set()
            write_job_id(outputs, job)

        with mock.patch.multiple(Outputs, check=check_then_block, write_job_id=write):
            ended = terminated(platform, action, blocked, env={"GITHUB_OUTPUT": str(output)})
        unblock(output)

        self.check(ended, "se_42")
        assert "output" in "\n".join(ended.warnings)

    @pytest.mark.parametrize("domains", [DOMAINS[:1], DOMAINS], ids=["one site", "three sites"])
    def test_nor_does_one_that_blocks_only_at_the_end(
        self, action: Action, platform: Simulator, domains: list[str]
    ) -> None:
        output = action.workspace / "output"
        output.touch()
        handler = InProcessHandler(VirtualClock())
        write_all = Outputs.write_all

        def block_and_write_all(outputs: Outputs, *given: Any, **options: Any) -> None:
            output.unlink()
            os.mkfifo(output)  # which nothing reads
            handler.received = signal.SIGTERM
            write_all(outputs, *given, **options)

        platform.script("start_export", Fault(status=422), domain=DOMAINS[1])

        with (
            mock.patch("tests.action.InProcessHandler", return_value=handler),
            mock.patch.object(Outputs, "write_all", block_and_write_all),
        ):
            ended = action.run(
                platform,
                domain="\n".join(domains),
                wait="false",
                env={"GITHUB_OUTPUT": str(output)},
            )
        unblock(output)

        rejected = [error for error in ended.errors if "422" in error]
        cancelled = [error for error in ended.errors if "SIGTERM" in error]
        continuing = [error for error in cancelled if "continues on the platform" in error]
        assert ended.exit_code == 143
        assert len(ended.errors) == len(domains)
        assert len(rejected) == domains.count(DOMAINS[1])
        assert len(continuing) == len(domains) - len(rejected)
        assert "output" in "\n".join(ended.warnings)


def unblock(fifo: Path) -> None:
    """Let the threads end that write to a FIFO."""
    descriptor = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and thread.daemon:
            thread.join(0.1)
    os.close(descriptor)


def run_with_all_events(workspace: Path, domains: list[str]) -> Ended:
    """Return a run in which each event happens. Every site is delivered in the end."""
    action = Action(workspace)
    action.debug = True
    workspace.mkdir()
    platform = VirtualPlatform(
        VirtualClock(), export_seconds=120.0, link_seconds=30.0, archive="zip"
    )
    for domain in domains:
        platform.simulator.script("start_export", Fault(status=409), domain=domain)
        platform.simulator.script("read_export", None, Fault(status=503), domain=domain)
        # without these headers, the download cannot be resumed
        cut = Fault(headers={"ETag": "", "Last-Modified": ""}, cut="in_body")
        platform.simulator.script("download", cut, domain=domain)
    name = "{domain}" if len(domains) > 1 else "docs"
    paths = {"bundle_path": f"{name}.zip", "site_path": name, "values_file": f"{name}.yaml"}
    return action.run(platform, domain="\n".join(domains), **paths)


def outcome(ended: Ended) -> tuple[object, ...]:
    """Return how a run ended and what it delivered.

    The links are left out: they have random signatures.
    """
    delivered = ended.results
    for row in delivered:
        del row["bundleUrl"]
    content = {name: data for name, data in ended.left.items() if name.endswith((".zip", ".html"))}
    return ended.end, {*ended.outputs}, delivered, {*ended.left}, content, ended.summary


@pytest.mark.parametrize("domains", [DOMAINS[:1], DOMAINS], ids=["one site", "three sites"])
def test_a_fault_in_any_method_of_the_log_is_one_warning_and_changes_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, domains: list[str]
) -> None:
    usual = run_with_all_events(tmp_path / "usual", domains)
    assert usual.end == (0, None), usual.stdout
    assert not [warning for warning in usual.warnings if "log" in warning]

    for name in METHODS:
        fail = mock.Mock(side_effect=LookupError(name))
        with monkeypatch.context() as patched:
            patched.setattr(Log, name, fail)
            ended = run_with_all_events(tmp_path / name, domains)

        assert fail.called, name
        assert outcome(ended) == outcome(usual), name
        assert ended.stdout.count("cannot be written (LookupError)") == 1, name
        assert ended.errors == [], name
        assert ended.stderr == ""


def test_a_fault_in_showing_a_text_is_a_warning_even_if_the_fault_shows_this_text(
    action: Action, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean = console.clean

    def fail_at_a_status(text: str, **options: Any) -> str:
        if "strange" in text:
            raise LookupError(text)
        return clean(text, **options)

    monkeypatch.setattr(console, "clean", fail_at_a_status)
    platform = VirtualPlatform(VirtualClock())
    platform.simulator.script("read_export", Fault(json={"status": "strange"}))
    action.debug = True

    ended = action.export(platform)

    assert ended.end == (0, None)
    assert ended.stdout.count("cannot be written (LookupError)") == 1


def test_a_fault_in_the_first_line_of_several_domains_is_a_warning(
    action: Action, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LiveLines, "begin", mock.Mock(side_effect=LookupError))

    ended = action.run(VirtualPlatform(VirtualClock()), domain="\n".join(DOMAINS))

    assert ended.end == (0, None)
    assert ended.stdout.count("cannot be written (LookupError)") == 1
