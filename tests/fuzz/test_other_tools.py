"""What the action accepts of the corpus, damaged or not, other tools that accept it unpack to the same tree."""

import bz2
import functools
import gzip
import lzma
import re
import struct
from collections.abc import Callable, Mapping
from typing import Final

import pytest
from hypothesis import strategies as st

from docs_platform_action.archive.tar import BLOCK_BYTES, is_tar_header
from docs_platform_action.errors import InvalidBundle
from tests.archives import checksummed
from tests.corpus.make import ARCHIVES
from tests.corpus.recipes import RECIPES
from tests.engine import skip_or_fail
from tests.fuzz import fuzz, test_tar
from tests.fuzz.mutation import HOSTILE_BYTES
from tests.fuzz.tools import missing_tools, trees_of_others
from tests.fuzz.tree import ROOMY, unpacked

DECOMPRESS: Final[Mapping[bytes, Callable[[bytes], bytes]]] = {
    b"\x1f\x8b\x08": gzip.decompress,
    b"BZh": bz2.decompress,
    b"\xfd7zXZ\0": lambda data: lzma.decompress(data.rstrip(b"\0")),  # Python does not know padding
}
READ: Final = sorted(name for name, recipe in RECIPES.items() if recipe.refused is None)
FIELDS: Final = sorted(test_tar.FIELDS.items())
VALUES: Final = (*test_tar.NUMBERS, *test_tar.ODD_NAMES, *test_tar.ODD_MAGICS, *test_tar.MAGICS, *HOSTILE_BYTES)


@functools.cache
def plain(name: str) -> bytes:
    """Return an archive of the corpus without compression around it."""
    data = (ARCHIVES / name).read_bytes()
    while decompress := next((function for magic, function in DECOMPRESS.items() if data.startswith(magic)), None):
        data = decompress(data)
    return data


def edited_tar(archive: bytes, header: float, field: tuple[str, tuple[int, int]], value: bytes, action: str) -> bytes:
    """Change a field of a header, under its checksum, or remove, repeat or move the block."""
    blocks = [archive[at : at + BLOCK_BYTES] for at in range(0, len(archive), BLOCK_BYTES)]
    headers = [number for number, block in enumerate(blocks) if is_tar_header(block)]
    at = headers[int(header * (len(headers) - 1))]
    _, (start, length) = field
    block = blocks[at][:start] + value[:length].ljust(length, b"\0") + blocks[at][start + length :]
    blocks[at : at + 1] = {
        "change": [checksummed(block)],
        "remove": [],
        "repeat": [blocks[at]] * 2,
        "change and repeat": [blocks[at], checksummed(block)],
    }[action]
    return b"".join(blocks)


def edited_zip(archive: bytes, record: float, offset: int, value: bytes, action: str) -> bytes:
    """Change bytes of a record, or in the same field of both headers of an entry."""
    records = [found.start() for found in re.finditer(rb"PK[\1\3\5\6\7][\2\4\6\7\10]", archive)]
    at = records[int(record * (len(records) - 1))]
    places = [at + offset]
    if action == "change both" and archive[at : at + 4] == b"PK\1\2" and 6 <= offset < 30:
        (local,) = struct.unpack_from("<I", archive, at + 42)
        places.append(local + offset - 2)
    edited = bytearray(archive)
    for place in places:
        edited[place : place + len(value)] = b"" if action == "remove" else value
    return bytes(edited)


fractions = st.floats(0, 1)
tars = st.builds(
    edited_tar,
    st.sampled_from([name for name in READ if not plain(name).startswith(b"PK")]).map(plain),
    fractions,
    st.sampled_from(FIELDS),
    st.sampled_from(VALUES),
    st.sampled_from(["change", "change", "remove", "repeat", "change and repeat"]),
)
zips = st.builds(
    edited_zip,
    st.sampled_from([name for name in READ if plain(name).startswith(b"PK")]).map(plain),
    fractions,
    st.integers(4, 60),
    st.sampled_from(HOSTILE_BYTES) | st.binary(min_size=1, max_size=4),
    st.sampled_from(["change", "change both", "change both", "remove"]),
)
archives = tars | zips


@fuzz("corpus damaged", archive=archives)
def test_what_is_left_of_a_damaged_archive_is_the_same_for_all(archive: bytes) -> None:
    try:
        tree = unpacked(archive, limits=ROOMY)
    except InvalidBundle:
        return

    assert trees_of_others(archive, tree) == {}


@pytest.mark.parametrize("name", READ)
def test_the_corpus_is_the_same_for_all(name: str) -> None:
    archive = plain(name)

    assert trees_of_others(archive, unpacked(archive, limits=ROOMY)) == {}


def test_no_tool_is_missing() -> None:
    if missing := missing_tools():
        skip_or_fail(
            f"Archives are not compared with {' and '.join(missing)}: Debian's packages are 7zip, libarchive-tools and unzip."
        )
