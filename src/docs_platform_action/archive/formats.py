"""Detection of an archive's format, by its content and never by its name, and the entries in it."""

from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from ..clock import Cancellation
from ..errors import InvalidBundle
from .codecs import BZIP2, GZIP, XZ, Codec, decompressed
from .entries import Entry, unsafe
from .limits import Quota
from .reading import ArchiveFile, Stream
from .tar import BLOCK_BYTES, begins_tar, is_tar_header, tar_entries
from .zip import ZIP_MAGICS, zip_entries

_ARCHIVE_MAGICS: Final = (
    (b"\x1f\x8b", "gzip data"),
    (b"\x1f\x9d", "compress(1) data"),
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
"""The first bytes of archives, including unsupported ones. A tar archive is recognized by its checksum."""

_TEXT_BEGINNINGS: Final = (
    ((b"%pdf-",), "a PDF document"),
    ((b"<!doctype html", b"<html", b"<!--", b"<script"), "a web page"),
    ((b"<?xml", b"<error"), "XML, as a storage writes its errors"),
    ((b"{", b"["), "JSON"),
)

START_BYTES: Final = BLOCK_BYTES  # needed to recognize a format
MAX_INFLATION: Final = 10  # of compressed data in gzip data; almost 1 is usual
_SMALL_BYTES: Final = 1024 * 1024  # of compressed data that may inflate to any extent


def is_archive(start: bytes) -> bool:
    """Return whether a file with at least these first `START_BYTES` is an archive, even of an unsupported format."""
    return is_tar_header(start[:START_BYTES]) or any(start.startswith(magic) for magic, _ in _ARCHIVE_MAGICS)


def is_supported(start: bytes) -> bool:
    """Return whether a file with at least these first `START_BYTES` looks like an archive that can be opened."""
    return is_tar_header(start[:START_BYTES]) or start.startswith((GZIP.magic, BZIP2.magic, XZ.magic, *ZIP_MAGICS))


def is_streamable(start: bytes) -> bool:
    """Return whether a file with these first bytes is an archive that is read from start to end, which a zip archive is not."""
    return is_archive(start) and not start.startswith(ZIP_MAGICS)


def archive_entries(archive: ArchiveFile, quota: Quota, *, scratch: Path) -> Generator[Entry]:
    """Return the entries of an archive of any supported format. Close the generator in the end: it may hold a file and a decoder.

    One gzip layer around a zip or a compressed tar is unpacked too: a storage adds it to objects with `Content-Encoding: gzip`. A
    zip archive in gzip data is first written to an unnamed file in the folder `scratch`. Raises `InvalidBundle`, `Cancelled` and
    `OSError`.
    """
    start, data = _peek(archive.chunks(0, archive.size))
    layers: list[Codec] = []
    with ExitStack() as decoders:
        while layers in ([], [GZIP]) and not begins_tar(start):
            if start.startswith(ZIP_MAGICS):
                yield from _entries_of_zip_stream(data, archive, quota, scratch) if layers else zip_entries(archive, quota)
                return
            codec = next((codec for codec in (GZIP, BZIP2, XZ) if start.startswith(codec.magic)), None)
            if codec is None:
                break
            if layers:
                data = _not_inflated(data, archive.size)
            layers.insert(0, codec)
            if codec is XZ:
                archive.acquire_large_decoder()
                decoders.callback(archive.LARGE_DECODERS.release)
            chunks = decoders.enter_context(closing(decompressed(codec, data)))
            start, data = _peek(_limited(chunks, archive.cancellation, quota))
        if begins_tar(start):
            yield from tar_entries(Stream(data))
            return
    subject = "The content of " + " inside ".join(f"the {codec.name} data" for codec in layers) if layers else "The file"
    raise InvalidBundle(
        "the bundle is not an archive that can be opened",
        details=(
            f"{subject} {describe_content(start)}.",
            "Supported are zip, and tar without compression or with gzip, bzip2 or xz, each with at most one more gzip layer.",
        ),
        cause="The link led to something other than the bundle, or the platform now packs its bundles in another format.",
    )


def _limited(chunks: Iterator[bytes], cancellation: Cancellation, quota: Quota) -> Iterator[bytes]:
    count = 0
    for chunk in chunks:
        cancellation.check()
        count += len(chunk)
        quota.check_stream_bytes(count)
        yield chunk


def _not_inflated(chunks: Iterator[bytes], archive_size: int) -> Iterator[bytes]:
    """Check that compressed data does not compress much more: empty blocks do, each takes time, and they unpack to nothing."""
    count = 0
    for chunk in chunks:
        count += len(chunk)
        if count > MAX_INFLATION * archive_size + _SMALL_BYTES:
            raise unsafe(f"The gzip data holds compressed data of more than {MAX_INFLATION} times its size.")
        yield chunk


def _peek(chunks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the first `START_BYTES` of a stream, fewer only if it is shorter, and the whole stream."""
    start = b""
    while len(start) < START_BYTES and (chunk := next(chunks, b"")):
        start += chunk
    return start[:START_BYTES], chain([start], chunks)


def _entries_of_zip_stream(chunks: Iterator[bytes], archive: ArchiveFile, quota: Quota, scratch: Path) -> Generator[Entry]:
    with TemporaryFile(dir=scratch) as file:
        for chunk in chunks:
            quota.add_space(len(chunk))
            file.write(chunk)
        file.flush()
        yield from zip_entries(ArchiveFile(file.fileno(), file.tell(), archive.cancellation), quota)


def describe_content(start: bytes) -> str:
    """Return what data with these first bytes looks like, as the end of a sentence."""
    if not start:
        return "is empty"
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    names = [name for magic, name in _ARCHIVE_MAGICS if start.startswith(magic)]
    names += [name for beginnings, name in _TEXT_BEGINNINGS if text.startswith(beginnings)]
    return f"looks like {names[0]}" if names else f"begins with the bytes {start[:8].hex(' ')}"
