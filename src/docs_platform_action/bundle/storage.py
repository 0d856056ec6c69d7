"""The object storage's side of a bundle link: one GET made well, and what its answer means.

Nothing here knows the admin key; what a storage says is cleared of it all the same, before anything is made of it. Below
requests' sessions, where this sends, nothing reads a `.netrc` or keeps a cookie either; a presigned link carries its own
signature, and an `Authorization` beside it would be refused (source: AWS, Google and Azure documentation of signed URLs).
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urljoin, urlsplit

import requests
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict
from requests.utils import select_proxy

from .. import __version__
from ..errors import Cancelled, DownloadFailed
from ..http.connection import Exchanges, Guard, GuardedRequest
from ..http.faults import FAULTS, SOCKS, NetworkError, SocksProxyError, UntrustedError, fault_of, refuse_socks, request_id_of
from ..models import UNUSABLE, is_bundle_url

CONNECT_SECONDS: Final = 10.0
IDLE_SECONDS: Final = 30.0
"""A connection that brings no byte for this long counts as cut."""

HEAD_SECONDS: Final = 60.0
"""What an answer may take to begin, redirects included, and one that is no bundle to end."""

SLOW_SECONDS: Final = 60.0
SLOWEST_BYTES_A_SECOND: Final = 1024
"""A connection that brings less than that over this time counts as cut too: no bundle would ever be there in time."""

MOST_REDIRECTS: Final = 5
PIECE_BYTES: Final = 256 * 1024
LARGEST_ERROR_BYTES: Final = 16 * 1024

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_GOOD: Final = frozenset({200, 206})


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer of the storage, its body still to come. `address` is where it comes from in the end, without the query."""

    status: int
    headers: Mapping[str, str]
    address: str
    pieces: Iterator[bytes]
    hide: Callable[[str], str] = str

    @property
    def length(self) -> int | None:
        """How many bytes the body has, where that is announced. The adapter refuses what is not a number."""
        length = self.headers.get("Content-Length")
        return int(length) if length is not None else None

    @property
    def is_encoded(self) -> bool:
        """Whether the body came with a `Content-Encoding`, which is never undone here."""
        return self.headers.get("Content-Encoding", "identity").lower() != "identity"

    @property
    def is_stored_as_gzip(self) -> bool:
        """Whether the storage says that it keeps the object as gzip, in whichever form it was sent.

        Source: Google Cloud Storage, "HTTP headers and query string parameters for XML API".
        """
        return self.headers.get("X-Goog-Stored-Content-Encoding", "").lower() == "gzip"

    @property
    def request_id(self) -> str | None:
        """The storage's own name for the request."""
        return request_id_of(self.headers)

    @property
    def etag(self) -> str | None:
        """The name of this version of the object, as it stands there."""
        return self.headers.get("ETag")

    @property
    def validator(self) -> str | None:
        """What tells this object from others in an `If-Range`: a strong ETag, or nothing (RFC 9110, section 13.1.5)."""
        return self.etag if self.etag is not None and re.fullmatch(r'"[\x21\x23-\x7e]+"', self.etag) else None

    def said(self) -> str:
        """Read what an error answer says: the code, and the message where the storage's XML has one."""
        text = b""
        with contextlib.suppress(NetworkError):  # what came of it is told; its status says the rest
            for piece in self.pieces:
                text += piece
                if len(text) > LARGEST_ERROR_BYTES:
                    break
        said = self.hide(text.decode("utf-8", "replace"))
        found = [re.search(rf"<{name}>([^<]{{1,200}})</{name}>", said) for name in ("Code", "Message")]
        return ": ".join(match[1] for match in found if match)


class Storage:
    """Gets what bundle links lead to.

    `proxies_for` tells the proxies for an address, as requests would take them from the environment; `on_redirect` hears of every
    address that the storage sends on to; `hide` takes the key out of a text; `exchanges` can end all at once. The adapter sends
    `GuardedRequest`s.
    """

    def __init__(
        self,
        *,
        adapter: BaseAdapter,
        proxies_for: Callable[[str], Mapping[str, str]],
        on_redirect: Callable[[str], None],
        exchanges: Exchanges,
        hide: Callable[[str], str] = str,
    ) -> None:
        self._adapter = adapter
        self._hide = hide
        self._proxies_for = proxies_for
        self._on_redirect = on_redirect
        self._exchanges = exchanges

    @contextlib.contextmanager
    def get(self, url: str, headers: Mapping[str, str], *, within_seconds: float = HEAD_SECONDS) -> Iterator[Answer]:
        """Ask for what a link leads to, over redirects to https or to this machine, and give the answer.

        It has to begin within so many seconds. Raises `NetworkError`, here and from the answer's `pieces`, `DownloadFailed` for
        what asking again cannot mend, and `Cancelled`.
        """
        guard = Guard(fresh=True)  # it asks for the connection to be closed, which a server may do a moment later
        with self._exchanges.watch(guard, min(within_seconds, HEAD_SECONDS)), contextlib.ExitStack() as exchange:
            for _ in range(MOST_REDIRECTS + 1):
                failure = _Failure(guard, self._exchanges, url, self._proxies_for(url), within_seconds)
                response = exchange.enter_context(self._send(url, headers, guard, failure))
                answered = CaseInsensitiveDict({name: self._hide(value) for name, value in response.headers.items()})
                if response.status_code in _REDIRECTS:
                    url = _redirected(url, answered.get("Location", ""), response.status_code)
                    self._on_redirect(url)
                    continue
                if response.status_code in _GOOD:
                    failure.in_body = True
                    self._exchanges.extend(guard, SLOW_SECONDS)
                yield Answer(
                    status=response.status_code,
                    headers=answered,
                    address=f"{urlsplit(url).scheme}://{failure.host}{urlsplit(url).path}",
                    pieces=self._pieces(response, guard, failure),
                    hide=self._hide,
                )
                return
        raise DownloadFailed(
            f"the storage redirects more than {MOST_REDIRECTS} times",
            cause="The storage, or a gateway before it, sends the request in a circle.",
            remedy="Report it to the platform.",
        )

    def _send(self, url: str, headers: Mapping[str, str], guard: Guard, failure: "_Failure") -> requests.Response:
        try:
            refuse_socks(url, failure.proxies)
            return self._adapter.send(
                _prepare(url, headers, guard),
                stream=True,
                timeout=(CONNECT_SECONDS, IDLE_SECONDS),
                proxies=failure.proxies,
            )
        except FAULTS as error:
            raise failure.of(error) from error
        except SocksProxyError as error:
            happened = f"the storage at {failure.host} cannot be reached through a SOCKS proxy"
            raise DownloadFailed(happened, cause=SOCKS.cause, remedy=SOCKS.remedy) from error

    def _pieces(self, response: requests.Response, guard: Guard, failure: "_Failure") -> Iterator[bytes]:
        received = 0
        while True:
            try:
                # as it comes, so that each wait is for one packet; never decoded, whatever `Content-Encoding` says of an archive
                piece: bytes = response.raw.read1(PIECE_BYTES, decode_content=False)
                if not piece and guard.expired:
                    raise TimeoutError  # a body without a length seems whole when its connection is ended from here
            except FAULTS as error:
                raise failure.of(error) from error
            if not piece:
                return
            received += len(piece)
            if failure.in_body and received >= SLOWEST_BYTES_A_SECOND * SLOW_SECONDS:
                received = 0
                self._exchanges.extend(guard, SLOW_SECONDS)
            yield piece


class _Failure:
    """Tells what an exchange failed with. `in_body` is set when the body of a good answer begins: it has a bound of its own."""

    def __init__(self, guard: Guard, exchanges: Exchanges, url: str, proxies: Mapping[str, str], seconds: float) -> None:
        self._guard = guard
        self._exchanges = exchanges
        self._url = url
        self._seconds = min(seconds, HEAD_SECONDS)
        self.proxies = dict(proxies)
        self.host = urlsplit(url).netloc.rpartition("@")[2]
        self.in_body = False

    def of(self, error: Exception) -> Exception:
        if self._exchanges.cancelled:
            return Cancelled("cancelled")
        if self._guard.expired and self.in_body:
            return NetworkError(f"{self.host} sent almost nothing for {SLOW_SECONDS:.3g} s", sent=True)
        if self._guard.expired and not self._guard.tried:
            return NetworkError(f"{self.host} took longer than {self._seconds:.3g} s to answer", sent=self._guard.connected)
        through_proxy = select_proxy(self._url, self.proxies) is not None
        found = fault_of(error, self._guard, host=self.host, through_proxy=through_proxy)
        return _untrusted(self.host, found) if isinstance(found, UntrustedError) else found


def _prepare(url: str, headers: Mapping[str, str], guard: Guard) -> GuardedRequest:
    """Make the request. The user name in a link is left out, because requests would make an `Authorization` of it.

    The target is the link's own (see `GuardedRequest`). Only what HTTP cannot carry is encoded.
    """
    parts = urlsplit(url)
    host, target = parts.netloc.rpartition("@")[2], url[len(f"{parts.scheme}://{parts.netloc}") :].partition("#")[0]
    request = GuardedRequest(guard)
    request.prepare(
        method="GET",
        url=f"{parts.scheme}://{host}/",
        headers={
            "Accept": "*/*",
            "Accept-Encoding": "identity",  # nothing that is compressed on the fly: it has no length and cannot be resumed
            "Connection": "close",  # there is little to save, and a connection that was kept may be dead
            "User-Agent": f"docs-platform-action/{__version__}",
            **headers,
        },
    )
    target = quote(target, safe="".join(map(chr, range(0x21, 0x7F))))
    request.url = f"{str(request.url).removesuffix('/')}/{target.removeprefix('/')}"
    return request


def _redirected(url: str, location: str, status: int) -> str:
    with contextlib.suppress(UnicodeError):  # http.client reads headers as Latin-1, which they rarely are
        location = location.encode("latin-1").decode()
    try:
        # not `urljoin` for all: it rewrites an absolute address too, and drops some control characters
        location = location.replace(" ", "%20") if not UNUSABLE.search(location) else ""
        target = location if urlsplit(location).scheme or not location else urljoin(url, location)
        host = urlsplit(target).netloc.rpartition("@")[2]
    except ValueError:
        target = host = ""
    if not is_bundle_url(target):
        raise DownloadFailed(
            f"the storage redirects to {host or 'an address that cannot be read'} ({status}), which is no https address",
            cause="The storage, or a gateway before it, is set up wrongly, or something stands between it and this runner.",
            remedy="Report it to the platform, or to whoever runs the network of this runner.",
        )
    return target


def _untrusted(host: str, error: UntrustedError) -> DownloadFailed:
    whose = "the proxy for the storage" if error.proxied else "the storage"
    advice = error.advice("storage", "the link, which the platform makes")
    return DownloadFailed(
        f"the certificate of {whose} at {host} is not trusted",
        facts=(f"TLS said: {error.reason.rstrip('.')}.",),
        cause=advice.cause,
        remedy=advice.remedy,
    )
