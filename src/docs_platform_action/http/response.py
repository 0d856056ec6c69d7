"""Reads final responses with complete headers and a clear end; `http.client` and urllib3 accept more, and not the same."""

import http.client
import io
import re
from typing import Any, Final

MAX_INTERIM_RESPONSES: Final = 100
MAX_HEAD_BYTES: Final = 64 * 1024  # interim responses included: requests reads cookies in quadratic time

_FRAMING: Final = re.compile(r"^(transfer-encoding|content-length)[ \t]*:", re.IGNORECASE | re.MULTILINE)
_FOLD: Final = re.compile(r"[ \t]*\r?\n[ \t]+")
_LENGTH: Final = re.compile(r"[0-9]{1,18}")


class FinalResponse(http.client.HTTPResponse):
    """A final response with complete headers.

    `http.client` takes the end of the stream for the end of the headers, and any interim response but 100 for the final one,
    which then stays on the connection for the next request; a client must skip them all (RFC 9110, section 15.2).
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lines = self.fp = _Lines(self.fp.detach())

    def begin(self) -> None:
        """Read the status line and the headers. Raises `http.client.HTTPException`."""
        super().begin()
        self._lines.remaining_bytes = float("inf")  # from here on, lines are part of the body
        if self._lines.ended:
            raise http.client.IncompleteRead(b"")
        _clean(self.headers)
        if self.status < 200:  # 101: what follows on this connection is not HTTP
            self.will_close = True
        elif self.status not in {http.HTTPStatus.NO_CONTENT, http.HTTPStatus.NOT_MODIFIED}:  # which have no body
            self.length = _settle_length(self.headers)
            self.chunked = "Transfer-Encoding" in self.headers
            self.chunk_left = None

    def _read_status(self) -> tuple[str, int, str]:
        for _ in range(MAX_INTERIM_RESPONSES + 1):
            version, status, reason = super()._read_status()  # type: ignore[misc]  # missing in the type stubs
            if status == http.HTTPStatus.SWITCHING_PROTOCOLS or not 100 <= status < 200:
                return version, status, reason
            while self._lines.readline(MAX_HEAD_BYTES) not in (b"\r\n", b"\n", b""):
                pass
        raise http.client.BadStatusLine("too many interim responses")


class _Lines(io.BufferedReader):
    """Limits the total size of the head's lines."""

    ended = False
    remaining_bytes: float = MAX_HEAD_BYTES

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        self.ended = not line
        if line and not line.endswith(b"\n") and (size is None or size < 0 or len(line) < size):
            raise http.client.IncompleteRead(line)  # a truncated chunk size, too, would be read as a smaller one
        self.remaining_bytes -= len(line)
        if self.remaining_bytes < 0:
            raise http.client.HTTPException("the head is too large")
        return line


def _clean(headers: http.client.HTTPMessage) -> None:
    """Strip values and unfold lines (RFC 9112, section 5.2): `http.client` and urllib3 treat `chunked ` differently."""
    if _FRAMING.search(str(headers.get_payload())):  # what follows a line at which the parser stopped
        raise http.client.HTTPException("the headers cannot be read")
    fields = [(name, _FOLD.sub(" ", value).strip(" \t")) for name, value in headers.items()]
    for name, _ in fields:
        del headers[name]
    for name, value in fields:
        headers[name] = value


def _settle_length(headers: http.client.HTTPMessage) -> int | None:
    """Reduce the headers to one statement of where the body ends (RFC 9112, section 6.3); return the `Content-Length`, if any."""
    # repeated values count once: no sender may apply `chunked` twice (section 6.1)
    codings = {coding.lower() for coding in _list(headers, "Transfer-Encoding")} - {"identity"}
    lengths = {*_list(headers, "Content-Length")}
    del headers["Transfer-Encoding"], headers["Content-Length"]
    if codings == {"chunked"}:
        headers["Transfer-Encoding"] = "chunked"
        return None
    if codings or len(lengths) > 1 or not all(map(_LENGTH.fullmatch, lengths)):
        raise http.client.HTTPException("the end of the body is not clear")
    if not lengths:
        return None
    headers["Content-Length"] = lengths.pop()
    return int(headers["Content-Length"])


def _list(headers: http.client.HTTPMessage, name: str) -> list[str]:
    return [item.strip(" \t") for value in headers.get_all(name, []) for item in value.split(",")]
