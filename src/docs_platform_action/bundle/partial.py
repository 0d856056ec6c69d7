"""The downloaded part of a bundle, and the range request for the rest."""

import hashlib
import re
from typing import BinaryIO

from ..text import format_bytes
from .storage import StorageResponse, address_of


class PartialBundle:
    """The downloaded bytes in `file`, the `size` of the whole bundle if known, and the `etag` that can resume it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.reset()

    @property
    def error_suffix(self) -> str:
        """How much is downloaded, as the end of an error message."""
        of_all = f" of {format_bytes(self.size)}" if self.size is not None else ""
        return f", after {format_bytes(self.received)}{of_all}" if self.received else ""

    def write(self, piece: bytes) -> None:
        """Append to the file. Raises `OSError`."""
        self._file.write(piece)
        self.sha256.update(piece)
        self.received += len(piece)

    def reset(self) -> None:
        """Empty the file. Raises `OSError`."""
        self._file.seek(0)
        self._file.truncate()
        self._link = self._address = ""  # the latter after redirects; both without query
        self.etag: str | None = None
        self.sha256 = hashlib.sha256()
        self.received = 0
        self.size: int | None = None

    def set_source(self, link: str, response: StorageResponse) -> None:
        """Record where the bytes come from, if the response can be resumed: one compressed on the fly cannot."""
        if response.validator is not None and not (response.is_encoded and response.length is None):
            self._link, self._address, self.etag = address_of(link), response.address, response.validator

    def range_headers(self, link: str) -> dict[str, str]:
        """Return the headers that request the rest; none if the download cannot be resumed."""
        if (
            not self.received or self.etag is None or self._link != address_of(link)
        ):  # an ETag is of one address (RFC 9110, 8.8.3)
            return {}
        return {"Range": f"bytes={self.received}-", "If-Range": self.etag}

    def next_range(self, response: StorageResponse) -> tuple[int, int | None] | None:
        """Return the end and the bundle's size of a 206's `Content-Range` (RFC 9110, 14.4); `None` unless it comes next."""
        found = re.fullmatch(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)", response.headers.get("Content-Range", ""))
        if found is None or response.address != self._address or not self._may_be_same(response):
            return None
        start, end, size = int(found[1]), int(found[2]) + 1, None if found[3] == "*" else int(found[3])
        is_valid = start < end and (size is None or end <= size) and response.length in {None, end - start}
        is_same_size = size == self.size or None in {size, self.size}
        return (end, size) if is_valid and is_same_size and start == self.received else None

    def is_complete(self, response: StorageResponse) -> bool:
        """Return whether a 416 response says that nothing follows the downloaded bytes (RFC 9110, section 15.5.17)."""
        is_at_end = re.fullmatch(rf"bytes \*/{self.received}", response.headers.get("Content-Range", ""))
        return is_at_end is not None and self._may_be_same(response)

    def _may_be_same(self, response: StorageResponse) -> bool:
        return self.etag is not None and response.headers.get("ETag") in {None, self.etag}
