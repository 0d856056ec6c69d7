"""Requests to the object storage for a bundle link, its redirects, and the responses.

No request carries the admin key: storages refuse it beside a link's signature (source: AWS, Google and Azure, signed URLs).
"""

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final
from urllib.parse import urljoin, urlsplit

from requests.models import REDIRECT_STATI

from ..addresses import is_bundle_url
from ..context import Context
from ..errors import DownloadFailed
from ..http.client import Response
from ..http.faults import NetworkError, request_id_of
from ..http.retry import http_date
from ..http.transport import Request, Timeouts
from ..http.trust import UnusableServerError
from ..text import UNUSABLE, netloc_of, without_query

IDLE_SECONDS: Final = 30.0  # a connection without a byte for this long counts as broken
HEAD_SECONDS: Final = (
    60.0  # until a response begins, redirects included, and until an error response ends
)
MAX_REDIRECTS: Final = 5
MAX_ERROR_BYTES: Final = 16 * 1024


def validator_of(response: Response) -> str | None:
    """Return what may be sent as `If-Range`: the strong ETag or, only without any ETag, a strong date (RFC 9110, 13.1.5)."""
    etag, modified = response.headers.get("ETag", ""), response.headers.get("Last-Modified", "")
    if etag:
        return etag if re.fullmatch(r'"[\x21\x23-\x7e]+"', etag) else None
    modified_at, sent_at = http_date(modified), http_date(response.headers.get("Date", ""))
    # a date is strong if the bundle was not replaced within the same second (section 8.8.2.2)
    is_strong = (
        modified_at is not None
        and sent_at is not None
        and sent_at - modified_at >= timedelta(seconds=1)
    )
    return modified if is_strong else None


def error_text(response: Response) -> str:
    """Return the status of an error response, with the code and the message of the storage's XML."""
    text = b""
    with contextlib.suppress(NetworkError):  # the status is enough
        text = response.read(MAX_ERROR_BYTES)
    body = text.decode("utf-8", "replace")
    found = [re.search(rf"<{name}>([^<]{{1,200}})</{name}>", body) for name in ("Code", "Message")]
    reason = ": ".join(match[1] for match in found if match)
    return f"{response.status} ({reason})" if reason else str(response.status)


@contextlib.contextmanager
def request_bundle(
    url: str, headers: Mapping[str, str], context: Context, *, within_seconds: float
) -> Iterator[tuple[Response, str]]:
    """Request a link, follow redirects to https or to this machine, and yield the response, which must begin within the seconds.

    The second value is its address without query. Raises `DownloadFailed` for what a retry cannot change, and, also while the
    response's `pieces` are read, `Cancelled` and `NetworkError`.
    """
    timeouts = Timeouts(idle_seconds=IDLE_SECONDS, total_seconds=min(within_seconds, HEAD_SECONDS))
    for _ in range(MAX_REDIRECTS + 1):
        request, sent_headers = Request(method="GET", url=url), {"Accept": "*/*", **headers}
        try:
            with context.client.send(request, timeouts, headers=sent_headers) as response:
                if response.status not in REDIRECT_STATI:
                    yield response, address_of(url)
                    return
                url = _redirected(url, response)
                timeouts = replace(timeouts, total_seconds=response.exchange.remaining_seconds)
        except UnusableServerError as error:
            raise error.failure(
                DownloadFailed,
                f"the storage at {netloc_of(url)}",
                "the link, which the platform makes",
            ) from error
        context.client.redactor.add_link(url)
    loop = "The storage, or a gateway in front of it, redirects in a loop."
    summary = f"the storage redirects more than {MAX_REDIRECTS} times"
    raise DownloadFailed(summary, cause=loop, remedy="Report it to the platform.")


def address_of(link: str) -> str:
    """Return a link without its query, which holds its signature."""
    return f"{urlsplit(link).scheme}://{without_query(link)}"


def _redirected(url: str, response: Response) -> str:
    location = response.headers.get("Location", "")
    with contextlib.suppress(
        UnicodeError
    ):  # http.client decodes headers as Latin-1; most servers write UTF-8
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
            details=(f"The storage returned {error_text(response)}.",),
            cause="The storage is misconfigured, or something intercepts the runner's requests.",
            remedy="Report it to the platform, or to the operator of this runner's network.",
            request_id=request_id_of(response.headers),
        )
    return target
