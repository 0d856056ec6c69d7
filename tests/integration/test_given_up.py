"""Of a start request that is given up before there is a connection for it, nothing is ever sent."""

import contextlib
import functools
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import trustme

from docs_platform_action.api.client import ApiClient
from docs_platform_action.http.faults import ResponseTimeout
from docs_platform_action.http.transport import Request, Timeouts, Transport
from docs_platform_action.http.trust import create_ssl_context
from tests.inside import run_inside
from tests.integration.parts import api_client_to
from tests.integration.raw import RawServer, exchange_threads, missing_bytes, relay, tunnel
from tests.keys import ADMIN_KEY
from tests.ports import unresponsive_port
from tests.unit.fakes import http_client

WAIT_SECONDS = 60.0
"""Longer than any wait on a loaded machine."""

JOB = b'{"jobId": "j7"}'


def start_request() -> Request:
    return Request(method="POST", url="/v1/static-export/jobs", body={"domain": "docs.example.com"})


@dataclass
class Recorder:
    """A server that records every byte, and responds to a complete request."""

    received: bytes = b""

    def __call__(self, connection: socket.socket) -> None:
        while piece := connection.recv(65536):
            self.received += piece
            if not missing_bytes(self.received):
                connection.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: %d\r\n\r\n%b" % (len(JOB), JOB))


@dataclass
class Platform:
    """A platform that nobody reaches until `released` is set. `waits` holds who waits for that."""

    base_url: str
    recorder: Recorder
    certificate: str
    released: threading.Event
    proxies: dict[str, str] = field(default_factory=dict)
    waits: list[str] = field(default_factory=list)

    def client(self) -> ApiClient:
        client = http_client(Transport(create_ssl_context(self.certificate)), proxies=self.proxies)
        return ApiClient(client, base_url=self.base_url, key=ADMIN_KEY)


HANGS = ["lookup, http", "lookup, https", "connect, http", "connect, https", "handshake", "proxy"]


@pytest.fixture
def platform(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Platform]:
    """Start a platform whose clients hang as the parameter says."""
    hang, authority, released, recorder = request.param, trustme.CA(), threading.Event(), Recorder()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    with contextlib.ExitStack() as stack:
        server = stack.enter_context(RawServer(recorder, tls=None if hang.endswith("http") else context))
        platform = Platform(server.base_url, recorder, authority.cert_pem.bytes().decode(), released)

        def after_release(function: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(function)
            def wait(*args: Any, **options: Any) -> Any:
                platform.waits.append(hang)
                released.wait(WAIT_SECONDS)
                return function(*args, **options)

            return wait

        if hang.startswith("lookup"):
            monkeypatch.setattr(socket, "getaddrinfo", after_release(socket.getaddrinfo))
        elif hang.startswith("connect"):
            monkeypatch.setattr(socket.socket, "connect", after_release(socket.socket.connect))
        elif hang == "handshake":
            front = stack.enter_context(RawServer(after_release(functools.partial(relay, to=server.port))))
            platform.base_url = f"https://127.0.0.1:{front.port}"
        else:
            proxy = stack.enter_context(RawServer(after_release(functools.partial(tunnel, to=server.port))))
            platform.proxies = {"https": proxy.base_url}
        stack.callback(released.set)
        yield platform


def wait_for_exchanges() -> None:
    """Wait until the threads of exchanges that were given up have ended."""
    for thread in exchange_threads():
        thread.join(WAIT_SECONDS)
    assert exchange_threads() == []


@pytest.mark.parametrize("platform", HANGS, indirect=True)
def test_nothing_of_it_is_sent_once_the_hang_is_over(platform: Platform) -> None:
    request = start_request()

    with pytest.raises(ResponseTimeout) as caught:
        platform.client().send(request, Timeouts(connect_seconds=WAIT_SECONDS, total_seconds=0.3))
    platform.released.set()
    wait_for_exchanges()

    assert not caught.value.maybe_processed
    assert not request.maybe_processed
    assert platform.waits
    assert platform.recorder.received == b""


@pytest.mark.parametrize("platform", HANGS, indirect=True)
def test_it_is_sent_once_if_the_hang_is_over_in_time(platform: Platform) -> None:
    platform.released.set()

    response = platform.client().send(start_request(), Timeouts())

    assert response.body == {"jobId": "j7"}
    assert platform.recorder.received.count(b"POST /v1/static-export/jobs HTTP/1.1\r\n") == 1


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_it_is_given_up_while_the_server_accepts_no_connection(scheme: str) -> None:
    timeouts = Timeouts(connect_seconds=WAIT_SECONDS, total_seconds=0.3)

    with unresponsive_port() as (host, port), pytest.raises(ResponseTimeout) as caught:
        api_client_to(f"{scheme}://{host}:{port}").send(start_request(), timeouts)

    assert not caught.value.maybe_processed


def test_it_may_be_processed_once_the_server_has_it() -> None:
    arrived, request = [], start_request()

    def read(connection: socket.socket) -> None:
        while piece := connection.recv(65536):
            arrived.append(piece)

    with RawServer(read) as server, pytest.raises(ResponseTimeout) as caught:
        api_client_to(server.base_url).send(request, Timeouts(total_seconds=1.0))

    assert not missing_bytes(b"".join(arrived))
    assert caught.value.maybe_processed
    assert request.maybe_processed


@pytest.mark.parametrize("platform", [hang for hang in HANGS if hang != "proxy"], indirect=True)
def test_a_run_tries_again_and_ends_as_unavailable(platform: Platform, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    short = {"connect_seconds": WAIT_SECONDS, "idle_seconds": WAIT_SECONDS, "total_seconds": 0.3}
    monkeypatch.setattr(Timeouts.__init__, "__kwdefaults__", short)
    (tmp_path / "ca.pem").write_text(platform.certificate)
    inputs = {"base-url": platform.base_url, "admin-key": ADMIN_KEY, "domain": "docs.example.com", "ca-bundle": "ca.pem"}

    ended = run_inside({**inputs, "outage-tolerance": "1s"}, workspace=tmp_path)
    platform.released.set()
    wait_for_exchanges()

    assert ended.reason == "unavailable", ended.stdout
    assert len(platform.waits) > 1
    assert platform.recorder.received == b""
