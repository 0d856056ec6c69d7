"""Compressed streams, concatenated and nested: valid ones are unpacked, and their size is limited."""

import bz2
import functools
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final

import pytest
from hypothesis import strategies as st

from docs_platform_action.errors import InvalidBundle
from tests.archives import KINDS, SMALL_SITE, entry, tar, tar_of, zipped
from tests.folders import Tree
from tests.fuzz import fuzz
from tests.fuzz.mutation import mostly
from tests.fuzz.tree import LIMITS, unpacked


def with_name(data: bytes) -> bytes:
    packed = io.BytesIO()
    with gzip.GzipFile(filename="../../name\n", mode="wb", fileobj=packed, mtime=0) as file:
        file.write(data)
    return packed.getvalue()


PACKERS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "gzip": gzip.compress,
    "gzip with a name": with_name,
    "gzip stored": lambda data: gzip.compress(data, compresslevel=0),
    "bzip2": bz2.compress,
    "xz": lambda data: lzma.compress(data, preset=0),
    "xz without checksums": lambda data: lzma.compress(data, preset=0, check=lzma.CHECK_NONE),
    "lzma": lambda data: lzma.compress(data, format=lzma.FORMAT_ALONE, preset=0),
    "zlib": zlib.compress,
}
READ: Final = {"gzip", "gzip with a name", "gzip stored", "bzip2", "xz", "xz without checksums"}
PLAIN: Final = tar(SMALL_SITE)
ZIP: Final = zipped(SMALL_SITE)
SITE: Final[Tree] = unpacked(KINDS["tar"](SMALL_SITE))


def family(packer: str) -> str:
    return packer.split()[0]


good = sorted(READ)


@fuzz(
    "compressed streams",
    packers=st.lists(mostly(good, ["lzma", "zlib"]), min_size=1, max_size=4),
    cuts=st.lists(st.floats(0, 1), min_size=3, max_size=3),
    alike=mostly([True], [False], times=4),
    after=mostly([b"", bytes(1), bytes(4096)], [b"x", b"\0x", b"\x1f", b"BZh", b"\xfd7zXZ\0", PLAIN], times=2),
    short=mostly([0], [1, 4, 20], times=6),
    outer=mostly([""], good, times=3),
    is_zip=mostly([False], [True], times=4),
)
def test_concatenated_streams_are_read_and_anything_else_is_rejected(
    packers: list[str], cuts: list[float], alike: bool, after: bytes, short: int, outer: str, is_zip: bool
) -> None:
    if alike:
        packers = [packer for packer in packers if family(packer) == family(packers[0])]
    plain = ZIP if is_zip else PLAIN
    edges = [0, *sorted(int(cut * len(plain)) for cut in cuts[: len(packers) - 1]), len(plain)]
    pieces = [PACKERS[packer](plain[start:end]) for packer, (start, end) in zip(packers, pairwise(edges), strict=True)]
    whole = b"".join(pieces)
    archive = whole[: len(whole) - short] if short else whole + after  # after a cut, zeros could replace what was cut
    if outer:
        archive = PACKERS[outer](archive)
    is_valid = READ.issuperset(packers) and len({family(packer) for packer in packers}) == 1 and not after.strip(b"\0")

    families = {family(packer) for packer in (*packers, outer or "gzip")}
    can_be_within = families == {"gzip"} and not outer if is_zip else family(outer or "gzip") == "gzip"

    if is_valid and not short and can_be_within:
        assert unpacked(archive) == SITE
        return
    with pytest.raises(InvalidBundle):
        unpacked(archive)


@functools.cache
def bomb(kind: str, mebibytes: int, *, inside: bool) -> bytes:
    """Pack zeros as a file of a tar archive, or after its end."""
    zeros = bytes(mebibytes << 20)
    return PACKERS[kind](tar_of(entry(b"zeros", zeros)) if inside else PLAIN + zeros)


STREAM_BYTES: Final = LIMITS.unpacked_bytes + LIMITS.entries * 4096 + 16 * 1024**2
"""The maximum size of a tar archive within the limits: its files, its headers, and its last record."""


@fuzz("bombs", kind=st.sampled_from(good), mebibytes=st.integers(2, 20), inside=st.booleans(), layers=st.integers(1, 3))
def test_a_bomb_is_rejected(kind: str, mebibytes: int, inside: bool, layers: int) -> None:
    archive = bomb(kind, mebibytes, inside=inside)
    for _ in range(layers - 1):
        archive = PACKERS[kind](archive)

    is_read = layers == 1 or (layers == 2 and family(kind) == "gzip")
    if not inside and is_read and len(PLAIN) + (mebibytes << 20) <= STREAM_BYTES:
        assert unpacked(archive) == SITE  # a limited number of zeros after the end is allowed
        return
    with pytest.raises(InvalidBundle):
        unpacked(archive)
