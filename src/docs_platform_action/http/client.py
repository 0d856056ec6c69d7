"""The HTTP client: sends requests without a session.

It follows no redirects, keeps no cookies, and reads neither a `.netrc` file nor the environment.
"""

import contextlib
import io
import re
import string
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

import requests
from requests.structures import CaseInsensitiveDict
from requests.utils import select_proxy
from urllib3 import HTTPResponse
from urllib3.exceptions import DecodeError

from .. import __version__
from ..clock import Clock
from ..redaction import Redactor
from ..text import netloc_of
from .faults import NetworkError
from .transport import Exchange, Request, Timeouts, Transport
from .trust import check_proxy

_HEADERS: Final = {
    # a body that is compressed on the fly has no length and cannot be resumed
    "Accept-Encoding": "identity",
    # the server may close a kept connection at the moment when the next request is sent
    "Connection": "close",
    "User-Agent": f"docs-platform-action/{__version__}",
}


@dataclass(frozen=True, kw_only=True)
class HttpClient:
    """Sends requests to the API, GitHub and the storage. Safe to use from several threads."""

    transport: Transport
    clock: Clock
    proxies_for: Callable[[str], Mapping[str, str]]
    redactor: Redactor

    def new_exchange(
        self,
        request: Request,
        timeouts: Timeouts,
        *,
        headers: Mapping[str, str],
        base_url: str = "",
    ) -> Exchange:
        """Return an attempt to send a request.

        Raises `Cancelled`, and `UnusableServerError` for a proxy that cannot be used.
        """
        self.clock.cancellation.check()
        url = base_url + request.url
        proxy = self._proxy_for(url)
        host = netloc_of(url)
        # without a user name: requests would make an `Authorization` header of it
        origin = f"{urlsplit(url).scheme}://{host}/"
        return Exchange(
            unprepared=requests.Request(
                request.method, origin, {**_HEADERS, **headers}, json=request.body
            ),
            target=_target_of(url),
            host=host,
            proxy=proxy,
            timeouts=timeouts,
            clock=self.clock,
        )

    @contextlib.contextmanager
    def send(self, exchange: Exchange) -> Iterator["Response"]:
        """Yield the response once its headers are there. Raises what `Transport.send` does."""
        try:
            status, response_headers, pieces = self.transport.send(exchange)
            yield Response(exchange, status, response_headers, pieces)
        finally:
            exchange.end()

    def _proxy_for(self, url: str) -> str | None:
        proxy = select_proxy(url, dict(self.proxies_for(url)))
        return check_proxy(proxy) if proxy is not None else None


def _target_of(url: str) -> str:
    """Return what the request line names: all that follows the host, but the fragment."""
    _, _, after_scheme = url.partition("://")
    after_host = after_scheme.removeprefix(urlsplit(url).netloc)
    path_and_query, _, _ = after_host.partition("#")
    encoded = quote(path_and_query, safe=string.punctuation)
    return encoded if encoded.startswith("/") else f"/{encoded}"


class Response:
    """A response whose body is still to be read: `pieces` yields it as it arrives."""

    def __init__(
        self, exchange: Exchange, status: int, headers: Mapping[str, str], pieces: Iterator[bytes]
    ) -> None:
        self.exchange = exchange
        self.status = status
        self.headers: Mapping[str, str] = CaseInsensitiveDict(headers)
        self.pieces = pieces
        # `http.client` would ignore any other length, and take the end of the connection for the
        # end of the body
        if not re.fullmatch("[0-9]{1,18}", self.headers.get("Content-Length", "0").strip()):
            raise NetworkError(
                f"The response from {exchange.host} is not valid HTTP", was_sent=True
            )

    @property
    def length(self) -> int | None:
        """The announced size of the body in bytes."""
        length = self.headers.get("Content-Length")
        return int(length) if length is not None else None

    def read(self, max_bytes: int) -> bytes:
        """Return the decoded body, of which no more than some `max_bytes` are received and decoded.

        Some gateways compress unasked. Raises `NetworkError` and `Cancelled`.
        """
        content = bytearray()
        for piece in self.pieces:
            content += piece
            if len(content) >= max_bytes:
                break
        coding = self.headers.get("Content-Encoding", "").strip()
        if not content or not coding:
            return bytes(content)
        encoded = HTTPResponse(
            io.BytesIO(content),
            headers={"Content-Encoding": coding},
            preload_content=False,
        )
        try:
            return encoded.read(max_bytes, decode_content=True)
        except DecodeError as error:
            message = f"The compressed response from {self.exchange.host} is damaged"
            raise NetworkError(message, was_sent=True) from error
