"""Reading an archive: its file at any offset, and its data from the beginning to the end."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ..clock import Cancellation
from .entries import damaged

CHUNK_BYTES: Final = 64 * 1024
"""Maximum bytes that are read or decompressed at a time. Small, because each gzip member in a chunk copies what follows it."""


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

    def __init__(self, descriptor: int, size: int, run: Cancellation) -> None:
        self.size = size
        self.cancellation: Cancellation = _LinkedCancellation(run)
        self._descriptor = descriptor

    def read(self, length: int, at: int) -> bytes:
        """Return between one and `length` bytes from this offset; none at the end of the file. Raises `Cancelled`, `OSError`."""
        self.cancellation.check()
        return os.pread(self._descriptor, length, at)

    def blocks(self, start: int, end: int) -> Iterator[bytes]:
        """Return a part of the file in blocks. They end early if the file does."""
        while start < end and (block := self.read(min(CHUNK_BYTES, end - start), start)):
            start += len(block)
            yield block


@contextmanager
def open_archive(path: Path, cancellation: Cancellation) -> Iterator[ArchiveFile]:
    """Open a whole archive. Raises `OSError`."""
    with path.open("rb", buffering=0) as file:
        yield ArchiveFile(file.fileno(), os.fstat(file.fileno()).st_size, cancellation)


class Stream:
    """Chunks of data, read forward by the byte."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._chunk = b""
        self._at = 0

    def some(self, most: int) -> bytes:
        """Return between one and `most` bytes; none only at the end."""
        if self._at == len(self._chunk):
            self._chunk, self._at = next(self._chunks, b""), 0
        piece = self._chunk[self._at : self._at + most]
        self._at += len(piece)
        return piece

    def read(self, size: int) -> bytes:
        """Return this many bytes in one piece; fewer only at the end. The caller bounds `size`."""
        gathered = bytearray()
        while len(gathered) < size and (piece := self.some(size - len(gathered))):
            gathered += piece
        return bytes(gathered)

    def pieces(self, size: int) -> Iterator[bytes]:
        """Return this many bytes in pieces. Raises `InvalidBundle` if the data ends before."""
        while size:
            if not (piece := self.some(size)):
                raise damaged("The archive ends in the middle of a file: a part is missing.")
            size -= len(piece)
            yield piece
