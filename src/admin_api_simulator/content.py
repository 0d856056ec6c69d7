"""The bytes of a response, in memory or in a file, read in pieces: a large bundle is never copied as a whole."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

PIECE_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class FilePart:
    """The bytes from `start` to before `end` of a file, which must not change while it is served."""

    path: Path
    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start


Content = bytes | memoryview | FilePart


def whole_file(path: Path) -> FilePart:
    """Return the content of a file. Raises OSError if it does not exist."""
    return FilePart(path=path, start=0, end=path.stat().st_size)


def part_of(content: Content, start: int, end: int) -> Content:
    """Return the bytes from `start` to before `end`, neither of them negative, without copying."""
    if isinstance(content, FilePart):
        size = len(content)
        return replace(content, start=content.start + min(start, size), end=content.start + min(max(start, end), size))
    return memoryview(content)[start:end]


def pieces(content: Content, *, piece_bytes: int = PIECE_BYTES) -> Iterator[bytes | memoryview]:
    """Yield the bytes in pieces. Raises OSError if the file cannot be read."""
    if isinstance(content, FilePart):
        yield from _file_pieces(content, piece_bytes)
        return
    for position in range(0, len(content), piece_bytes):
        yield memoryview(content)[position : position + piece_bytes]


def as_bytes(content: Content) -> bytes:
    """Return all bytes."""
    return content if isinstance(content, bytes) else b"".join(pieces(content))


def _file_pieces(part: FilePart, piece_bytes: int) -> Iterator[bytes]:
    with part.path.open("rb") as file:
        file.seek(part.start)
        for position in range(part.start, part.end, piece_bytes):
            yield file.read(min(piece_bytes, part.end - position))
