"""The object storage's side of the HTTP client: requests for bundle links, redirects, and what a response means.

No request here carries the admin key, which is hidden in responses all the same. A presigned link has its own signature, and
storages refuse an `Authorization` header beside it (source: AWS, Google and Azure documentation of signed URLs).
"""

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urljoin, urlsplit

from ..context import Context
from ..errors import DownloadFailed
from ..http.client import Request, Response, Timeouts
from ..http.faults import NetworkError, ResponseTimeout, SocksProxyError, UntrustedCertificateError, request_id_of
from ..job import Job
from ..models import UNUSABLE, is_bundle_url
from ..redaction import Redactor
from ..text import netloc_of

IDLE_SECONDS: Final = 30.0
"""A connection that brings no byte for this long counts as cut."""

HEAD_SECONDS: Final = 60.0
"""Time limit for a response to begin, redirects included, and for one that is not a bundle to end."""

SLOW_SECONDS: Final = 60.0
MIN_BYTES_PER_SECOND: Final = 1024
"""A connection that brings less than that over this time counts as cut too: no bundle would arrive in time."""

MAX_REDIRECTS: Final = 5
MAX_ERROR_BYTES: Final = 16 * 1024

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, kw_only=True)
class StorageResponse:
    """A response of the storage, its body still to come. `address` is the one behind all redirects, without its query."""

    status: int
    headers: Mapping[str, str]
    address: str
    pieces: Iterator[bytes]
    redactor: Redactor

    @property
    def length(self) -> int | None:
        """The announced size of the body. The HTTP client refuses a response that announces anything but a number."""
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
    def validator(self) -> str | None:
        """What tells this object from others in an `If-Range`: a strong ETag, or nothing (RFC 9110, section 13.1.5)."""
        etag = self.headers.get("ETag", "")
        return etag if re.fullmatch(r'"[\x21\x23-\x7e]+"', etag) else None

    def error_text(self) -> str:
        """Read what an error answer says: its status, and the code and the message where the storage's XML has them."""
        text = b""
        with contextlib.suppress(NetworkError):  # what has come so far is enough: the status says the rest
            for piece in self.pieces:
                text += piece
                if len(text) > MAX_ERROR_BYTES:
                    break
        body = self.redactor.hide(text.decode("utf-8", "replace"))
        found = [re.search(rf"<{name}>([^<]{{1,200}})</{name}>", body) for name in ("Code", "Message")]
        error_text = ": ".join(match[1] for match in found if match)
        return f"{self.status} ({error_text})" if error_text else str(self.status)


@contextlib.contextmanager
def request_bundle(
    url: str, headers: Mapping[str, str], job: Job, context: Context, *, within_seconds: float
) -> Iterator[StorageResponse]:
    """Request a link, follow redirects to https or to this machine, and yield the response.

    It has to begin within so many seconds. Raises `NetworkError`, here and from the response's `pieces`, `DownloadFailed` for
    what a retry cannot change, and `Cancelled`.
    """
    seconds = min(within_seconds, HEAD_SECONDS)
    timeouts = Timeouts(idle_seconds=IDLE_SECONDS, total_seconds=seconds)
    # a new connection, and closed afterwards: there is little to save, and one that was kept may be dead
    headers = {"Accept": "*/*", "Connection": "close", **headers}
    for _ in range(MAX_REDIRECTS + 1):
        host = netloc_of(url)
        with (
            _errors_of_storage(host, seconds),
            context.client.send(Request(method="GET", url=url), timeouts, headers=headers, new_connection=True) as response,
        ):
            if response.status not in _REDIRECTS:
                is_bundle = response.status in {200, 206}
                if is_bundle:
                    response.extend(SLOW_SECONDS)
                yield StorageResponse(
                    status=response.status,
                    headers=response.headers,
                    address=f"{urlsplit(url).scheme}://{host}{urlsplit(url).path}",
                    pieces=_bundle_pieces(response, host) if is_bundle else response.pieces(),
                    redactor=context.client.redactor,
                )
                return
            url = _redirected(url, response.headers.get("Location", ""), response.status)
            timeouts = replace(timeouts, total_seconds=response.remaining_seconds)
        context.events.link_redirected(job, url)
    raise DownloadFailed(
        f"the storage redirects more than {MAX_REDIRECTS} times",
        cause="The storage, or a gateway in front of it, redirects in a loop.",
        remedy="Report it to the platform.",
    )


def _bundle_pieces(response: Response, host: str) -> Iterator[bytes]:
    """Yield the body of a bundle, for as long as it arrives at `MIN_BYTES_PER_SECOND` or faster."""
    received = 0
    try:
        for piece in response.pieces():
            received += len(piece)
            if received >= MIN_BYTES_PER_SECOND * SLOW_SECONDS:
                received = 0
                response.extend(SLOW_SECONDS)
            yield piece
    except ResponseTimeout as error:
        raise NetworkError(f"{host} sent almost nothing for {SLOW_SECONDS:.3g} s", maybe_processed=True) from error


@contextlib.contextmanager
def _errors_of_storage(host: str, seconds: float) -> Iterator[None]:
    """Word the client's errors for the storage. `seconds` is the limit on the whole request, redirects included."""
    try:
        yield
    except ResponseTimeout as error:
        raise NetworkError(
            f"{host} took longer than {seconds:.3g} s to respond", maybe_processed=error.maybe_processed
        ) from error
    except UntrustedCertificateError as error:
        raise error.failure(DownloadFailed, f"the storage at {host}", "storage", "the link, which the platform makes") from error
    except SocksProxyError as error:
        raise error.failure(DownloadFailed, f"the storage at {host}") from error


def _redirected(url: str, location: str, status: int) -> str:
    with contextlib.suppress(UnicodeError):  # http.client reads headers as Latin-1, which they rarely are
        location = location.encode("latin-1").decode()
    try:
        # not `urljoin` for all: it rewrites an absolute address too, and drops some control characters
        location = location.replace(" ", "%20") if not UNUSABLE.search(location) else ""
        target = location if urlsplit(location).scheme or not location else urljoin(url, location)
        host = netloc_of(target)
    except ValueError:
        target = host = ""
    if not is_bundle_url(target):
        raise DownloadFailed(
            f"the storage redirects to {host or 'an address that cannot be read'} ({status}), which is not an https address",
            cause="The storage, or a gateway in front of it, is misconfigured, or something intercepts the runner's requests.",
            remedy="Report it to the platform, or to whoever runs this runner's network.",
        )
    return target
