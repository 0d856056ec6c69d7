"""A tar archive's bytes, decompressed while they arrive."""

import bz2
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from .archive import (
    BZIP2_MAGIC,
    CHUNK_BYTES,
    GZIP_MAGIC,
    MAX_ENTRIES,
    MAX_UNPACKED_BYTES,
    PADDING,
    XZ_MAGIC,
    begins_tar,
    chunks_of,
    damage_explained,
    describe_content,
    is_archive,
)
from .faults import damaged, not_an_archive, too_large, unsupported_archive

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
        return _members(stream, GZIP_MAGIC, _GzipDecoder)
    if start.startswith(XZ_MAGIC):
        return _members(stream, XZ_MAGIC, _xz_decoder)
    if begins_tar(start):  # before bzip2: the first name in a tar archive may begin with `BZh`
        return chunks_of(stream)
    if start.startswith(BZIP2_MAGIC):
        return _members(stream, BZIP2_MAGIC, bz2.BZ2Decompressor)
    fact = f"It {describe_content(start)}."
    raise unsupported_archive(fact) if is_archive(start) else not_an_archive(fact)


class _Decoder(Protocol):
    """What the standard library's decoders of bzip2 and xz data have in common.

    A decoder keeps what it has not decompressed yet.
    """

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _GzipDecoder:
    """A decoder of gzip data like the others. It compares the checksum and the length."""

    def __init__(self) -> None:
        self._decoder = zlib.decompressobj(zlib.MAX_WBITS | 16)  # with gzip's header and trailer

    @property
    def eof(self) -> bool:
        return self._decoder.eof

    @property
    def needs_input(self) -> bool:
        return not self._decoder.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._decoder.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        kept = self._decoder.unconsumed_tail
        return self._decoder.decompress(kept + data, max_length)


def _xz_decoder() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, XZ_MEMORY_BYTES)


def _members(
    stream: io.RawIOBase, magic: bytes, new_decoder: Callable[[], _Decoder]
) -> Iterator[bytes]:
    """Yield the content of one or more members, as gzip calls them, with padding between them.

    The standard library's files refuse white space behind gzip data, ignore anything behind bzip2
    data, and have no limit on the memory for xz data.
    """
    data = stream.read(CHUNK_BYTES)
    while data:
        decoder = new_decoder()
        while not decoder.eof:
            if decoder.needs_input and not data:
                data = stream.read(CHUNK_BYTES)
                if not data:
                    raise EOFError("the compressed data ends too early")
            chunk = decoder.decompress(data, CHUNK_BYTES)
            data = b""
            if chunk:
                yield chunk
        data = _next_member(stream, decoder.unused_data, magic)


def _next_member(stream: io.RawIOBase, rest: bytes, magic: bytes) -> bytes:
    """Return how the next member begins, or nothing at the end of the data."""
    data = rest.lstrip(PADDING)
    while len(data) < len(magic):
        more = stream.read(CHUNK_BYTES)
        if not more:
            break
        data = (data + more).lstrip(PADDING)
    if data and not data.startswith(magic):
        raise damaged("Other data follows the compressed data.")
    return data
