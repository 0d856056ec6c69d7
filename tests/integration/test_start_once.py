"""The start request is sent only once, unless it was certainly not processed."""

import socket
import time
from collections.abc import Callable

import pytest

from admin_api_simulator import Fault, Simulator
from docs_platform_action.api.answers import Call
from docs_platform_action.errors import StartUnconfirmed
from docs_platform_action.http.transport import Request, Timeouts
from docs_platform_action.inputs.settings import Mode
from docs_platform_action.job import Job
from docs_platform_action.models import StartedExport
from tests.action import Action
from tests.integration.parts import api_of
from tests.integration.raw import RawServer, read_request

LOST = {
    "before the answer": Fault(cut="before_response", processed=True),
    "in the status line": Fault(raw=b"HTTP/1.1 20", processed=True),
    "in the headers": Fault(cut="in_headers"),
    "in the body": Fault(cut="in_body"),
    "garbage": Fault(raw=b"\x00\xff no HTTP\r\n\r\n", processed=True),
    "502": Fault(status=502, body="<html>bad gateway</html>", processed=True),
}


@pytest.mark.parametrize("how", LOST)
def test_a_start_without_a_response_is_not_sent_again(action: Action, platform: Simulator, how: str) -> None:
    platform.script("start_export", LOST[how])

    ended = action.export(platform)

    assert (ended.exit_code, ended.reason) == (1, "start-unconfirmed"), ended.error
    assert [request.operation for request in platform.requests] == ["start_export"]
    assert "jobId" not in ended.outputs


def test_a_start_waits_until_the_platform_is_up(action: Action, make_platform: Callable[..., Simulator]) -> None:
    with socket.socket() as reserved:
        # reserves the port; without a listener the platform can still bind it
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        with action.start(f"http://127.0.0.1:{port}", domain="docs.example.com", outage_tolerance="60s") as running:
            running.wait_for(f"127.0.0.1:{port}")
            platform = make_platform(port=port)
            ended = running.wait()

    assert (ended.exit_code, platform.count("start_export")) == (0, 1)


def test_a_start_that_was_rejected_for_now_is_sent_again(action: Action) -> None:
    starts = []

    def reject_at_first(connection: socket.socket) -> None:
        starts.append(read_request(connection))
        if len(starts) == 1:
            connection.sendall(b"HTTP/1.1 429 Wait\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n")
        else:
            connection.sendall(b'HTTP/1.1 202 Accepted\r\nContent-Length: 15\r\n\r\n{"jobId": "j7"}')

    action.set_constants(http__retry__MAX_PAUSE_SECONDS=0.1)
    with RawServer(reject_at_first) as server:
        ended = action.export(server.base_url, outage_tolerance="1m", wait="false")

    assert (ended.exit_code, ended.outputs["jobId"], len(starts)) == (0, "j7", 2)


def test_a_start_with_a_response_that_is_too_slow_is_not_sent_again() -> None:
    started = []

    def drip(connection: socket.socket) -> None:
        started.append(read_request(connection))
        while True:
            connection.sendall(b"H")
            time.sleep(0.02)

    start = Call(
        job=Job(mode=Mode.EXPORT, domain="docs.example.com"),
        action="start exports",
        request=Request(method="POST", url="/v1/static-export/jobs"),
        read=StartedExport.from_json,
        is_start=True,
        timeouts=Timeouts(total_seconds=1.0),
    )
    with RawServer(drip) as server, pytest.raises(StartUnconfirmed):
        api_of(server.base_url).send(start)

    assert len(started) == 1
