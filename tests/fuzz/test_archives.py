"""Damaged and hostile archives of every kind: each is unpacked inside of its folder, or refused."""

import bz2
import contextlib
import gzip
import lzma
import re
import struct
from typing import Final

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
    with contextlib.suppress(OSError, EOFError, ValueError, lzma.LZMAError):
        return next(
            (unpack(data) for magic, unpack in UNPACK.items() if data.startswith(magic)), data
        )
    return data


SOURCES: Final = {
    **{kind: pack(SMALL_SITE) for kind, pack in KINDS.items()},
    **{name: corpus.read(name) for name in [*corpus.ACCEPTED, *corpus.REFUSED]},
}
PLAIN: Final = {name: plain(data) for name, data in SOURCES.items()}
TARS: Final = [
    name for name, data in PLAIN.items() if data[257:262] == b"ustar" and len(data) < 200_000
]
ZIPS: Final = [name for name, data in PLAIN.items() if data.startswith(b"PK")]
CHECKED: Final = [kind for kind in KINDS if kind.endswith((".gz", ".bz2", ".xz"))]
"""Kinds with a checksum over everything, which detects any damage."""

NAMES: Final = (
    *(
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
    ),
    *(
        b"b/../../outside",
        bytes(ESCAPED),
        b"../" * 9 + bytes(ESCAPED),
        b"C:/x",
        b"a\0b",
        b"\xff",
        b"a\\b",
        b"a\n",
        b"x" * 100,
    ),
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
FIELDS: Final = {
    (0, 100): NAMES,
    (157, 100): NAMES,
    (345, 155): NAMES,
    (124, 12): NUMBERS,
    (100, 8): NUMBERS,
    (156, 1): TYPES,
}
"""Places in a tar header, as offset and length, and values for them."""


def altered_tar(archive: bytes, where: float, place: tuple[int, int], value: bytes) -> bytes:
    """Change a field of a header, and its checksum."""
    headers = [
        at for at in range(0, len(archive), 512) if archive[at + 257 : at + 262] == b"ustar"
    ] or [0]
    at = headers[int(where * (len(headers) - 1))]
    block = bytearray(archive[at : at + 512])
    block[place[0] : sum(place)] = value[: place[1]].ljust(place[1], b"\0")
    block[148:156] = b"%06o\0 " % (sum(block[:148]) + 8 * ord(" ") + sum(block[156:]))
    return archive[:at] + bytes(block) + archive[at + 512 :]


def altered_zip(archive: bytes, where: float, offset: int, value: bytes) -> bytes:
    """Change bytes of a record, and the same field in the entry's other header."""
    records = [
        found.start() for found in re.finditer(rb"PK[\1\3\5\6\7][\2\4\6\7\10]", archive)
    ] or [0]
    at = records[int(where * (len(records) - 1))]
    places, changed = [at + offset], bytearray(archive)
    if archive[at : at + 4] == b"PK\1\2" and 6 <= offset < 30 and len(archive) >= at + 46:
        places.append(struct.unpack_from("<I", archive, at + 42)[0] + offset - 2)
    for place in places:
        changed[place : place + len(value)] = value
    return bytes(changed)


tar_fields = st.sampled_from([*FIELDS]).flatmap(
    lambda place: st.tuples(st.just(place), st.sampled_from(FIELDS[place]))
)
positions = st.floats(0, 1)
altered = st.one_of(
    st.builds(
        lambda name, where, field: altered_tar(PLAIN[name], where, *field),
        st.sampled_from(TARS),
        positions,
        tar_fields,
    ),
    st.builds(
        lambda name, where, offset, value: altered_zip(PLAIN[name], where, offset, value),
        *(
            st.sampled_from(ZIPS),
            positions,
            st.sampled_from([*range(4, 48, 2)]),
            byte_pieces | st.sampled_from(NAMES),
        ),
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
    with contextlib.suppress(InvalidBundle):
        assert unpacked(bytes(edited(SOURCES[kind], todo))) == unpacked(SOURCES[kind])


names = st.text(
    st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="/\\"),
    min_size=1,
    max_size=20,
)


@fuzz(
    40,
    kind=st.sampled_from([*KINDS]),
    files=st.dictionaries(
        st.lists(
            names.filter(lambda name: not name.startswith((".", "__MACOSX", "~"))),
            min_size=1,
            max_size=4,
        ).map("/".join),
        st.binary(max_size=600),
        min_size=1,
        max_size=8,
    ),
)
def test_any_site_is_unpacked_unchanged(kind: str, files: dict[str, bytes]) -> None:
    folders = {path[: slash.start()] for path in files for slash in re.finditer("/", path)}
    files = {
        path: content
        for path, content in files.items()
        if path not in folders and not re.match("[A-Za-z]:/", path)
    }

    if files:
        unpacked_site = unpacked(KINDS[kind](Site(files=files)))
        assert {path: node for path, node in unpacked_site.items() if node is not None} == files
