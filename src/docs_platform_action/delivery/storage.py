"""The object storage's side of a bundle link: one GET made well, and what its answer means.

Nothing here knows the admin key. Below requests' sessions, where this sends, nothing reads a `.netrc` or keeps a cookie either; a
presigned link carries its own signature, and an `Authorization` beside it would be refused (source: AWS, Google and Azure
documentation of signed URLs).
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urljoin, urlsplit

import requests
from requests.adapters import BaseAdapter
from requests.utils import select_proxy

from .. import __version__
from ..connection import Exchanges, Guard, GuardedRequest
from ..errors import Cancelled, DownloadFailed
from ..model import is_bundle_url
from ..network import FAULTS, NetworkError, UntrustedError, fault_of, request_id_of

CONNECT_SECONDS: Final = 10.0
IDLE_SECONDS: Final = 30.0
"""A connection that brings no byte for this long counts as cut."""

HEAD_SECONDS: Final = 60.0
"""What an answer may take to begin, and one that is no bundle to end."""

MOST_REDIRECTS: Final = 5
PIECE_BYTES: Final = 256 * 1024
LARGEST_ERROR_BYTES: Final = 16 * 1024

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer of the storage, its body still to come."""

    status: int
    headers: Mapping[str, str]
    pieces: Iterator[bytes]

    @property
    def length(self) -> int | None:
        """How many bytes the body has, where that is announced."""
        length = self.headers.get("Content-Length", "")
        return int(length) if re.fullmatch(r"[0-9]{1,18}", length) else None

    @property
    def request_id(self) -> str | None:
        """The storage's own name for the request."""
        return request_id_of(self.headers)

    @property
    def validator(self) -> str | None:
        """What tells this object from others in an `If-Range`: a strong ETag, or nothing (RFC 9110, section 13.1.5)."""
        etag = self.headers.get("ETag", "").strip()
        return etag if re.fullmatch(r'"[\x21\x23-\x7e]+"', etag) else None

    def said(self) -> str:
        """Read what an error answer says: the code, and the message where the storage's XML has one."""
        text = b""
        with contextlib.suppress(NetworkError):  # what came of it is told; its status says the rest
            for piece in self.pieces:
                text += piece
                if len(text) > LARGEST_ERROR_BYTES:
                    break
        found = [re.search(rf"<{name}>([^<]{{1,200}})</{name}>", text.decode("utf-8", "replace")) for name in ("Code", "Message")]
        return ": ".join(match[1] for match in found if match)


class Storage:
    """Gets what bundle links lead to.

    `proxies_for` tells the proxies for an address, as requests would take them from the environment; `exchanges` can end all at
    once. The adapter sends `GuardedRequest`s.
    """

    def __init__(self, *, adapter: BaseAdapter, proxies_for: Callable[[str], Mapping[str, str]], exchanges: Exchanges) -> None:
        self._adapter = adapter
        self._proxies_for = proxies_for
        self._exchanges = exchanges

    @contextlib.contextmanager
    def get(self, url: str, headers: Mapping[str, str]) -> Iterator[Answer]:
        """Ask for what a link leads to, over redirects to https or to this machine, and give the answer.

        Raises `NetworkError`, here and from the answer's `pieces`, `DownloadFailed` for what asking again cannot mend, and
        `Cancelled`.
        """
        for _ in range(MOST_REDIRECTS + 1):
            with self._get_once(url, headers) as answer:
                if answer.status not in _REDIRECTS:
                    yield answer
                    return
                url = _redirected(url, answer.headers.get("Location", ""), answer.status)
        raise DownloadFailed(
            f"the storage redirects more than {MOST_REDIRECTS} times",
            cause="The storage, or a gateway before it, sends the request in a circle.",
            remedy="Report it to the platform.",
        )

    @contextlib.contextmanager
    def _get_once(self, url: str, headers: Mapping[str, str]) -> Iterator[Answer]:
        parts = urlsplit(url)
        guard, proxies = Guard(), dict(self._proxies_for(url))
        host = parts.netloc.rpartition("@")[2]

        def failure(error: Exception) -> Exception:
            if self._exchanges.cancelled:
                return Cancelled("cancelled")
            if guard.expired:
                return NetworkError(f"{host} took longer than {HEAD_SECONDS:.3g} s to answer", sent=guard.connected)
            found = fault_of(error, guard, host=host, through_proxy=select_proxy(url, proxies) is not None)
            return _untrusted(host, found) if isinstance(found, UntrustedError) else found

        with self._exchanges.watch(guard):
            try:
                with guard.within(HEAD_SECONDS):
                    response = self._adapter.send(
                        _prepare(parts._replace(netloc=host).geturl(), headers, guard),
                        stream=True,
                        timeout=(CONNECT_SECONDS, IDLE_SECONDS),
                        proxies=proxies,
                    )
            except FAULTS as error:
                raise failure(error) from error
            with response, contextlib.nullcontext() if response.ok else guard.within(HEAD_SECONDS):
                yield Answer(
                    status=response.status_code,
                    headers=response.headers,
                    pieces=_pieces(response, failure),
                )


def _prepare(url: str, headers: Mapping[str, str], guard: Guard) -> GuardedRequest:
    """Make the request; a user name in the link is left out, for requests would make an `Authorization` of it."""
    request = GuardedRequest(guard)
    request.prepare(
        method="GET",
        url=url,
        headers={
            "Accept": "*/*",
            "Accept-Encoding": "identity",  # the archive as it is stored
            "Connection": "close",  # there is little to save, and a connection that was kept may be dead
            "User-Agent": f"docs-platform-action/{__version__}",
            **headers,
        },
    )
    # set here, because `prepare` would change the writing of what is signed
    request.url = quote(url, safe="".join(map(chr, range(0x21, 0x7F))))
    return request


def _pieces(response: requests.Response, failure: Callable[[Exception], Exception]) -> Iterator[bytes]:
    while True:
        try:
            # as it comes, so that each wait is for one packet; never decoded, whatever `Content-Encoding` says of an archive
            piece: bytes = response.raw.read1(PIECE_BYTES, decode_content=False)
        except FAULTS as error:
            raise failure(error) from error
        if not piece:
            return
        yield piece


def _redirected(url: str, location: str, status: int) -> str:
    try:
        target = urljoin(url, location) if location else ""
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
    return DownloadFailed(
        f"the certificate of the storage at {host} is not trusted",
        facts=(f"TLS said: {error.reason}.",),
        cause="The storage uses a certificate of a private authority, an expired one, or one for another host name.",
        remedy="Pass the authority's certificate (PEM) with `ca-bundle`.",
    )
