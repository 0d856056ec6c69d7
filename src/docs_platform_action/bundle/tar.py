"""The entries of a tar archive, one after another, while its bytes arrive."""

import io
import os
import tarfile
from collections.abc import Generator, Iterator
from typing import IO, Any, Final, Self, cast

from ..text import quoted
from .archive import (
    CHUNK_BYTES,
    FILE,
    FOLDER,
    HARD_LINK,
    PADDING,
    START_BYTES,
    SYMBOLIC_LINK,
    Chunk,
    Entry,
    begins_tar,
    content_chunks,
    damage_explained,
    describe_content,
    is_archive,
)
from .faults import archive_in_archive, damaged, not_an_archive, unsafe

# Between two entries: `tarfile` reads extended headers into memory.
MAX_HEADER_BYTES: Final = 1024**2

_EndOfTar: Final[Any] = cast("Any", tarfile).EOFHeaderError  # missing in the type stubs

# Fields of a header. GNU tar's older format has times where POSIX has a prefix of the name
# (source: GNU tar's manual, "Basic Tar Format").
_MAGIC_FIELD: Final = slice(257, 265)
_PREFIX_FIELD: Final = slice(345, 500)

_LABEL_TYPE: Final = b"V"  # of the name of the archive itself (GNU tar's `--label`)


class TarSource(io.RawIOBase):
    """Chunks of a tar archive as a file to read once, as `tarfile` does.

    No read goes beyond `end`, if it is set.
    """

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")
        self._position = 0
        self.end: int | None = None
        self.header = b""  # the last block that was read alone

    def read_some(self, size: int) -> memoryview:
        """Return between one and `size` bytes; none only at the end."""
        if not self._rest:
            self._rest = memoryview(next(self._chunks, b""))
        piece = self._rest[:size]
        self._rest = self._rest[size:]
        self._position += len(piece)
        return piece

    def peek(self, size: int) -> bytes:
        """Return the first bytes, which are read again later."""
        start = self.read(size)
        self._rest = memoryview(start + self._rest)
        self._position = 0
        return start

    def read(self, size: int = -1) -> bytes:
        """Return `size` bytes, fewer only at the end. `tarfile` never reads all at once."""
        if self.end is not None and self._position + size > self.end:
            limit = f"{MAX_HEADER_BYTES // 1024**2} MiB"
            raise unsafe(f"The extended headers of an entry have more than {limit}.")
        data = bytes(self.read_some(size))
        while len(data) < size:
            more = self.read_some(size - len(data))
            if not more:
                break
            data += more
        if size == tarfile.BLOCKSIZE:
            self.header = data
        return data

    def tell(self) -> int:
        """Return how much is read."""
        return self._position

    def seek(self, position: int, _whence: int = os.SEEK_SET) -> int:
        """Read up to a position, and return where that ends."""
        while self._position < position:
            if not self.read_some(position - self._position):
                break
        return self._position


class _TarInfo(tarfile.TarInfo):
    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> Self:
        """Raise `ReadError` for a damaged header, which `tarfile` takes for the archive's end."""
        try:
            return super().fromtarfile(archive)
        except _EndOfTar:
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(
                f"an entry's header is damaged, or the end marker is missing ({error})"
            ) from error


def tar_entries(source: TarSource) -> Generator[Entry]:
    """Yield the entries of a tar archive, which is read to its end.

    Raises `InvalidBundle`, and what the chunks raise.
    """
    start = source.peek(START_BYTES)
    if not begins_tar(start):
        fact = f"After decompression, it {describe_content(start)}."
        raise archive_in_archive(fact) if is_archive(start) else not_an_archive(fact)
    source.end = MAX_HEADER_BYTES  # `TarFile` reads the first header at once
    with (
        damage_explained(),
        tarfile.TarFile(fileobj=source, tarinfo=_TarInfo, encoding="utf-8") as archive,
    ):
        while (member := archive.next()) is not None:
            source.end = None
            _forget_headers(archive)
            if member.size < 0:
                raise damaged(f"Entry {quoted(member.name)} has a negative size.")
            member.name = _name_without_times(member.name, source.header)
            yield _entry(archive, member, source)
            source.end = archive.offset + MAX_HEADER_BYTES
        source.end = None
        _check_rest(source)


def _forget_headers(archive: tarfile.TarFile) -> None:
    """Free the memory of all entries so far, and of global headers."""
    cast("Any", archive).members.clear()  # missing in the type stubs
    archive.pax_headers = {}


def _name_without_times(name: str, header: bytes) -> str:
    """Return an entry's name without the times that `tarfile` takes for its prefix."""
    if header[_MAGIC_FIELD] != tarfile.GNU_MAGIC:
        return name
    times = header[_PREFIX_FIELD].partition(b"\0")[0].decode("latin-1")
    if not times:
        return name
    return name.removeprefix(f"{times}/")


def _entry(archive: tarfile.TarFile, member: tarfile.TarInfo, source: TarSource) -> Entry:
    if member.type == _LABEL_TYPE:
        return Entry(name="/", type=FOLDER)
    if member.isdir():
        return Entry(name=member.name, type=FOLDER)
    if member.issym():
        return Entry(name=member.name, type=SYMBOLIC_LINK, target=member.linkname)
    if member.islnk():
        return Entry(name=member.name, type=HARD_LINK, target=member.linkname)
    if not member.isreg():
        raise unsafe(f"Entry {quoted(member.name)} is not a file, folder or link.")
    if member.name.endswith("/"):  # as writers before POSIX marked folders
        return Entry(name=member.name, type=FOLDER)
    return Entry(name=member.name, type=FILE, content=_content(archive, member, source))


def _content(
    archive: tarfile.TarFile, member: tarfile.TarInfo, source: TarSource
) -> Iterator[Chunk]:
    if member.issparse():
        file = cast("IO[bytes]", archive.extractfile(member))  # `None` is for other types alone
        return content_chunks(file.read, member.size)
    source.seek(member.offset_data)
    return content_chunks(source.read_some, member.size)


def _check_rest(source: TarSource) -> None:
    """Read to the end of the compressed data, where its checksum is.

    Raises `InvalidBundle` if there is anything but padding.
    """
    while rest := source.read_some(CHUNK_BYTES):
        if bytes(rest).strip(PADDING):
            raise damaged("Other data follows the tar archive's end marker.")
