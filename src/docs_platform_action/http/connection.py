"""A requests adapter whose exchanges can be aborted at any stage; requests' timeouts limit only the wait for the next byte."""

import base64
import contextlib
import http
import math
import os
import selectors
import socket
import ssl
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import unquote_to_bytes

import certifi
import requests
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, ProxyManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError
from urllib3.util import parse_url

from ..clock import Clock
from ..errors import Cancelled
from .resolver import Resolver
from .response import FinalResponse, read_waiting

if TYPE_CHECKING:
    from .client import Request

NEXT_ADDRESS_SECONDS: Final = 0.25  # before the next address is tried as well (RFC 8305, section 8)
MAX_CONNECTIONS: Final = 128  # kept to one host: urllib3 logs a warning for each that it drops

_SocketOptions = Iterable[tuple[int, int, int | bytes]]


@dataclass(eq=False, kw_only=True)
class Exchange:
    """A request and its response, which any thread can abort. `address_errors` is set if no address could be connected to."""

    host: str
    clock: Clock  # what `ends_at` is measured on
    through_proxy: bool = False
    is_tunneling: bool = False  # a proxy has been asked for a connection to the host, and has not agreed
    proxy_status: int | None = None  # of a proxy that refuses
    new_connection: bool = False
    is_connected: bool = False  # TLS included: before, the server has not seen the request
    is_reused: bool = False
    is_aborted: bool = False
    is_cancelled: bool = False
    total_seconds: float = math.inf
    ends_at: float = math.inf
    address_errors: dict[str, OSError] = field(default_factory=dict)
    resolver: Resolver = field(default_factory=Resolver)
    _sockets: list[socket.socket] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def remaining_seconds(self) -> float:
        """The time until the exchange is aborted."""
        return 0.0 if self.is_aborted else max(self.ends_at - self.clock.monotonic(), 0.0)

    def adopt(self, sock: socket.socket) -> None:
        """Hold a duplicate of a socket, which `abort` shuts down."""
        with self._lock:
            # not `sock.dup()`, which a TLS socket refuses: the connection below TLS is what gets shut down
            self._sockets.append(socket.socket(fileno=os.dup(sock.fileno())))
        if self.is_aborted:
            self.abort()

    def abort(self) -> None:
        """End the exchange now: lookups, and reads and writes on its connection, fail at once."""
        with self._lock:
            self.is_aborted = True
            for sock in self._sockets:
                with contextlib.suppress(OSError):  # it is closed already
                    sock.shutdown(socket.SHUT_RDWR)
        self.resolver.wake()

    def release(self) -> None:
        """Close the duplicates; the connection stays open."""
        with self._lock:
            for sock in self._sockets:
                sock.close()
            self._sockets.clear()


class InFlight:
    """The exchanges under way, and the watchdog, a thread that aborts overdue ones. Safe to use from several threads."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._exchanges: set[Exchange] = set()
        self._stopped = False
        self._changed = threading.Condition()  # reentrant
        self._watchdog_wakes_at: float | None = None  # `None` while there is no watchdog

    def stop(self) -> None:
        """Begin no further exchange; those under way may finish."""
        with self._changed:
            self._stopped = True

    def abort(self) -> None:
        """Abort every exchange and begin no further one; each raises `Cancelled`."""
        with self._changed:
            self._stopped = True
            for exchange in self._exchanges:
                exchange.is_cancelled = True
                exchange.abort()

    @contextlib.contextmanager
    def watch(self, exchange: Exchange, seconds: float) -> Iterator[None]:
        """Abort an exchange after this many seconds. Raises `Cancelled` once the exchanges are stopped."""
        with self._changed:
            if self._stopped:
                raise Cancelled("cancelled")
            self._exchanges.add(exchange)
            exchange.total_seconds = seconds
            self.extend(exchange, seconds)
        try:
            yield
        finally:
            with self._changed:
                self._exchanges.discard(exchange)
                if not self._exchanges:
                    self._changed.notify()
            exchange.release()

    def extend(self, exchange: Exchange, seconds: float) -> None:
        """Abort an exchange this many seconds from now instead."""
        with self._changed:
            exchange.ends_at = self.clock.monotonic() + seconds
            if self._watchdog_wakes_at is None:
                with contextlib.suppress(RuntimeError):  # no more threads: the next exchange tries again
                    threading.Thread(target=self._abort_overdue, daemon=True, name="watchdog").start()
                    self._watchdog_wakes_at = math.inf
            elif exchange.ends_at < self._watchdog_wakes_at:
                self._changed.notify()

    def keep_watchdog(self) -> contextlib.AbstractContextManager[None]:
        """Start the watchdog before a run's other threads can use up what the machine allows, and keep it between exchanges."""
        return self.watch(Exchange(host="", clock=self.clock), math.inf)

    def _abort_overdue(self) -> None:
        with self._changed:
            while self._exchanges:
                now = self.clock.monotonic()
                for exchange in self._exchanges:
                    if exchange.ends_at <= now:
                        exchange.ends_at = math.inf
                        exchange.abort()
                self._watchdog_wakes_at = min(exchange.ends_at for exchange in self._exchanges)
                self._changed.wait(None if self._watchdog_wakes_at == math.inf else self._watchdog_wakes_at - now)
            self._watchdog_wakes_at = None


class AbortableRequest(requests.PreparedRequest):
    """A prepared request, and its exchange. `target` is what follows the host in `url`: ASCII without white space."""

    def __init__(self, request: "Request", exchange: Exchange, target: str) -> None:
        super().__init__()
        self._request = request
        self.exchange = exchange
        self.target = target

    def mark_connected(self) -> None:
        """Record that there is a connection: from now on, the server may process the request."""
        self.exchange.is_connected = self._request.maybe_processed = True


_current: ContextVar[AbortableRequest] = ContextVar("_current")  # urllib3 does not pass it to the connection


class _Connection(HTTPConnection):
    _response: FinalResponse | None = None
    _is_closed_by_server = False

    def response_class(self, *args: Any, **kwargs: Any) -> FinalResponse:  # type: ignore[override]  # a class in the stubs
        self._response = FinalResponse(*args, **kwargs)
        return self._response

    @property
    def is_connected(self) -> bool:
        """Whether a kept connection is open, and nothing waits on it that would be read as the response to the next request."""
        if self.sock is None or self._response is None or self._response.has_surplus:
            return False
        return read_waiting(self.sock, self.sock.recv) is None

    def _new_conn(self) -> socket.socket:
        timeout = cast("float", self.timeout)
        try:
            return open_socket(self._dns_host, self.port, timeout, self.socket_options or (), _current.get().exchange)
        except TimeoutError as error:  # urllib3 would take it for a timeout of the response
            raise ConnectTimeoutError from error

    def connect(self) -> None:
        self._is_closed_by_server = False
        super().connect()
        _current.get().mark_connected()

    def _tunnel(self) -> None:
        exchange, self._response = _current.get().exchange, None
        exchange.is_tunneling = True
        try:
            super()._tunnel()
            exchange.is_tunneling = False
        except OSError:  # also if the status is not 200, which the error does not have
            if self._response is not None and self._response.tunnel_status != http.HTTPStatus.OK:
                exchange.proxy_status = self._response.tunnel_status
            raise

    def request(self, method: str, url: str, *args: Any, **kwargs: Any) -> None:  # noqa: ARG002  # `target` in place of `url`
        request = _current.get()
        if self.sock is not None:
            request.exchange.adopt(self.sock)
            if not request.exchange.is_connected:
                request.exchange.is_reused = True
                request.mark_connected()
        # urllib3 has encoded `url` again, which breaks signed links
        super().request(method, request.target, *args, **kwargs)

    def send(self, data: Any) -> None:
        """Send a part of a request, or nothing once the server has closed the connection: its response, or TLS, may say why."""
        if self.sock is None:
            self.connect()
        if not self._is_closed_by_server:
            try:
                super().send(data)
            except (BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
                self._is_closed_by_server = True


class _TLSConnection(_Connection, HTTPSConnection):
    def connect(self) -> None:
        super().connect()
        # an end of the stream without TLS's own is an error: otherwise, a cut body looks complete (RFC 9112, section 9.8)
        cast("Any", self.sock).suppress_ragged_eofs = False  # missing in the type stubs


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection

    def _get_conn(self, timeout: float | None = None) -> Any:
        connection = super()._get_conn(timeout)
        if _current.get().exchange.new_connection:
            connection.close()  # it connects again when it is used
        return connection


class _TLSPool(_Pool, HTTPSConnectionPool):
    ConnectionCls = _TLSConnection


_POOLS: Final = {"http": _Pool, "https": _TLSPool}


class AbortableAdapter(HTTPAdapter):
    """Sends `AbortableRequest`s. Safe to use from several threads."""

    def __init__(self, ssl_context: ssl.SSLContext) -> None:
        super().__init__(pool_maxsize=MAX_CONNECTIONS)
        self._ssl_context = ssl_context
        self.poolmanager.connection_pool_kw["ssl_context"] = ssl_context
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> ProxyManager:
        """Create the pools of connections through a proxy, for requests."""
        kwargs |= {"ssl_context": self._ssl_context, "proxy_ssl_context": self._ssl_context}
        manager: ProxyManager = super().proxy_manager_for(proxy, **kwargs)
        manager.pool_classes_by_scheme = _POOLS
        return manager

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:  # noqa: ARG002  # as requests calls it
        """Leave trust to the context: requests would have each connection read all public authorities again."""
        conn.cert_reqs = "CERT_REQUIRED"

    def build_response(self, req: requests.PreparedRequest, resp: Any) -> requests.Response:  # noqa: ARG002  # as requests calls it
        """Return a response without cookies: reading them takes quadratic time, and warns of dates with too many digits."""
        response = requests.Response()
        response.status_code, response.headers, response.raw = resp.status, CaseInsensitiveDict(resp.headers), resp
        return response

    def proxy_headers(self, proxy: str) -> dict[str, str]:
        """Return the credentials of a proxy's address as it has them (requests reads them as Latin-1)."""
        user, _, password = (parse_url(proxy).auth or "").partition(":")
        credentials = base64.b64encode(unquote_to_bytes(user) + b":" + unquote_to_bytes(password)).decode()
        return {"Proxy-Authorization": f"Basic {credentials}"} if user or password else {}

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        """Send an `AbortableRequest`."""
        _current.set(cast("AbortableRequest", request))
        return super().send(request, *args, **kwargs)


def create_ssl_context(certificates_pem: str | None) -> ssl.SSLContext:
    """Return a context that trusts certifi's authorities and those in a PEM text. Raises `ssl.SSLError` if that has none.

    `SSL_CERT_FILE` and `REQUESTS_CA_BUNDLE` do not count: they name paths of the host, not of the container. The flags are curl's
    (source: CURLOPT_SSL_OPTIONS(3)): `VERIFY_X509_STRICT` would refuse roots made with `openssl req -x509`, and
    `VERIFY_X509_PARTIAL_CHAIN` trusts an intermediate authority without its root. Names, dates and signatures are verified.
    """
    context = ssl.create_default_context(cafile=certifi.where())
    context.minimum_version = ssl.TLSVersion.TLSv1_2  # some distributions leave it to OpenSSL's configuration
    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF  # which OpenSSL's configuration can set: a cut body would look complete
    context.verify_flags = (context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN) & ~ssl.VERIFY_X509_STRICT
    if certificates_pem is not None:
        context.load_verify_locations(cadata=certificates_pem)
    return context


def open_socket(host: str, port: int, timeout: float, options: _SocketOptions, exchange: Exchange) -> socket.socket:
    """Resolve a host, and connect to its first address that accepts (RFC 8305, section 5), in `timeout` seconds.

    Raises `OSError`.
    """
    clock = exchange.clock
    deadline = clock.monotonic() + timeout
    ranks: defaultdict[int, count[int]] = defaultdict(count)
    addresses = sorted(  # IPv6 and IPv4 in turn (RFC 8305, section 4)
        exchange.resolver.resolve(host.strip("[]"), port, timeout, exchange), key=lambda address: next(ranks[address[0]])
    )
    errors: dict[str, OSError] = {}
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as sockets:
        while (addresses or selector.get_map()) and not exchange.is_aborted and (left := deadline - clock.monotonic()) > 0:
            if addresses:
                family, kind, protocol, _, address = addresses.pop(0)
                ip_address = str(address[0])
                errors[ip_address] = TimeoutError()  # unless it fails in another way
                try:
                    sock = socket.socket(family, kind, protocol)
                    sockets.callback(_close, sock)
                    _begin_connect(sock, address, options, exchange)
                    selector.register(sock, selectors.EVENT_WRITE, ip_address)
                except OSError as error:
                    errors[ip_address] = error
                    continue
            for key, _ in selector.select(min(left, NEXT_ADDRESS_SECONDS) if addresses else left):
                sock = cast("socket.socket", key.fileobj)
                code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if exchange.is_aborted:
                    break
                if code == 0:
                    connected = socket.socket(fileno=sock.detach())
                    connected.settimeout(timeout)
                    return connected
                selector.unregister(sock)
                errors[key.data] = OSError(code, os.strerror(code))
    exchange.address_errors = errors
    if len({type(error) for error in errors.values()}) == 1:
        raise next(iter(errors.values()))
    raise OSError("no address could be connected to")


def _begin_connect(sock: socket.socket, address: Any, options: _SocketOptions, exchange: Exchange) -> None:
    for option in options:
        sock.setsockopt(*option)
    sock.settimeout(0)
    with contextlib.suppress(BlockingIOError):
        sock.connect(address)
    exchange.adopt(sock)  # only now: shutting down a socket that is not connecting yet does nothing


def _close(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)  # closing it is not enough: the exchange holds a duplicate
    sock.close()
