"""A tar archive comes out of its compression, in whatever pieces it arrives."""

import bz2
import gzip
import io
import lzma
from collections.abc import Mapping
from typing import Final

import pytest

from docs_platform_action.bundle.archive import START_BYTES
from docs_platform_action.bundle.decompression import decompressed
from tests.archives import SMALL_SITE, entry, tar

SMALL_TAR: Final = tar(SMALL_SITE)
HALF: Final = len(SMALL_TAR) // 2
XZ_STREAMS: Final = lzma.compress(SMALL_TAR[:HALF]) + bytes(400) + lzma.compress(SMALL_TAR[HALF:])

ARCHIVES: Final[Mapping[str, bytes]] = {
    "tar": SMALL_TAR,
    "gzip": gzip.compress(SMALL_TAR),
    "bzip2": bz2.compress(SMALL_TAR),
    "xz": lzma.compress(SMALL_TAR),
    "two xz streams": XZ_STREAMS,
    "two xz streams and padding": XZ_STREAMS + bytes(400),
}


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


def test_a_tar_archive_whose_first_name_looks_like_bzip2_is_not_decompressed() -> None:
    archive = entry(b"BZh9.html", b"x")

    chunks = decompressed(Pieces(archive, 100), archive[:START_BYTES])

    assert b"".join(chunks) == archive
