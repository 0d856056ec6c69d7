"""Requests to the object storage for a bundle link, its redirects, and the responses.

No request carries the admin key: storages refuse it beside a link's signature (source: AWS, Google and Azure, signed URLs).
"""

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from requests.models import REDIRECT_STATI

from ..context import Context
from ..errors import DownloadFailed
from ..http.client import Response
from ..http.faults import NetworkError, ResponseTimeout, request_id_of
from ..http.retry import http_date
from ..http.transport import Request, Timeouts
from ..http.trust import UnusableServerError
from ..job import Job
from ..models import UNUSABLE, is_bundle_url
from ..redaction import Redactor
from ..text import netloc_of, without_query

IDLE_SECONDS: Final = 30.0  # a connection without a byte for this long counts as broken
MIN_BYTES_PER_SECOND: Final = 1024  # a slower connection counts as broken too, measured over `SLOW_SECONDS`
SLOW_SECONDS: Final = 60.0
HEAD_SECONDS: Final = 60.0  # until a response begins, redirects included, and until an error response ends
MAX_REDIRECTS: Final = 5
MAX_ERROR_BYTES: Final = 16 * 1024


class Validator(NamedTuple):
    """A header that changes with the bundle, and its value."""

    name: str
    value: str


@dataclass(frozen=True, kw_only=True)
class StorageResponse:
    """A response with an unread body, which is never decoded. `address` is without query, after all redirects."""

    status: int
    headers: Mapping[str, str]
    address: str
    pieces: Iterator[bytes]
    redactor: Redactor

    @property
    def length(self) -> int | None:
        """The announced size of the body. The HTTP client refuses a `Content-Length` that is not a number."""
        length = self.headers.get("Content-Length")
        return int(length) if length is not None else None

    @property
    def codings(self) -> list[str]:
        """The `Content-Encoding` of the body, in the order in which it was applied (RFC 9110, section 8.4)."""
        names = (name.strip().lower() for name in self.headers.get("Content-Encoding", "").split(","))
        return [name for name in names if name not in {"", "identity"}]

    @property
    def is_stored_as_gzip(self) -> bool:
        """Whether the object is stored as gzip, however it was sent (source: Google Cloud Storage, XML API headers)."""
        return self.headers.get("X-Goog-Stored-Content-Encoding", "").lower() == "gzip"

    @property
    def request_id(self) -> str | None:
        """The storage's ID of the request."""
        return request_id_of(self.headers)

    @property
    def validator(self) -> Validator | None:
        """What may be sent as `If-Range`: the strong ETag or, only without any ETag, a strong date (RFC 9110, section 13.1.5)."""
        etag, modified = self.headers.get("ETag", ""), self.headers.get("Last-Modified", "")
        if etag:
            return Validator("ETag", etag) if re.fullmatch(r'"[\x21\x23-\x7e]+"', etag) else None
        modified_at, sent_at = http_date(modified), http_date(self.headers.get("Date", ""))
        # a date is strong if the bundle was not replaced within the same second (section 8.8.2.2)
        is_strong = modified_at is not None and sent_at is not None and sent_at - modified_at >= timedelta(seconds=1)
        return Validator("Last-Modified", modified) if is_strong else None

    def error_text(self) -> str:
        """Return the status of an error response, with the code and the message of the storage's XML."""
        text = b""
        with contextlib.suppress(NetworkError):  # the status and the bytes received so far are enough
            for piece in self.pieces:
                text += piece
                if len(text) > MAX_ERROR_BYTES:
                    break
        body = self.redactor.hide_keys(text.decode("utf-8", "replace"))
        found = [re.search(rf"<{name}>([^<]{{1,200}})</{name}>", body) for name in ("Code", "Message")]
        error_text = ": ".join(match[1] for match in found if match)
        return f"{self.status} ({error_text})" if error_text else str(self.status)


@contextlib.contextmanager
def request_bundle(
    url: str, headers: Mapping[str, str], job: Job, context: Context, *, within_seconds: float
) -> Iterator[StorageResponse]:
    """Request a link, follow redirects to https or to this machine, and yield the response, which must begin within the seconds.

    Raises `DownloadFailed` for what a retry cannot change, and, also while `pieces` are read, `Cancelled` and `NetworkError`.
    """
    timeouts = Timeouts(idle_seconds=IDLE_SECONDS, total_seconds=min(within_seconds, HEAD_SECONDS))
    for _ in range(MAX_REDIRECTS + 1):
        host = netloc_of(url)
        with (
            _errors_of_storage(host),
            context.client.send(Request(method="GET", url=url), timeouts, headers={"Accept": "*/*", **headers}) as response,
        ):
            is_bundle = response.status in {200, 206}
            received = StorageResponse(
                status=response.status,
                headers=response.headers,
                address=address_of(url),
                pieces=_bundle_pieces(response, host) if is_bundle else response.pieces,
                redactor=context.client.redactor,
            )
            if response.status not in REDIRECT_STATI:
                yield received
                return
            url = _redirected(url, received)
            timeouts = replace(timeouts, total_seconds=response.exchange.remaining_seconds)
        context.events.link_redirected(job, url)
    raise DownloadFailed(
        f"the storage redirects more than {MAX_REDIRECTS} times",
        cause="The storage, or a gateway in front of it, redirects in a loop.",
        remedy="Report it to the platform.",
    )


def address_of(link: str) -> str:
    """Return a link without its query, which holds its signature."""
    return f"{urlsplit(link).scheme}://{without_query(link)}"


def _bundle_pieces(response: Response, host: str) -> Iterator[bytes]:
    """Yield the body while it arrives at `MIN_BYTES_PER_SECOND` or faster."""
    received = 0
    response.exchange.remaining_seconds = SLOW_SECONDS
    try:
        for piece in response.pieces:
            received += len(piece)
            if received >= MIN_BYTES_PER_SECOND * SLOW_SECONDS:
                received = 0
                response.exchange.remaining_seconds = SLOW_SECONDS
            yield piece
    except ResponseTimeout as error:
        raise NetworkError(f"{host} sent almost nothing for {SLOW_SECONDS:.3g} s", maybe_processed=True) from error


@contextlib.contextmanager
def _errors_of_storage(host: str) -> Iterator[None]:
    """Raise the HTTP client's error about a server that cannot be used as the storage's."""
    try:
        yield
    except UnusableServerError as error:
        raise error.failure(DownloadFailed, f"the storage at {host}", "the link, which the platform makes") from error


def _redirected(url: str, response: StorageResponse) -> str:
    location = response.headers.get("Location", "")
    if not location:
        raise DownloadFailed(
            f"the storage redirects without an address ({response.status})",
            details=(f"The storage returned {response.error_text()}.",),
            cause="The platform makes links for another region or endpoint than that of the storage.",
            remedy="Report it to the platform.",
            request_id=response.request_id,
        )
    with contextlib.suppress(UnicodeError):  # http.client decodes headers as Latin-1; most servers write UTF-8
        location = location.encode("latin-1").decode()
    try:
        # only for relative addresses: `urljoin` changes absolute ones, and drops some control characters
        location = location.replace(" ", "%20") if not UNUSABLE.search(location) else ""
        target = location if urlsplit(location).scheme or not location else urljoin(url, location)
        host = netloc_of(target)
    except ValueError:
        target = host = ""
    if not is_bundle_url(target):
        raise DownloadFailed(
            f"the storage redirects to {host or 'an unreadable address'} ({response.status}), which is not an https address",
            cause="The storage, or a gateway in front of it, is misconfigured, or something intercepts the runner's requests.",
            remedy="Report it to the platform, or to whoever runs this runner's network.",
        )
    return target
