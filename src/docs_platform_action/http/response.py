"""Reads final responses with complete headers and a clear end; `http.client` and urllib3 accept more, and not the same."""

import http.client
import io
import re
import socket
import ssl
from collections.abc import Callable
from typing import Any, Final

MAX_INTERIM_RESPONSES: Final = 100
MAX_HEAD_BYTES: Final = 64 * 1024  # interim responses included

_FRAMING: Final = re.compile(r"^(transfer-encoding|content-length)[ \t]*:", re.IGNORECASE | re.MULTILINE)
_FOLD: Final = re.compile(r"[ \t]*\r?\n[ \t]+")
_LENGTH: Final = re.compile(r"[0-9]{1,18}")
_STATUS_LINE: Final = re.compile(rb"(HTTP/1\.[0-9]) +([1-9][0-9]{2})(?: .*)?\r?\n")  # `int` would accept `+200`
_CHUNK_LINE: Final = re.compile(rb"([0-9A-Fa-f]{1,16})([ \t]*;[^\r\n]*)?\r\n")  # a size, and an extension


class FinalResponse(http.client.HTTPResponse):
    """A final response with complete headers.

    `http.client` takes the end of the stream for the end of the headers, and any interim response but 100 for the final one,
    which then stays on the connection for the next request; a client must skip them all (RFC 9110, section 15.2).
    """

    has_surplus = False  # bytes that came behind the response
    tunnel_status: int | None = None  # of the response to a request for a tunnel, of which `begin` is not called

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self._sock = sock
        self._lines = self.fp = _Lines(self.fp.detach())

    def begin(self) -> None:
        """Read the status line and the headers. Raises `http.client.HTTPException`."""
        super().begin()
        self._lines.remaining_bytes = float("inf")  # from here on, lines are part of the body
        if self._lines.ended:
            raise http.client.IncompleteRead(b"")
        _clean(self.headers)
        self.chunked = False  # for `http.client` and urllib3, which accept whatever size `int` does, even a negative one
        if self.status < 200 or self.status in {http.HTTPStatus.NO_CONTENT, http.HTTPStatus.NOT_MODIFIED}:  # without a body
            del self.headers["Transfer-Encoding"]
            self.will_close = self.will_close or self.status < 200  # 101: what follows on this connection is not HTTP
            return
        is_chunked, self.length = _settle_length(self.headers)
        if is_chunked:
            self.fp = _Body(_Chunks(self._lines))
            self.will_close = self.will_close or self.version == 10  # faulty (RFC 9112, section 6.1)

    def _close_conn(self) -> None:
        if not self.will_close:
            self.has_surplus = bool(read_waiting(self._sock, self._lines.peek))
        super()._close_conn()  # type: ignore[misc]  # missing in the type stubs

    def _read_status(self) -> tuple[str, int, str]:
        for _ in range(MAX_INTERIM_RESPONSES + 1):
            line = self._lines.readline(MAX_HEAD_BYTES)
            if not line:
                raise http.client.RemoteDisconnected("")
            if (match := _STATUS_LINE.fullmatch(line)) is None:
                raise http.client.BadStatusLine(repr(line))
            version, status = match[1].decode(), int(match[2])
            if status == http.HTTPStatus.SWITCHING_PROTOCOLS or not 100 <= status < 200:
                self.tunnel_status = status
                return version, status, ""
            while self._lines.readline(MAX_HEAD_BYTES) not in (b"\r\n", b"\n", b""):
                pass
        raise http.client.BadStatusLine("too many interim responses")


def read_waiting(sock: socket.socket, read: Callable[[int], bytes]) -> bytes | None:
    """Read a byte without waiting. Return `None` if there is none yet, and nothing if the connection has ended.

    Records of TLS without content, such as session tickets, do not count.
    """
    sock.settimeout(0)  # until urllib3 sends the next request
    try:
        return read(1)
    except (BlockingIOError, ssl.SSLWantReadError):
        return None
    except OSError:
        return b""


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


class _Chunks(io.RawIOBase):
    """The content of a chunked body (RFC 9112, section 7.1)."""

    def __init__(self, lines: _Lines) -> None:
        super().__init__()
        self._lines = lines
        self.remaining_bytes = 0  # of the current chunk
        self._after_chunk = False
        self._ended = False
        self._spare_bytes = MAX_HEAD_BYTES  # for all extensions and trailers; grows with the content

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self.remaining_bytes and not self._ended:
            self._begin_chunk()
        if self._ended:
            return 0
        count = self._lines.readinto1(memoryview(buffer)[: self.remaining_bytes])
        if not count:
            raise http.client.IncompleteRead(b"")
        self.remaining_bytes -= count
        self._spare_bytes += count
        return count

    def close(self) -> None:
        super().close()
        self._lines.close()

    def _begin_chunk(self) -> None:
        # only now: if the connection ended behind a chunk, its bytes are still good for a download that is resumed
        if self._after_chunk and self._read_line() != b"\r\n":
            raise http.client.HTTPException("a chunk is longer than its size")
        self._after_chunk = True
        if (match := _CHUNK_LINE.fullmatch(self._read_line())) is None:
            raise http.client.HTTPException("the size of a chunk is not a hexadecimal number")
        self.remaining_bytes = int(match[1], 16)
        self._ended = not self.remaining_bytes
        self._spend(match[2] or b"")
        while self._ended and (trailer := self._read_line()) != b"\r\n":
            self._spend(trailer)

    def _read_line(self) -> bytes:
        if not (line := self._lines.readline(MAX_HEAD_BYTES)):
            raise http.client.IncompleteRead(b"")
        return line

    def _spend(self, text: bytes) -> None:
        self._spare_bytes -= len(text)
        if self._spare_bytes < 0:
            raise http.client.HTTPException("there is too much beside the content")


class _Body(io.BufferedReader):
    """The content of a chunked body, in pieces of at most a chunk."""

    raw: _Chunks

    def read1(self, size: int = -1, /) -> bytes:
        # `io` allocates the whole size for each piece, which takes longer than all else if chunks are small
        return super().read1(min(size, max(self.raw.remaining_bytes, io.DEFAULT_BUFFER_SIZE)))


def _clean(headers: http.client.HTTPMessage) -> None:
    """Strip values and unfold lines (RFC 9112, section 5.2): `http.client` and urllib3 treat `chunked ` differently."""
    if _FRAMING.search(str(headers.get_payload())):  # what follows a line at which the parser stopped
        raise http.client.HTTPException("the headers cannot be read")
    fields = [(name, _FOLD.sub(" ", value).strip(" \t")) for name, value in headers.items()]
    for name, _ in fields:
        del headers[name]
    for name, value in fields:
        headers[name] = value


def _settle_length(headers: http.client.HTTPMessage) -> tuple[bool, int | None]:
    """Return whether the body is chunked, and its length if known; leave only this in the headers (RFC 9112, section 6.3)."""
    # repeated values count once: no sender may apply `chunked` twice (section 6.1)
    codings = {coding.lower() for coding in _list(headers, "Transfer-Encoding")} - {"identity"}
    lengths = {*_list(headers, "Content-Length")}
    del headers["Transfer-Encoding"], headers["Content-Length"]
    if codings == {"chunked"}:
        return True, None
    if codings or len(lengths) > 1 or not all(map(_LENGTH.fullmatch, lengths)):
        raise http.client.HTTPException("the end of the body is not clear")
    if not lengths:
        return False, None
    headers["Content-Length"] = lengths.pop()
    return False, int(headers["Content-Length"])


def _list(headers: http.client.HTTPMessage, name: str) -> list[str]:
    return [item.strip(" \t") for value in headers.get_all(name, []) for item in value.split(",")]
