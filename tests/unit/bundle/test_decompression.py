"""A tar archive comes out of its compression, in whatever pieces it arrives."""

import bz2
import gzip
import io
import lzma
from collections.abc import Callable, Mapping
from typing import Final

import pytest

from docs_platform_action.bundle.archive import CHUNK_BYTES, START_BYTES
from docs_platform_action.bundle.decompression import decompressed
from docs_platform_action.errors import InvalidBundle
from tests.archives import SMALL_SITE, entry, tar

SMALL_TAR: Final = tar(SMALL_SITE)
HALF: Final = len(SMALL_TAR) // 2
XZ_STREAMS: Final = lzma.compress(SMALL_TAR[:HALF]) + bytes(400) + lzma.compress(SMALL_TAR[HALF:])

ARCHIVES: Final[Mapping[str, bytes]] = {
    "tar": SMALL_TAR,
    "gzip": gzip.compress(SMALL_TAR),
    "bzip2": bz2.compress(SMALL_TAR),
    "xz": lzma.compress(SMALL_TAR),
    "two gzip members": gzip.compress(SMALL_TAR[:HALF]) + gzip.compress(SMALL_TAR[HALF:]),
    "two bzip2 streams": bz2.compress(SMALL_TAR[:HALF]) + bz2.compress(SMALL_TAR[HALF:]),
    "two xz streams": XZ_STREAMS,
    "two xz streams and padding": XZ_STREAMS + bytes(400),
}
COMPRESSED: Final = ["gzip", "bzip2", "xz"]


class Pieces(io.RawIOBase):
    """A stream whose reads return at most `piece_size` bytes, as those of a connection do."""

    def __init__(self, data: bytes, piece_size: int) -> None:
        self._file = io.BytesIO(data)
        self._piece_size = piece_size

    def read(self, size: int = -1) -> bytes:
        return self._file.read(min(size, self._piece_size))


@pytest.mark.parametrize("name", ARCHIVES)
@pytest.mark.parametrize("piece_size", [100, 1_000_000])
def test_the_archive_comes_out(name: str, piece_size: int) -> None:
    archive = ARCHIVES[name]

    chunks = list(decompressed(Pieces(archive, piece_size), archive[:START_BYTES]))

    assert b"".join(chunks) == SMALL_TAR
    assert b"" not in chunks


@pytest.mark.parametrize("name", COMPRESSED)
@pytest.mark.parametrize("padding", [b"\n", b"\r\n", b" \t\n\0", b"\n" * 3_000_000])
@pytest.mark.parametrize("piece_size", [1, 1_000_000])
def test_white_space_and_zeros_behind_the_data_are_ignored(
    name: str, padding: bytes, piece_size: int
) -> None:
    archive = ARCHIVES[name] + padding[: 100 * piece_size]

    chunks = decompressed(Pieces(archive, piece_size), archive[:START_BYTES])

    assert b"".join(chunks) == SMALL_TAR


@pytest.mark.parametrize("name", COMPRESSED)
@pytest.mark.parametrize("rest", [b"x", b"\nsomething", b"\x1f", b"BZ", b"\0" * 9 + b"\xfd7z"])
@pytest.mark.parametrize("piece_size", [1, 1_000_000])
def test_other_data_behind_it_is_damage(name: str, rest: bytes, piece_size: int) -> None:
    archive = ARCHIVES[name] + rest

    with pytest.raises(InvalidBundle) as caught:
        list(decompressed(Pieces(archive, piece_size), archive[:START_BYTES]))

    assert caught.value.details == ("Other data follows the compressed data.",)


@pytest.mark.parametrize("name", COMPRESSED)
@pytest.mark.parametrize("cut", [1, 4, 20])
def test_data_that_is_cut_ends_too_early(name: str, cut: int) -> None:
    archive = ARCHIVES[name][:-cut]

    with pytest.raises(InvalidBundle) as caught:
        list(decompressed(Pieces(archive, 100), archive[:START_BYTES]))

    assert "ends too early" in caught.value.details[0]


@pytest.mark.parametrize("at", [-1, -6], ids=["length", "checksum"])
def test_the_checksum_and_the_length_of_gzip_data_are_compared(at: int) -> None:
    archive = bytearray(ARCHIVES["gzip"])
    archive[at] ^= 0xFF

    with pytest.raises(InvalidBundle):
        list(decompressed(Pieces(archive, 100), bytes(archive[:START_BYTES])))


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_no_chunk_is_larger_than_one_is_allowed_to_be(compress: Callable[[bytes], bytes]) -> None:
    content = SMALL_TAR + bytes(5 * CHUNK_BYTES + 1)
    archive = compress(content)

    chunks = list(decompressed(Pieces(archive, 1_000_000), archive[:START_BYTES]))

    assert b"".join(chunks) == content
    assert max(len(chunk) for chunk in chunks) <= CHUNK_BYTES


def test_a_tar_archive_whose_first_name_looks_like_bzip2_is_not_decompressed() -> None:
    archive = entry(b"BZh9.html", b"x")

    chunks = decompressed(Pieces(archive, 100), archive[:START_BYTES])

    assert b"".join(chunks) == archive
