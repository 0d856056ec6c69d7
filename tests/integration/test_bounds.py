"""An answer that does not come to its end is ended, whichever stage it hangs in, and leaves nothing behind."""

import functools
import gc
import gzip
import socket
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from docs_platform_action.errors import Cancelled
from docs_platform_action.http.client import Request, Timeouts
from docs_platform_action.http.connection import AbortableAdapter, InFlight, create_ssl_context
from docs_platform_action.http.faults import NetworkError
from tests.integration.parts import api_client_to
from tests.integration.raw import RawServer, hold, read_request

Handler = Callable[[socket.socket], None]
ENDLESS = 10**9


def sending(head: bytes, then: bytes, *, pause_seconds: float) -> Handler:
    """Send `then` after `head` again and again, never so slowly that a bound on a single read would see it."""

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
    "chunks": without_end(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b" " * 65536 + b"\r\n"),
    "chunk size": without_end(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"0" * 65536),
    "header": without_end(OK + b"X-Filler: ", b"x" * 65536),
    "headers": without_end(OK, b"X: y\r\n" * 1000),
    "status line": without_end(b"HTTP/1.1 200 ", b"K" * 65536),
    "interim answers": without_end(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
}


@pytest.fixture
def adapter() -> AbortableAdapter:
    return AbortableAdapter(create_ssl_context(None))


def open_files() -> int:
    """Count the open files, but for those of runs in this process that are over."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


def failed_exchange(
    adapter: AbortableAdapter, base_url: str, *, idle_seconds: float = 30.0, total_seconds: float = 1.0
) -> NetworkError:
    """Make an exchange that has to fail, and give its error."""
    timeouts = Timeouts(connect_seconds=10, idle_seconds=idle_seconds, total_seconds=total_seconds)
    with pytest.raises(NetworkError) as caught:
        api_client_to(base_url, adapter=adapter).send(Request(method="GET", url="/v1/job"), timeouts)
    return caught.value


@pytest.mark.parametrize("stage", HANGING)
def test_an_answer_that_hangs_is_ended_by_the_bound_on_the_whole(adapter: AbortableAdapter, stage: str) -> None:
    with RawServer(HANGING[stage]) as server:
        error = failed_exchange(adapter, server.base_url)

    assert " took longer than " in error.message
    assert error.maybe_processed


@pytest.mark.parametrize("stage", ["no answer", "half a status line"])
def test_an_answer_that_hangs_is_ended_by_the_bound_on_silence(adapter: AbortableAdapter, stage: str) -> None:
    with RawServer(HANGING[stage]) as server:
        error = failed_exchange(adapter, server.base_url, idle_seconds=0.2, total_seconds=60)

    assert error.message.endswith("sent nothing for too long")
    assert error.maybe_processed


@pytest.mark.parametrize("part", ENDLESS_ANSWERS)
def test_an_answer_without_end_is_ended(adapter: AbortableAdapter, part: str) -> None:
    with RawServer(ENDLESS_ANSWERS[part]) as server:
        error = failed_exchange(adapter, server.base_url, total_seconds=10)

    assert error.maybe_processed


@pytest.mark.parametrize("part", ["body", "body without a length", "chunks"])
def test_a_body_without_end_is_ended_by_its_size(adapter: AbortableAdapter, part: str) -> None:
    with RawServer(ENDLESS_ANSWERS[part]) as server:
        error = failed_exchange(adapter, server.base_url, total_seconds=60)

    assert error.message == "The API's response is larger than 1024 KiB"


@pytest.mark.parametrize("part", ["chunk size", "header", "headers", "status line", "interim answers"])
def test_a_head_or_a_line_without_end_is_ended_by_its_size(adapter: AbortableAdapter, part: str) -> None:
    with RawServer(ENDLESS_ANSWERS[part]) as server:
        error = failed_exchange(adapter, server.base_url, total_seconds=60)

    assert error.message.endswith("is not valid HTTP")


def test_a_head_that_has_an_end_is_ended_by_its_size_too(adapter: AbortableAdapter) -> None:
    # to read such cookies takes half a minute, which no bound on time ends
    cookies = b"Set-Cookie: a=b\r\n" + (b"Set-Cookie2: " + b"a," * 16_000 + b"\r\n") * 40
    answer = OK + cookies + b"Content-Length: 2\r\n\r\n{}"
    with RawServer(sending(answer, b"", pause_seconds=1.0)) as server:
        error = failed_exchange(adapter, server.base_url, total_seconds=60)

    assert error.message.endswith("is not valid HTTP")


def test_a_head_of_any_use_is_not_ended_by_its_size(adapter: AbortableAdapter) -> None:
    headers = b"".join(b"X-Filler-%d: %b\r\n" % (number, b"x" * 600) for number in range(90))
    answer = OK + headers + b"Content-Length: 15\r\n\r\n" + b'{"jobId": "j7"}'
    with RawServer(sending(answer, b"", pause_seconds=1.0)) as server:
        found = api_client_to(server.base_url, adapter=adapter).send(Request(method="GET", url="/v1/job"), Timeouts())

    assert found.body == {"jobId": "j7"}


@pytest.mark.parametrize("idle_seconds", [30.0, 0.2])
def test_a_tls_handshake_that_hangs_is_ended_and_nothing_was_sent(adapter: AbortableAdapter, idle_seconds: float) -> None:
    with RawServer(hold) as server:
        error = failed_exchange(adapter, f"https://127.0.0.1:{server.port}", idle_seconds=idle_seconds)

    assert not error.maybe_processed


def test_a_tls_handshake_byte_by_byte_is_ended(adapter: AbortableAdapter) -> None:
    def handshake(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"\x16\x03\x03\x40\x00")
        while True:
            connection.sendall(b"\x02")
            time.sleep(0.02)

    with RawServer(handshake) as server:
        error = failed_exchange(adapter, f"https://127.0.0.1:{server.port}")

    assert " took longer than " in error.message
    assert not error.maybe_processed


def test_what_speaks_no_tls_is_told_as_such(adapter: AbortableAdapter) -> None:
    def plain(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        hold(connection)

    with RawServer(plain) as server:
        error = failed_exchange(adapter, f"https://127.0.0.1:{server.port}", total_seconds=30)

    assert error.message == f"The TLS connection to 127.0.0.1:{server.port} failed"
    assert not error.maybe_processed


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_exchange_that_hangs_ends_when_it_is_aborted(adapter: AbortableAdapter, scheme: str) -> None:
    caught: list[BaseException] = []

    with RawServer(hold) as server:
        in_flight = InFlight()
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


def test_nothing_is_left_of_ended_exchanges() -> None:
    files, threads = open_files(), {*threading.enumerate()}

    for scheme, handle in (("http", hold), ("http", HANGING["body, byte by byte"]), ("https", hold)):
        adapter = AbortableAdapter(create_ssl_context(None))
        with RawServer(handle) as server:
            for _ in range(3):
                failed_exchange(adapter, f"{scheme}://127.0.0.1:{server.port}", total_seconds=0.1)
            adapter.close()

    assert open_files() == files
    for thread in {*threading.enumerate()} - threads:
        thread.join(timeout=10)  # the watch that was called off last is about to end
    assert {*threading.enumerate()} <= threads


@pytest.mark.parametrize("coding", ["gzip", "gzip, gzip", "deflate"])
def test_a_body_that_is_packed_though_nobody_asked_is_ended_by_what_it_unpacks_to(adapter: AbortableAdapter, coding: str) -> None:
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

    assert error.message == "The API's response is larger than 1024 KiB"
    assert most_bytes < 16 * 1024 * 1024
