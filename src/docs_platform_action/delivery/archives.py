"""An archive's kind, told by its content and never by its name, and the entries in it."""

from collections.abc import Callable, Iterator
from os import pread
from typing import Final

from ..errors import InvalidBundle
from .entries import Entry
from .streams import BZIP2, COMPRESSED_CHUNK_BYTES, GZIP, XZ, ReadAt, Stream, blocks, decompressed, read_at
from .tar import BLOCK_BYTES, begins_tar, tar_entries
from .zip import BEGINNINGS, zip_entries

_CODECS: Final = (GZIP, BZIP2, XZ)

_LOOKS: Final = (
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"\x28\xb5\x2f\xfd", "Zstandard data"),
    (b"PK\x07\x08", "one part of a divided zip archive"),
    (b"PK\x03\x04", "a zip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a rar archive"),
    (b"LZIP", "lzip data"),
    (b"\x04\x22\x4d\x18", "LZ4 data"),
    (b"%PDF-", "a PDF document"),
)
_WEB_PAGE: Final = "a web page"
_TEXT_LOOKS: Final = (
    (b"<!doctype html", _WEB_PAGE),
    (b"<html", _WEB_PAGE),
    (b"<?xml", "XML, as a storage writes its errors"),
    (b"<error", "XML, as a storage writes its errors"),
    (b"{", "JSON"),
    (b"[", "JSON"),
)


START_BYTES: Final = BLOCK_BYTES
"""How much of a file's beginning tells what it is."""


def is_archive(start: bytes) -> bool:
    """Tell whether a file that begins so is an archive of any kind, one that cannot be opened here too."""
    looks = _looks(start)
    return begins_tar(start[:BLOCK_BYTES]) or (looks.startswith("looks like") and looks.endswith(("archive", "data")))


def is_read_in_order(start: bytes) -> bool:
    """Tell whether a file that begins so is an archive without a directory at its end, which a zip archive has."""
    return is_archive(start) and not start.startswith(BEGINNINGS)


def is_web_page(start: bytes) -> bool:
    """Tell whether a file that begins so is a page for a browser."""
    return _looks(start).endswith(_WEB_PAGE)


def archive_entries(
    descriptor: int,
    size: int,
    *,
    check: Callable[[], None],
    announce_entries: Callable[[int], None],
    count_decompressed: Callable[[int], None],
    read: ReadAt = read_at,
) -> Iterator[Entry]:
    """Give the entries of an archive in a file of so many bytes, whatever its kind.

    `check` is called for each chunk of data, `announce_entries` with a number of entries that is only announced, and
    `count_decompressed` with the length of each chunk that is decompressed to find entries in it; what they raise ends it. `read`
    reads from an archive whose kind is read in order. Raises `InvalidBundle` for a file of no kind that can be read, and for all
    that is wrong with an archive.
    """
    start = pread(descriptor, BLOCK_BYTES, 0)
    if begins_tar(start):
        return tar_entries(Stream(blocks(descriptor, 0, size, check=check, read=read)))
    if start.startswith(BEGINNINGS):
        return zip_entries(descriptor, size, check=check, announce=announce_entries)
    for codec in _CODECS:
        if start.startswith(codec.magic):
            compressed = blocks(descriptor, 0, size, check=check, size=COMPRESSED_CHUNK_BYTES, read=read)
            chunks = _counted(decompressed(codec, compressed), check, count_decompressed)
            return _compressed_tar(codec.name, chunks)
    raise _unknown("It", start)


def _counted(chunks: Iterator[bytes], check: Callable[[], None], count: Callable[[int], None]) -> Iterator[bytes]:
    for chunk in chunks:
        check()
        count(len(chunk))
        yield chunk


def _compressed_tar(codec: str, chunks: Iterator[bytes]) -> Iterator[Entry]:
    start = b""
    while len(start) < BLOCK_BYTES and (chunk := next(chunks, b"")):
        start += chunk
    if not begins_tar(start[:BLOCK_BYTES]):
        raise _unknown(f"What the {codec} data holds", start)
    return tar_entries(Stream(_again(start, chunks)))


def _again(start: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield start
    yield from chunks


def _unknown(what: str, start: bytes) -> InvalidBundle:
    return InvalidBundle(
        "the bundle is no archive that can be opened",
        facts=(
            f"{what} {_looks(start)}.",
            "What can be opened is tar, alone or compressed with gzip, bzip2 or xz, and zip, whatever the file's name.",
        ),
        cause="The link led to something else than the bundle, or the platform packs its bundles in another way.",
    )


def _looks(start: bytes) -> str:
    if not start:
        return "is empty"
    for magic, look in _LOOKS:
        if start.startswith(magic):
            return f"looks like {look}"
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    for beginning, look in _TEXT_LOOKS:
        if text.startswith(beginning):
            return f"looks like {look}"
    return f"begins with the bytes {start[:8].hex(' ')}"
