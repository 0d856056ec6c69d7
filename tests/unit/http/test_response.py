"""Which responses are accepted, and which connections are kept: the real adapter, with a scripted server."""

import contextlib
import socket
import threading
from collections.abc import Callable, Sequence

import pytest

from docs_platform_action.api.client import ApiClient, ApiResponse
from docs_platform_action.errors import Cancelled
from docs_platform_action.http.client import Request, Timeouts
from docs_platform_action.http.connection import AbortableAdapter, Exchange, InFlight, create_ssl_context
from docs_platform_action.http.faults import NetworkError
from docs_platform_action.http.response import MAX_INTERIM_RESPONSES
from tests.unit.fakes import http_client

EARLY_HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"
PROCESSING = b"HTTP/1.1 102 Processing\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\nX: y\r\n\r\n"
SWITCHING = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"
THE_END = b"<the end>"
"""The server closes the connection there."""


def good(name: str) -> bytes:
    body = f'{{"status": "{name}"}}'.encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


class Server:
    """Answers each connection's requests by its own script, and closes the connection at the request after the last."""

    def __init__(self) -> None:
        self.scripts: list[Sequence[bytes]] = []
        self.connections = 0
        self.on_request: Callable[[], None] = lambda: None

    def connect(self, *parts: object) -> socket.socket:
        ours, theirs = socket.socketpair()
        exchange = parts[-1]
        assert isinstance(exchange, Exchange)
        exchange.adopt(ours)
        script = self.scripts[self.connections]
        self.connections += 1
        threading.Thread(target=self._serve, args=(theirs, script), daemon=True).start()
        return ours

    def _serve(self, connection: socket.socket, script: Sequence[bytes]) -> None:
        with connection, contextlib.suppress(OSError):
            for answer in [*script, None]:
                request = b""
                while b"\r\n\r\n" not in request:
                    more = connection.recv(65536)
                    if not more:
                        return
                    request += more
                self.on_request()
                if answer is None:
                    return
                connection.sendall(answer.removesuffix(THE_END))
                if answer.endswith(THE_END):
                    return


class Hasty:
    """Responds to each connection before any request, and closes it."""

    def connect(self, *parts: object) -> socket.socket:
        ours, theirs = socket.socketpair()
        exchange = parts[-1]
        assert isinstance(exchange, Exchange)
        exchange.adopt(ours)
        with theirs:
            theirs.sendall(good("too many"))
        return ours


class Talk:
    """A client and the server that it is connected to."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.in_flight = InFlight()
        client = http_client(AbortableAdapter(create_ssl_context(None)), in_flight=self.in_flight)
        self.client = ApiClient(client, base_url="http://127.0.0.1:1", key="some-long-key")
        self.request = Request(method="GET", url="/x")

    def __call__(self, *, new_connection: bool = False, seconds: float = 10.0) -> ApiResponse:
        return self.client.send(self.request, Timeouts().within(seconds), new_connection=new_connection)

    def failure(self, *, new_connection: bool = False, seconds: float = 10.0) -> NetworkError:
        with pytest.raises(NetworkError) as caught:
            self(new_connection=new_connection, seconds=seconds)
        return caught.value


Talks = Callable[..., Talk]


@pytest.fixture
def talk(monkeypatch: pytest.MonkeyPatch) -> Talks:
    def talk(*scripts: Sequence[bytes]) -> Talk:
        server = Server()
        server.scripts = [*scripts]
        monkeypatch.setattr("docs_platform_action.http.connection.open_socket", server.connect)
        return Talk(server)

    return talk


class TestInterimResponses:
    @pytest.mark.parametrize(
        "interim",
        [EARLY_HINTS, PROCESSING, CONTINUE, CONTINUE + EARLY_HINTS + PROCESSING + CONTINUE, EARLY_HINTS.replace(b"\r", b"")],
        ids=["103", "102", "100", "several", "bare-lines"],
    )
    def test_they_are_skipped(self, talk: Talks, interim: bytes) -> None:
        assert talk([interim + good("queued")])().body == {"status": "queued"}

    def test_no_response_is_swapped_on_a_kept_connection(self, talk: Talks) -> None:
        subject = talk([EARLY_HINTS + good("first"), PROCESSING + good("second"), good("third")])

        assert [subject().body, subject().body, subject().body] == [{"status": name} for name in ("first", "second", "third")]
        assert subject.server.connections == 1

    @pytest.mark.parametrize("interim", [EARLY_HINTS, CONTINUE], ids=["103", "100"])
    def test_as_many_as_allowed_are_skipped(self, talk: Talks, interim: bytes) -> None:
        assert talk([interim * MAX_INTERIM_RESPONSES + good("queued")])().status == 200

    @pytest.mark.parametrize("interim", [EARLY_HINTS, CONTINUE], ids=["103", "100"])
    def test_more_are_not_http(self, talk: Talks, interim: bytes) -> None:
        fault = talk([interim * (MAX_INTERIM_RESPONSES + 1) + good("queued")]).failure()

        assert fault.message == "The response from 127.0.0.1:1 is not valid HTTP"
        assert fault.maybe_processed

    @pytest.mark.parametrize("interim", [EARLY_HINTS, EARLY_HINTS[:-2], EARLY_HINTS[:-9]], ids=["whole", "head", "line"])
    def test_one_without_a_final_response_is_an_error(self, talk: Talks, interim: bytes) -> None:
        fault = talk([interim + THE_END]).failure()

        assert fault.message == "The connection to 127.0.0.1:1 was lost before the response was complete"

    def test_after_a_change_of_protocol_the_connection_is_closed(self, talk: Talks) -> None:
        subject = talk([SWITCHING + good("no HTTP")], [good("queued")])

        assert subject().status == 101
        assert subject().body == {"status": "queued"}
        assert subject.server.connections == 2


class TestKeptConnections:
    def test_one_is_kept_from_exchange_to_exchange(self, talk: Talks) -> None:
        subject = talk([good("first"), good("second")])

        assert [subject().body, subject().body] == [{"status": "first"}, {"status": "second"}]

    def test_a_new_one_is_made_if_the_caller_asks_for_it(self, talk: Talks) -> None:
        subject = talk([good("first"), good("stale")], [good("second")])

        assert [subject().body, subject(new_connection=True).body] == [{"status": "first"}, {"status": "second"}]

    def test_one_that_the_server_closed_when_it_was_used_again_is_stale(self, talk: Talks) -> None:
        subject = talk([good("first")])
        subject()

        fault = subject.failure()

        assert (fault.maybe_processed, fault.is_stale) == (True, True)
        assert fault.message == "The connection to 127.0.0.1:1 was lost before the response was complete"

    def test_a_new_one_that_the_server_closes_is_not_stale(self, talk: Talks) -> None:
        fault = talk([]).failure()

        assert (fault.maybe_processed, fault.is_stale) == (True, False)


@pytest.mark.parametrize("kept", [False, True])
def test_from_the_moment_there_is_a_connection_the_server_may_process_the_request(talk: Talks, kept: bool) -> None:
    subject = talk([good("first"), good("second")])
    seen: list[bool] = []
    subject.server.on_request = lambda: seen.append(subject.request.maybe_processed)

    subject()
    if kept:
        subject.request.maybe_processed = False
        subject()

    assert {*seen} == {True}
    assert subject.request.maybe_processed


class TestBrokenResponses:
    @pytest.mark.parametrize(
        "answer",
        [b"HTTP/1.1 200 OK\r\nX: y", b"HTTP/1.1 200 OK\r\nX: y\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"],
        ids=["line", "head", "body"],
    )
    def test_half_a_response_is_an_error(self, talk: Talks, answer: bytes) -> None:
        fault = talk([answer + THE_END]).failure()

        assert fault.message == "The connection to 127.0.0.1:1 was lost before the response was complete"
        assert (fault.maybe_processed, fault.is_stale) == (True, False)

    @pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 two hundred\r\n\r\n", b"\x00\x01\x02\r\n\r\n"])
    def test_what_is_not_http_is_an_error(self, talk: Talks, answer: bytes) -> None:
        assert talk([answer]).failure().message == "The response from 127.0.0.1:1 is not valid HTTP"

    @pytest.mark.parametrize("answer", [b"", good("queued")[:30]], ids=["silence", "half"])
    def test_one_that_does_not_come_in_time_is_an_error(self, talk: Talks, answer: bytes) -> None:
        subject = talk([answer])

        with pytest.raises(NetworkError) as caught:
            subject.client.send(subject.request, Timeouts(total_seconds=0.02))

        assert caught.value.message == "127.0.0.1:1 took longer than 0.02 s to respond"
        assert caught.value.maybe_processed

    @pytest.mark.parametrize("body", [None, {"domain": "docs.example.com"}])
    def test_a_server_that_reads_no_request_may_still_respond(
        self, monkeypatch: pytest.MonkeyPatch, body: dict[str, object] | None
    ) -> None:
        subject = Talk(Server())
        subject.request = Request(method="POST", url="/x", body=body)
        monkeypatch.setattr("docs_platform_action.http.connection.open_socket", Hasty().connect)

        assert subject().body == {"status": "too many"}

    def test_a_cancel_ends_the_wait_for_one(self, talk: Talks) -> None:
        subject = talk([b""])
        subject.server.on_request = subject.in_flight.abort

        with pytest.raises(Cancelled):
            subject()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ConnectionRefusedError(), "127.0.0.1:1 refused the connection"),
        (TimeoutError(), "127.0.0.1:1 could not be reached in time"),
        (socket.gaierror(socket.EAI_NONAME, "unknown"), "The name of 127.0.0.1:1 does not exist"),
        (OSError("the name has no address"), "Could not connect to 127.0.0.1:1"),
    ],
)
def test_without_a_connection_no_request_was_sent(monkeypatch: pytest.MonkeyPatch, error: OSError, message: str) -> None:
    def refuse(*_: object, **__: object) -> socket.socket:
        raise error

    monkeypatch.setattr("docs_platform_action.http.connection.open_socket", refuse)

    talk = Talk(Server())
    fault = talk.failure()

    assert (fault.message, fault.maybe_processed, fault.is_stale) == (message, False, False)
    assert not talk.request.maybe_processed
