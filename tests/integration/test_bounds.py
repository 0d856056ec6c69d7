"""A response that hangs or never ends is given up, and leaves no threads or descriptors."""

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
from docs_platform_action.http.faults import NetworkError, ResponseTimeout
from docs_platform_action.http.transport import Request, Timeouts
from tests.inside import count_descriptors
from tests.integration.parts import api_client_to
from tests.integration.raw import RawServer, exchange_threads, hold, read_request

Handler = Callable[[socket.socket], None]
ENDLESS = 10**9


def sending(head: bytes, then: bytes, *, pause_seconds: float) -> Handler:
    """Return a handler that sends `head`, then `then` in a loop."""

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
STALLING: dict[str, Handler] = {
    "no answer": hold,
    "half a status line": slowly(b"HTTP/1.1 2", b""),
    "half a body": slowly(OK + b"Content-Length: 9\r\n\r\n{", b""),
}
DRIPPING: dict[str, Handler] = {
    "header": slowly(OK + b"X-Filler: ", b"x"),
    "body": slowly(OK + b"Content-Length: %d\r\n\r\n" % ENDLESS, b" "),
    "body without a length": slowly(OK + b"\r\n", b" "),
    "chunks": slowly(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
}
TOO_LARGE: dict[str, Handler] = {
    "body": without_end(OK + b"Content-Length: %d\r\n\r\n" % ENDLESS, b" " * 65536),
    "body without a length": without_end(OK + b"\r\n", b" " * 65536),
    "chunks": without_end(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b" " * 65536 + b"\r\n"),
    "gzip header": without_end(OK + b"Content-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x08\0\0\0\0\0\0", b"x" * 65536),
    "empty gzip": without_end(OK + b"Content-Encoding: gzip\r\n\r\n\x1f\x8b\x08\0\0\0\0\0\0\0", b"\0\0\0\xff\xff" * 10_000),
}


def failed_exchange(base_url: str, *, idle_seconds: float = 30.0, total_seconds: float = 1.0) -> NetworkError:
    """Send a request that must fail, and return its error."""
    timeouts = Timeouts(connect_seconds=10, idle_seconds=idle_seconds, total_seconds=total_seconds)
    with pytest.raises(NetworkError) as caught:
        api_client_to(base_url).send(Request(method="GET", url="/v1/job"), timeouts)
    return caught.value


@pytest.mark.parametrize("handle", [*STALLING.values(), *DRIPPING.values()], ids=[*STALLING, *DRIPPING])
def test_a_hanging_response_is_given_up_after_the_total_timeout(handle: Handler) -> None:
    with RawServer(handle) as server:
        error = failed_exchange(server.base_url)

    assert isinstance(error, ResponseTimeout)
    assert error.maybe_processed


@pytest.mark.parametrize("stage", STALLING)
def test_a_hanging_response_is_given_up_after_the_idle_timeout(stage: str) -> None:
    with RawServer(STALLING[stage]) as server:
        error = failed_exchange(server.base_url, idle_seconds=0.2, total_seconds=60)

    assert not isinstance(error, ResponseTimeout)
    assert error.maybe_processed


@pytest.mark.parametrize("part", TOO_LARGE)
def test_an_endless_response_is_given_up_at_the_size_limit(part: str) -> None:
    with RawServer(TOO_LARGE[part]) as server:
        error = failed_exchange(server.base_url, total_seconds=60)

    assert not isinstance(error, ResponseTimeout)
    assert error.maybe_processed


def test_a_hanging_tls_handshake_is_given_up() -> None:
    with RawServer(hold) as server:
        error = failed_exchange(f"https://127.0.0.1:{server.port}")

    assert isinstance(error, ResponseTimeout)
    assert not error.maybe_processed


def test_a_server_without_tls_is_named_as_the_cause() -> None:
    def plain(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        hold(connection)

    with RawServer(plain) as server:
        error = failed_exchange(f"https://127.0.0.1:{server.port}", total_seconds=30)

    assert error.is_without_tls
    assert not error.maybe_processed


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_cancel_ends_a_hanging_request(scheme: str) -> None:
    caught: list[BaseException] = []
    clock = Clock()

    with RawServer(hold) as server:
        client = api_client_to(f"{scheme}://127.0.0.1:{server.port}", clock=clock)

        def exchange() -> None:
            try:
                client.send(Request(method="GET", url="/v1/job"), Timeouts(total_seconds=600))
            except Cancelled as error:
                caught.append(error)

        thread = threading.Thread(target=exchange)
        thread.start()
        while not server.connections:
            time.sleep(0.005)
        clock.cancellation.cancel()
        clock.cancellation.is_aborted = True
        thread.join()
        with pytest.raises(Cancelled):
            client.send(Request(method="GET", url="/v1/job"), Timeouts())

    assert len(caught) == 1


@pytest.mark.parametrize(("scheme", "handle"), [("http", hold), ("http", DRIPPING["body"]), ("https", hold)])
def test_requests_that_were_given_up_leave_no_descriptors_or_threads(scheme: str, handle: Handler) -> None:
    descriptors = count_descriptors()
    timeouts = Timeouts(connect_seconds=0.5, idle_seconds=0.5, total_seconds=0.1)

    with RawServer(handle) as server:
        for _ in range(3):
            with pytest.raises(ResponseTimeout):
                api_client_to(f"{scheme}://127.0.0.1:{server.port}").send(Request(method="GET", url="/v1/job"), timeouts)
        for thread in exchange_threads():
            thread.join(timeout=30)
        assert exchange_threads() == []

    assert count_descriptors() == descriptors


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_an_unrequested_compressed_body_is_limited_by_its_decompressed_size(coding: str) -> None:
    zeros = bytes(256 * 1024 * 1024)
    packed = zlib.compress(zeros, 9) if coding == "deflate" else gzip.compress(zeros, 9)
    del zeros
    head = OK + f"Content-Encoding: {coding}\r\nContent-Length: {len(packed)}\r\n\r\n".encode()

    with RawServer(sending(head + packed, b"", pause_seconds=1.0)) as server:
        tracemalloc.start()
        error = failed_exchange(server.base_url, total_seconds=60)
        _, most_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert not isinstance(error, ResponseTimeout)
    assert most_bytes < 16 * 1024 * 1024
