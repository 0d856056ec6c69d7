"""The downloaded part of a bundle, and the range request for the rest."""

import hashlib
import re
from typing import BinaryIO

from ..text import format_bytes
from .storage import StorageResponse, Validator, address_of


class PartialBundle:
    """The downloaded bytes in `file`, the `size` of the whole bundle if known, and the `validator` that can resume it."""

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
        self._codings: list[str] = []
        self.validator: Validator | None = None
        self.sha256 = hashlib.sha256()
        self.received = 0
        self.size: int | None = None

    def set_source(self, link: str, response: StorageResponse) -> None:
        """Record where the bytes come from, if the response can be resumed: one compressed on the fly cannot."""
        if response.validator is not None and not (response.codings and response.length is None):
            self._link, self._address, self.validator = address_of(link), response.address, response.validator
            self._codings = response.codings

    def range_headers(self, link: str) -> dict[str, str]:
        """Return the headers that request the rest; none if the download cannot be resumed."""
        # a validator is of one address (RFC 9110, sections 8.8.2 and 8.8.3)
        if not self.received or self.validator is None or self._link != address_of(link):
            return {}
        return {"Range": f"bytes={self.received}-", "If-Range": self.validator.value}

    def next_range(self, response: StorageResponse) -> tuple[int, int] | None:
        """Return the end of a 206's `Content-Range` (RFC 9110, 14.4) and the bundle's size; `None` unless it comes next.

        Parts of one bundle have the same strong validator (15.3.7.3); some servers ignore `If-Range`.
        """
        found = re.fullmatch(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)", response.headers.get("Content-Range", ""))
        has_one_range = not response.headers.get("Content-Type", "").lower().startswith("multipart/byteranges")
        is_same_form = (response.address, response.codings) == (self._address, self._codings)
        if found is None or not (has_one_range and is_same_form and self.is_same(response)):
            return None
        start, end, size = int(found[1]), int(found[2]) + 1, self.size if found[3] == "*" else int(found[3])
        if size is None or self.size not in {None, size} or response.length not in {None, end - start}:
            return None
        return (end, size) if self.received == start < end <= size else None

    def is_at_end(self, response: StorageResponse) -> bool:
        """Return whether a 416 says that a bundle ends after the downloaded bytes (RFC 9110, section 15.5.17)."""
        is_other = self.validator is not None and self.validator.name in response.headers and not self.is_same(response)
        return response.headers.get("Content-Range") == f"bytes */{self.received}" and not is_other

    def is_same(self, response: StorageResponse) -> bool:
        """Return whether a response has the validator of the downloaded bytes. A date is none if there is an ETag."""
        if self.validator is None or (self.validator.name != "ETag" and "ETag" in response.headers):
            return False
        return response.headers.get(self.validator.name) == self.validator.value
