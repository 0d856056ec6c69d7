"""The transport: each exchange has its own connection and thread, which its caller can give up.

Python cannot interrupt a name lookup, a connect, a handshake or a read. The thread is a daemon.
After its exchange is given up, it sends no request. It ends when the server sends a piece
of the body, is silent or closes, at the latest with the process.
"""

import base64
import contextlib
import queue
import ssl
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, cast
from urllib.parse import unquote_to_bytes

import requests
from requests.adapters import HTTPAdapter
from urllib3 import ProxyManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.util import parse_url

from ..clock import Clock
from ..errors import NO_THREADS
from .attempts import TransientError
from .faults import NetworkError, translated

_PIECE_BYTES: Final = 256 * 1024
_MAX_QUEUED: Final = 4  # pieces that are received, but not taken
_CHECK_SECONDS: Final = 0.05  # how often a thread with a full queue checks whether it was given up
_END: Final = b""  # of the body, in place of a piece

Received = tuple[int, Mapping[str, str], Iterator[bytes]]
"""A status, headers, and the pieces of the body as they arrive.

The pieces are not decoded. Their iterator raises what `Transport.send` raises.
"""


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request."""

    method: str
    url: str
    body: Mapping[str, object] | None = None  # sent as JSON


@dataclass(frozen=True, kw_only=True)
class Timeouts:
    """The time limits of an exchange."""

    connect_seconds: float = 5.0  # to one address
    idle_seconds: float = 30.0  # between two bytes of the response
    total_seconds: float = 60.0

    def within(self, seconds: float) -> "Timeouts":
        """Return these timeouts with at most `seconds` in total."""
        return replace(self, total_seconds=min(self.total_seconds, seconds))


@dataclass(eq=False, kw_only=True)
class Exchange:
    """One attempt: a request and its response. Any thread may read whether it `was_sent`.

    That is known before the first byte is sent, and never changes back.
    `target` is what follows the host: ASCII without white space, sent byte for byte.
    """

    unprepared: requests.Request
    target: str
    host: str
    proxy: str | None = field(repr=False)
    timeouts: Timeouts
    clock: Clock
    was_sent: bool = False
    is_over: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _arrivals: "queue.Queue[Any]" = field(default_factory=partial(queue.Queue, _MAX_QUEUED))

    def __post_init__(self) -> None:
        self.remaining_seconds = self.timeouts.total_seconds  # to wait for the server

    def begin(self) -> None:
        """Record that the request is sent from now on.

        Raises `TimeoutError` if the exchange is over, and `Cancelled`.
        """
        self.clock.cancellation.check()
        with self._lock:
            if self.is_over:
                raise TimeoutError
            self.was_sent = True

    def end(self) -> None:
        """End the exchange: from now on, the request is not sent."""
        with self._lock:
            self.is_over = True

    def put(self, item: object) -> None:
        """Pass something to the caller, or raise `TimeoutError` once the exchange is over."""
        while not self.is_over:
            with contextlib.suppress(queue.Full):
                self._arrivals.put(item, timeout=_CHECK_SECONDS)
                return
        raise TimeoutError

    def take(self) -> Any:
        """Return what is passed next.

        Raises errors of `faults` and `trust` in place of the transport's, and `Cancelled`.
        """
        began = self.clock.monotonic()
        try:
            item = self.clock.wait_for(self._arrivals, self.remaining_seconds)
        except queue.Empty:
            raise self.give_up() from None
        self.remaining_seconds -= self.clock.monotonic() - began
        if isinstance(item, Exception):
            raise translated(
                item,
                self.host,
                through_proxy=self.proxy is not None,
                was_sent=self.was_sent,
            )
        return item

    def give_up(self) -> NetworkError:
        """End the exchange because its time is up, and return the error that says so."""
        self.end()  # first: the thread may be about to send the request
        if self.was_sent:
            message = f"{self.host} did not send a whole response in time"
        else:
            message = f"{self.host} could not be reached in time"
        return NetworkError(message, was_sent=self.was_sent)


class Transport:
    """Sends requests. Safe to use from several threads."""

    def __init__(self, ssl_context: ssl.SSLContext) -> None:
        self._ssl_context = ssl_context

    def send(self, exchange: Exchange) -> Received:
        """Send a request and return its response.

        Raises errors of `faults` and `trust`, `TransientError` and `Cancelled`.
        """
        thread = threading.Thread(target=self._run, args=(exchange,), daemon=True, name="exchange")
        try:
            thread.start()
        except RuntimeError as error:
            raise TransientError(
                "This machine allows no more threads", advice=NO_THREADS, is_unprocessed=True
            ) from error
        received: requests.Response = exchange.take()
        pieces = iter(exchange.take, _END)
        return received.status_code, received.headers, pieces

    def _run(self, exchange: Exchange) -> None:
        """Run an exchange in its own thread, until it ends or is over for its caller."""
        adapter = _Adapter(exchange, self._ssl_context)
        with contextlib.closing(adapter), contextlib.suppress(TimeoutError):
            try:
                _send_and_receive(adapter, exchange)
            except Exception as error:  # noqa: BLE001  # the caller raises it
                exchange.put(error)


def _send_and_receive(adapter: "_Adapter", exchange: Exchange) -> None:
    """Send the request, and pass the response and then its body to the caller."""
    proxies = {}
    if exchange.proxy is not None:
        proxies = {"http": exchange.proxy, "https": exchange.proxy}
    with adapter.send(
        exchange.unprepared.prepare(),
        stream=True,
        timeout=(exchange.timeouts.connect_seconds, exchange.timeouts.idle_seconds),
        proxies=proxies,
    ) as received:
        exchange.put(received)
        while piece := received.raw.read1(_PIECE_BYTES, decode_content=False):
            exchange.put(piece)
    exchange.put(_END)


class _Connection(HTTPConnection):
    """A connection for one exchange."""

    def __init__(self, *args: Any, exchange: Exchange, **options: Any) -> None:
        super().__init__(*args, **options)
        self._exchange = exchange

    def request(self, method: str, url: str, *args: Any, **options: Any) -> None:  # noqa: ARG002
        """Send the request for `target`, once there is a connection.

        urllib3 has encoded `url` again, which breaks signed links.
        """
        if self.sock is None:  # with TLS or a proxy, urllib3 has connected before
            self.connect()
        self._exchange.begin()
        super().request(method, self._exchange.target, *args, **options)


class _TLSConnection(_Connection, HTTPSConnection):
    def connect(self) -> None:
        super().connect()
        # an end of the stream without TLS's own is an error: otherwise, a cut body looks complete
        # (RFC 9112, section 9.8)
        cast("Any", self.sock).suppress_ragged_eofs = False  # missing in the type stubs


class _Adapter(HTTPAdapter):
    """Sends the request of one exchange."""

    def __init__(self, exchange: Exchange, ssl_context: ssl.SSLContext) -> None:
        self._exchange = exchange
        self._ssl_context = ssl_context
        super().__init__()

    def proxy_manager_for(self, proxy: str, **options: Any) -> ProxyManager:
        """Return the pools of connections through a proxy, for requests."""
        manager = super().proxy_manager_for(proxy, proxy_ssl_context=self._ssl_context, **options)
        return cast("ProxyManager", manager)

    def get_connection_with_tls_context(self, *args: Any, **options: Any) -> Any:
        """Return the pool for a request, for requests."""
        pool: Any = super().get_connection_with_tls_context(*args, **options)
        if pool.scheme == "https":
            pool.ConnectionCls = partial(
                _TLSConnection, exchange=self._exchange, ssl_context=self._ssl_context
            )
        else:
            pool.ConnectionCls = partial(_Connection, exchange=self._exchange)
        return pool

    # requests calls it with all of these
    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:  # noqa: ARG002
        """Leave trust to the context.

        requests would have each connection read all public authorities again.
        """
        conn.cert_reqs = "CERT_REQUIRED"

    def proxy_headers(self, proxy: str) -> dict[str, str]:
        """Return the credentials of a proxy's address, byte for byte.

        requests would read them as Latin-1.
        """
        auth = parse_url(proxy).auth or ""
        user, _, password = auth.partition(":")
        if not user and not password:
            return {}
        user_and_password = unquote_to_bytes(user) + b":" + unquote_to_bytes(password)
        credentials = base64.b64encode(user_and_password).decode()
        return {"Proxy-Authorization": f"Basic {credentials}"}
