"""What only a separate process shows.

That is the workflow's environment, signals, and files that cannot be written.
"""

import re
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from admin_api_simulator import Fault, Simulator
from admin_api_simulator.faults import Operation
from admin_api_simulator.runner import StartedAction
from tests.action import Action, shell_python
from tests.ended import ENTRYPOINT, Ended, ended_of
from tests.raw import RawServer, read_request
from tests.shells import source

NEVER_SECONDS = 3600.0
SILENT = Fault(delay_seconds=NEVER_SECONDS)
EXPORT = {"domain": "docs.example.com"}
FINISHED = {"mode": "collect", "job_id": "export-finished"}
AGENT = {"mode": "agent", "project_id": "demo-project", "job_id": "agent-pull-request"}
HOURLY = {"poll_interval": "1h", "max_poll_interval": "1h"}
BOTH = pytest.mark.parametrize(
    ("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)


@pytest.fixture
def endless(make_platform: Callable[..., Simulator]) -> Simulator:
    """Start a platform whose jobs outlast every test."""
    return make_platform(export_seconds=NEVER_SECONDS, agent_seconds=NEVER_SECONDS, queue_share=0.5)


def until(is_so: Callable[[], object]) -> None:
    while not is_so():
        time.sleep(0.005)


class TestCancel:
    """A cancel ends the run at once in every phase.

    No test measures time: a run that waited would outlast the test.
    """

    def check(
        self, ended: Ended, exit_code: int, *, job_id: str | None, status: str | None
    ) -> None:
        assert ended.end == (exit_code, "cancelled"), ended.stdout
        assert ended.stderr == ""
        assert ended.outputs.get("jobId") == job_id
        assert ended.outputs.get("status") == status
        assert ended.result["failureReason"] == "cancelled"
        assert ended.result["jobId"] == job_id
        assert signal.Signals(exit_code - 128).name in ended.error

    @BOTH
    @pytest.mark.parametrize(
        ("inputs", "fault", "line"),
        [
            (HOURLY, None, "  queued"),
            (
                {"outage_tolerance": "1h"},
                Fault(status=429, headers={"Retry-After": "3000"}),
                " 429 ",
            ),
        ],
        ids=["between two reads", "while the API asks to wait"],
    )
    def test_in_a_pause(
        self,
        action: Action,
        endless: Simulator,
        inputs: dict[str, str],
        fault: Fault | None,
        line: str,
        number: signal.Signals,
        exit_code: int,
    ) -> None:
        endless.script_forever("read_export", fault, after=[None])

        with action.start(endless, **EXPORT, **inputs) as running:
            running.wait_for_line(line)
            running.send_signal(number)
            ended = ended_of(running.collect())

        self.check(ended, exit_code, job_id=ended.outputs["jobId"], status="queued")

    @BOTH
    def test_while_the_start_waits_for_room(
        self, action: Action, endless: Simulator, number: signal.Signals, exit_code: int
    ) -> None:
        endless.script_forever("start_export", Fault(status=409, json={"jobId": "se_7"}))

        with action.start(endless, **EXPORT) as running:
            running.wait_for_line("se_7")
            running.send_signal(number)
            ended = ended_of(running.collect())

        self.check(ended, exit_code, job_id=None, status=None)
        assert "Nothing was started" in ended.error

    @pytest.mark.parametrize(
        ("operation", "inputs", "status"),
        [
            ("start_export", EXPORT, None),
            ("read_export", FINISHED, None),
            ("make_bundle", FINISHED, "completed"),
            ("read_agent_job", AGENT, None),
            ("download", {**FINISHED, "site_path": "site", "bundle_path": "bundle"}, "completed"),
        ],
    )
    def test_in_a_request(
        self,
        action: Action,
        endless: Simulator,
        operation: Operation,
        inputs: dict[str, str],
        status: str | None,
    ) -> None:
        endless.script_forever(operation, SILENT)

        with action.start(endless, **inputs) as running:
            until(lambda: endless.count(operation))
            running.send_signal(signal.SIGINT)
            ended = ended_of(running.collect())

        self.check(ended, 130, job_id=inputs.get("job_id"), status=status)
        # after a start without a response, an export may be running there
        assert ("dashboard" in ended.error) == (operation == "start_export")
        assert endless.count(operation) == 1
        assert "bundleUrl" not in ended.outputs
        assert [*action.workspace.iterdir()] == []

    def test_a_response_to_the_start_right_after_the_signal_still_gives_the_job_id(
        self, action: Action
    ) -> None:
        arrived: list[socket.socket] = []

        def answer_later(connection: socket.socket) -> None:
            read_request(connection)
            arrived.append(connection)
            read_request(connection)

        # long enough for a loaded machine
        action.constants["jobs.runner.START_GRACE_SECONDS"] = 60.0
        with (
            RawServer(answer_later) as server,
            action.start(server.base_url, **EXPORT, **HOURLY) as running,
        ):
            until(lambda: arrived)
            running.send_signal(signal.SIGTERM)
            until(lambda: is_delivered(running, signal.SIGTERM))
            arrived[0].sendall(
                b'HTTP/1.1 202 Accepted\r\nContent-Length: 20\r\n\r\n{"jobId":"late-one"}'
            )
            ended = ended_of(running.collect())

        assert ended.end == (143, "cancelled")
        assert ended.outputs["jobId"] == "late-one"
        assert server.connections == 1

    @BOTH
    def test_a_response_to_the_start_two_seconds_after_the_signal_still_gives_the_job_id(
        self, action: Action, endless: Simulator, number: signal.Signals, exit_code: int
    ) -> None:
        endless.script("start_export", Fault(delay_seconds=2.0))

        with action.start(endless, **EXPORT, **HOURLY) as running:
            until(lambda: endless.count("start_export"))
            running.send_signal(number)
            ended = ended_of(running.collect())

        assert ended.outputs["jobId"]
        self.check(ended, exit_code, job_id=ended.outputs["jobId"], status="queued")
        assert endless.count("start_export") == 1
        assert endless.count("read_export") == 0

    @BOTH
    def test_while_the_interpreter_starts(
        self,
        action: Action,
        platform: Simulator,
        tmp_path: Path,
        number: signal.Signals,
        exit_code: int,
    ) -> None:
        early = "    signal_handler = SignalHandler(clock)\n"
        kill = f"    import os\n    os.kill(os.getpid(), {int(number)})\n"
        text = ENTRYPOINT.read_text()
        assert text.count(early) == 1
        action.entrypoint = tmp_path / "entrypoint.py"
        action.entrypoint.write_text(text.replace(early, early + kill))

        ended = action.run_process(platform, **EXPORT)

        assert ended.end == (exit_code, "cancelled")
        assert platform.requests == []


def is_delivered(running: StartedAction, number: signal.Signals) -> bool:
    """Return whether a process has received a signal, or has ended."""
    try:
        status = Path(f"/proc/{running.pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    fields = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
    has_ended = fields["State"].startswith("Z")
    pending_signals = int(fields["ShdPnd"], 16)
    is_pending = bool(pending_signals & 1 << (number - 1))
    return has_ended or not is_pending


FILES_THAT_PYTHON_COULD_RUN: Final = (
    "requests",
    "sitecustomize",
    "usercustomize",
    "docs_platform_action",
    "json",
    "startup",
)


class TestEnvironment:
    def test_python_files_of_the_workspace_and_variables_of_python_have_no_effect(
        self, action: Action, platform: Simulator
    ) -> None:
        for name in FILES_THAT_PYTHON_COULD_RUN:
            file = action.workspace / f"{name}.py"
            file.write_text("raise SystemExit('a file of the workspace ran')\n")
        workspace = str(action.workspace)
        variables = {
            "PYTHONPATH": workspace,
            "PYTHONHOME": workspace,
            "PYTHONSTARTUP": f"{workspace}/startup.py",
            "PYTHONWARNINGS": "error",
            "PYTHONIOENCODING": "ascii:strict",
        }

        ended = action.run_process(platform, env=variables, **FINISHED)

        assert ended.end == (0, None)
        assert ended.stderr == ""

    def test_warnings_messages_and_traces_of_libraries_are_not_shown(
        self, action: Action, platform: Simulator, tmp_path: Path
    ) -> None:
        action.entrypoint = tmp_path / "entrypoint.py"
        action.debug = True
        action.entrypoint.write_text(f"{NOISE}\n{ENTRYPOINT.read_text()}")

        ended = action.run_process(platform, **FINISHED, bundle_path="bundle")

        shown = ended.stdout + ended.stderr
        assert ended.exit_code == 0
        for text in ("of a library", "during the imports", "Traceback", "File "):
            assert text not in shown
        assert {*re.findall(r"unexpected (\w+)", ended.stderr)} == {"ZeroDivisionError", "OSError"}


NOISE = """
import logging, sys, threading, warnings

def make_noise(event, args):
    if event == "import" and args[0] == "requests":
        warnings.warn("a warning during the imports")
    if event == "socket.connect":
        warnings.warn("a warning of a library")
        logging.getLogger("library").critical("a message of a library")
        threading.Thread(target=lambda: 1 / 0).start()
        class Noisy:
            def __del__(self):
                raise OSError
        Noisy()

sys.addaudithook(make_noise)
"""


class TestFilesThatCannotBeWritten:
    @pytest.mark.parametrize(
        "place", ["{folder}", "{folder}/missing/output", "/proc/nowhere/output"]
    )
    def test_an_output_file_that_cannot_be_opened_fails_the_run_before_any_request(
        self, action: Action, platform: Simulator, tmp_path: Path, place: str
    ) -> None:
        env = {"GITHUB_OUTPUT": place.format(folder=tmp_path)}

        ended = action.run_process(platform, env=env, **EXPORT)

        assert ended.exit_code == 1
        assert platform.requests == []
        assert "GITHUB_OUTPUT" in ended.error
        assert "`internal-error`" in ended.summary

    def test_outputs_that_do_not_fit_fail_the_run_and_leave_no_part_of_a_record(
        self, action: Action, platform: Simulator, tmp_path: Path
    ) -> None:
        # files of 1 KiB at most
        action.python = shell_python(tmp_path, 'ulimit -f 1 && exec "$python" "$@"')
        platform.override("make_bundle", {"bundleUrl": f"https://storage.example.com/{'x' * 1000}"})

        ended = action.run_process(platform, **FINISHED)

        known = {
            "jobId": "export-finished",
            "status": "completed",
            "pageCount": "12",
            "failureReason": "internal-error",
        }
        assert ended.exit_code == 1
        assert known.items() <= ended.outputs.items()
        assert not {"results", "bundleUrl"} & {*ended.outputs}

    @pytest.mark.parametrize(
        "redirection",
        ["> >(exit 0)", "> /dev/full", ">&-", "<&- >&- 2>&-", "> /dev/full 2> /dev/full"],
    )
    def test_a_log_that_cannot_be_written_does_not_stop_the_run(
        self, action: Action, platform: Simulator, tmp_path: Path, redirection: str
    ) -> None:
        action.python = shell_python(tmp_path, f'exec "$python" "$@" {redirection}')

        ended = action.run_process(platform, **FINISHED)

        assert ended.end == (0, None)
        assert ended.stdout == ""
        assert "Traceback" not in ended.stderr
        assert ended.outputs["bundleUrl"]
        assert ended.summary


@pytest.mark.parametrize("debug", [False, True])
def test_an_internal_error_shows_its_traceback_only_with_debug_logging(
    action: Action, platform: Simulator, tmp_path: Path, debug: bool
) -> None:
    # a thread's stack takes all available memory, so no thread can be started
    action.python = shell_python(
        tmp_path, 'ulimit -S -s 2000000 && ulimit -S -v 1900000 && exec "$python" "$@"'
    )
    action.debug = debug

    ended = action.run_process(platform, **EXPORT)

    assert ended.end == (1, "internal-error")
    assert ended.result["failureReason"] == "internal-error"
    assert "RuntimeError" in ended.error
    assert ("Traceback" in ended.stdout) == debug
    assert "Traceback" not in ended.stderr


class TestOutsideAWorkflow:
    NO_RUNNER = dict.fromkeys(("GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "CI"), "")
    TO_FILE = NO_RUNNER | {"OUTPUT_ENV_FILE": "outputs.env"}

    @staticmethod
    def printed(ended: Ended) -> dict[str, str]:
        return dict(re.findall(r"(?m)^(\w+)=(.*)$", ended.stdout))

    def test_outputs_are_printed_and_no_command_is(
        self, action: Action, platform: Simulator
    ) -> None:
        ended = action.export(platform, env=self.NO_RUNNER)

        outputs = self.printed(ended)
        assert outputs.keys() == {
            "jobId",
            "status",
            "pageCount",
            "bundleUrl",
            "expiresAt",
            "durationSeconds",
            "results",
        }
        assert outputs["bundleUrl"].startswith(platform.storage_url)
        assert "::" not in ended.stdout.replace(outputs["results"], "")

    @pytest.mark.parametrize(
        "text", ["::error::stolen", "##[error]stolen", "\x1b[31mred", "a\n::error::stolen"]
    )
    def test_a_failure_is_plain_text_and_foreign_text_is_harmless(
        self, action: Action, platform: Simulator, text: str
    ) -> None:
        platform.script_forever("read_export", Fault(json={"status": "failed", "error": text}))

        ended = action.export(platform, env=self.NO_RUNNER)

        assert self.printed(ended)["failureReason"] == "job-failed"
        assert re.search("^Error: ", ended.stdout, re.MULTILINE)
        for line in ended.stdout.splitlines():
            assert not line.lstrip().startswith("::")
        assert "\x1b" not in ended.stdout

    def test_a_shell_gets_the_outputs_from_the_file_and_none_of_an_earlier_run(
        self, action: Action, platform: Simulator
    ) -> None:
        file = action.workspace / "outputs.env"

        ended = action.export(platform, env=self.TO_FILE, site_path="site")
        first = source(file)
        failed = action.export(platform, env=self.TO_FILE, timeout="never")

        assert first == self.printed(ended)
        assert first["sitePath"] == "site"
        assert file.stat().st_mode & 0o777 == 0o600
        assert source(file) == self.printed(failed)
        assert source(file)["failureReason"] == "invalid-input"
