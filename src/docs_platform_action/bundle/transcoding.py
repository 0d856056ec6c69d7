"""Responses that do not hold the bundle as it is stored: other content, and changed compression.

Some servers decompress a bundle that is stored as gzip (source: Google Cloud Storage, "Transcoding of gzip-compressed files";
nginx, `gunzip`). It is requested again with gzip accepted, and if the server then compresses on the fly, once more without.
"""

import contextlib
from dataclasses import dataclass
from typing import Final

from ..archive.codecs import GZIP, decompressed
from ..archive.formats import START_BYTES, describe_content, is_archive, is_supported
from ..archive.tar import begins_tar
from ..errors import Advice, InvalidBundle
from ..http.retry import TransientError
from .storage import StorageResponse, address_of

MAX_START_BYTES: Final = 64 * 1024  # compressed, to be read for the first `START_BYTES` decompressed
_GZIP_TYPES: Final = ("application/gzip", "application/x-gzip")

_INTERCEPTED: Final = Advice(
    cause="Something other than the storage responded, such as a login page or a gateway.",
    remedy="Open the link from the runner's network to see what responds, and let the runner reach the storage directly.",
)
_COMPRESSED: Final = Advice(
    cause="A CDN or a proxy in front of the storage compresses the bundle, or something other than the storage responded.",
    remedy="Turn compression off there for archives, or open the link from the runner's network to see what responds.",
)


@dataclass
class Transcoding:
    """What a download knows about a changed compression."""

    accepts_gzip: bool = False  # in the next request of the whole bundle
    was_decompressed: bool = False  # the storage says so of the bundle that is downloaded
    _tried_gzip: bool = False

    def must_request_again(self, response: StorageResponse, start: bytes, link: str) -> bool:
        """Return whether to request the bundle again, with the new `accepts_gzip`, to get the bytes as they are stored."""
        is_tar = begins_tar(start[:START_BYTES])
        was_decompressed = _was_decompressed(response, link, is_tar=is_tar)
        may_be_decompressed = was_decompressed or (is_tar and response.length is None and not response.codings)
        if may_be_decompressed and not self._tried_gzip:
            self.accepts_gzip = self._tried_gzip = True
            return True
        if self.accepts_gzip and response.codings and response.length is None and not response.is_stored_as_gzip:
            self.accepts_gzip = False
            return True
        self.was_decompressed = was_decompressed and response.is_stored_as_gzip
        return False


def read_archive_start(response: StorageResponse) -> bytes:
    """Read the first bytes of a response. Raises `TransientError` unless they begin an archive, whatever the headers say."""
    start = b""
    while len(start) < START_BYTES and (piece := next(response.pieces, b"")):
        start += piece
    inside = start  # decompressed if the response has a `Content-Encoding`, because it may be a web page
    if response.codings and start.startswith(GZIP.magic):
        while len(inside := _decompressed_start(start)) < START_BYTES and len(start) < MAX_START_BYTES:
            if not (piece := next(response.pieces, b"")):
                break
            start += piece
    # what other codings contain cannot be seen here, and the data of some looks like an unsupported archive
    is_readable = {*response.codings} <= {"gzip", "x-gzip"}
    if is_archive(start) and is_archive(inside) and (is_readable or is_supported(start)):
        return start
    content_type = response.headers.get("Content-Type")
    suffix = f" (Content-Type {content_type})" if content_type else ""
    if not is_readable:
        compressed = f"compressed with {', '.join(response.codings)} (Content-Encoding), which was not asked for"
        raise TransientError(f"The storage's response is {compressed}{suffix}", advice=_COMPRESSED)
    content = describe_content(inside) if inside or not start else "is damaged or empty gzip data"
    raise TransientError(f"The storage's response is not a bundle: it {content}{suffix}", advice=_INTERCEPTED)


def _decompressed_start(start: bytes) -> bytes:
    inside = b""
    with contextlib.suppress(InvalidBundle):  # damaged, or cut off as expected
        for chunk in decompressed(GZIP, iter([start])):
            inside += chunk
            if len(inside) >= START_BYTES:
                break
    return inside


def _was_decompressed(response: StorageResponse, link: str, *, is_tar: bool) -> bool:
    """Return whether the object is stored as gzip, by its headers or names, but the response is not gzip."""
    if response.codings:
        return False
    content_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    names = (address_of(link), response.address)
    is_named_gzip = content_type in _GZIP_TYPES or any(name.lower().endswith((".gz", ".tgz")) for name in names)
    return response.is_stored_as_gzip or (is_named_gzip and is_tar)
