"""When a request may have been processed, and how the wait for its response ends: the real adapter on a pair of sockets."""

import contextlib
import socket
import threading
from collections.abc import Callable

import pytest

from docs_platform_action.api.client import ApiClient, ApiResponse
from docs_platform_action.clock import Clock
from docs_platform_action.errors import Cancelled
from docs_platform_action.http.client import Request, Timeouts
from docs_platform_action.http.connection import AbortableAdapter, Exchange, InFlight, create_ssl_context
from docs_platform_action.http.faults import NetworkError, ResponseTimeout
from tests.unit.fakes import http_client

Serve = Callable[[socket.socket], None]

GOOD = b'HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{"status": "queued"}'


class Talk:
    """A client whose connections `serve` answers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, serve: Serve) -> None:
        self._serve = serve
        self.in_flight = InFlight(Clock())
        client = http_client(AbortableAdapter(create_ssl_context(None)), in_flight=self.in_flight)
        self._client = ApiClient(client, base_url="http://127.0.0.1:1", key="some-long-key")
        self.request = Request(method="POST", url="/x")
        monkeypatch.setattr("docs_platform_action.http.connection.open_socket", self._connect)

    def __call__(self, seconds: float = 10.0) -> ApiResponse:
        return self._client.send(self.request, Timeouts(total_seconds=seconds))

    def _connect(self, *parts: object) -> socket.socket:
        ours, theirs = socket.socketpair()
        exchange = parts[-1]
        assert isinstance(exchange, Exchange)
        exchange.adopt(ours)
        threading.Thread(target=self._serve_and_close, args=(theirs,), daemon=True).start()
        return ours

    def _serve_and_close(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            self._serve(connection)


def hold(connection: socket.socket) -> None:
    while connection.recv(65536):
        pass


@pytest.mark.parametrize("kept", [False, True])
def test_from_the_moment_there_is_a_connection_the_server_may_process_the_request(
    monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    seen: list[bool] = []

    def serve(connection: socket.socket) -> None:
        while connection.recv(65536):
            seen.append(talk.request.maybe_processed)
            connection.sendall(GOOD)

    talk = Talk(monkeypatch, serve)

    talk()
    if kept:
        talk.request.maybe_processed = False
        talk()

    assert {*seen} == {True}
    assert talk.request.maybe_processed


@pytest.mark.parametrize("answer", [b"", GOOD[:30]], ids=["silence", "half"])
def test_one_that_does_not_come_in_time_is_an_error(monkeypatch: pytest.MonkeyPatch, answer: bytes) -> None:
    def serve(connection: socket.socket) -> None:
        connection.sendall(answer)
        hold(connection)

    with pytest.raises(ResponseTimeout) as caught:
        Talk(monkeypatch, serve)(seconds=0.02)

    assert caught.value.maybe_processed


@pytest.mark.parametrize("body", [None, {"domain": "docs.example.com"}])
def test_a_server_that_reads_no_request_may_still_respond(
    monkeypatch: pytest.MonkeyPatch, body: dict[str, object] | None
) -> None:
    is_closed = threading.Event()

    def serve(connection: socket.socket) -> None:
        connection.sendall(GOOD)
        connection.shutdown(socket.SHUT_RDWR)
        is_closed.set()

    talk = Talk(monkeypatch, serve)
    connect = talk._connect  # noqa: SLF001  # the request must come after the response

    def connect_late(*parts: object) -> socket.socket:
        connection = connect(*parts)
        assert is_closed.wait(60)
        return connection

    monkeypatch.setattr("docs_platform_action.http.connection.open_socket", connect_late)
    talk.request.body = body

    assert talk().body == {"status": "queued"}


def test_a_cancel_ends_the_wait_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(65536)
        talk.in_flight.abort()
        hold(connection)

    talk = Talk(monkeypatch, serve)

    with pytest.raises(Cancelled):
        talk()


@pytest.mark.parametrize("error", [ConnectionRefusedError(), TimeoutError(), socket.gaierror(), OSError()])
def test_without_a_connection_no_request_was_sent(monkeypatch: pytest.MonkeyPatch, error: OSError) -> None:
    def refuse(*_: object) -> socket.socket:
        raise error

    talk = Talk(monkeypatch, hold)
    monkeypatch.setattr("docs_platform_action.http.connection.open_socket", refuse)

    with pytest.raises(NetworkError) as caught:
        talk()

    assert (caught.value.maybe_processed, caught.value.is_stale, talk.request.maybe_processed) == (False, False, False)
    assert caught.value.is_unresolved == isinstance(error, socket.gaierror)
