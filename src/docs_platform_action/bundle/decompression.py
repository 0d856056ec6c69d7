"""A tar archive's bytes, decompressed while they arrive."""

import bz2
import gzip
import io
import lzma
from collections.abc import Iterator
from typing import Final

from .archive import (
    BZIP2_MAGIC,
    CHUNK_BYTES,
    GZIP_MAGIC,
    MAX_ENTRIES,
    MAX_UNPACKED_BYTES,
    XZ_MAGIC,
    begins_tar,
    chunks_of,
    damage_explained,
    describe_content,
)
from .faults import not_an_archive, too_large

# Of a tar archive, with its headers and its padding.
MAX_STREAM_BYTES: Final = MAX_UNPACKED_BYTES + MAX_ENTRIES * 4096
XZ_MEMORY_BYTES: Final = 128 * 1024**2  # `xz -9` needs 65 MiB


def decompressed(stream: io.RawIOBase, start: bytes) -> Iterator[bytes]:
    """Yield a tar archive that begins with `start`, decompressed.

    Each chunk has at most `CHUNK_BYTES`. Raises `InvalidBundle`.
    """
    size = 0
    with damage_explained():
        for chunk in _decompressed_chunks(stream, start):
            size += len(chunk)
            if size > MAX_STREAM_BYTES:
                raise too_large(
                    "The archive decompresses to more bytes than the largest site that is unpacked."
                )
            yield chunk


def _decompressed_chunks(stream: io.RawIOBase, start: bytes) -> Iterator[bytes]:
    if start.startswith(GZIP_MAGIC):
        return chunks_of(gzip.GzipFile(fileobj=stream, mode="rb"))
    if start.startswith(XZ_MAGIC):
        return _xz_decompressed(stream)
    if begins_tar(start):  # before bzip2: the first name in a tar archive may begin with `BZh`
        return chunks_of(stream)
    if start.startswith(BZIP2_MAGIC):
        return chunks_of(bz2.BZ2File(stream))
    raise not_an_archive(f"It {describe_content(start)}.")


def _xz_decompressed(stream: io.RawIOBase) -> Iterator[bytes]:
    """Yield the content of one or more xz streams, with zeros between them.

    `lzma.LZMAFile` has no limit on its memory.
    """
    data = stream.read(CHUNK_BYTES)
    while data:
        decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, XZ_MEMORY_BYTES)
        while not decoder.eof:
            if decoder.needs_input and not data:
                data = stream.read(CHUNK_BYTES)
                if not data:
                    raise EOFError("the xz data ends too early")
            chunk = decoder.decompress(data, CHUNK_BYTES)
            data = b""  # the decoder keeps what it has not decompressed yet
            if chunk:
                yield chunk
        data = decoder.unused_data.lstrip(b"\0") or _read_after_zeros(stream)


def _read_after_zeros(stream: io.RawIOBase) -> bytes:
    """Return the next bytes that follow zeros, or none at the end."""
    for chunk in chunks_of(stream):
        data = chunk.lstrip(b"\0")
        if data:
            return data
    return b""
