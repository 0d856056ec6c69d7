"""Requests to the object storage for a bundle link, its redirects, and the responses.

No request carries the admin key: storages refuse it beside a link's signature (source: AWS, Google
and Azure, signed URLs).
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
from ..context import PlatformContext
from ..errors import DownloadFailed
from ..http.client import Response
from ..http.faults import NetworkError
from ..http.headers import http_date, request_id_of
from ..http.transport import Request, Timeouts
from ..http.trust import UnusableServerError
from ..text import UNUSABLE, netloc_of, without_query

IDLE_SECONDS: Final = 30.0  # a connection without a byte for this long counts as broken
# until a response begins, redirects included, and until an error response ends
HEAD_SECONDS: Final = 60.0
MAX_REDIRECTS: Final = 5
MAX_ERROR_BYTES: Final = 16 * 1024


def validator_of(response: Response) -> str | None:
    """Return what may be sent as `If-Range` (RFC 9110, section 13.1.5).

    It is the strong ETag or, only without any ETag, a strong date.
    """
    etag = response.headers.get("ETag", "")
    if not etag:
        return _strong_date_of(response)
    is_strong = re.fullmatch(r'"[\x21\x23-\x7e]+"', etag) is not None
    return etag if is_strong else None


def _strong_date_of(response: Response) -> str | None:
    modified = response.headers.get("Last-Modified", "")
    modified_at = http_date(modified)
    sent_at = http_date(response.headers.get("Date", ""))
    if modified_at is None or sent_at is None:
        return None
    # within the same second, the bundle may have been replaced (section 8.8.2.2)
    if sent_at - modified_at < timedelta(seconds=1):
        return None
    return modified


def error_text(response: Response) -> str:
    """Return the status of an error response, with the storage's code and message."""
    body = b""
    with contextlib.suppress(NetworkError):  # the status is enough
        body = response.read(MAX_ERROR_BYTES)
    reason = error_reason(body)
    if not reason:
        return str(response.status)
    return f"{response.status} ({reason})"


def error_reason(body: bytes) -> str:
    """Return the code and the message of a storage's error in XML or JSON. Empty without any."""
    text = body.decode("utf-8", "replace")
    reasons = []
    for name in ("Code", "Message"):
        found = re.search(rf"<{name}>([^<]{{1,200}})</{name}>", text)
        if found is None and text.lstrip().startswith("{"):
            found = re.search(rf'"{name.lower()}"\s*:\s*"([^"\\]{{1,200}})"', text, re.IGNORECASE)
        if found is not None:
            reasons.append(found[1])
    return ": ".join(reasons)


@contextlib.contextmanager
def request_bundle(
    url: str, headers: Mapping[str, str], context: PlatformContext, *, within_seconds: float
) -> Iterator[tuple[Response, str]]:
    """Request a link, follow redirects to https or to this machine, and yield the response.

    It must begin within the seconds. The second value is its address without query.

    Raises `DownloadFailed` for what a retry cannot change. Raises `Cancelled` and `NetworkError`,
    also while the response's `pieces` are read.
    """
    headers = {"Accept": "*/*", **headers}
    timeouts = Timeouts(idle_seconds=IDLE_SECONDS, total_seconds=min(within_seconds, HEAD_SECONDS))
    for _ in range(MAX_REDIRECTS + 1):
        request = Request(method="GET", url=url)
        try:
            exchange = context.client.new_exchange(request, timeouts, headers=headers)
            with context.client.send(exchange) as response:
                if response.status not in REDIRECT_STATI:
                    yield response, address_of(url)
                    return
                url = _redirected(url, response)
                timeouts = replace(timeouts, total_seconds=response.exchange.remaining_seconds)
        except UnusableServerError as error:
            storage = f"the storage at {netloc_of(url)}"
            address = "the link, which the platform makes"
            raise error.failure(DownloadFailed, storage, address) from error
        context.client.redactor.add_link(url)
    raise DownloadFailed(
        f"the storage redirects more than {MAX_REDIRECTS} times",
        cause="The storage, or a gateway in front of it, redirects in a loop.",
        remedy="Report it to the platform.",
    )


def address_of(link: str) -> str:
    """Return a link without its query, which holds its signature."""
    return f"{urlsplit(link).scheme}://{without_query(link)}"


def _redirected(url: str, response: Response) -> str:
    """Return where a redirect leads. Raises `DownloadFailed` if it must not be followed."""
    try:
        target = _target_of(url, response)
        host = netloc_of(target)
    except ValueError:
        target = ""
        host = ""
    if is_bundle_url(target):
        return target
    where = host or "an unreadable address"
    raise DownloadFailed(
        f"the storage redirects to {where} ({response.status}), which is not an https address",
        details=(f"The storage returned {error_text(response)}.",),
        cause="The storage is misconfigured, or something intercepts the runner's requests.",
        remedy="Report it to the platform, or to the operator of this runner's network.",
        request_id=request_id_of(response.headers),
    )


def _target_of(url: str, response: Response) -> str:
    """Return the address in a redirect. Raises `ValueError` if it cannot be read."""
    location = response.headers.get("Location", "")
    # http.client decodes headers as Latin-1; most servers write UTF-8
    with contextlib.suppress(UnicodeError):
        location = location.encode("latin-1").decode()
    # `urljoin` drops some control characters
    if not location or UNUSABLE.search(location):
        raise ValueError("the address is missing, or has control characters")
    location = location.replace(" ", "%20")
    if urlsplit(location).scheme:
        return location  # `urljoin` changes absolute addresses
    return urljoin(url, location)
