"""An exchange can be given up at any stage: its caller goes on, and its thread sends nothing any more."""

import base64
import errno
import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from unittest.mock import Mock

import pytest
import requests

from docs_platform_action.clock import Clock
from docs_platform_action.errors import Cancelled
from docs_platform_action.http.faults import NetworkError, ResponseTimeout, translated
from docs_platform_action.http.retry import TransientError
from docs_platform_action.http.transport import Exchange, Request, Timeouts, Transport
from docs_platform_action.http.trust import UnusableServerError, create_ssl_context
from tests.unit.fakes import HOST
from tests.virtual_time import VirtualClock

TARGET = "/a%2fb/../c?s=%2B+%20"
HEAD = b"HTTP/1.1 200 OK\r\n"


def new_exchange(
    clock: Clock | None = None, *, scheme: str = "http", proxy: str | None = None, total_seconds: float = 60.0
) -> Exchange:
    return Exchange(
        request=Request(method="GET", url=TARGET),
        unprepared=requests.Request("GET", f"{scheme}://{HOST}/"),
        target=TARGET,
        host=HOST,
        proxy=proxy,
        timeouts=Timeouts(total_seconds=total_seconds),
        clock=clock or Clock(),
    )


def send(exchange: Exchange) -> bytes:
    """Return the body of the response."""
    _, _, pieces = Transport(create_ssl_context(None)).send(exchange)
    return b"".join(pieces)


class TestExchange:
    @pytest.mark.parametrize("has_begun", [True, False])
    def test_one_that_is_given_up_is_over_and_says_whether_it_had_begun(self, has_begun: bool) -> None:
        exchange = new_exchange(total_seconds=0.0)
        if has_begun:
            exchange.begin()

        with pytest.raises(ResponseTimeout) as caught:
            exchange.take()

        assert (exchange.is_over, caught.value.maybe_processed) == (True, has_begun)

    def test_only_the_wait_for_the_server_uses_up_its_time(self) -> None:
        clock = VirtualClock()
        exchange = new_exchange(clock, total_seconds=60.0)
        clock.advance(600)  # the caller's disk is slow
        threading.Thread(target=exchange.put, args=(b"x",), daemon=True).start()

        assert exchange.take() == b"x"
        assert exchange.remaining_seconds > 0

    def test_a_thread_that_waits_for_its_caller_ends_with_the_exchange(self) -> None:
        exchange, is_ended = new_exchange(), threading.Event()

        def put_until_the_end() -> None:
            try:
                while True:  # the caller takes only the first
                    exchange.put(b"x")
            except TimeoutError:
                is_ended.set()

        threading.Thread(target=put_until_the_end, daemon=True).start()
        exchange.take()
        time.sleep(0.01)  # until the queue is full
        exchange.end()

        assert is_ended.wait(60)


class Network:
    """What connections are made to: one server, which sends its reply and closes. Records what the server receives."""

    def __init__(self) -> None:
        self.on_connect: Callable[[], object] = lambda: None
        self.on_request: Callable[[], object] = lambda: None
        self.error: Exception | None = None
        self.reply = HEAD + b"\r\n{}"
        self.received = b""
        self._threads: list[threading.Thread] = []

    def connect(self, _address: object, *_args: object, **_options: object) -> socket.socket:
        self.on_connect()
        if self.error is not None:
            raise self.error
        ours, theirs = socket.socketpair()
        ours.settimeout(60)
        self._threads.append(threading.Thread(target=self._serve, args=(theirs,), daemon=True))
        self._threads[-1].start()
        return ours

    def _serve(self, theirs: socket.socket) -> None:
        with theirs:
            while not self.received.endswith(b"\r\n\r\n"):
                received = theirs.recv(10_000)
                self.received += received
                if not received:
                    return
            self.on_request()
            theirs.sendall(self.reply)

    def join(self) -> None:
        """Wait until the exchanges have ended and the connections are closed."""
        for thread in [thread for thread in threading.enumerate() if thread.name == "exchange"] + self._threads:
            thread.join(60)


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Iterator[Network]:
    network = Network()
    monkeypatch.setattr("urllib3.util.connection.create_connection", network.connect)
    yield network
    network.join()


class TestTransport:
    def test_a_request_is_sent_byte_for_byte(self, network: Network) -> None:
        send(new_exchange())

        assert network.received.startswith(f"GET {TARGET} HTTP/1.1\r\nHost: {HOST}\r\n".encode())

    def test_a_body_arrives_in_order_though_it_is_larger_than_the_queue(self, network: Network) -> None:
        body = b"".join(b"%8d" % number for number in range(500_000))
        network.reply = HEAD + b"\r\n" + body

        assert send(new_exchange()) == body

    def test_a_request_that_is_given_up_while_it_connects_is_not_sent(self, network: Network) -> None:
        is_given_up = threading.Event()
        network.on_connect = lambda: is_given_up.wait(60)
        exchange = new_exchange(total_seconds=0.0)

        with pytest.raises(ResponseTimeout) as caught:
            send(exchange)
        is_given_up.set()
        network.join()

        assert (caught.value.maybe_processed, exchange.request.maybe_processed, network.received) == (False, False, b"")

    def test_a_run_that_is_cancelled_lets_an_exchange_finish_that_has_begun(self, network: Network) -> None:
        clock = Clock()
        network.on_request = clock.cancellation.cancel

        assert send(new_exchange(clock)) == b"{}"

    def test_it_sends_nothing_more_of_one_that_has_not(self, network: Network) -> None:
        exchange = new_exchange(clock := Clock())
        network.on_connect = clock.cancellation.cancel

        with pytest.raises(Cancelled):
            send(exchange)
        network.join()

        assert (network.received, exchange.request.maybe_processed) == (b"", False)

    def test_a_run_that_is_aborted_gives_it_up(self, network: Network) -> None:
        clock, is_given_up = Clock(), threading.Event()
        network.on_connect = lambda: is_given_up.wait(60)
        clock.cancellation.is_aborted = True

        with pytest.raises(Cancelled):
            send(new_exchange(clock))
        is_given_up.set()

    def test_a_machine_that_allows_no_more_threads_now_may_allow_one_later(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("can't start new thread")))

        with pytest.raises(TransientError) as caught:
            send(new_exchange())

        assert not caught.value.maybe_processed
        assert "`max-parallel`" in caught.value.advice["remedy"]

    def test_a_bug_is_raised_as_it_is_in_the_caller(self, network: Network) -> None:
        network.error = KeyError("x")

        with pytest.raises(KeyError, match="x"):
            send(new_exchange())

    @pytest.mark.parametrize("proxy", [None, "http://proxy.example.com:3128"])
    @pytest.mark.parametrize(
        "error",
        [ConnectionRefusedError(), OSError(errno.ENETUNREACH, "x"), TimeoutError(), socket.gaierror(socket.EAI_NONAME, "x")],
        ids=["refused", "unreachable", "timeout", "unknown name"],
    )
    def test_the_cause_of_a_failed_connection_is_found_below_what_urllib3_wraps_it_in(
        self, network: Network, error: OSError, proxy: str | None
    ) -> None:
        network.error = error

        with pytest.raises(NetworkError) as caught:
            send(new_exchange(scheme="https", proxy=proxy))

        plain = translated(error, HOST, through_proxy=proxy is not None, maybe_processed=False)
        assert vars(caught.value) == vars(plain)

    @pytest.mark.parametrize(
        ("reply", "error"),
        [
            (b"", ConnectionResetError()),
            (HEAD + b"Content-Length: 3\r\n\r\n{}", ConnectionResetError()),
            (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", ConnectionResetError()),
            (b"SSH-2.0-OpenSSH\r\n", http.client.BadStatusLine("x")),
        ],
        ids=["closed", "cut body", "cut chunks", "another protocol"],
    )
    def test_the_cause_of_a_failed_response_is_found_too(self, network: Network, reply: bytes, error: Exception) -> None:
        network.reply = reply

        with pytest.raises(NetworkError) as caught:
            send(new_exchange())

        assert vars(caught.value) == vars(translated(error, HOST, through_proxy=False, maybe_processed=True))

    @pytest.mark.parametrize(
        ("user_info", "credentials"),
        [
            ("robot:w@rd%3A%2f@", b"robot:w@rd:/"),
            ("robot:w rd\u20ac%E2%82%AC%FC@", "robot:w rd\u20ac\u20ac".encode() + b"\xfc"),
            (":word@", b":word"),
        ],
    )
    def test_a_proxy_gets_the_credentials_of_its_address(self, network: Network, user_info: str, credentials: bytes) -> None:
        network.reply = b"HTTP/1.1 407 No\r\n\r\n"

        with pytest.raises(UnusableServerError):
            send(new_exchange(scheme="https", proxy=f"http://{user_info}proxy.example.com:3128"))

        assert network.received.startswith(f"CONNECT {HOST}:443 ".encode())
        assert b"\r\nProxy-Authorization: Basic " + base64.b64encode(credentials) + b"\r\n" in network.received
