"""Kept connections: each request gets its own response, and a connection that the server has closed causes no error."""

import contextlib
import gzip
import io
import json
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from admin_api_simulator.tls import make_certificates
from docs_platform_action.api.client import ApiClient
from docs_platform_action.http.client import Request, Timeouts
from docs_platform_action.http.connection import AbortableAdapter, create_ssl_context
from docs_platform_action.http.faults import NetworkError, ResponseTimeout
from docs_platform_action.http.response import MAX_INTERIM_RESPONSES
from tests.action import Action
from tests.integration.parts import api_client_to
from tests.integration.raw import Handler, RawServer, cut, hold, read_request, reset
from tests.unit.fakes import HOST
from tests.unit.http.test_faults import message_of

EARLY_HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\nContent-Length: 7\r\n\r\n"
PROCESSING = b"HTTP/1.1 102 Processing\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
SWITCHING = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
INTERIM = {
    "none": b"",
    "100": CONTINUE,
    "102": PROCESSING,
    "103": EARLY_HINTS,
    "several": PROCESSING + CONTINUE + EARLY_HINTS + PROCESSING,
    "bare line feeds": b"HTTP/1.1 103 Early Hints\nLink: </a>\n\n",
    "as many as there may be": PROCESSING * MAX_INTERIM_RESPONSES,
}


def sized(value: object) -> bytes:
    body = json.dumps(value).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def chunked(value: object) -> bytes:
    """Return a response in two chunks, with an extension and a trailer."""
    body = json.dumps(value).encode()
    chunks = b"1;name=value\r\n%b\r\n%x\r\n%b\r\n0\r\nX-Trailer: y\r\n\r\n" % (body[:1], len(body) - 1, body[1:])
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks


FRAMINGS = {"sized": sized, "chunked": chunked}


class Counting:
    """Sends `answer(number)` for each request, numbered from 1, and keeps the connection; closes it if that is `None`."""

    def __init__(self, answer: Callable[[int], bytes | None]) -> None:
        self._answer = answer
        self._lock = threading.Lock()
        self.requests: list[bytes] = []

    def __call__(self, connection: socket.socket) -> None:
        while request := read_request(connection):
            with self._lock:
                self.requests.append(request)
                number = len(self.requests)
            answer = self._answer(number)
            if answer is None:
                return
            connection.sendall(answer)


@dataclass(frozen=True, kw_only=True)
class Wire:
    """Plain HTTP, or TLS with a certificate that the action trusts."""

    server_context: ssl.SSLContext | None
    client_context: ssl.SSLContext

    @contextlib.contextmanager
    def client(self, handle: Handler) -> Iterator[tuple[ApiClient, RawServer]]:
        with RawServer(handle, tls=self.server_context) as server:
            adapter = AbortableAdapter(self.client_context)
            yield api_client_to(server.base_url, adapter=adapter), server
            adapter.close()


@pytest.fixture(scope="module", params=["plain", "tls"])
def wire(request: pytest.FixtureRequest) -> Iterator[Wire]:
    if request.param == "plain":
        yield Wire(server_context=None, client_context=create_ssl_context(None))
        return
    certificates = make_certificates("127.0.0.1")
    client_context = create_ssl_context(certificates.ca_path.read_text())
    yield Wire(server_context=certificates.server_context, client_context=client_context)
    certificates.remove()


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("interim", INTERIM)
def test_each_request_on_a_kept_connection_gets_its_own_response(wire: Wire, interim: str, framing: str) -> None:
    counting = Counting(lambda number: INTERIM[interim] + FRAMINGS[framing]({"number": number}))

    with wire.client(counting) as (client, server):
        answers = [client.send(Request(method="GET", url="/v1/job"), Timeouts()) for _ in range(3)]

    assert [(answer.status, answer.body) for answer in answers] == [(200, {"number": number}) for number in (1, 2, 3)]
    assert server.connections == 1


@pytest.mark.parametrize("new_connection", [False, True])
def test_a_connection_that_switched_to_another_protocol_is_not_used_again(wire: Wire, new_connection: bool) -> None:
    # bytes after the 101 would be read as the response to the next request
    counting = Counting(lambda number: SWITCHING + sized({"number": 7}) if number == 1 else sized({"number": number}))

    with wire.client(counting) as (client, server):
        first = client.send(Request(method="GET", url="/v1/job"), Timeouts())
        second = client.send(Request(method="GET", url="/v1/job"), Timeouts(), new_connection=new_connection)

    assert (first.status, first.body, second.status, second.body) == (101, None, 200, {"number": 2})
    assert server.connections == 2


NOT_HTTP, LOST = (message_of(name).partition(HOST)[2] for name in ("Another protocol", "A connection that was reset"))
"""How the package's messages about such responses end."""


@pytest.mark.parametrize(
    ("interim", "message"),
    [
        (PROCESSING * (MAX_INTERIM_RESPONSES + 1) + sized({}), NOT_HTTP),
        (CONTINUE * (MAX_INTERIM_RESPONSES + 1) + sized({}), NOT_HTTP),
        (EARLY_HINTS + b"SSH-2.0-server\r\n", NOT_HTTP),
        (EARLY_HINTS, LOST),
        (b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n", LOST),
        (b"HTTP/1.1 103 Early Hi", LOST),
        (EARLY_HINTS + b"HTTP/1.1 200 OK\r\n", LOST),
        (EARLY_HINTS + b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}", LOST),
    ],
    ids=["102s", "100s", "no HTTP", "no answer", "no blank line", "half a line", "no headers' end", "half a chunk"],
)
def test_interim_responses_without_a_final_one_are_a_temporary_error(wire: Wire, interim: bytes, message: str) -> None:
    with wire.client(responding_once(interim)) as (client, _):
        fault = failed(client)

    assert fault.message.endswith(message)
    assert (fault.maybe_processed, fault.is_stale) == (True, False)


def test_a_closed_kept_connection_is_distinguished_from_a_new_one(wire: Wire) -> None:
    counting = Counting(lambda number: sized({}) if number == 1 else None)

    with wire.client(counting) as (client, server):
        client.send(Request(method="GET", url="/v1/job"), Timeouts())
        kept, new = [failed(client) for _ in range(2)]

    assert (kept.is_stale, new.is_stale) == (True, False)
    assert (kept.maybe_processed, new.maybe_processed) == (True, True)
    assert server.connections == 2


def failed(client: ApiClient) -> NetworkError:
    with pytest.raises(NetworkError) as caught:
        client.send(Request(method="GET", url="/v1/job"), Timeouts())
    return caught.value


def test_a_request_on_a_new_connection_leaves_kept_ones_open(wire: Wire) -> None:
    counting = Counting(lambda number: sized({"number": number}))

    with wire.client(counting) as (client, server):
        for new_connection in (False, True, False, True):
            client.send(Request(method="POST", url="/v1/job", body={}), Timeouts(), new_connection=new_connection)

    assert server.connections == 3


class Together:
    """Responds to each request with its path, but to `/together/…` only when `parties` requests have arrived."""

    def __init__(self, parties: int) -> None:
        self._barrier = threading.Barrier(parties)
        self.connections_of: dict[str, list[socket.socket]] = {}

    def __call__(self, connection: socket.socket) -> None:
        while request := read_request(connection):
            path = request.split(b" ", 2)[1].decode()
            self.connections_of.setdefault(path, []).append(connection)
            if path.startswith("/together/"):
                self._barrier.wait(60)
            connection.sendall(sized({"path": path}))


PATIENT = Timeouts(connect_seconds=60, idle_seconds=60, total_seconds=90)
"""Time for a hundred simultaneous requests on a loaded machine."""


def send_all(client: ApiClient, *paths: str, new_connection: bool = False) -> None:
    """Send each request in a thread, and check that each gets its own response."""
    with ThreadPoolExecutor(len(paths)) as pool:
        answers = [
            pool.submit(client.send, Request(method="GET", url=path), PATIENT, new_connection=new_connection) for path in paths
        ]
        for answer in as_completed(answers):
            answer.result()  # the first failure is the cause of the others
    assert [answer.result().body for answer in answers] == [{"path": path} for path in paths]


def test_a_connection_is_reused_by_another_thread(wire: Wire) -> None:
    with wire.client(Together(1)) as (client, server):
        for number in range(5):
            send_all(client, f"/{number}")

    assert server.connections == 1


MANY = 100
"""The maximum of `max-parallel`."""


def test_the_maximum_of_simultaneous_requests_keep_their_connections(
    wire: Wire, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with wire.client(Together(MANY)) as (client, server):
        for _ in range(3):
            send_all(client, *(f"/together/{number}" for number in range(MANY)))

    assert server.connections == MANY
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert "pool" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("new", [1, 20])
def test_requests_on_new_connections_leave_kept_ones_for_others(wire: Wire, caplog: pytest.LogCaptureFixture, new: int) -> None:
    paths = [f"/together/{number}" for number in range(20)]

    with wire.client(Together(20)) as (client, server):
        send_all(client, *paths)
        send_all(client, *(paths if new == len(paths) else ["/alone"]), new_connection=True)
        send_all(client, *paths)

    assert server.connections == len(paths) + new
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_a_request_on_a_new_connection_disturbs_no_request_in_flight(wire: Wire) -> None:
    together = Together(4)

    with wire.client(together) as (client, server), ThreadPoolExecutor(1) as pool:
        send_all(client, *(f"/together/{number}" for number in range(4)))
        under_way = pool.submit(send_all, client, *(f"/together/late-{number}" for number in range(3)))
        while len(together.connections_of) < 7:
            time.sleep(0.001)
        for number in range(3):
            send_all(client, f"/alone-{number}", new_connection=True)
        assert not under_way.done()
        send_all(client, "/together/last")
        under_way.result(60)

    used = [connection for path, (connection,) in together.connections_of.items() if "alone" in path]
    others = [connection for path, (connection,) in together.connections_of.items() if "late" in path]
    assert len(set(used)) == 3
    assert not {*used} & {*others}
    assert server.connections == 4 + 3


JOB = b'{"jobId": "j7", "status": "queued"}'
STARTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: %d\r\n\r\n%b" % (len(JOB), JOB)
RUNNING = sized({"status": "running"})
COMPLETED = sized({"status": "completed"})
LINKED = sized({"bundleUrl": "https://storage.example.com/b.tar.gz"})
TOO_MANY = b"HTTP/1.1 429 Too Many\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n"


def responding_with(*turns: bytes | None) -> Counting:
    return Counting(lambda number: turns[number - 1])


def test_interim_responses_change_nothing_for_a_run(action: Action) -> None:
    turns = responding_with(EARLY_HINTS + STARTED, PROCESSING * 2 + RUNNING, EARLY_HINTS + COMPLETED, PROCESSING + LINKED)

    with RawServer(turns) as server:
        ended = action.export(server.base_url)

    assert (ended.exit_code, ended.outputs["jobId"], ended.outputs["status"]) == (0, "j7", "completed"), ended.stdout
    assert ended.outputs["bundleUrl"] == "https://storage.example.com/b.tar.gz"
    assert (server.connections, len(turns.requests)) == (1, 4)


def test_a_change_of_protocol_is_a_temporary_error(action: Action) -> None:
    action.set_constants(http__retry__MAX_PAUSE_SECONDS=0.1)

    with RawServer(responding_with(SWITCHING + RUNNING, COMPLETED, LINKED)) as server:
        ended = action.run(server.base_url, job_id="j7", outage_tolerance="1m")

    assert ended.exit_code == 0, ended.stdout


def test_a_start_that_gets_a_change_of_protocol_may_have_been_processed(action: Action) -> None:
    turns = responding_with(SWITCHING + STARTED)

    with RawServer(turns) as server:
        ended = action.export(server.base_url)

    assert (ended.reason, len(turns.requests), "jobId" in ended.outputs) == ("start-unconfirmed", 1, False)


def test_every_attempt_of_a_start_uses_a_new_connection(action: Action) -> None:
    turns = responding_with(TOO_MANY, STARTED, COMPLETED, LINKED)

    with RawServer(turns) as server:
        ended = action.export(server.base_url, outage_tolerance="30s")

    # polls reuse the connection of the successful start
    assert (ended.exit_code, server.connections, len(turns.requests)) == (0, 2, 4)


def test_a_kept_connection_that_the_server_closed_is_not_an_outage(action: Action) -> None:
    action.debug = True
    turns = responding_with(STARTED, None, RUNNING, None, COMPLETED, None, LINKED)

    with RawServer(turns) as server:
        ended = action.export(server.base_url, outage_tolerance="1ms")

    assert (ended.exit_code, server.connections, len(turns.requests)) == (0, 4, 7), ended.stdout
    lines = [command.value for command in ended.commands if command.name == "debug"]
    assert [LOST in line for line in lines] == [False, True, False, True, False, True, False]


def test_a_server_that_also_closes_new_connections_is_an_outage(action: Action) -> None:
    turns = responding_with(RUNNING, None, None, COMPLETED, LINKED)
    action.set_constants(http__retry__MAX_PAUSE_SECONDS=0.1)

    with RawServer(turns) as server:
        ended = action.run(server.base_url, job_id="j7", outage_tolerance="1m")

    assert (ended.exit_code, len(turns.requests)) == (0, 5)


UNSOLICITED = sized({"unsolicited": "x" * 20_000})


class TestLeftovers:
    """Bytes behind a response are never read as the next one: their connection is replaced, which is not an outage."""

    @pytest.mark.parametrize(
        "behind",
        [UNSOLICITED, UNSOLICITED[:20], UNSOLICITED[:9000], CONTINUE, EARLY_HINTS, b"\r\n", b"x"],
        ids=["a response", "a head", "half a response", "100", "103", "line", "byte"],
    )
    @pytest.mark.parametrize(
        "first",
        [
            sized({"number": 1}),
            sized({"number": 1, "long": "x" * 9000}),
            chunked({"number": 1}),
            chunked({"number": 1, "long": "x" * 9000}),
            b"HTTP/1.1 204 No Content\r\n\r\n",
            b"HTTP/1.1 204 No Content\r\nX: " + b"y" * (io.DEFAULT_BUFFER_SIZE - 32) + b"\r\n\r\n",
            b"HTTP/1.1 304 Not Modified\r\nContent-Length: 100000\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        ],
        ids=["sized", "long", "chunked", "long chunks", "204", "204 that fills the buffer", "304", "empty"],
    )
    def test_bytes_that_come_with_a_response_are_not_read(self, wire: Wire, first: bytes, behind: bytes) -> None:
        counting = Counting(lambda number: first + behind if number == 1 else sized({"number": number}))

        with wire.client(counting) as (client, server):
            answers = [client.send(Request(method="GET", url="/v1/job"), Timeouts()) for _ in range(3)]

        assert [answer.body for answer in answers[1:]] == [{"number": 2}, {"number": 3}]
        assert server.connections == 2

    @pytest.mark.parametrize("behind", [UNSOLICITED, UNSOLICITED[:20], CONTINUE])
    def test_bytes_that_come_before_the_next_request_are_not_read(self, wire: Wire, behind: bytes) -> None:
        def answer(connection: socket.socket) -> None:
            while read_request(connection):
                numbers.append(len(numbers) + 1)
                connection.sendall(sized({"number": numbers[-1]}))
                if numbers == [1]:
                    is_read.wait(60)
                    connection.sendall(behind)
                    is_sent.set()

        numbers: list[int] = []
        is_read, is_sent = threading.Event(), threading.Event()
        with wire.client(answer) as (client, server):
            bodies = [client.send(Request(method="GET", url="/v1/job"), Timeouts()).body]
            is_read.set()
            assert is_sent.wait(60)
            bodies += [client.send(Request(method="GET", url="/v1/job"), Timeouts()).body for _ in range(2)]

        assert (bodies, server.connections) == ([{"number": number} for number in (1, 2, 3)], 2)

    def test_no_job_reads_what_came_behind_the_response_of_another(self, action: Action) -> None:
        certificates = make_certificates("127.0.0.1", ca_file=action.workspace / "ca.pem")
        behind = sized({"jobId": "of nobody", "status": "failed", "error": "not for this job"})
        starts = count(1)

        def answer(connection: socket.socket) -> None:
            while request := read_request(connection):
                path = request.split(b" ", 2)[1].decode()
                found = {"jobId": f"j{next(starts)}"} if path.endswith("/jobs") else {"status": "completed"}
                found |= {"bundleUrl": f"https://storage.example.com{path}"} if path.endswith("/bundle") else {}
                # one record of TLS: when the response is read, the rest is in OpenSSL's buffer, and not in the socket's
                connection.sendall(sized({**found, "long": "x" * 9000}) + behind)

        with RawServer(answer, tls=certificates.server_context) as server:
            ended = action.export(server.base_url, domain="a.example.com\nb.example.com\nc.example.com", ca_bundle="ca.pem")

        assert ended.exit_code == 0, ended.stdout
        assert sorted(row["bundleUrl"][-9:] for row in json.loads(ended.outputs["results"])) == [
            "j1/bundle",
            "j2/bundle",
            "j3/bundle",
        ]


class TestEnd:
    """A body that neither a length nor chunks delimit is complete only if the connection is closed as the protocol requires."""

    ANSWER = b'HTTP/1.1 200 OK\r\n\r\n{"status": "completed"}'

    @pytest.mark.parametrize("version", ["HTTP/1.0", "HTTP/1.1"])
    def test_a_closed_connection_is_the_end(self, wire: Wire, version: str) -> None:
        with wire.client(responding_once(self.ANSWER.replace(b"HTTP/1.1", version.encode()))) as (client, _):
            assert client.send(Request(method="GET", url="/v1/job"), Timeouts()).body == {"status": "completed"}

    @pytest.mark.parametrize(("wire", "end"), [("plain", reset), ("tls", reset), ("tls", cut)], indirect=["wire"])
    @pytest.mark.parametrize(
        "answer",
        [
            ANSWER,
            ANSWER.replace(b"HTTP/1.1", b"HTTP/1.0"),
            ANSWER.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
            ANSWER.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: identity\r\n\r\n"),
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b"{}"),
        ],
        ids=["neither", "HTTP/1.0", "close", "identity", "gzip"],
    )
    def test_one_that_is_cut_or_reset_is_not(self, wire: Wire, answer: bytes, end: Callable[[socket.socket], None]) -> None:
        def answer_and_end(connection: socket.socket) -> None:
            read_request(connection)
            connection.sendall(answer)
            end(connection)

        with wire.client(answer_and_end) as (client, _):
            fault = failed(client)

        assert fault.message.endswith(LOST)
        assert (fault.maybe_processed, fault.is_stale) == (True, False)

    @pytest.mark.parametrize("status", [401, 429, 503])
    def test_of_an_error_the_status_is_enough(self, wire: Wire, status: int) -> None:
        def answer_and_cut(connection: socket.socket) -> None:
            read_request(connection)
            connection.sendall(self.ANSWER.replace(b"200", b"%d" % status))
            cut(connection)

        with wire.client(answer_and_cut) as (client, _):
            assert client.send(Request(method="POST", url="/v1/jobs"), Timeouts()).status == status

    def test_of_an_error_whose_body_never_ends_the_status_is_known_in_time(self, wire: Wire) -> None:
        def drip(connection: socket.socket) -> None:
            read_request(connection)
            connection.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 1000000\r\n\r\n{")
            while True:  # until the client ends the connection
                connection.sendall(b" ")
                time.sleep(0.01)

        with wire.client(drip) as (client, _):
            assert client.send(Request(method="POST", url="/v1/jobs"), Timeouts(total_seconds=0.3)).status == 401

    def test_a_body_with_an_end_of_its_own_needs_no_other(self, wire: Wire) -> None:
        def answer_and_cut(connection: socket.socket) -> None:
            read_request(connection)
            connection.sendall(answers.pop())
            cut(connection)

        answers = [sized({"number": 1}), chunked({"number": 2})]
        with wire.client(answer_and_cut) as (client, _):
            bodies = [client.send(Request(method="GET", url="/v1/job"), Timeouts(), new_connection=True).body for _ in range(2)]

        assert bodies == [{"number": 2}, {"number": 1}]

    def test_a_kept_connection_that_was_cut_is_replaced(self, wire: Wire) -> None:
        def answer_and_cut(connection: socket.socket) -> None:
            read_request(connection)
            connection.sendall(sized({}))
            cut(connection)
            ended.release()

        ended = threading.Semaphore(0)
        with wire.client(answer_and_cut) as (client, server):
            for _ in range(3):
                client.send(Request(method="GET", url="/v1/job"), Timeouts())
                assert ended.acquire(timeout=60)

        assert server.connections == 3

    def test_a_complete_text_is_not_the_end_while_the_connection_is_open(self, wire: Wire) -> None:
        def answer_and_hold(connection: socket.socket) -> None:
            read_request(connection)
            connection.sendall(self.ANSWER)
            hold(connection)

        with wire.client(answer_and_hold) as (client, _), pytest.raises(ResponseTimeout):
            client.send(Request(method="GET", url="/v1/job"), Timeouts(total_seconds=0.2))


def test_a_compressed_response_that_was_not_asked_for_is_read(action: Action) -> None:
    def compressed(value: object) -> bytes:
        body = gzip.compress(json.dumps(value).encode())
        return b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)

    turns = responding_with(
        compressed({"jobId": "j7"}),
        compressed({"status": "completed"}),
        compressed({"bundleUrl": "https://storage.example.com/b.tar.gz"}),
    )
    with RawServer(turns) as server:
        ended = action.export(server.base_url)

    assert (ended.exit_code, ended.outputs["jobId"]) == (0, "j7"), ended.stdout


class Loading(ssl.SSLContext):
    """A TLS context that counts how often authorities are loaded."""

    loads = 0

    def load_verify_locations(self, *args: Any, **options: Any) -> None:
        self.loads += 1
        super().load_verify_locations(*args, **options)


def test_connections_do_not_load_the_authorities_again(tmp_path: Path) -> None:
    certificates = make_certificates("127.0.0.1", ca_file=tmp_path / "ca.pem")
    context = Loading(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cafile=certificates.ca_path)
    with RawServer(Counting(lambda number: sized(number)), tls=certificates.server_context) as server:
        client = api_client_to(server.base_url, adapter=AbortableAdapter(context))

        answers = [client.send(Request(method="GET", url="/x"), Timeouts(), new_connection=True).body for _ in range(3)]

        assert server.connections == 3
    assert (answers, context.loads) == ([1, 2, 3], 1)


OK = b"HTTP/1.1 200 OK\r\n"
BODY = b'{"number": 7}'
CHUNKS = b"d\r\n" + BODY + b"\r\n0\r\n\r\n"


def assert_not_http(wire: Wire, answer: bytes) -> None:
    """Check that a response is refused, and that its request may have been processed."""
    with wire.client(responding_once(answer)) as (client, _):
        fault = failed(client)

    assert fault.message.endswith(NOT_HTTP)
    assert fault.maybe_processed


class TestFraming:
    """The end of a response's body is determined once, for http.client and urllib3 alike."""

    @pytest.mark.parametrize(
        "answer",
        [
            OK + b"Transfer-Encoding: chunked \r\n\r\n" + CHUNKS,
            OK + b"Transfer-Encoding:\t Chunked\t \r\n\r\n" + CHUNKS,
            OK + b"Transfer-Encoding:\r\n chunked\r\n\r\n" + CHUNKS,
            OK + b"Transfer-Encoding: chunked, chunked\r\n\r\n" + CHUNKS,
            OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS,
            OK + b"Transfer-Encoding: identity\r\nContent-Length: 13\r\n\r\n" + BODY,
            OK + b"Transfer-Encoding: chunked \r\nContent-Length: 5\r\n\r\n" + CHUNKS,
            OK + b"Content-Length: 13 \t\r\n\r\n" + BODY,
            OK + b"Content-Length: 13, 13\r\n\r\n" + BODY,
            OK + b"Content-Length: 13\r\ncontent-length:13 \r\n\r\n" + BODY,
            OK + b"Connection: close\r\n\r\n" + BODY,
            b"HTTP/1.1 200\r\nContent-Length: 13\r\n\r\n" + BODY,
            b"HTTP/1.1 200 \r\nContent-Length: 13\r\n\r\n" + BODY,
            b"HTTP/1.0 200 OK\r\nContent-Length: 13\r\n\r\n" + BODY,
            b"HTTP/1.1 200 \xe9\t+200\r\nContent-Length: 13\r\n\r\n" + BODY,
            b"HTTP/1.1  200  OK\r\nContent-Length: 13\r\n\r\n" + BODY,
        ],
    )
    def test_a_clear_framing_and_any_reason_phrase_are_accepted(self, wire: Wire, answer: bytes) -> None:
        with wire.client(responding_once(answer)) as (client, _):
            answered = client.send(Request(method="GET", url="/v1/job"), Timeouts())

        assert (answered.status, answered.body) == (200, {"number": 7})

    @pytest.mark.parametrize(
        "answer",
        [
            OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + CHUNKS,
            OK + b"Transfer-Encoding: gzip\r\n\r\n" + BODY,
            OK + b"Transfer-Encoding:\r\nContent-Length: 13\r\n\r\n" + BODY,
            OK + b"Transfer-Encoding: xchunked\r\nContent-Length: 13\r\n\r\n" + BODY,
            OK + b"Content-Length: 13, 14\r\n\r\n" + BODY,
            OK + b"Content-Length: 13\r\nContent-Length: 14\r\n\r\n" + BODY,
            OK + b"Content-Length: 1_3\r\n\r\n" + BODY,
            OK + b"Content-Length: +13\r\n\r\n" + BODY,
            OK + b"Content-Length: -13\r\n\r\n" + BODY,
            OK + b"Content-Length: 0xd\r\n\r\n" + BODY,
            OK + b"Content-Length: \r\n\r\n" + BODY,
            OK + b"Content-Length: " + b"9" * 19 + b"\r\n\r\n" + BODY,
            OK + b"no header\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS,
            OK + b"Transfer-Encoding : chunked\r\n\r\n" + CHUNKS,
        ],
    )
    def test_an_ambiguous_framing_is_rejected(self, wire: Wire, answer: bytes) -> None:
        assert_not_http(wire, answer)

    @pytest.mark.parametrize(
        "chunks",
        [
            b"D\r\n" + BODY + b"\r\n0\r\n\r\n",
            b"000000000000000d\r\n" + BODY + b"\r\n000\r\n\r\n",
            b"d;a=b\r\n" + BODY + b"\r\n0;c\r\n\r\n",
            b'd \t; a="; \xff"\r\n' + BODY + b"\r\n0\r\n\r\n",
            b"".join(b"1\r\n%c\r\n" % byte for byte in BODY) + b"0\r\nX: y\r\nZ: -1\r\n\r\n",
            b"".join(b"64;%b\r\n%b\r\n" % (b"x" * 90, b" " * 100) for _ in range(2000)) + b"d\r\n" + BODY + b"\r\n0\r\n\r\n",
        ],
        ids=["capital", "zeros", "extension", "blanks before an extension", "many and trailers", "many extensions"],
    )
    @pytest.mark.parametrize("framing", [b"chunked", b"chunked \r\nContent-Length: 5"])
    def test_chunks_as_the_standard_writes_them_are_read(self, wire: Wire, framing: bytes, chunks: bytes) -> None:
        counting = Counting(lambda _: OK + b"Transfer-Encoding: " + framing + b"\r\n\r\n" + chunks)

        with wire.client(counting) as (client, server):
            answers = [client.send(Request(method="GET", url="/v1/job"), Timeouts()).body for _ in range(2)]

        assert (answers, server.connections) == ([{"number": 7}] * 2, 1)

    @pytest.mark.parametrize(
        "chunks",
        [
            *(
                size + b"\r\n" + BODY + b"\r\n0\r\n\r\n"
                for size in (
                    b"+d",
                    b"-d",
                    b"-1",
                    b"0xd",
                    b"0Xd",
                    b" d",
                    b"d ",
                    b"\td",
                    b"0_d",
                    b"d\r",
                    b"d\0",
                    b"d\f",
                    b"",
                    b";a",
                )
            ),
            "\N{FULLWIDTH DIGIT ONE}3\r\n".encode() + BODY + b"\r\n0\r\n\r\n",
            b"0" * 16 + b"d\r\n" + BODY + b"\r\n0\r\n\r\n",
            b"d\n" + BODY + b"\r\n0\r\n\r\n",
            b"d;a\rb\r\n" + BODY + b"\r\n0\r\n\r\n",
            b"d\r\n" + BODY + b"\n0\r\n\r\n",
            b"c\r\n" + BODY + b"\r\n0\r\n\r\n",
            b"d\r\n" + BODY + b"\r\n-0\r\n\r\n",
            b"d\r\n" + BODY + b"\r\n+0\r\n\r\n",
        ],
    )
    def test_any_other_chunk_is_rejected(self, wire: Wire, chunks: bytes) -> None:
        assert_not_http(wire, OK + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)

    @pytest.mark.parametrize(
        "chunks",
        [b"", b"d", b"d\r\n", CHUNKS[:9], CHUNKS[:-9], CHUNKS[:-7], CHUNKS[:-5], CHUNKS[:-2], CHUNKS[:-2] + b"X: y\r\n"],
        ids=["none", "size", "size line", "content", "CRLF", "half the end", "end's size", "blank line", "trailers"],
    )
    def test_chunks_without_an_end_are_an_incomplete_body(self, wire: Wire, chunks: bytes) -> None:
        answer = OK + b"Transfer-Encoding: chunked\r\n\r\n" + chunks

        with wire.client(responding_once(answer)) as (client, _):
            assert failed(client).message.endswith(LOST)

    @pytest.mark.parametrize(
        "line",
        [
            *(f"HTTP/1.1 {status} OK" for status in ("+200", "-200", "2_00", "0200", "099", "20", "2000", "0xc8", "200.0")),
            *(f"{version} 200 OK" for version in ("HTTP/2", "HTTP/1", "HTTP/1.", "HTTP/1.1x", "HTTP/1.-1", "http/1.1")),
            "HTTP/1.1 \u00b2\u00b2\u00b2 OK",
            "HTTP/1.1 200\x0b OK",
            "HTTP/1.1\x85200 OK",
            "HTTP/1.1",
            "HTTP/1.1 ",
        ],
    )
    def test_a_status_line_has_a_version_and_three_digits(self, wire: Wire, line: str) -> None:
        assert_not_http(wire, line.encode("latin-1") + b"\r\nContent-Length: 13\r\n\r\n" + BODY)

    def test_a_chunked_response_of_http_1_0_ends_the_connection(self, wire: Wire) -> None:
        head = b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"

        with wire.client(Counting(lambda _: head + CHUNKS)) as (client, server):
            answers = [client.send(Request(method="GET", url="/v1/job"), Timeouts()).body for _ in range(2)]

        assert (answers, server.connections) == ([{"number": 7}] * 2, 2)

    @pytest.mark.parametrize("framing", [b"Content-Length: 13", b"Transfer-Encoding: chunked"])
    @pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
    def test_a_response_without_a_body_needs_no_framing(self, wire: Wire, status: bytes, framing: bytes) -> None:
        head = b"HTTP/1.1 " + status + b"\r\n" + framing + b"\r\n\r\n"
        counting = Counting(lambda number: head if number == 1 else sized({"number": number}))

        with wire.client(counting) as (client, server):
            first = client.send(Request(method="GET", url="/v1/job"), Timeouts())
            second = client.send(Request(method="GET", url="/v1/job"), Timeouts())

        assert (first.status, first.size, second.body) == (int(status[:3]), 0, {"number": 2})
        assert server.connections == 1


def test_a_run_reads_little_of_a_chunk_of_negative_size(action: Action) -> None:
    sent = []

    def answer(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(OK + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n")
        with contextlib.suppress(OSError):
            while sum(sent) < 64 * 1024 * 1024:
                sent.append(connection.send(b" " * 65536))

    with RawServer(answer) as server:
        ended = action.run(server.base_url, job_id="j7", outage_tolerance="1ms")

    assert ended.reason == "unavailable"
    assert sum(sent) < 64 * 1024 * 1024


def test_white_space_and_folds_around_values_are_ignored(wire: Wire) -> None:
    answer = OK + b'ETag: \t"a" \t\r\nX-Request-Id: one\r\n  two\t\r\nLink: <a>\r\nLink: <b> \r\nContent-Length: 2\r\n\r\n{}'

    with wire.client(responding_once(answer)) as (client, _):
        answered = client.send(Request(method="GET", url="/v1/job"), Timeouts())

    assert (answered.headers["ETag"], answered.headers["Link"]) == ('"a"', "<a>, <b>")
    assert answered.request_id == "one two"


def responding_once(answer: bytes) -> Handler:
    """Return a handler that sends one response and closes the connection."""

    def handle(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(answer)

    return handle
