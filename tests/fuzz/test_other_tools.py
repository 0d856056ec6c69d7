"""What the action accepts of the corpus, damaged or not, other tools that accept it unpack to the same tree."""

import bz2
import functools
import gzip
import lzma
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, kw_only=True)
class TarEdit:
    """A change of a field of a header, under its checksum, or of the number of these headers."""

    name: str
    header: float
    field: tuple[str, tuple[int, int]]
    value: bytes
    action: str

    @property
    def archive(self) -> bytes:
        archive = plain(self.name)
        blocks = [archive[at : at + BLOCK_BYTES] for at in range(0, len(archive), BLOCK_BYTES)]
        headers = [number for number, block in enumerate(blocks) if is_tar_header(block)]
        at = headers[int(self.header * (len(headers) - 1))]
        _, (start, length) = self.field
        changed = checksummed(blocks[at][:start] + self.value[:length].ljust(length, b"\0") + blocks[at][start + length :])
        blocks[at : at + 1] = {
            "change": [changed],
            "remove": [],
            "repeat": [blocks[at]] * 2,
            "change and repeat": [blocks[at], changed],
        }[self.action]
        return b"".join(blocks)


@dataclass(frozen=True, kw_only=True)
class ZipEdit:
    """A change of bytes of a record, or in the same field of both headers of an entry."""

    name: str
    record: float
    offset: int
    value: bytes
    action: str

    @property
    def archive(self) -> bytes:
        archive = bytearray(plain(self.name))
        records = [found.start() for found in re.finditer(rb"PK[\1\3\5\6\7][\2\4\6\7\10]", archive)]
        at = records[int(self.record * (len(records) - 1))]
        places = [at + self.offset]
        if self.action == "change both" and archive[at : at + 4] == b"PK\1\2" and 6 <= self.offset < 30:
            (local,) = struct.unpack_from("<I", archive, at + 42)
            places.append(local + self.offset - 2)
        for place in places:
            archive[place : place + len(self.value)] = b"" if self.action == "remove" else self.value
        return bytes(archive)


fractions = st.floats(0, 1)
tars = st.builds(
    TarEdit,
    name=st.sampled_from([name for name in READ if not plain(name).startswith(b"PK")]),
    header=fractions,
    field=st.sampled_from(FIELDS),
    value=st.sampled_from(VALUES),
    action=st.sampled_from(["change", "change", "remove", "repeat", "change and repeat"]),
)
zips = st.builds(
    ZipEdit,
    name=st.sampled_from([name for name in READ if plain(name).startswith(b"PK")]),
    record=fractions,
    offset=st.integers(4, 60),
    value=st.sampled_from(HOSTILE_BYTES) | st.binary(min_size=1, max_size=4),
    action=st.sampled_from(["change", "change both", "change both", "remove"]),
)


@fuzz("corpus damaged", edit=tars | zips)
def test_what_is_left_of_a_damaged_archive_is_the_same_for_all(edit: TarEdit | ZipEdit) -> None:
    archive = edit.archive
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
