"""The HTTP client: sends requests without a session, so without redirects, cookies, a `.netrc` file and the environment."""

import contextlib
import string
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Final
from urllib.parse import quote, urlsplit

import requests
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict
from requests.utils import select_proxy

from .. import __version__
from ..redaction import Redactor
from ..text import netloc_of
from .connection import AbortableRequest, Exchange, InFlight
from .faults import NetworkError, translate_errors
from .proxy import check_proxy
from .resolver import Resolver

_PIECE_BYTES: Final = 256 * 1024
_READABLE_CODINGS: Final = frozenset({"gzip", "x-gzip", "deflate"})
_GZIP_START: Final = b"\x1f\x8b"
_MAX_CODINGS: Final = 5  # of one response


@dataclass(kw_only=True)
class Request:
    """A request. `maybe_processed` is set once there is a connection; the caller clears it if the response shows otherwise."""

    method: str
    url: str
    body: Mapping[str, object] | None = None  # sent as JSON
    maybe_processed: bool = False


@dataclass(frozen=True, kw_only=True)
class Timeouts:
    """The time limits of an exchange: to connect, between two bytes of the response, and in total."""

    connect_seconds: float = 10.0
    idle_seconds: float = 30.0
    total_seconds: float = 60.0

    def within(self, seconds: float) -> "Timeouts":
        """Return these timeouts, each limited to `seconds`."""
        return Timeouts(**{name: min(limit, seconds) for name, limit in asdict(self).items()})


@dataclass(frozen=True, kw_only=True)
class HttpClient:
    """Sends requests to the API and to the storage. Safe to use from several threads."""

    adapter: BaseAdapter
    in_flight: InFlight
    proxies_for: Callable[[str], Mapping[str, str]]
    redactor: Redactor
    resolver: Resolver = field(default_factory=Resolver)

    @contextlib.contextmanager
    def send(
        self,
        request: Request,
        timeouts: Timeouts,
        *,
        headers: Mapping[str, str],
        base_url: str = "",
        new_connection: bool = False,
    ) -> Iterator["Response"]:
        """Yield the response once its headers are there. Raises an error of `faults` or `proxy`, or `Cancelled`."""
        url = base_url + request.url
        proxies = dict(self.proxies_for(url))
        proxy = select_proxy(url, proxies)
        exchange = Exchange(
            host=netloc_of(url),
            clock=self.in_flight.clock,
            through_proxy=proxy is not None,
            new_connection=new_connection,
            resolver=self.resolver,
        )
        with self.in_flight.watch(exchange, timeouts.total_seconds):
            if proxy is not None:
                proxies = {urlsplit(url).scheme: check_proxy(proxy)}
            with translate_errors(exchange):
                prepared = _prepare(request, url, headers, exchange)
                timeout = (timeouts.connect_seconds, timeouts.idle_seconds)
                received = self.adapter.send(prepared, stream=True, timeout=timeout, proxies=proxies)
            with received:
                yield Response(received, exchange, self.redactor)


class Response:
    """A response whose body is still to be read. The whole key is hidden in `headers`, but not in the body."""

    def __init__(self, received: requests.Response, exchange: Exchange, redactor: Redactor) -> None:
        self.exchange = exchange
        self._received = received
        self.status = received.status_code
        headers = {name: redactor.hide_whole_keys(value) for name, value in received.headers.items()}
        self.headers: Mapping[str, str] = CaseInsensitiveDict(headers)
        codings = [coding.strip().lower() for coding in self.headers.get("Content-Encoding", "").split(",")]
        self._codings = [coding for coding in codings if coding not in {"", "identity"}]
        is_readable = _READABLE_CODINGS.issuperset(self._codings) and len(self._codings) <= _MAX_CODINGS
        self.unknown_coding = "" if is_readable else self.headers["Content-Encoding"]

    def read(self, max_bytes: int) -> bytes:
        """Return the decoded body, or its beginning as soon as that has `max_bytes`. Raises `NetworkError` and `Cancelled`.

        A body in an `unknown_coding`, which is neither gzip nor deflate, is returned as it is.
        """
        content, pieces = bytearray(), _limited(self.pieces(), max_bytes)
        for _ in self._codings if not self.unknown_coding else ():
            pieces = _limited(_decompressed(pieces), max_bytes)
        try:
            for piece in pieces:
                content += piece
        except zlib.error as error:
            message = f"The compressed response from {self.exchange.host} is damaged or incomplete"
            raise NetworkError(message, maybe_processed=True) from error
        return bytes(content)

    def pieces(self) -> Iterator[bytes]:
        """Yield the body as it arrives, not decoded. Raises `NetworkError` and `Cancelled`."""
        while True:
            with translate_errors(self.exchange):
                piece: bytes = self._received.raw.read1(_PIECE_BYTES, decode_content=False)
            if not piece:
                with translate_errors(self.exchange):
                    if self.exchange.is_aborted and "Content-Length" not in self.headers:  # it then looks complete
                        raise TimeoutError
                return
            yield piece


def _limited(pieces: Iterator[bytes], max_bytes: int) -> Iterator[bytes]:
    """Yield pieces until they have `max_bytes` together."""
    for piece in pieces:
        yield piece
        max_bytes -= len(piece)
        if max_bytes <= 0:
            return


def _decompressed(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the content of gzip or zlib data. Raises `zlib.error` if it is damaged or incomplete."""
    decoder = None
    for piece in pieces:
        rest = piece
        while rest:
            if decoder is not None and decoder.eof and not _GZIP_START.startswith(rest[:2]):
                return  # padding, which gzip(1) ignores too
            if decoder is None or decoder.eof:  # gzip data may have several members (RFC 1952, section 2.2)
                decoder = zlib.decompressobj(wbits=32 + zlib.MAX_WBITS)  # detects which of both it is
            yield decoder.decompress(rest, _PIECE_BYTES)
            rest = decoder.unconsumed_tail or decoder.unused_data
    if decoder is not None and not decoder.eof:
        raise zlib.error("incomplete")


def _prepare(request: Request, url: str, headers: Mapping[str, str], exchange: Exchange) -> AbortableRequest:
    parts = urlsplit(url)
    target = url[len(f"{parts.scheme}://{parts.netloc}") :].partition("#")[0].removeprefix("/")
    prepared = AbortableRequest(request, exchange, f"/{quote(target, safe=string.punctuation)}")
    prepared.prepare(
        method=request.method,
        url=f"{parts.scheme}://{exchange.host}/",  # without a user name: requests would make an `Authorization` header of it
        headers={
            "Accept-Encoding": "identity",  # a body that is compressed on the fly has no length and cannot be resumed
            "User-Agent": f"docs-platform-action/{__version__}",
            **headers,
        },
        json=request.body,
    )
    # set here, because `prepare` would decode what is percent-encoded, such as the dots of an id `..`
    prepared.url = f"{str(prepared.url).removesuffix('/')}{prepared.target}"
    return prepared
