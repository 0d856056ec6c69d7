"""Damaged and hostile archives of every kind: each is unpacked inside of its folder, or refused."""

import bz2
import contextlib
import gzip
import lzma
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from tarfile import BLOCKSIZE
from typing import Final

from hypothesis import assume
from hypothesis import strategies as st

from docs_platform_action.errors import InvalidBundle
from tests import corpus
from tests.archives import KINDS, SMALL_SITE, Site
from tests.fuzz import fuzz
from tests.fuzz.mutation import Edit, byte_pieces, edited, edits
from tests.unpacking import ESCAPED, unpacked

UNPACK: Final = {
    b"\x1f\x8b\x08": gzip.decompress,
    b"BZh": bz2.decompress,
    b"\xfd7zXZ\0": lzma.decompress,
}


def plain(data: bytes) -> bytes:
    """Return an archive without intact compression around it."""
    for magic, unpack in UNPACK.items():
        if data.startswith(magic):
            with contextlib.suppress(OSError, EOFError, ValueError, lzma.LZMAError):
                return unpack(data)
    return data


SOURCES: Final = {
    **{kind: pack(SMALL_SITE) for kind, pack in KINDS.items()},
    **{name: corpus.read(name) for name in [*corpus.ACCEPTED, *corpus.REFUSED]},
}
PLAIN: Final = {name: plain(data) for name, data in SOURCES.items()}
MAX_TAR_BYTES: Final = 200_000


def is_tar(data: bytes, *, start: int = 0) -> bool:
    """Return whether a header of a tar archive is at this place."""
    return data.startswith(b"ustar", start + 257)


SMALL: Final = {name: data for name, data in PLAIN.items() if len(data) < MAX_TAR_BYTES}
TARS: Final = [name for name, data in SMALL.items() if is_tar(data)]
ZIPS: Final = [name for name, data in PLAIN.items() if data.startswith(b"PK")]
CHECKED: Final = [kind for kind in KINDS if kind.endswith((".gz", ".bz2", ".xz"))]
"""Kinds with a checksum over everything, which detects any damage."""

NAMES: Final = (
    b"a",
    b"a/",
    b"a/x",
    b"b//c/.",
    b"index.html",
    b"guide",
    b"latest/x",
    b"",
    b".",
    b"..",
    b"/",
    b"../outside",
    b"../site/a",
    b"b/../../outside",
    bytes(ESCAPED),
    b"../" * 9 + bytes(ESCAPED),
    b"C:/x",
    b"a\0b",
    b"\xff",
    b"a\\b",
    b"a\n",
    b"x" * 100,
)
NUMBERS: Final = (
    b"",
    b"0",
    b"00000000005",
    b"77777777777\0",
    b"-1",
    b"0x1",
    b"\xff" * 12,
    b"\x80" + b"\xff" * 11,
)
TYPES: Final = tuple(bytes([flag]) for flag in b"0\x00123456789ALKSxXgVDMN \xff")


@dataclass(frozen=True)
class Field:
    """A place in a tar header, and values for it."""

    offset: int
    length: int
    values: Sequence[bytes]


FIELDS: Final = (
    Field(0, 100, NAMES),
    Field(157, 100, NAMES),
    Field(345, 155, NAMES),
    Field(124, 12, NUMBERS),
    Field(100, 8, NUMBERS),
    Field(156, 1, TYPES),
)


def altered_tar(archive: bytes, where: float, field: Field, value: bytes) -> bytes:
    """Change a field of a header, and its checksum."""
    headers = [at for at in range(0, len(archive), BLOCKSIZE) if is_tar(archive, start=at)]
    at = chosen(headers, where)
    block = bytearray(archive[at : at + BLOCKSIZE])
    end = field.offset + field.length
    block[field.offset : end] = value[: field.length].ljust(field.length, b"\0")
    # the checksum takes its own eight bytes for spaces
    checksum = sum(block[:148]) + 8 * ord(" ") + sum(block[156:])
    block[148:156] = b"%06o\0 " % checksum
    return archive[:at] + bytes(block) + archive[at + BLOCKSIZE :]


def altered_zip(archive: bytes, where: float, offset: int, value: bytes) -> bytes:
    """Change bytes of a record, and the same field in the entry's other header."""
    found = re.finditer(rb"PK[\1\3\5\6\7][\2\4\6\7\10]", archive)
    at = chosen([record.start() for record in found], where)
    places = [at + offset]
    is_whole_entry = archive.startswith(b"PK\1\2", at) and len(archive) >= at + 46
    if is_whole_entry and 6 <= offset < 30:
        (local_header,) = struct.unpack_from("<I", archive, at + 42)
        places.append(local_header + offset - 2)
    changed = bytearray(archive)
    for place in places:
        changed[place : place + len(value)] = value
    return bytes(changed)


def chosen(places: Sequence[int], where: float) -> int:
    """Return the place at a fraction of all; 0 if there is none."""
    if not places:
        return 0
    return places[int(where * (len(places) - 1))]


tar_fields = st.sampled_from(FIELDS).flatmap(
    lambda field: st.tuples(st.just(field), st.sampled_from(field.values))
)
positions = st.floats(0, 1)
altered = st.one_of(
    st.builds(
        lambda name, where, change: altered_tar(PLAIN[name], where, *change),
        st.sampled_from(TARS),
        positions,
        tar_fields,
    ),
    st.builds(
        lambda name, where, offset, value: altered_zip(PLAIN[name], where, offset, value),
        st.sampled_from(ZIPS),
        positions,
        st.sampled_from([*range(4, 48, 2)]),
        byte_pieces | st.sampled_from(NAMES),
    ),
    st.builds(
        lambda name, todo: bytes(edited(SOURCES[name], todo)),
        st.sampled_from([*SOURCES]),
        edits(byte_pieces, most=1),
    ),
)


@fuzz(350, archive=altered)
def test_any_archive_is_unpacked_inside_or_refused(archive: bytes) -> None:
    with contextlib.suppress(InvalidBundle):
        unpacked(archive)


@fuzz(75, kind=st.sampled_from(CHECKED), todo=edits(byte_pieces))
def test_a_damaged_archive_gives_the_same_site_or_is_refused(
    kind: str, todo: list[Edit[bytes]]
) -> None:
    damaged = bytes(edited(SOURCES[kind], todo))

    with contextlib.suppress(InvalidBundle):
        assert unpacked(damaged) == unpacked(SOURCES[kind])


names = st.text(
    st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="/\\"),
    min_size=1,
    max_size=20,
).filter(lambda name: not name.startswith((".", "__MACOSX", "~")))
paths = st.lists(names, min_size=1, max_size=4).map("/".join)
contents = st.binary(max_size=600)


def without_collisions(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files that can all exist, without those that Windows would put on a drive."""
    folders: set[str] = set()
    for path in files:
        folders.update(str(parent) for parent in PurePosixPath(path).parents)
    kept = dict(files)
    for path in files:
        if path in folders or re.match("[A-Za-z]:/", path):
            del kept[path]
    return kept


@fuzz(
    40,
    kind=st.sampled_from([*KINDS]),
    files=st.dictionaries(paths, contents, min_size=1, max_size=8),
)
def test_any_site_is_unpacked_unchanged(kind: str, files: dict[str, bytes]) -> None:
    files = without_collisions(files)
    assume(files)

    site = unpacked(KINDS[kind](Site(files=files)))

    assert {path: node for path, node in site.items() if node is not None} == files
