"""A response that hangs or never ends is aborted at every stage, and leaves no threads or descriptors."""

import functools
import gzip
import socket
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable

import pytest

from docs_platform_action.clock import Clock
from docs_platform_action.errors import Cancelled
from docs_platform_action.http.client import Request, Timeouts
from docs_platform_action.http.connection import AbortableAdapter, InFlight, create_ssl_context
from docs_platform_action.http.faults import NetworkError, ResponseTimeout
from tests.inside import count_descriptors
from tests.integration.parts import api_client_to
from tests.integration.raw import RawServer, hold, read_request

Handler = Callable[[socket.socket], None]
ENDLESS = 10**9


def sending(head: bytes, then: bytes, *, pause_seconds: float) -> Handler:
    """Return a handler that sends `head`, then `then` in a loop, too fast for a timeout of a single read."""

    def handle(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(head)
        while True:
            connection.sendall(then)
            time.sleep(pause_seconds)

    return handle


slowly = functools.partial(sending, pause_seconds=0.02)
without_end = functools.partial(sending, pause_seconds=0.0)
OK = b"HTTP/1.1 200 OK\r\n"
HANGING: dict[str, Handler] = {
    "no answer": hold,
    "half a status line": slowly(b"HTTP/1.1 2", b""),
    "status line, byte by byte": slowly(b"HTTP/1.1 200 ", b"K"),
    "header, byte by byte": slowly(OK + b"X-Filler: ", b"x"),
    "body, byte by byte": slowly(OK + b"Content-Length: %d\r\n\r\n" % ENDLESS, b" "),
    "body without a length, byte by byte": slowly(OK + b"\r\n", b" "),
    "chunks, one by one": slowly(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    "an interim answer, again and again": slowly(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "headers, one by one": slowly(OK, b"X: y\r\n"),
}
ENDLESS_ANSWERS: dict[str, Handler] = {
    "body": without_end(OK + b"Content-Length: %d\r\n\r\n" % ENDLESS, b" " * 65536),
    "body without a length": without_end(OK + b"\r\n", b" " * 65536),
    "gzip header": without_end(OK + b"Content-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x08\0\0\0\0\0\0", b"x" * 65536),
    "empty gzip": without_end(OK + b"Content-Encoding: gzip\r\n\r\n\x1f\x8b\x08\0\0\0\0\0\0\0", b"\0\0\0\xff\xff" * 10_000),
    "chunks": without_end(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b" " * 65536 + b"\r\n"),
    "negative chunk": without_end(OK + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n", b" " * 65536),
    "chunk size": without_end(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"0" * 65536),
    "chunk extension": without_end(OK + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x" * 65536),
    "chunk extensions": without_end(OK + b"Transfer-Encoding: chunked\r\n\r\n", (b"1;" + b"x" * 1000 + b"\r\n \r\n") * 60),
    "trailer": without_end(OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ", b"x" * 65536),
    "trailers": without_end(OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n" * 1000),
    "header": without_end(OK + b"X-Filler: ", b"x" * 65536),
    "headers": without_end(OK, b"X: y\r\n" * 1000),
    "status line": without_end(b"HTTP/1.1 200 ", b"K" * 65536),
    "interim answers": without_end(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
}


@pytest.fixture
def adapter() -> AbortableAdapter:
    return AbortableAdapter(create_ssl_context(None))


def failed_exchange(
    adapter: AbortableAdapter, base_url: str, *, idle_seconds: float = 30.0, total_seconds: float = 1.0
) -> NetworkError:
    """Send a request that must fail, and return its error."""
    timeouts = Timeouts(connect_seconds=10, idle_seconds=idle_seconds, total_seconds=total_seconds)
    with pytest.raises(NetworkError) as caught:
        api_client_to(base_url, adapter=adapter).send(Request(method="GET", url="/v1/job"), timeouts)
    return caught.value


@pytest.mark.parametrize("stage", HANGING)
def test_a_hanging_response_is_aborted_after_the_total_timeout(adapter: AbortableAdapter, stage: str) -> None:
    with RawServer(HANGING[stage]) as server:
        error = failed_exchange(adapter, server.base_url)

    assert isinstance(error, ResponseTimeout)
    assert error.maybe_processed


@pytest.mark.parametrize("stage", ["no answer", "half a status line"])
def test_a_hanging_response_is_aborted_after_the_idle_timeout(adapter: AbortableAdapter, stage: str) -> None:
    with RawServer(HANGING[stage]) as server:
        error = failed_exchange(adapter, server.base_url, idle_seconds=0.2, total_seconds=60)

    assert not isinstance(error, ResponseTimeout)
    assert error.maybe_processed


@pytest.mark.parametrize("part", ENDLESS_ANSWERS)
def test_an_endless_response_is_aborted_at_the_size_limit(adapter: AbortableAdapter, part: str) -> None:
    with RawServer(ENDLESS_ANSWERS[part]) as server:
        error = failed_exchange(adapter, server.base_url, total_seconds=60)

    assert error.maybe_processed
    assert not isinstance(error, ResponseTimeout)


def test_a_large_complete_head_is_aborted_at_the_size_limit(adapter: AbortableAdapter) -> None:
    # a library that reads such cookies takes half a minute, which no timeout interrupts
    cookies = b"Set-Cookie: a=b\r\n" + (b"Set-Cookie2: " + b"a," * 16_000 + b"\r\n") * 40
    answer = OK + cookies + b"Content-Length: 2\r\n\r\n{}"
    with RawServer(sending(answer, b"", pause_seconds=1.0)) as server:
        error = failed_exchange(adapter, server.base_url, total_seconds=60)

    assert not isinstance(error, ResponseTimeout)


def test_a_head_of_ordinary_size_is_accepted(adapter: AbortableAdapter) -> None:
    headers = b"".join(b"X-Filler-%d: %b\r\n" % (number, b"x" * 600) for number in range(90))
    answer = OK + headers + b"Content-Length: 15\r\n\r\n" + b'{"jobId": "j7"}'
    with RawServer(sending(answer, b"", pause_seconds=1.0)) as server:
        found = api_client_to(server.base_url, adapter=adapter).send(Request(method="GET", url="/v1/job"), Timeouts())

    assert found.body == {"jobId": "j7"}


@pytest.mark.parametrize("idle_seconds", [30.0, 0.2])
def test_a_hanging_tls_handshake_is_aborted_before_anything_is_sent(adapter: AbortableAdapter, idle_seconds: float) -> None:
    with RawServer(hold) as server:
        error = failed_exchange(adapter, f"https://127.0.0.1:{server.port}", idle_seconds=idle_seconds)

    assert not error.maybe_processed


def test_a_tls_handshake_byte_by_byte_is_aborted(adapter: AbortableAdapter) -> None:
    def handshake(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"\x16\x03\x03\x40\x00")
        while True:
            connection.sendall(b"\x02")
            time.sleep(0.02)

    with RawServer(handshake) as server:
        error = failed_exchange(adapter, f"https://127.0.0.1:{server.port}")

    assert isinstance(error, ResponseTimeout)
    assert not error.maybe_processed


def test_a_server_without_tls_is_named_as_the_cause(adapter: AbortableAdapter) -> None:
    def plain(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        hold(connection)

    with RawServer(plain) as server:
        error = failed_exchange(adapter, f"https://127.0.0.1:{server.port}", total_seconds=30)

    assert error.tls_reason
    assert not error.maybe_processed


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_abort_ends_a_hanging_request(adapter: AbortableAdapter, scheme: str) -> None:
    caught: list[BaseException] = []

    with RawServer(hold) as server:
        in_flight = InFlight(Clock())
        client = api_client_to(f"{scheme}://127.0.0.1:{server.port}", adapter=adapter, in_flight=in_flight)

        def exchange() -> None:
            try:
                client.send(Request(method="GET", url="/v1/job"), Timeouts())
            except Cancelled as error:
                caught.append(error)

        thread = threading.Thread(target=exchange)
        thread.start()
        while not server.connections:
            time.sleep(0.005)
        in_flight.abort()
        thread.join()
        with pytest.raises(Cancelled):
            client.send(Request(method="GET", url="/v1/job"), Timeouts())

    assert len(caught) == 1


def test_aborted_requests_leave_no_descriptors_or_threads() -> None:
    descriptors, threads = count_descriptors(), {*threading.enumerate()}

    for scheme, handle in (("http", hold), ("http", HANGING["body, byte by byte"]), ("https", hold)):
        adapter = AbortableAdapter(create_ssl_context(None))
        with RawServer(handle) as server:
            for _ in range(3):
                failed_exchange(adapter, f"{scheme}://127.0.0.1:{server.port}", total_seconds=0.1)
            adapter.close()

    assert count_descriptors() == descriptors
    for thread in {*threading.enumerate()} - threads:
        thread.join(timeout=10)  # the last watcher is still ending
    assert {*threading.enumerate()} <= threads


@pytest.mark.parametrize("coding", ["gzip", "gzip, gzip", "deflate"])
def test_an_unrequested_compressed_body_is_limited_by_its_decompressed_size(adapter: AbortableAdapter, coding: str) -> None:
    zeros = bytes(256 * 1024 * 1024)
    packed = zlib.compress(zeros, 9) if coding == "deflate" else gzip.compress(zeros, 9)
    packed = gzip.compress(packed, 9) if coding == "gzip, gzip" else packed
    del zeros
    head = OK + f"Content-Encoding: {coding}\r\nContent-Length: {len(packed)}\r\n\r\n".encode()

    with RawServer(sending(head + packed, b"", pause_seconds=1.0)) as server:
        tracemalloc.start()
        error = failed_exchange(adapter, server.base_url, total_seconds=60)
        _, most_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert not isinstance(error, ResponseTimeout)
    assert most_bytes < 16 * 1024 * 1024
