"""One request and its answer: sent byte for byte, bounded in size and time, and read as JSON."""

import http.client
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlsplit

import requests
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict
from requests.utils import select_proxy
from urllib3.exceptions import HTTPError, NameResolutionError

from . import __version__
from .connection import Guard, GuardedRequest
from .errors import Cancelled
from .model import read_error

LARGEST_ANSWER_BYTES: Final = 1024 * 1024

_REQUEST_ID_HEADERS: Final = ("X-Request-Id", "Request-Id", "X-Correlation-Id", "X-Amzn-RequestId", "X-Amz-Request-Id")
_SHORTEST_KEY_TO_SCRUB: Final = 8
"""A shorter one may be part of ordinary words, such as a status."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """How long an exchange may take, in seconds: to connect, between two bytes of the answer, and all in all."""

    connect_seconds: float = 10.0
    idle_seconds: float = 30.0
    total_seconds: float = 60.0

    def within(self, total_seconds: float) -> "Bounds":
        """Make the bounds no longer than this."""
        return Bounds(
            connect_seconds=min(self.connect_seconds, total_seconds),
            idle_seconds=min(self.idle_seconds, total_seconds),
            total_seconds=min(self.total_seconds, total_seconds),
        )


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the API answered. `body` is the JSON's value, or `None` where there is no JSON; `size` is in bytes."""

    status: int
    headers: Mapping[str, str]
    body: object
    size: int
    request_id: str | None

    @property
    def said(self) -> str | None:
        """The text of an error answer."""
        return read_error(self.body)


class NetworkError(Exception):
    """No whole answer came.

    `sent` tells whether the server may have seen the request, `stale` whether a connection that was kept from an earlier exchange
    turned out to be closed, `proxied` whether the proxy is at fault.
    """

    def __init__(self, what: str, *, sent: bool, stale: bool = False, proxied: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.sent = sent
        self.stale = stale
        self.proxied = proxied


class UntrustedError(Exception):
    """The server's certificate is not trusted; `reason` is what TLS said."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Exchanger:
    """Sends requests to one base URL with one key.

    The adapter is requests' own seam below its sessions: nothing there follows a redirect, reads a `.netrc`, keeps a cookie or
    looks at the environment. `proxies` are those that requests would take from the environment.
    """

    def __init__(self, *, adapter: BaseAdapter, base_url: str, key: str, proxies: Mapping[str, str]) -> None:
        self._adapter = adapter
        self._base_url = base_url
        self._key = key
        self._proxies = dict(proxies)
        self._under_way: set[Guard] = set()
        self._stopped = False
        self._cancelled = False
        self._lock = threading.Lock()

    @property
    def host(self) -> str:
        """The API's host, with its port."""
        return urlsplit(self._base_url).netloc

    def stop(self) -> None:
        """Begin no further exchange; one that is under way may come to its end."""
        with self._lock:
            self._stopped = True

    def abort(self) -> None:
        """End every exchange now, from any thread; whoever waits for one gets `Cancelled`."""
        with self._lock:
            self._stopped = self._cancelled = True
            for guard in self._under_way:
                guard.expire()

    def exchange(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None,
        bounds: Bounds,
        *,
        fresh: bool = False,
        on_connected: Callable[[], None] = lambda: None,
    ) -> Answer:
        """Send one request and take its answer in. `path` follows the base URL as it is; `fresh` asks for a new connection.

        `on_connected` hears that there is a connection: from then on the server may see the request. Raises `NetworkError`,
        `UntrustedError`, and `Cancelled` after `stop` or `abort`.
        """
        guard = Guard(on_connected)
        if fresh:
            self._adapter.close()  # lets go of the connections that were kept; the next one is made anew
        with self._watched(guard, bounds.total_seconds):
            try:
                response = self._adapter.send(
                    self._prepare(method, path, body, guard),
                    stream=True,
                    timeout=(bounds.connect_seconds, bounds.idle_seconds),
                    proxies=self._proxies,
                )
                with response:
                    content = _read_bounded(response)
                content_json = self._read_json(content)
                if guard.expired and content_json is None:
                    raise TimeoutError  # a body without a length seems whole when the guard ends its connection
            # ValueError: what urllib3 and http.client let through of a malformed status line, header or proxy address
            except (requests.RequestException, HTTPError, http.client.HTTPException, OSError, ValueError) as error:
                raise self._fault(error, guard, bounds) from error
        headers: CaseInsensitiveDict[str] = CaseInsensitiveDict(
            {name: self._scrub(value) for name, value in response.headers.items()}
        )
        return Answer(
            status=response.status_code,
            headers=headers,
            body=content_json,
            size=len(content),
            request_id=next((headers[name] for name in _REQUEST_ID_HEADERS if headers.get(name)), None),
        )

    @contextmanager
    def _watched(self, guard: Guard, seconds: float) -> Iterator[None]:
        with self._lock:
            if self._stopped:
                raise Cancelled("cancelled")
            self._under_way.add(guard)
        watch = threading.Timer(seconds, guard.expire)
        watch.daemon = True
        watch.start()
        try:
            yield
        finally:
            watch.cancel()
            with self._lock:
                self._under_way.discard(guard)
            guard.release()

    def _prepare(self, method: str, path: str, body: Mapping[str, object] | None, guard: Guard) -> GuardedRequest:
        request = GuardedRequest(guard)
        request.prepare(
            method=method,
            url=self._base_url,
            headers={
                "Authorization": f"Bearer {self._key}",
                "Accept": "application/json",
                "Accept-Encoding": "identity",
                "User-Agent": f"docs-platform-action/{__version__}",
            },
            json=body,
        )
        # set here, because `prepare` would decode what is percent-encoded, and with it the dots of an id such as `..`
        request.url = self._base_url + path
        return request

    def _fault(self, error: Exception, guard: Guard, bounds: Bounds) -> Exception:
        if self._cancelled:
            return Cancelled("cancelled")
        causes = list(_chain(error))
        untrusted = next((cause for cause in causes if isinstance(cause, ssl.SSLCertVerificationError)), None)
        if untrusted is not None:
            return UntrustedError(untrusted.verify_message or "certificate verify failed")
        if isinstance(error, _AnswerTooLargeError):
            return NetworkError(f"The API's answer is larger than {LARGEST_ANSWER_BYTES // 1024} KiB", sent=True)
        if guard.expired:
            return NetworkError(f"The API's answer took longer than {bounds.total_seconds:.3g} s", sent=guard.connected)
        if select_proxy(self._base_url, self._proxies) is not None and (fault := _proxy_fault(causes, self.host)):
            return NetworkError(fault, sent=guard.connected, proxied=True)
        gone = any(isinstance(cause, ConnectionError | ssl.SSLEOFError | ssl.SSLZeroReturnError) for cause in causes)
        what = _describe(causes, self.host, connected=guard.connected)
        return NetworkError(what, sent=guard.connected, stale=guard.reused and gone)

    def _read_json(self, content: bytes) -> object:
        try:
            return self._scrub(json.loads(content.decode("utf-8-sig"), parse_int=_whole_number))
        except (ValueError, RecursionError):
            return None

    def _scrub(self, value: Any) -> Any:
        """Replace the key wherever a server echoes it, as it is or percent-encoded."""
        if len(self._key) < _SHORTEST_KEY_TO_SCRUB:
            return value
        if isinstance(value, str):
            return value.replace(self._key, "***").replace(quote(self._key, safe=""), "***")
        if isinstance(value, list):
            return [self._scrub(item) for item in value]
        if isinstance(value, dict):
            return {self._scrub(name): self._scrub(item) for name, item in value.items()}
        return value


class _AnswerTooLargeError(OSError):
    """The answer is larger than anything that the API sends."""


def _read_bounded(response: requests.Response) -> bytes:
    content = bytearray()
    for chunk in response.iter_content(64 * 1024):
        content += chunk
        if len(content) > LARGEST_ANSWER_BYTES:
            raise _AnswerTooLargeError
    return bytes(content)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Walk through an error and those that it wraps; requests and urllib3 wrap in `args` and `reason` too."""
    seen: set[int] = set()
    waiting: list[object] = [error]
    while waiting:
        item = waiting.pop(0)
        if isinstance(item, BaseException) and id(item) not in seen:
            seen.add(id(item))
            yield item
            waiting += [*item.args, getattr(item, "reason", None), item.__cause__, item.__context__]


def _proxy_fault(causes: list[BaseException], host: str) -> str | None:
    """Tell in a few words what a proxy has to do with an error, if anything."""

    def among(*kinds: type[BaseException]) -> bool:
        return any(isinstance(cause, kinds) for cause in causes)

    if among(requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema):
        return "The proxy address in the environment cannot be used"
    if not among(requests.exceptions.ProxyError):
        return None
    if among(ConnectionRefusedError):
        return "The proxy refused the connection"
    if among(NameResolutionError):
        return "The name of the proxy could not be resolved"
    return f"The proxy did not let the request through to {host}"


def _describe(causes: list[BaseException], host: str, *, connected: bool) -> str:
    """Tell in a few words what a network error means; never the error's own text, which may hold addresses and secrets."""

    def among(*kinds: type[BaseException]) -> bool:
        return any(isinstance(cause, kinds) for cause in causes)

    if among(NameResolutionError):
        return f"The name of {host} could not be resolved"
    if among(ConnectionRefusedError):
        return f"{host} refused the connection"
    if among(requests.exceptions.ConnectTimeout):
        return f"{host} could not be reached in time"
    if among(requests.exceptions.ReadTimeout, TimeoutError):
        return f"{host} sent nothing for too long"
    if among(ssl.SSLError):
        return f"The TLS connection to {host} failed"
    if not connected:
        return f"No connection to {host} could be made"
    if among(ConnectionError, http.client.IncompleteRead):  # RemoteDisconnected is a ConnectionError
        return f"The connection to {host} broke off before the answer was whole"
    return f"What {host} answered is no HTTP that can be read"


def _whole_number(digits: str) -> int | float:
    """Read a JSON integer; one of so many digits that Python refuses it counts nothing, and is as good as infinite."""
    return int(digits) if len(digits) <= 400 else float("inf")
