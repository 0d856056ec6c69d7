"""The HTTP client: sends one request, with limits on its time, and hides the key in what comes back.

It uses the adapter that requests has below its sessions: it follows no redirect, keeps no cookie, and reads neither a `.netrc`
nor the environment.
"""

import contextlib
import re
import string
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

import requests
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict
from requests.utils import select_proxy

from .. import __version__
from ..errors import Cancelled
from ..redaction import Redactor
from ..text import netloc_of
from .connection import Guard, GuardedRequest, InFlight
from .faults import FAULTS, ResponseTimeout, SocksProxyError, fault_of

PIECE_BYTES: Final = 256 * 1024


@dataclass(kw_only=True)
class Request:
    """A request, and whether the server may have processed it.

    `url` is absolute, or is what follows a base URL; `body` is sent as JSON. `maybe_processed` is set as soon as there is a
    connection. The caller clears it when the response, or the lack of one, shows that the server did not process the request.
    """

    method: str
    url: str
    body: Mapping[str, object] | None = None
    maybe_processed: bool = False


@dataclass(frozen=True, kw_only=True)
class Timeouts:
    """How long an exchange may take, in seconds: to connect, between two bytes of the response, and in total."""

    connect_seconds: float = 10.0
    idle_seconds: float = 30.0
    total_seconds: float = 60.0

    def within(self, total_seconds: float) -> "Timeouts":
        """Return these timeouts, with none of them longer than `total_seconds`."""
        return Timeouts(**{name: min(seconds, total_seconds) for name, seconds in vars(self).items()})


@dataclass(frozen=True, kw_only=True)
class HttpClient:
    """Sends requests, to the API and to the storage. Safe to use from several threads.

    `proxies_for` returns the proxies for a URL, as requests would read them from the environment. `redactor` hides the key.
    """

    adapter: BaseAdapter
    in_flight: InFlight
    proxies_for: Callable[[str], Mapping[str, str]]
    redactor: Redactor

    @contextlib.contextmanager
    def send(
        self,
        request: Request,
        timeouts: Timeouts,
        *,
        base_url: str = "",
        headers: Mapping[str, str],
        new_connection: bool = False,
    ) -> Iterator["Response"]:
        """Send a request, and yield the response as soon as its headers are there. `new_connection` asks for a new connection.

        Raises `NetworkError`, `UntrustedCertificateError`, `SocksProxyError`, and `Cancelled` once requests are stopped.
        """
        url = base_url + request.url
        proxies = dict(self.proxies_for(url))
        proxy = select_proxy(url, proxies)
        guard = Guard(new_connection=new_connection)
        exchange = _Exchange(self.in_flight, guard, netloc_of(url), proxy is not None, timeouts.total_seconds)
        with self.in_flight.watch(guard, timeouts.total_seconds):
            if proxy is not None and re.match(r"socks[0-9a-z]*://", proxy, re.IGNORECASE):
                raise SocksProxyError
            with exchange.faults_explained():
                received = self.adapter.send(
                    _prepare(request, url, headers, guard),
                    stream=True,
                    timeout=(timeouts.connect_seconds, timeouts.idle_seconds),
                    proxies=proxies,
                )
            with received:
                yield Response(received, exchange, self.redactor)


class Response:
    """A response whose body is still to be read. The key is hidden in `headers`, but not in the body."""

    def __init__(self, received: requests.Response, exchange: "_Exchange", redactor: Redactor) -> None:
        self._received = received
        self._exchange = exchange
        self.status = received.status_code
        headers = {name: redactor.hide(value) for name, value in received.headers.items()}
        self.headers: Mapping[str, str] = CaseInsensitiveDict(headers)

    @property
    def remaining_seconds(self) -> float:
        """How much of the exchange's total time is left."""
        return self._exchange.guard.remaining_seconds

    def extend(self, seconds: float) -> None:
        """End the exchange this many seconds from now, and not when its total time is up."""
        self._exchange.in_flight.extend(self._exchange.guard, seconds)

    def read(self, most_bytes: int) -> bytes:
        """Return the decoded body, or its beginning as soon as that has `most_bytes`. Raises `NetworkError` and `Cancelled`."""
        content = bytearray()
        with self._exchange.faults_explained():
            for chunk in self._received.iter_content(64 * 1024):
                content += chunk
                if len(content) >= most_bytes:
                    break
        return bytes(content)

    def pieces(self) -> Iterator[bytes]:
        """Yield the body as it arrives, never decoded. Raises `NetworkError` and `Cancelled`."""
        while True:
            with self._exchange.faults_explained():
                piece: bytes = self._received.raw.read1(PIECE_BYTES, decode_content=False)
            if not piece:
                self.check_complete()
                return
            yield piece

    def check_complete(self) -> None:
        """Raise `ResponseTimeout` or `Cancelled` if the exchange was ended: a body without a length looks complete then."""
        with self._exchange.faults_explained():
            if self._exchange.guard.is_expired:
                raise TimeoutError


@dataclass(frozen=True)
class _Exchange:
    """An exchange under way, and what an error in it means."""

    in_flight: InFlight
    guard: Guard
    host: str
    through_proxy: bool
    total_seconds: float

    @contextlib.contextmanager
    def faults_explained(self) -> Iterator[None]:
        """Raise what an error of the adapter means in place of the error."""
        try:
            yield
        except FAULTS as error:
            if self.in_flight.cancelled:
                raise Cancelled("cancelled") from error
            if self.guard.is_expired and not self.guard.address_errors:
                what = f"{self.host} took longer than {self.total_seconds:.3g} s to respond"
                raise ResponseTimeout(what, maybe_processed=self.guard.is_connected) from error
            raise fault_of(error, self.guard, host=self.host, through_proxy=self.through_proxy) from error


def _prepare(request: Request, url: str, headers: Mapping[str, str], guard: Guard) -> GuardedRequest:
    """Return a request ready to be sent, without a user name: requests would turn that into an `Authorization` header.

    The target is sent byte for byte as `url` has it (see `GuardedRequest`); only what HTTP cannot carry is percent-encoded.
    """
    parts = urlsplit(url)
    host, target = netloc_of(url), url[len(f"{parts.scheme}://{parts.netloc}") :].partition("#")[0]
    prepared = GuardedRequest(request, guard)
    prepared.prepare(
        method=request.method,
        url=f"{parts.scheme}://{host}/",
        headers={
            "Accept-Encoding": "identity",  # a body that is compressed on the fly has no length and cannot be resumed
            "User-Agent": f"docs-platform-action/{__version__}",
            **headers,
        },
        json=request.body,
    )
    # set here, because `prepare` would decode what is percent-encoded, and with it the dots of an id such as `..`
    target = quote(target, safe=string.punctuation)
    prepared.url = f"{str(prepared.url).removesuffix('/')}/{target.removeprefix('/')}"
    return prepared
