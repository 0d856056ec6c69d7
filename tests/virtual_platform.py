"""The simulated platform in virtual time.

Its transport has no sockets, and an exchange runs in its caller.
"""

import http.client
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import requests
from urllib3 import HTTPResponse
from urllib3.exceptions import ProtocolError

from admin_api_simulator import Fault, Simulator
from admin_api_simulator.clock import Clock as SimulatorClock
from admin_api_simulator.wire import Reply, sent_parts
from docs_platform_action.http.faults import translated
from docs_platform_action.http.transport import Exchange, Received, Transport
from tests.keys import ADMIN_KEY
from tests.virtual_time import VirtualClock

API_URL = "https://api.example.com"
STORAGE_URL = "https://storage.example.com"
GITHUB_URL = "https://github.example.com/api/v3"

PIECE_BYTES = 256 * 1024

Trouble = OSError | Fault | None
"""What happens to a request: a failed connection, a fault of the response, or nothing."""


@dataclass(frozen=True, eq=False)
class Sent:
    """What is sent in an exchange."""

    exchange: Exchange
    prepared: requests.PreparedRequest

    @property
    def method(self) -> str:
        return str(self.prepared.method)

    @property
    def target(self) -> str:
        return self.exchange.target

    @property
    def url(self) -> str:
        return str(self.prepared.url).removesuffix("/") + self.target

    @property
    def headers(self) -> Mapping[str, str]:
        return self.prepared.headers

    @property
    def body(self) -> bytes | None:
        return cast("bytes | None", self.prepared.body)


class VirtualTransport(Transport):
    """A transport whose exchanges run in their caller.

    `respond` returns what requests would, and raises what it would.
    """

    def __init__(self) -> None:
        """Need no TLS."""

    def respond(self, sent: Sent) -> requests.Response:
        raise NotImplementedError

    def send(self, exchange: Exchange) -> Received:
        try:
            response = self.respond(Sent(exchange, exchange.unprepared.prepare()))
        except Exception as error:  # noqa: BLE001  # as the transport does
            raise _translated(error, exchange) from None
        end = exchange.end

        def end_and_close() -> None:
            end()
            response.close()

        # a real exchange's thread closes the response
        exchange.end = end_and_close  # type: ignore[method-assign]
        return response.status_code, response.headers, _pieces(exchange, response)


def _translated(error: Exception, exchange: Exchange) -> Exception:
    return translated(
        error,
        exchange.host,
        through_proxy=exchange.proxy is not None,
        was_sent=exchange.was_sent,
    )


def _pieces(exchange: Exchange, response: requests.Response) -> Iterator[bytes]:
    while True:
        try:
            piece: bytes = response.raw.read1(PIECE_BYTES, decode_content=False)
        except Exception as error:  # noqa: BLE001  # the same
            if exchange.remaining_seconds <= 0:
                raise exchange.give_up() from None
            raise _translated(error, exchange) from None
        if not piece:
            return
        yield piece


class VirtualPlatform(VirtualTransport):
    """Sends the action's requests to a simulator.

    Each takes `seconds` of the clock, by default a tenth of a second. `trouble` is asked first,
    then the simulator's planned faults. A request that takes longer than its time limits ends as on
    a network: with a timeout, or given up. `options` are the simulator's.
    """

    base_url = API_URL

    def __init__(
        self,
        clock: VirtualClock,
        *,
        trouble: Callable[[Sent], Trouble] = lambda _sent: None,
        seconds: Callable[[Sent], float] = lambda _sent: 0.1,
        storage_url: str = STORAGE_URL,
        **options: Any,
    ) -> None:
        super().__init__()
        self.clock = clock
        self._trouble = trouble
        self._seconds = seconds
        simulated = SimulatorClock(monotonic=clock.monotonic, now=clock.now)
        simulator = Simulator(**{"key": ADMIN_KEY, "clock": simulated, **options})
        self.simulator = simulator.open(api=API_URL, storage=storage_url, github=GITHUB_URL)

    def respond(self, sent: Sent) -> requests.Response:
        exchange = sent.exchange
        idle_seconds = exchange.timeouts.idle_seconds
        trouble = self._trouble(sent)
        if isinstance(trouble, TimeoutError):
            self._wait(exchange, exchange.timeouts.connect_seconds)
            raise requests.ConnectTimeout
        if isinstance(trouble, OSError):
            self._wait(exchange, self._seconds(sent))
            raise _connection_error(trouble)
        exchange.begin()
        began = self.clock.monotonic()
        self._wait(exchange, self._seconds(sent), idle_seconds=idle_seconds)
        reply = self.simulator.reply(
            method=sent.method,
            url=sent.url,
            headers=sent.headers,
            body=sent.body or b"",
            at=began,
            fault=trouble,
        )
        if reply.fault is not None:
            sent_bytes = b"".join(sent_parts(reply.response, reply.fault))
            self._wait(exchange, reply.fault.delay_seconds, idle_seconds=idle_seconds)
            self._wait(exchange, reply.fault.drip_seconds * len(sent_bytes))
        self.simulator.sent(reply)

        def stall() -> None:
            self._wait(exchange, float("inf"), idle_seconds=idle_seconds)

        received = _received(reply, stall)
        response = requests.Response()
        response.status_code = received.status
        response.raw = received
        response.headers.update(received.headers)
        return response

    def _wait(
        self, exchange: Exchange, seconds: float, *, idle_seconds: float = float("inf")
    ) -> None:
        """Wait for a connection, or a byte.

        Raises `ReadTimeout` if that takes too long, and gives up an exchange in the end.
        """
        waited = min(seconds, idle_seconds, exchange.remaining_seconds)
        self.clock.sleep(waited)
        exchange.remaining_seconds -= waited
        if exchange.remaining_seconds <= 0:
            raise exchange.give_up()
        if seconds >= idle_seconds:
            raise requests.ReadTimeout


def _connection_error(error: Exception) -> requests.ConnectionError:
    return requests.ConnectionError(ProtocolError("Connection aborted.", error))


def _received(reply: Reply, stall: Callable[[], None]) -> HTTPResponse:
    """Return what the client receives of a reply. Raises an error of `requests`."""
    response = reply.response
    fault = reply.fault
    if fault is None or not fault.needs_raw_writing:
        headers = {**response.headers, "Content-Length": str(len(response.body))}
        body = io.BytesIO(bytes(response.body))
        return HTTPResponse(body, headers=headers, status=response.status, preload_content=False)
    if fault.cut == "before_response":
        raise _connection_error(http.client.RemoteDisconnected("no response"))
    sent_bytes = b"".join(sent_parts(response, fault))
    stalls = fault.stall_after_bytes is not None
    sent = _Sent(sent_bytes, stall if stalls else None)
    parsed = http.client.HTTPResponse(cast("Any", sent))
    try:
        parsed.begin()
    except (OSError, http.client.HTTPException) as error:
        parsed.close()
        raise _connection_error(error) from error
    return HTTPResponse(
        cast("Any", parsed),
        headers=dict(parsed.headers),
        status=parsed.status,
        preload_content=False,
        original_response=parsed,
    )


class _Sent(io.RawIOBase):
    """A socket from which bytes are read, and then the end or, with `stall`, a timeout."""

    def __init__(self, sent: bytes, stall: Callable[[], None] | None) -> None:
        super().__init__()
        self._left = io.BytesIO(sent)
        self._stall = stall

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def settimeout(self, _seconds: float) -> None:
        """Do nothing: a read never waits."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._left.readinto(buffer)
        if count == 0 and self._stall is not None:
            self._stall()
            raise TimeoutError("timed out")
        return count
