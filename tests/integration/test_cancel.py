"""A cancellation ends the run at once in every phase, and the outputs hold everything that is known.

No test here measures time: a run that waited for the response or the pause would outlast the test.
"""

import contextlib
import fcntl
import json
import os
import signal
import socket
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from admin_api_simulator import Fault, Simulator
from admin_api_simulator.faults import Operation
from admin_api_simulator.runner import parse_outputs
from tests.action import Action, shell_python
from tests.ended import ENTRYPOINT, Ended
from tests.integration.raw import RawServer, hold, read_request
from tests.ports import refusing_port

NEVER_SECONDS = 3600.0
BOTH = pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])


@pytest.fixture
def platform(make_platform: Callable[..., Simulator]) -> Simulator:
    """Start a platform whose jobs outlast every test."""
    return make_platform(export_seconds=NEVER_SECONDS, agent_seconds=NEVER_SECONDS, queue_share=0.5)


def wait_for_request(platform: Simulator, operation: Operation) -> None:
    while not platform.count(operation):
        time.sleep(0.005)


def assert_cancelled(ended: Ended, exit_code: int, *, job_id: str | None, status: str | None, in_flight: bool = False) -> None:
    """Check the outputs and the annotation: a headline, whether a job may run, the cause, and how to collect a known one."""
    assert (ended.exit_code, ended.stderr) == (exit_code, ""), ended.stdout
    assert (ended.reason, ended.outputs.get("jobId"), ended.outputs.get("status")) == ("cancelled", job_id, status)
    assert (ended.result["failureReason"], ended.result["jobId"]) == ("cancelled", job_id)
    assert len(ended.error.splitlines()) == 2 + (job_id is None) + (status is not None)
    assert ("dashboard" in ended.error) == in_flight
    assert signal.Signals(exit_code - 128).name in ended.error


EXPORT = {"domain": "docs.example.com"}
HOURLY = {"poll_interval": "1h", "max_poll_interval": "1h"}


@BOTH
@pytest.mark.parametrize(
    ("inputs", "fault", "line"),
    [
        (HOURLY, None, "  queued"),
        ({"outage_tolerance": "1h"}, Fault(status=429, headers={"Retry-After": "3000"}), " 429 "),
    ],
    ids=["between two polls", "as long as the API asked"],
)
def test_in_a_pause(
    action: Action,
    platform: Simulator,
    inputs: dict[str, str],
    fault: Fault | None,
    line: str,
    number: signal.Signals,
    exit_code: int,
) -> None:
    platform.script_forever("read_export", fault, after=[None])

    with action.start(platform, **EXPORT, **inputs) as running:
        running.wait_for(line)
        running.signal(number)
        ended = running.wait()

    assert_cancelled(ended, exit_code, job_id=ended.outputs["jobId"], status="queued")


@BOTH
def test_while_the_type_of_the_download_is_still_unknown(
    action: Action, make_platform: Callable[..., Simulator], number: signal.Signals, exit_code: int
) -> None:
    asked = []

    def begin(connection: socket.socket) -> None:
        asked.append(read_request(connection))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5000\r\n\r\n \n")
        hold(connection)

    platform = make_platform()
    with RawServer(begin) as storage:
        platform.override("make_bundle", {"bundleUrl": f"{storage.base_url}/b.tar.gz"})
        paths = {"bundle_path": "out/bundle", "site_path": "out/site"}
        with action.start(platform, mode="collect", job_id="export-finished", outage_tolerance="1h", **paths) as running:
            while not asked:
                time.sleep(0.005)
            running.signal(number)
            ended = running.wait()

    assert_cancelled(ended, exit_code, job_id="export-finished", status="completed")
    assert [*action.workspace.iterdir()] == []


SILENT = Fault(delay_seconds=NEVER_SECONDS)
BYTE_BY_BYTE = Fault(drip_seconds=0.05, json={"status": "running", "filler": "x" * 100_000})
FINISHED = {"mode": "collect", "job_id": "export-finished"}
AGENT = {"mode": "agent", "project_id": "demo-project", "job_id": "agent-pull-request"}


@BOTH
@pytest.mark.parametrize(
    ("operation", "fault", "inputs", "status"),
    [
        ("start_export", SILENT, EXPORT, None),
        ("read_export", SILENT, FINISHED, None),
        ("read_export", BYTE_BY_BYTE, FINISHED, None),
        ("make_bundle", SILENT, FINISHED, "completed"),
        ("read_agent_job", SILENT, AGENT, None),
    ],
)
def test_in_a_request(
    action: Action,
    platform: Simulator,
    operation: Operation,
    fault: Fault,
    inputs: dict[str, str],
    status: str | None,
    number: signal.Signals,
    exit_code: int,
) -> None:
    platform.script_forever(operation, fault)

    with action.start(platform, **inputs) as running:
        wait_for_request(platform, operation)
        running.signal(number)
        ended = running.wait()

    assert_cancelled(ended, exit_code, job_id=inputs.get("job_id"), status=status, in_flight=operation == "start_export")
    assert platform.count(operation) == 1
    assert "bundleUrl" not in ended.outputs


def test_while_the_connection_for_the_start_is_being_made(action: Action) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts the connection and never responds to the TLS handshake
        base_url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        with action.start(base_url, domain="docs.example.com") as running:
            connection, _ = silent.accept()
            with connection:
                connection.recv(1)
                running.signal(signal.SIGINT)
                ended = running.wait()

    assert_cancelled(ended, 130, job_id=None, status=None)


@pytest.mark.parametrize(
    "fault", [Fault(status=429, headers={"Retry-After": "3000"}), None], ids=["turned away", "not connected"]
)
def test_in_the_pause_after_a_start_that_was_certainly_not_processed(
    action: Action, platform: Simulator, fault: Fault | None
) -> None:
    platform.script_forever("start_export", fault)
    with refusing_port() as (host, port):
        base_url = platform.base_url if fault else f"http://{host}:{port}"
        with action.start(base_url, domain="docs.example.com", outage_tolerance="1h") as running:
            running.wait_for("Retrying")
            running.signal(signal.SIGINT)
            ended = running.wait()

    assert_cancelled(ended, 130, job_id=None, status=None)


def wait_until_received(pid: int, number: signal.Signals) -> None:
    """Wait until a process has received a signal or has ended."""
    while True:
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return
        fields = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
        if fields["State"].startswith("Z") or not int(fields["ShdPnd"], 16) & 1 << (number - 1):
            return
        time.sleep(0.005)


def test_a_start_response_right_after_the_signal_still_gives_its_job_id(action: Action) -> None:
    arrived: list[socket.socket] = []
    more = b""

    def answer_on_request(connection: socket.socket) -> None:
        nonlocal more
        read_request(connection)
        arrived.append(connection)
        more += read_request(connection)

    # long enough for the response on a loaded machine; the next request would follow after three seconds
    action.set_constants(jobs__runner__START_GRACE_SECONDS=60.0)
    inputs = {"domain": "docs.example.com", "poll_interval": "1h", "max_poll_interval": "1h"}
    with RawServer(answer_on_request) as server, action.start(server.base_url, **inputs) as running:
        while not arrived:
            time.sleep(0.005)
        running.signal(signal.SIGTERM)
        wait_until_received(running.pid, signal.SIGTERM)
        body = b'{"jobId": "late-one", "status": "queued"}'
        arrived[0].sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        ended = running.wait()

    assert_cancelled(ended, 143, job_id="late-one", status="queued")
    assert (server.connections, more) == (1, b"")


@pytest.mark.parametrize("address", ["http://127.0.0.1:{port}", "https://127.0.0.1:{port}"])
def test_in_a_connection_to_a_server_that_never_responds(action: Action, address: str) -> None:
    with RawServer(hold) as server, action.start(address.format(port=server.port), mode="collect", job_id="j-1") as running:
        while not server.connections:
            time.sleep(0.005)
        running.signal(signal.SIGINT)
        ended = running.wait()

    assert_cancelled(ended, 130, job_id="j-1", status=None)


def wait_for_outputs(file: Path) -> Mapping[str, str]:
    """Wait until a run has written `results`, its last output."""
    while True:
        with contextlib.suppress(ValueError):  # an incomplete record
            if "results" in (found := parse_outputs(file.read_text())):
                return found
        time.sleep(0.005)


@pytest.fixture
def outputs(action: Action, tmp_path: Path) -> Path:
    """Create an output file that is readable during a run, and let a second signal end the run sooner."""
    action.set_constants(signals__FORCE_EXIT_SECONDS=0.2)
    file = tmp_path / "output"
    file.touch()
    return file


@pytest.mark.parametrize("domains", ["docs.example.com", "docs.example.com\nhelp.example.com"])
def test_a_run_with_a_blocked_log_writes_its_outputs_and_ends_by_a_late_signal(
    action: Action, platform: Simulator, outputs: Path, tmp_path: Path, domains: str
) -> None:
    action.python = shell_python(tmp_path, f'exec "$python" "$@" >"{tmp_path}/log"')
    action.debug = True  # one line per request
    action.set_constants(http__pacing__GAP_SECONDS=0.001)  # fills the pipe sooner

    with (
        pipe_without_reader(tmp_path / "log") as pipe,
        action.start(platform, domain=domains, max_poll_interval="20ms", env={"GITHUB_OUTPUT": str(outputs)}) as running,
    ):
        wait_until_full(pipe)
        running.signal(signal.SIGINT)
        written = wait_for_outputs(outputs)
        time.sleep(0.3)
        running.signal(signal.SIGTERM)
        ended = running.wait()

    assert (ended.exit_code, ended.stderr) == (143, "")
    assert [row["failureReason"] for row in json.loads(written["results"])] == ["cancelled"] * len(domains.split())


PIPE_BYTES = 4096
MAX_LINE_BYTES = 200


@contextlib.contextmanager
def pipe_without_reader(path: Path) -> Iterator[int]:
    """Create a named pipe that blocks its writer after a few bytes."""
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDWR)
    try:
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        yield pipe
    finally:
        os.close(pipe)


def wait_until_full(pipe: int) -> None:
    """Wait until a pipe has no room for another log line, and nothing has been written for a while."""
    before, held = -1, 0
    while held < PIPE_BYTES - MAX_LINE_BYTES or held != before:
        time.sleep(0.3)
        before, held = held, int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


@BOTH
def test_while_the_interpreter_starts(
    action: Action, platform: Simulator, tmp_path: Path, number: signal.Signals, exit_code: int
) -> None:
    # stops where the entry point has installed its handler and still has modules to import
    action.entrypoint = entry_point_that_signals_itself(tmp_path, number)

    ended = action.export(platform)

    assert ended.exit_code == exit_code
    assert ended.reason == "cancelled"
    assert platform.requests == []


def entry_point_that_signals_itself(folder: Path, number: signal.Signals) -> Path:
    """Copy the entry point, with a signal to itself between its first import and the others."""
    text = ENTRYPOINT.read_text()
    early = "signal_handler = SignalHandler(clock)\n"
    assert text.count(early) == 1
    copy = folder / "entrypoint.py"
    copy.write_text(text.replace(early, f"{early}    __import__('os').kill(__import__('os').getpid(), {int(number)})\n"))
    return copy
