"""What archives of every kind share: their first bytes, their limits, and what an entry is."""

import errno
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from .faults import damaged, too_large, unsafe

# With the folders that only names imply. Large documentation sites have some 50,000 pages.
MAX_ENTRIES: Final = 250_000
# Runners' disks have at least 14 GiB (GitHub docs, "GitHub-hosted runners reference").
MAX_UNPACKED_BYTES: Final = 20 * 1024**3

START_BYTES: Final = tarfile.BLOCKSIZE  # that show what kind of archive a file is
# Large, because passing a chunk to another thread takes longer than decompressing 100 KiB.
CHUNK_BYTES: Final = 1024**2

GZIP_MAGIC: Final = b"\x1f\x8b\x08"
BZIP2_MAGIC: Final = b"BZh"
XZ_MAGIC: Final = b"\xfd7zXZ\x00"
_ZIP_MAGIC: Final = b"PK\x03\x04"
_EMPTY_ZIP_MAGIC: Final = b"PK\x05\x06"  # of a zip archive without entries
ZIP_MAGICS: Final = (_ZIP_MAGIC, _EMPTY_ZIP_MAGIC)

# What may follow an archive: tar and xz pad with zeros, and scripts add a line break.
PADDING: Final = b"\0 \t\n\r\v\f"

_ARCHIVES: Final = {
    GZIP_MAGIC: "gzip data",
    BZIP2_MAGIC: "bzip2 data",
    XZ_MAGIC: "xz data",
    _ZIP_MAGIC: "a zip archive",
    _EMPTY_ZIP_MAGIC: "a zip archive",
    b"\x1f\x9d": "compress(1) data",
    b"\x5d\x00\x00": "LZMA data",
    b"\x28\xb5\x2f\xfd": "Zstandard data",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!\x1a\x07": "a rar archive",
    b"PK\x07\x08": "one part of a split zip archive",
}
_TEXTS: Final = {
    b"<!doctype html": "a web page",
    b"<html": "a web page",
    b"<!--": "a web page",
    b"<script": "a web page",
    b"<?xml": "XML, as a storage writes its errors",
    b"<error": "XML, as a storage writes its errors",
    b"{": "JSON",
    b"[": "JSON",
}
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

_DAMAGE: Final = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    ValueError,
    OverflowError,
    NotImplementedError,
    RecursionError,
)
"""What the standard library raises for a damaged archive, beside some kinds of `OSError`."""

FILE: Final = "a file"
FOLDER: Final = "a folder"
SYMBOLIC_LINK: Final = "a symbolic link"
HARD_LINK: Final = "a hard link"

Chunk = bytes | memoryview


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One entry, as the archive declares it.

    Read `content` before the next entry, or not at all.
    """

    name: str
    type: str
    target: str = ""  # of a link
    content: Iterable[Chunk] = ()


def check_entries(count: int) -> None:
    """Raise `InvalidBundle` if an archive has more than `MAX_ENTRIES`."""
    if count > MAX_ENTRIES:
        raise too_large(f"The archive holds more than {MAX_ENTRIES:,} files and folders.")


def is_archive(start: bytes) -> bool:
    """Return whether a file is an archive, even of an unsupported kind.

    `start` has at least the file's first `START_BYTES`.
    """
    return begins_tar(start) or start.startswith(tuple(_ARCHIVES))


def begins_tar(start: bytes) -> bool:
    """Return whether a file with at least these first `START_BYTES` is a tar archive."""
    block = start[:START_BYTES]
    if block == bytes(START_BYTES):  # the end marker, in a tar archive without entries
        return True
    try:
        tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def describe_content(start: bytes) -> str:
    """Return what data with these first bytes looks like, as the end of a sentence."""
    if not start:
        return "is empty"
    kind = kind_of(start)
    if kind is not None:
        return f"looks like {kind}"
    return f"begins with the bytes {start[:8].hex(' ')}"


def kind_of(start: bytes) -> str | None:
    """Return what kind of data begins with these bytes, as far as it is known."""
    for magic, kind in _ARCHIVES.items():
        if start.startswith(magic):
            return kind
    if begins_tar(start):
        return "a tar archive"
    text = start.removeprefix(_BYTE_ORDER_MARK).lstrip().lower()
    for beginning, kind in _TEXTS.items():
        if text.startswith(beginning):
            return kind
    return None


@contextmanager
def damage_explained() -> Iterator[None]:
    """Raise `InvalidBundle` for what the standard library raises about a damaged archive."""
    try:
        yield
    except Exception as error:
        if not _is_damage(error):
            raise
        reason = str(error)[:200].rstrip(".") or type(error).__name__
        fact = f"It cannot be read: {reason}."
        if "Memory usage limit" in str(error):  # of xz data
            raise unsafe(fact) from error
        raise damaged(fact) from error


def _is_damage(error: Exception) -> bool:
    if isinstance(error, _DAMAGE):
        return True
    # bz2 gives no number. Reading a zip archive may seek to a negative position: `EINVAL`.
    return isinstance(error, OSError) and error.errno in {None, errno.EINVAL}


def chunks_of(file: io.RawIOBase | io.BufferedIOBase) -> Iterator[bytes]:
    """Yield the rest of a file in chunks of at most `CHUNK_BYTES`."""
    while chunk := file.read(CHUNK_BYTES):
        yield chunk


def content_chunks(read: Callable[[int], Chunk], size: int) -> Iterator[Chunk]:
    """Yield an entry's content, which has `size` bytes. Raises `InvalidBundle` if there are fewer.

    `read` returns no more bytes than it is asked for.
    """
    remaining = size
    while remaining > 0:
        with damage_explained():
            chunk = read(min(CHUNK_BYTES, remaining))
        if not chunk:
            raise damaged("The archive ends in the middle of a file.")
        remaining -= len(chunk)
        yield chunk
