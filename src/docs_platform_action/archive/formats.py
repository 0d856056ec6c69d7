"""Detection of an archive's kind, by its content and never by its name, and the entries in it."""

from collections.abc import Generator, Iterator
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from ..clock import Cancellation
from ..errors import InvalidBundle
from .codecs import BZIP2, GZIP, XZ, Codec, decompressed
from .entries import Entry
from .limits import Quota
from .reading import ArchiveFile, Stream
from .tar import BLOCK_BYTES, begins_tar, is_header, tar_entries
from .zip import BEGINNINGS, zip_entries

_ARCHIVE_LOOKS: Final = (
    (b"\x1f\x8b", "gzip data"),
    (b"\x1f\x9d", "data of compress(1)"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"\x5d\x00\x00", "LZMA data"),
    (b"\x28\xb5\x2f\xfd", "Zstandard data"),
    (b"\x50\x2a\x4d\x18", "Zstandard data"),  # with a skippable frame first, as pzstd writes it
    (b"PK\x07\x08", "one part of a split zip archive"),
    (b"PK00PK\x03\x04", "a zip archive that was written to be split"),
    (b"PK\x03\x04", "a zip archive"),
    (b"PK\x05\x06", "a zip archive without entries"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a rar archive"),
    (b"LZIP", "lzip data"),
    (b"\x04\x22\x4d\x18", "LZ4 data"),
)
"""How archives begin, also those that cannot be opened. A tar archive is recognized by its checksum."""

_OTHER_LOOKS: Final = (
    ((b"%pdf-",), "a PDF document"),
    ((b"<!doctype html", b"<html", b"<!--", b"<script"), "a web page"),
    ((b"<?xml", b"<error"), "XML, as a storage writes its errors"),
    ((b"{", b"["), "JSON"),
)

START_BYTES: Final = BLOCK_BYTES
"""How many bytes of a file's beginning are needed to detect its kind."""


def is_archive(start: bytes) -> bool:
    """Return whether a file with these first `START_BYTES` is an archive of any kind, even one that cannot be opened."""
    return is_header(start[:BLOCK_BYTES]) or any(start.startswith(magic) for magic, _ in _ARCHIVE_LOOKS)


def is_read_in_order(start: bytes) -> bool:
    """Return whether a file with this beginning is an archive without a directory at its end, such as zip archives have."""
    return is_archive(start) and not start.startswith(BEGINNINGS)


def archive_entries(archive: ArchiveFile, meter: Quota, *, scratch: Path) -> Generator[Entry]:
    """Return the entries of an archive, whatever its kind. Close the generator in the end: it may hold an open file.

    One gzip layer around a zip or a compressed tar is unpacked too: a storage adds it to objects that it keeps with
    `Content-Encoding: gzip`. A zip archive in gzip data is first written to an unnamed file in the folder `scratch`. Raises
    `InvalidBundle` for everything that is wrong with the archive, also beyond the bounds of `meter`, `Cancelled`, and `OSError`.
    """
    start = archive.read(BLOCK_BYTES, 0)
    data = archive.blocks(0, archive.size)
    if begins_tar(start):
        return tar_entries(Stream(data))
    if start.startswith(BEGINNINGS):
        return zip_entries(archive, meter)
    codec = _codec(start)
    if codec is None:
        raise _unknown("It", start)
    what = f"the {codec.name} data"
    start, data = _peeked(_bounded(decompressed(codec, data), archive.cancellation, meter))
    if codec is GZIP and start.startswith(BEGINNINGS) and not begins_tar(start):
        return _zip_entries_of_stream(data, archive.cancellation, meter, scratch)
    if codec is GZIP and (codec := _codec(start)) and not begins_tar(start):
        what = f"the {codec.name} data inside {what}"
        start, data = _peeked(_bounded(decompressed(codec, data), archive.cancellation, meter))
    if not begins_tar(start):
        raise _unknown(f"What {what} holds", start)
    return tar_entries(Stream(data))


def _codec(start: bytes) -> Codec | None:
    return next((codec for codec in (GZIP, BZIP2, XZ) if start.startswith(codec.magic)), None)


def _bounded(chunks: Iterator[bytes], cancellation: Cancellation, meter: Quota) -> Iterator[bytes]:
    count = 0
    for chunk in chunks:
        cancellation.check()
        count += len(chunk)
        meter.check_stream_bytes(count)
        yield chunk


def _peeked(chunks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the first block of a stream, shorter only if the stream is, and the whole stream."""
    start = b""
    while len(start) < BLOCK_BYTES and (chunk := next(chunks, b"")):
        start += chunk
    return start[:BLOCK_BYTES], chain([start], chunks)


def _zip_entries_of_stream(chunks: Iterator[bytes], cancellation: Cancellation, meter: Quota, scratch: Path) -> Generator[Entry]:
    with TemporaryFile(dir=scratch) as file:
        for chunk in chunks:
            meter.add_scratch_bytes(len(chunk))
            file.write(chunk)
        file.flush()
        yield from zip_entries(ArchiveFile(file.fileno(), file.tell(), cancellation), meter)


def _unknown(what: str, start: bytes) -> InvalidBundle:
    return InvalidBundle(
        "the bundle is not an archive that can be opened",
        details=(
            f"{what} {describe_content(start)}.",
            (
                "Supported are tar, plain or compressed with gzip, bzip2 or xz, and zip, whatever the file's name, each "
                "with at most one more gzip layer around it."
            ),
        ),
        cause="The link led to something other than the bundle, or the platform packs its bundles in a different way.",
    )


def describe_content(start: bytes) -> str:
    """Return what a file with this beginning looks like, as the end of a sentence."""
    if not start:
        return "is empty"
    for magic, look in _ARCHIVE_LOOKS:
        if start.startswith(magic):
            return f"looks like {look}"
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    for beginnings, look in _OTHER_LOOKS:
        if text.startswith(beginnings):
            return f"looks like {look}"
    return f"begins with the bytes {start[:8].hex(' ')}"
