"""Decompression in chunks of a bounded size."""

import bz2
import lzma
import zlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Final

from .entries import damaged, unsafe
from .reading import CHUNK_BYTES

XZ_MEMORY_BYTES: Final = 80 * 1024 * 1024
"""For a dictionary of 64 MiB, that of `xz -9`. The next larger one has 96 MiB (source: xz(1))."""
MAX_STREAMS: Final = 1_000_000  # in a row; bgzip writes 330,000 for 20 GiB. Each takes 10 µs, and empty ones add no output.


class _Inflater:
    """zlib's decompressor with the interface of bz2's and lzma's."""

    def __init__(self, window_bits: int) -> None:
        self._zlib = zlib.decompressobj(window_bits)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        chunk = self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)
        # zlib may hold more output after a full chunk, even when it has consumed all input
        self.needs_input = not self._zlib.unconsumed_tail and len(chunk) < max_length
        return chunk


@dataclass(frozen=True, kw_only=True)
class Codec:
    """A compression format. Streams that begin with its `magic` may follow one another; without a `magic` there is one stream."""

    name: str
    magic: bytes
    pads_streams: bool = False  # with zeros between them
    new_decompressor: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor | _Inflater]


GZIP: Final = Codec(name="gzip", magic=b"\x1f\x8b\x08", new_decompressor=lambda: _Inflater(16 + zlib.MAX_WBITS))
BZIP2: Final = Codec(name="bzip2", magic=b"BZh", new_decompressor=bz2.BZ2Decompressor)
XZ: Final = Codec(
    name="xz",
    magic=b"\xfd7zXZ\0",
    pads_streams=True,
    new_decompressor=lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, XZ_MEMORY_BYTES),
)
DEFLATE: Final = Codec(name="deflate", magic=b"", new_decompressor=lambda: _Inflater(-zlib.MAX_WBITS))


def decompressed(codec: Codec, compressed: Iterator[bytes]) -> Generator[bytes]:
    """Decompress into chunks of at most `CHUNK_BYTES`.

    Consecutive streams are read as one, as gzip(1) does, and zeros may pad the end. Raises `InvalidBundle` for other data after a
    stream, for a stream that ends early or does not match its checksum, and for more than `MAX_STREAMS`.
    """
    data = next(compressed, b"")
    for _ in range(MAX_STREAMS):
        decompressor = codec.new_decompressor()
        try:
            while not decompressor.eof:
                if decompressor.needs_input and not (data := data or next(compressed, b"")):
                    raise damaged(f"The {codec.name} data ends too early: a part is missing.")
                try:
                    chunk = decompressor.decompress(data, CHUNK_BYTES)
                except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError, MemoryError) as error:  # OSError is from bz2
                    if "Memory usage limit" in str(error):
                        raise unsafe(
                            "The xz data needs a dictionary of more than 64 MiB, which not even `xz -9` uses."
                        ) from error
                    raise damaged(f"The {codec.name} data cannot be decompressed ({error}).") from error
                data = b""
                if chunk:
                    yield chunk
            data = decompressor.unused_data
        finally:
            del decompressor  # an error is kept until the end of the run, with all that this function holds
        if not (data := _next_stream(codec, data, compressed)):
            return
    raise unsafe(f"The {codec.name} data consists of more than {MAX_STREAMS:,} streams.")


def _next_stream(codec: Codec, data: bytes, compressed: Iterator[bytes]) -> bytes:
    """Return the beginning of the next stream; empty at the end."""
    while codec.pads_streams and not (data := data.lstrip(b"\0")) and (chunk := next(compressed, b"")):
        data = chunk
    while len(data) < len(codec.magic) and (chunk := next(compressed, b"")):
        data += chunk
    if codec.magic and data.startswith(codec.magic):
        return data
    while data:
        if data.strip(b"\0"):
            raise damaged(f"Other data follows the {codec.name} data.")
        data = next(compressed, b"")
    return b""
