"""Reading an archive: its file at any offset, and its data in order."""

import os
from collections.abc import Iterator
from threading import BoundedSemaphore
from typing import ClassVar, Final

from ..clock import Cancellation
from .entries import damaged

CHUNK_BYTES: Final = 64 * 1024
"""Maximum bytes to read or decompress at a time. Small, because each gzip member in a chunk copies what follows it."""

POLL_SECONDS: Final = 0.05
"""How often a wait checks for what it waits for, and for a cancel."""


class _LinkedCancellation(Cancellation):
    """Is cancelled on its own, or with the run."""

    def __init__(self, run: Cancellation) -> None:
        super().__init__()
        self._run = run

    def check(self) -> None:
        super().check()
        self._run.check()


class ArchiveFile:
    """An open archive that can be read at any offset, until its own `cancellation` or the run is cancelled."""

    LARGE_DECODERS: ClassVar = BoundedSemaphore(2)
    """Limits how many archives use a decoder with tens of mebibytes of memory at the same time."""

    def __init__(self, descriptor: int, size: int, run: Cancellation) -> None:
        self.size = size
        self.cancellation: Cancellation = _LinkedCancellation(run)
        self._descriptor = descriptor

    def read(self, length: int, offset: int) -> bytes:
        """Return between one and `length` bytes; none at the end of the file. Raises `Cancelled`, `OSError`."""
        self.cancellation.check()
        return os.pread(self._descriptor, length, offset)

    def acquire_large_decoder(self) -> None:
        """Wait for one of `LARGE_DECODERS`, which the caller releases. Raises `Cancelled`."""
        while not self.LARGE_DECODERS.acquire(timeout=POLL_SECONDS):
            self.cancellation.check()

    def chunks(self, start: int, end: int) -> Iterator[bytes]:
        """Return a part of the file in chunks. They end early if the file does."""
        while start < end and (chunk := self.read(min(CHUNK_BYTES, end - start), start)):
            start += len(chunk)
            yield chunk


class Stream:
    """Chunks of data, read in pieces of any size."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._chunk = b""
        self._offset = 0

    def read_some(self, max_bytes: int) -> bytes:
        """Return between one and `max_bytes` bytes; none only at the end."""
        if self._offset == len(self._chunk):
            self._chunk, self._offset = next(self._chunks, b""), 0
        piece = self._chunk[self._offset : self._offset + max_bytes]
        self._offset += len(piece)
        return piece

    def read(self, size: int) -> bytes:
        """Return this many bytes; fewer only at the end. They are kept in memory, so the caller bounds `size`."""
        data = bytearray()
        while len(data) < size and (piece := self.read_some(size - len(data))):
            data += piece
        return bytes(data)

    def pieces(self, size: int) -> Iterator[bytes]:
        """Return this many bytes in pieces. Raises `InvalidBundle` if the data ends before."""
        while size:
            if not (piece := self.read_some(size)):
                raise damaged("The archive ends in the middle of a file: a part is missing.")
            size -= len(piece)
            yield piece
