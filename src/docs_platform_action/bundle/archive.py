"""Archives: what kind one is, by its first bytes, and its entries one after another."""

import bz2
import errno
import gzip
import io
import lzma
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any, BinaryIO, Final, Self, cast

from ..text import quoted
from .faults import damaged, not_an_archive, too_large, unsafe

MAX_ENTRIES: Final = 250_000  # with the folders that only names imply; large documentation sites have some 50,000 pages
MAX_UNPACKED_BYTES: Final = (
    20 * 1024**3
)  # runners' disks have at least 14 GiB (GitHub docs, "GitHub-hosted runners reference")
MAX_STREAM_BYTES: Final = (
    MAX_UNPACKED_BYTES + MAX_ENTRIES * 4096
)  # of a tar archive, with the headers and the padding

START_BYTES: Final = tarfile.BLOCKSIZE  # that show what kind of archive a file is
CHUNK_BYTES: Final = (
    1024**2
)  # large, because passing a chunk to another thread takes longer than decompressing 100 KiB
MAX_HEADER_BYTES: Final = (
    1024**2
)  # of a tar archive between two entries: tarfile reads extended headers into memory
XZ_MEMORY_BYTES: Final = 128 * 1024**2  # `xz -9` needs 65 MiB

ZIP_MAGICS: Final = (
    b"PK\x03\x04",
    b"PK\x05\x06",
)  # the first bytes of an archive, and of one without entries
_GZIP, _BZIP2, _XZ = b"\x1f\x8b\x08", b"BZh", b"\xfd7zXZ\x00"
_ARCHIVES: Final = {
    _GZIP: "gzip data",
    _BZIP2: "bzip2 data",
    _XZ: "xz data",
    **dict.fromkeys(ZIP_MAGICS, "a zip archive"),
    b"\x1f\x9d": "compress(1) data",
    b"\x5d\x00\x00": "LZMA data",
    b"\x28\xb5\x2f\xfd": "Zstandard data",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!\x1a\x07": "a rar archive",
    b"PK\x07\x08": "one part of a split zip archive",
}
_TEXTS: Final = {
    **dict.fromkeys((b"<!doctype html", b"<html", b"<!--", b"<script"), "a web page"),
    **dict.fromkeys((b"<?xml", b"<error"), "XML, as a storage writes its errors"),
    **dict.fromkeys((b"{", b"["), "JSON"),
}

_DAMAGE: Final = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(EOFError, ValueError, OverflowError, NotImplementedError, RecursionError),
)
"""What the standard library raises for a damaged archive; gzip and bz2 also an `OSError` without a number."""
_EndOfTar: Final[Any] = cast(
    "Any", tarfile
).EOFHeaderError  # missing in the type stubs, like two names below

_UTF_8, _ENCRYPTED = (
    1 << 11,
    1 << 0 | 1 << 6 | 1 << 13,
)  # flags (PKWARE's APPNOTE.TXT 6.3.10, section 4.4.4)
_UNIX, _DOS_FOLDER = 3, 0x10  # a system, and an attribute of others (sections 4.4.2 and 4.4.15)

FILE, FOLDER, SYMBOLIC_LINK, HARD_LINK = "a file", "a folder", "a symbolic link", "a hard link"
Chunk = bytes | memoryview


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One entry, as the archive declares it. Read `content` before the next entry, or not at all."""

    name: str
    type: str
    target: str = ""  # of a link
    content: Iterable[Chunk] = ()


def check_entries(count: int) -> None:
    """Raise `InvalidBundle` if an archive has more than `MAX_ENTRIES`."""
    if count > MAX_ENTRIES:
        raise too_large(f"The archive holds more than {MAX_ENTRIES:,} files and folders.")


def is_archive(start: bytes) -> bool:
    """Return whether a file with at least these first `START_BYTES` is an archive, even of an unsupported kind."""
    return _begins_tar(start) or start.startswith(tuple(_ARCHIVES))


def describe_content(start: bytes) -> str:
    """Return what data with these first bytes looks like, as the end of a sentence."""
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    names = [name for magic, name in _ARCHIVES.items() if start.startswith(magic)]
    names += [name for beginning, name in _TEXTS.items() if text.startswith(beginning)]
    return (
        f"looks like {names[0]}"
        if names
        else f"begins with the bytes {start[:8].hex(' ')}"
        if start
        else "is empty"
    )


@contextmanager
def _damage_explained() -> Iterator[None]:
    """Raise `InvalidBundle` for what the standard library raises about a damaged archive."""
    try:
        yield
    except Exception as error:
        if isinstance(error, _DAMAGE) or (
            isinstance(error, OSError) and error.errno in {None, errno.EINVAL}
        ):
            failure = unsafe if "Memory usage limit" in str(error) else damaged  # of xz data
            raise failure(
                f"It cannot be read: {str(error)[:200].rstrip('.') or type(error).__name__}."
            ) from error
        raise


def decompressed(stream: io.RawIOBase, start: bytes) -> Iterator[bytes]:
    """Yield a tar archive that begins with `start`, decompressed, in chunks of at most `CHUNK_BYTES`. Raises `InvalidBundle`."""
    file, count = cast("BinaryIO", stream), 0
    with _damage_explained():
        if start.startswith(_GZIP):
            file = cast("BinaryIO", gzip.GzipFile(fileobj=file, mode="rb"))
        elif start.startswith(_BZIP2) and not _begins_tar(
            start
        ):  # the first name in a tar archive may begin with `BZh`
            file = cast("BinaryIO", bz2.BZ2File(file))
        elif not start.startswith(_XZ) and not _begins_tar(start):
            raise not_an_archive(f"It {describe_content(start)}.")
        for chunk in (
            _unxz(file) if start.startswith(_XZ) else iter(lambda: file.read(CHUNK_BYTES), b"")
        ):
            count += len(chunk)
            if count > MAX_STREAM_BYTES:
                raise too_large(
                    "The archive decompresses to more bytes than the largest site that is unpacked."
                )
            yield chunk


def _unxz(file: BinaryIO) -> Iterator[bytes]:
    """Decompress one or more xz streams, with zeros between them. `lzma.LZMAFile` has no limit on its memory."""
    data = file.read(CHUNK_BYTES)
    while data:
        decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, XZ_MEMORY_BYTES)
        while not decoder.eof:
            if decoder.needs_input and not (data := data or file.read(CHUNK_BYTES)):
                raise EOFError("the xz data ends too early")
            if chunk := decoder.decompress(data, CHUNK_BYTES):
                yield chunk
            data = b""
        data = decoder.unused_data.lstrip(b"\0")
        while not data and (more := file.read(CHUNK_BYTES)):
            data = more.lstrip(b"\0")


class TarSource(io.RawIOBase):
    """Chunks of a tar archive as a file to read once, as `tarfile` does. No read goes beyond `end`, if it is set."""

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
        piece, self._rest = self._rest[:size], self._rest[size:]
        self._position += len(piece)
        return piece

    def peek(self, size: int) -> bytes:
        """Return the first bytes, which are read again later."""
        start = self.read(size)
        self._rest, self._position = memoryview(start + self._rest), 0
        return start

    def read(self, size: int = -1) -> bytes:
        """Return `size` bytes, fewer only at the end. `tarfile` never reads all at once."""
        if self.end is not None and self._position + size > self.end:
            raise unsafe(
                f"The extended headers of an entry have more than {MAX_HEADER_BYTES // 1024**2} MiB."
            )
        data = bytes(self.read_some(size))
        while len(data) < size and (more := self.read_some(size - len(data))):
            data += more
        self.header = data if size == tarfile.BLOCKSIZE else self.header
        return data

    def tell(self) -> int:
        """Return how much is read."""
        return self._position

    def seek(self, position: int, _whence: int = os.SEEK_SET) -> int:
        """Read up to a position, and return where that ends."""
        while self._position < position and self.read_some(position - self._position):
            pass
        return self._position


class _TarInfo(tarfile.TarInfo):
    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> Self:
        """Raise `ReadError` for a damaged header, which `tarfile` takes for the end of the archive."""
        try:
            return super().fromtarfile(archive)
        except _EndOfTar:
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(
                f"an entry's header is damaged, or the end marker is missing ({error})"
            ) from error


def tar_entries(source: TarSource) -> Generator[Entry]:
    """Yield the entries of a tar archive, which is read to its end. Raises `InvalidBundle`, and what the chunks raise."""
    if not _begins_tar(start := source.peek(START_BYTES)):
        raise not_an_archive(f"After decompression, it {describe_content(start)}.")
    source.end = MAX_HEADER_BYTES  # `TarFile` reads the first header at once
    with (
        _damage_explained(),
        tarfile.TarFile(fileobj=source, tarinfo=_TarInfo, encoding="utf-8") as archive,
    ):
        while (member := archive.next()) is not None:
            source.end = None
            for kept in (
                cast("Any", archive).members,
                cast("Any", archive).pax_headers,
            ):  # all of them, and of global headers
                kept.clear()
            if member.size < 0:
                raise damaged(f"Entry {quoted(member.name)} has a negative size.")
            times = source.header[345:500].partition(b"\0")[0].decode("latin-1")
            if (
                times and source.header[257:265] == tarfile.GNU_MAGIC
            ):  # where POSIX has a prefix (source: GNU tar's manual)
                member.name = member.name.removeprefix(f"{times}/")
            yield _tar_entry(archive, member, source)
            source.end = archive.offset + MAX_HEADER_BYTES
        source.end = None
        while rest := source.read_some(
            CHUNK_BYTES
        ):  # to the end of the compressed data, where its checksum is
            if bytes(rest).strip(b"\0"):
                raise damaged("Other data follows the tar archive's end marker.")


def _tar_entry(archive: tarfile.TarFile, member: tarfile.TarInfo, source: TarSource) -> Entry:
    if member.isdir() or (
        member.isreg() and member.name.endswith("/")
    ):  # as writers before POSIX marked folders
        return Entry(name=member.name, type=FOLDER)
    if member.type == b"V":  # the name of the archive itself (GNU tar's `--label`)
        return Entry(name="/", type=FOLDER)
    if member.isreg() and member.issparse():
        content = cast("IO[bytes]", archive.extractfile(member))
        return Entry(name=member.name, type=FILE, content=_content(content.read, member.size))
    if member.isreg():
        source.seek(member.offset_data)
        return Entry(name=member.name, type=FILE, content=_content(source.read_some, member.size))
    if member.issym() or member.islnk():
        return Entry(
            name=member.name,
            type=SYMBOLIC_LINK if member.issym() else HARD_LINK,
            target=member.linkname,
        )
    raise unsafe(f"Entry {quoted(member.name)} is not a file, folder or link.")


def _begins_tar(start: bytes) -> bool:
    try:
        tarfile.TarInfo.frombuf(start[:START_BYTES], "utf-8", "surrogateescape")
    except tarfile.HeaderError as error:
        return isinstance(error, _EndOfTar)  # zeros: a tar archive without entries
    return True


def zip_entries(file: BinaryIO) -> Generator[Entry]:
    """Yield the entries of a zip archive, in the order of its directory. Raises `InvalidBundle` and `OSError`."""
    with _damage_explained(), zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            name, mode = _name(info), info.external_attr >> 16 if info.create_system == _UNIX else 0
            if info.flag_bits & _ENCRYPTED:
                raise unsafe(f"Entry {quoted(name)} is encrypted.")
            if info.compress_type not in {
                zipfile.ZIP_STORED,
                zipfile.ZIP_DEFLATED,
            }:  # zipfile needs any memory for the others
                method = cast("Any", zipfile).compressor_names.get(
                    info.compress_type, f"method {info.compress_type}"
                )
                raise unsafe(
                    f"Entry {quoted(name)} is compressed with {method}. In zip, only deflate is supported."
                )
            if stat.S_IFMT(mode) not in {0, stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK}:
                raise unsafe(f"Entry {quoted(name)} is not a file, folder or link.")
            is_dos_folder = info.create_system != _UNIX and info.external_attr & _DOS_FOLDER
            if name.endswith("/") or stat.S_ISDIR(mode) or is_dos_folder:
                yield Entry(name=name, type=FOLDER)
                continue
            with archive.open(info) as content:
                if stat.S_ISLNK(mode):
                    yield Entry(
                        name=name, type=SYMBOLIC_LINK, target=content.read(CHUNK_BYTES).decode()
                    )
                else:
                    content.read(
                        0 if info.file_size else 1
                    )  # compares the checksum of an empty file, too
                    yield Entry(
                        name=name, type=FILE, content=_content(content.read, info.file_size)
                    )


def _name(info: zipfile.ZipInfo) -> str:
    """Return an entry's name: in UTF-8, also if only its Unicode field says so or nothing does, else in CP437."""
    name, extra = info.orig_filename, info.extra if b"up" in info.extra else b""
    if info.flag_bits & _UTF_8:
        return name
    stored = name.encode("cp437")
    while len(extra) >= 4:
        field, length = struct.unpack("<2H", extra[:4])
        data, extra = extra[4 : 4 + length], extra[4 + length :]
        if field == 0x7075 and data[:5] == b"\x01" + zlib.crc32(stored).to_bytes(
            4, "little"
        ):  # section 4.6.9
            return data[5:].decode()
    with suppress(UnicodeDecodeError):
        return stored.decode()
    return name


def _content(read: Callable[[int], Chunk], size: int) -> Iterator[Chunk]:
    while size > 0:
        with _damage_explained():
            chunk = read(min(CHUNK_BYTES, size))
        if not chunk:
            raise damaged("The archive ends in the middle of a file.")
        size -= len(chunk)
        yield chunk
