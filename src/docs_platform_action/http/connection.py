"""A requests adapter whose exchanges end on time and on a cancel, whichever stage they are in, from connecting to the body.

requests' own timeouts limit the wait for the next byte only, so a server that sends one byte at a time holds a client forever.
Here a guard holds a duplicate of the exchange's socket and shuts the connection down.
"""

import contextlib
import math
import os
import selectors
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, cast

import certifi
import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, ProxyManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError
from urllib3.util.connection import allowed_gai_family

from ..errors import Cancelled
from .response import FinalResponse

if TYPE_CHECKING:
    from .client import Request

NEXT_ADDRESS_SECONDS: Final = 0.25
"""Head start of an address before the next one is tried as well (RFC 8305, section 8)."""

MAX_CONNECTIONS: Final = 128
"""Maximum to one host, one for each concurrent exchange: urllib3 would log a warning for more."""


class Guard:
    """Can end one exchange, and holds what is known about its connection.

    `is_connected` is whether there is a connection, TLS included: without one, the server did not see the request.
    `new_connection` asks for a new connection. `is_reused` is whether the connection is left from an earlier request, and
    `is_expired` whether the guard has ended this one. `ends_at` is on `time.monotonic`. If no connection could be made,
    `address_errors` has the error of each of the host's addresses.
    """

    def __init__(self, *, new_connection: bool = False) -> None:
        self.new_connection = new_connection
        self.is_connected = False
        self.is_reused = False
        self.is_expired = False
        self.ends_at = math.inf
        self.address_errors: dict[str, OSError] = {}
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()

    @property
    def remaining_seconds(self) -> float:
        """How long until the exchange is ended."""
        return 0.0 if self.is_expired else max(self.ends_at - time.monotonic(), 0.0)

    def adopt(self, sock: socket.socket) -> None:
        """Hold a duplicate of a socket of this exchange."""
        with self._lock:
            # not `sock.dup()`, which a TLS socket refuses: the connection below it is what gets shut down
            self._sockets.append(socket.socket(fileno=os.dup(sock.fileno())))
            if self.is_expired:
                self._shut_down()

    def expire(self) -> None:
        """End the exchange now, from any thread: what reads or writes on its connection fails at once."""
        with self._lock:
            self.is_expired = True
            self._shut_down()

    def release(self) -> None:
        """Let go of the sockets; the connection itself stays as it is."""
        with self._lock:
            for sock in self._sockets:
                sock.close()
            self._sockets.clear()

    def _shut_down(self) -> None:
        for sock in self._sockets:
            with contextlib.suppress(OSError):  # it is closed already: nothing reads from it any more
                sock.shutdown(socket.SHUT_RDWR)


class InFlight:
    """The exchanges that are under way: none begins once they are stopped, and all can be ended at once.

    One thread, the watcher, ends those that take too long. It starts with the first exchange, before a run's helpers can take all
    threads that the machine allows, and `kept_watched` keeps it for the run. If it cannot be started, only the timeouts of its
    socket limit an exchange.
    """

    def __init__(self) -> None:
        self._guards: set[Guard] = set()
        self._stopped = False
        self._changed = threading.Condition()  # reentrant
        self._watcher_runs = False
        self._watcher_kept = False
        self._watcher_wakes_at = math.inf
        self.cancelled = False

    def stop(self) -> None:
        """Begin no further exchange; those under way may finish."""
        with self._changed:
            self._stopped = True

    def abort(self) -> None:
        """End every exchange now, from any thread; each raises `Cancelled`."""
        with self._changed:
            self._stopped = self.cancelled = True
            for guard in self._guards:
                guard.expire()

    @contextlib.contextmanager
    def watch(self, guard: Guard, seconds: float) -> Iterator[None]:
        """End a guard's exchange after this many seconds. Raises `Cancelled` once the exchanges are stopped."""
        with self._changed:
            if self._stopped:
                raise Cancelled("cancelled")
            self._guards.add(guard)
            self.extend(guard, seconds)
        try:
            yield
        finally:
            with self._changed:
                self._guards.discard(guard)
                if not self._guards and not self._watcher_kept:
                    self._changed.notify()
            guard.release()

    def extend(self, guard: Guard, seconds: float) -> None:
        """End a guard's exchange this many seconds from now instead."""
        with self._changed:
            guard.ends_at = time.monotonic() + seconds
            if not self._watcher_runs:
                with contextlib.suppress(RuntimeError):  # the machine allows no more threads: the next exchange tries again
                    threading.Thread(target=self._end_overdue, daemon=True, name="watcher").start()
                    self._watcher_runs = True
            elif guard.ends_at < self._watcher_wakes_at:
                self._changed.notify()

    @contextlib.contextmanager
    def kept_watched(self) -> Iterator[None]:
        """Keep the watcher also while no exchange is under way."""
        self._watcher_kept = True
        try:
            yield
        finally:
            with self._changed:
                self._watcher_kept = False
                self._changed.notify()

    def _end_overdue(self) -> None:
        with self._changed:
            while self._guards or self._watcher_kept:
                now = time.monotonic()
                for guard in self._guards:
                    if guard.ends_at <= now:
                        guard.ends_at = math.inf
                        guard.expire()
                self._watcher_wakes_at = min((guard.ends_at for guard in self._guards), default=math.inf)
                self._changed.wait(None if self._watcher_wakes_at == math.inf else self._watcher_wakes_at - now)
            self._watcher_runs = False


class GuardedRequest(requests.PreparedRequest):
    """A request that is ready to be sent, with the guard of its exchange.

    Its `target` is sent byte for byte: urllib3 would encode it again, which breaks signed links. So `url` must be absolute, with
    a path, and ASCII without white space.
    """

    def __init__(self, request: "Request", guard: Guard) -> None:
        super().__init__()
        self._request = request
        self.guard = guard

    @property
    def target(self) -> str:
        """The request target (RFC 9112, section 3.2.1): what follows the host in `url`."""
        return f"/{str(self.url).split('/', 3)[3]}"

    def mark_connected(self) -> None:
        """Record that there is a connection: from now on the server may receive the request, and process it."""
        self.guard.is_connected = True
        self._request.maybe_processed = True


_current: ContextVar[GuardedRequest] = ContextVar("_current")
"""The request of the exchange under way: urllib3 hands none of its own parameters down to the connection."""


class _Connection(HTTPConnection):
    response_class = FinalResponse

    def _new_conn(self) -> socket.socket:
        timeout = cast("float", self.timeout)  # every exchange has one
        try:
            return open_socket(self._dns_host, self.port, timeout, self.socket_options or (), _current.get().guard)
        except socket.gaierror as error:
            raise NameResolutionError(self.host, self, error) from error
        except TimeoutError as error:
            raise ConnectTimeoutError(self, "timed out") from error
        except OSError as error:
            raise NewConnectionError(self, "failed") from error

    def connect(self) -> None:
        super().connect()
        _current.get().mark_connected()

    def request(self, method: str, url: str, *args: Any, **kwargs: Any) -> None:  # noqa: ARG002  # urllib3's encoding of `url`
        request = _current.get()
        if self.sock is not None:  # kept alive from an earlier exchange, or just made
            request.guard.adopt(self.sock)
            if not request.guard.is_connected:
                request.guard.is_reused = True
                request.mark_connected()
        super().request(method, request.target, *args, **kwargs)


class _TLSConnection(_Connection, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection

    def _get_conn(self, timeout: float | None = None) -> Any:
        connection = super()._get_conn(timeout)
        if _current.get().guard.new_connection:
            connection.close()  # it connects again when it is used
        return connection


class _TLSPool(_Pool, HTTPSConnectionPool):
    ConnectionCls = _TLSConnection


_POOLS: Final = {"http": _Pool, "https": _TLSPool}


class GuardedAdapter(HTTPAdapter):
    """Sends `GuardedRequest`s over https that trusts `ssl_context`, or over http. Safe to use from several threads."""

    def __init__(self, ssl_context: ssl.SSLContext) -> None:
        self._ssl_context = ssl_context
        super().__init__(pool_maxsize=MAX_CONNECTIONS)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Make the pools of direct connections; requests calls this."""
        super().init_poolmanager(*args, **kwargs, ssl_context=self._ssl_context)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> ProxyManager:
        """Make the pools of connections through a proxy; requests calls this."""
        manager: ProxyManager = super().proxy_manager_for(
            proxy, **kwargs, ssl_context=self._ssl_context, proxy_ssl_context=self._ssl_context
        )
        manager.pool_classes_by_scheme = _POOLS
        return manager

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:  # noqa: ARG002  # as requests calls it
        """Leave trust to the context; requests would have each connection read all public authorities again."""
        conn.cert_reqs = "CERT_REQUIRED"

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        """Send a `GuardedRequest` under its guard."""
        token = _current.set(cast("GuardedRequest", request))
        try:
            return super().send(request, *args, **kwargs)
        finally:
            _current.reset(token)


def trusting(certificates_pem: str | None) -> ssl.SSLContext:
    """Return a context that trusts the public certificate authorities, and those in a PEM text.

    The public ones are certifi's, whatever `SSL_CERT_FILE` or `REQUESTS_CA_BUNDLE` of the workflow's environment say: their
    paths are the host's, not the container's. Raises `ssl.SSLError` when the text holds no certificate.

    The flags are those of curl, whatever Python's defaults. `VERIFY_X509_STRICT` is off: it refuses roots made with `openssl req
    -x509`. `VERIFY_X509_PARTIAL_CHAIN` is on: it lets an intermediate authority be trusted without its root (source:
    CURLOPT_SSL_OPTIONS(3), CURLSSLOPT_NO_PARTIALCHAIN). Neither changes how names, dates and signatures are verified.
    """
    context = ssl.create_default_context(cafile=certifi.where())
    context.minimum_version = ssl.TLSVersion.TLSv1_2  # some distributions leave it to OpenSSL's configuration
    context.verify_flags = (context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN) & ~ssl.VERIFY_X509_STRICT
    if certificates_pem is not None:
        context.load_verify_locations(cadata=certificates_pem)
    return context


def open_socket(
    host: str, port: int, timeout: float, options: Iterable[tuple[int, int, int | bytes]], guard: Guard
) -> socket.socket:
    """Connect to the first of a host's addresses that accepts, within `timeout` seconds for all of them (RFC 8305, section 5).

    urllib3 tries them one after the other, and shows a socket only when it is connected. Raises `OSError`: what the addresses
    failed with if that is the same for all, such as `TimeoutError` if none answered in time. `guard.address_errors` has them all.
    """
    addresses = _alternating(socket.getaddrinfo(host.strip("[]"), port, allowed_gai_family(), socket.SOCK_STREAM))
    until = time.monotonic() + timeout
    failures: dict[str, OSError] = {}
    with selectors.DefaultSelector() as selector:
        try:
            while (addresses or selector.get_map()) and not guard.is_expired and (left := until - time.monotonic()) > 0:
                if addresses:
                    address = addresses.popleft()
                    name = str(address[-1][0])
                    failures[name] = TimeoutError()  # unless it fails in another way
                    try:
                        selector.register(_begin_connect(address, options, guard), selectors.EVENT_WRITE, name)
                    except OSError as error:
                        failures[name] = error
                        continue
                for key, _ in selector.select(min(left, NEXT_ADDRESS_SECONDS) if addresses else left):
                    sock = cast("socket.socket", key.fileobj)
                    code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                    if guard.is_expired:
                        break
                    selector.unregister(sock)
                    if code == 0:
                        sock.settimeout(timeout)
                        return sock
                    sock.close()
                    failures[key.data] = OSError(code, os.strerror(code))
        finally:
            for key in [*selector.get_map().values()]:
                sock = cast("socket.socket", key.fileobj)
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)  # closing it is not enough: its guard holds a duplicate
                sock.close()
    guard.address_errors = failures
    errors = [*failures.values()]
    raise errors[0] if len({type(error) for error in errors}) == 1 else OSError("no address could be connected to")


def _alternating(addresses: Iterable[tuple[Any, ...]]) -> deque[tuple[Any, ...]]:
    """Return a host's addresses in the order of `getaddrinfo`, but with IPv6 and IPv4 in turns (RFC 8305, section 4)."""
    families: dict[int, list[tuple[Any, ...]]] = {}
    for address in addresses:
        families.setdefault(address[0], []).append(address)
    return deque(address for turn in zip_longest(*families.values()) for address in turn if address)


def _begin_connect(address: tuple[Any, ...], options: Iterable[tuple[int, int, int | bytes]], guard: Guard) -> socket.socket:
    """Begin to connect, under a guard; the socket is writable when that has ended. Raises `OSError`."""
    family, kind, protocol, _, target = address
    sock = socket.socket(family, kind, protocol)
    try:
        for option in options:
            sock.setsockopt(*option)
        sock.settimeout(0)
        with contextlib.suppress(BlockingIOError):
            sock.connect(target)
        guard.adopt(sock)  # now, because a guard can end a connection that has begun, but none that is about to
    except OSError:
        sock.close()
        raise
    return sock
