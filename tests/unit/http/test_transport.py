"""An exchange can be given up at any stage.

Its caller goes on, and its thread sends nothing any more.
"""

import base64
import io
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Final
from unittest.mock import Mock

import pytest

from docs_platform_action.clock import Clock
from docs_platform_action.errors import Cancelled
from docs_platform_action.http.faults import NetworkError
from docs_platform_action.http.transport import Request, Timeouts, Transport
from docs_platform_action.http.trust import UnusableServerError, create_ssl_context
from tests.unit.fakes import BASE_URL, HOST, FakeTransport, http_client
from tests.virtual_time import VirtualClock

TARGET: Final = "/a%2fb/../c?s=%2B+%20"


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mock]:
    """Return the socket of every connection. Calls `on_connect`, and receives a `reply`."""
    connection = Mock(reply=b"HTTP/1.1 200 OK\r\n\r\n{}")
    connection.makefile.side_effect = lambda *_: io.BytesIO(connection.reply)

    def connect(*_args: object, **_options: object) -> Mock:
        connection.on_connect()
        return connection

    monkeypatch.setattr("urllib3.util.connection.create_connection", connect)
    yield connection
    join()


def join() -> None:
    """Wait until the exchanges have ended."""
    for thread in threading.enumerate():
        if thread.name == "exchange":
            thread.join(60)
            assert not thread.is_alive()


def sent_through(connection: Mock) -> bytes:
    """Return the start of what was sent: the first request's line and headers."""
    sent: bytes = connection.sendall.call_args_list[0].args[0]
    return sent


def fetch(
    scheme: str = "http",
    *,
    clock: Clock | None = None,
    proxy: str | None = None,
    seconds: float = 60.0,
) -> bytes:
    """Return the body of the response."""
    transport = Transport(create_ssl_context(None))
    proxies = {"https": proxy} if proxy is not None else {}
    client = http_client(transport, clock=clock, proxies=proxies)
    request = Request(method="GET", url=f"{scheme}://{HOST}{TARGET}")
    exchange = client.new_exchange(request, Timeouts().within(seconds), headers={})
    with client.send(exchange) as response:
        return b"".join(response.pieces)


def test_a_request_is_sent_byte_for_byte_and_its_body_arrives_in_order(connection: Mock) -> None:
    body = b"".join(b"%8d" % number for number in range(500_000))  # more than the queue holds
    connection.reply = b"HTTP/1.1 200 OK\r\n\r\n" + body

    assert fetch() == body
    assert sent_through(connection).startswith(
        f"GET {TARGET} HTTP/1.1\r\nHost: {HOST}\r\n".encode()
    )


@pytest.mark.parametrize(
    ("user", "credentials"),
    [
        ("robot:w rd\u20ac%E2%82%AC%FC", "robot:w rd\u20ac\u20ac".encode() + b"\xfc"),
        (":word", b":word"),
    ],
)
def test_a_proxy_gets_the_credentials_of_its_address_in_its_own_bytes(
    connection: Mock, user: str, credentials: bytes
) -> None:
    connection.reply = b"HTTP/1.1 407 No\r\n\r\n"

    with pytest.raises(UnusableServerError):
        fetch("https", proxy=f"http://{user}@proxy.example.com:3128")

    header = b"\r\nProxy-Authorization: Basic " + base64.b64encode(credentials) + b"\r\n"
    assert header in sent_through(connection)


def test_a_request_whose_time_is_up_while_it_connects_is_not_sent(connection: Mock) -> None:
    is_given_up = threading.Event()
    connection.on_connect = lambda: is_given_up.wait(60)

    with pytest.raises(NetworkError) as caught:
        fetch(seconds=0.0)
    is_given_up.set()
    join()

    assert not caught.value.was_sent
    assert not connection.sendall.called


def test_only_the_wait_for_the_server_uses_up_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = VirtualClock()
    monkeypatch.setattr(clock, "wait_for", lambda *_: clock.advance(20))
    client = http_client(FakeTransport(), clock=clock)
    request = Request(method="GET", url=BASE_URL)
    exchange = client.new_exchange(request, Timeouts(), headers={})
    with client.send(exchange):
        pass

    exchange.take()
    clock.advance(600)  # the caller's disk is slow
    exchange.take()

    assert exchange.remaining_seconds == Timeouts().total_seconds - 40
    assert exchange.give_up().was_sent


@pytest.mark.parametrize(
    ("when", "outcome"), [("sendall", nullcontext()), ("on_connect", pytest.raises(Cancelled))]
)
def test_a_run_that_is_cancelled_finishes_an_exchange_only_if_it_has_begun(
    connection: Mock, when: str, outcome: AbstractContextManager[object]
) -> None:
    clock = Clock()
    getattr(connection, when).side_effect = lambda *_: clock.cancellation.cancel()

    with outcome:
        assert fetch(clock=clock) == b"{}"

    assert connection.sendall.called == (when == "sendall")
