"""Hostile and damaged archives of every kind: each is unpacked inside of its folder, or refused."""

import bz2
import contextlib
import functools
import gzip
import lzma
import re
import struct
from collections.abc import Callable, Mapping
from typing import Final

import pytest
from hypothesis import example
from hypothesis import strategies as st

from docs_platform_action.errors import InvalidBundle
from tests.archives import HOSTILE, KINDS, SMALL_SITE, Zipped, checksummed, entry, pax_record, tar_of, zip_of
from tests.corpus.make import ARCHIVES
from tests.fuzz import fuzz
from tests.fuzz.mutation import HOSTILE_BYTES, Edit, byte_pieces, edited, edits, mostly
from tests.fuzz.tree import ESCAPED, MAX_UNPACKED_BYTES, unpacked

PACK: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lambda data: lzma.compress(data, preset=0),
    "gzip twice": lambda data: gzip.compress(gzip.compress(data)),
}
UNPACK: Final = {b"\x1f\x8b\x08": gzip.decompress, b"BZh": bz2.decompress, b"\xfd7zXZ\0": lzma.decompress}
CHECKED_KINDS: Final = [kind for kind in KINDS if kind.endswith((".gz", ".bz2", ".xz"))]
"""Kinds with a checksum over everything, which detects any damage."""


def plain(data: bytes) -> bytes:
    """Return an archive without intact compression around it."""
    with contextlib.suppress(OSError, EOFError, ValueError, lzma.LZMAError):
        for magic, unpack in UNPACK.items():
            if data.startswith(magic):
                return unpack(data)
    return data


BOMB: Final = entry(b"zeros", bytes(MAX_UNPACKED_BYTES + 1))
SOURCES: Final = {
    **{kind: pack(SMALL_SITE) for kind, pack in KINDS.items()},
    **{name: data for name, (data, kind) in HOSTILE.items() if kind != "not an archive" and len(data) < 50_000},
    **{file.name: file.read_bytes() for file in sorted(ARCHIVES.iterdir())},
    "bomb in a tar": tar_of(BOMB),
    "bomb in a zip": zip_of(Zipped(content=bytes(MAX_UNPACKED_BYTES + 1))),
}
PLAIN: Final = {name: plain(data) for name, data in SOURCES.items()}
TARS: Final = [name for name, data in PLAIN.items() if data[257:262] == b"ustar"]
ZIPS: Final = [name for name, data in PLAIN.items() if data.startswith(b"PK")]

NUMBERS: Final = (
    *(b"", b"0", b"1", b"00000000005", b"00000001000\0", b"77777777777\0", b"777777777777", b"8", b"-1", b"+1", b"0x1", b"1_0"),
    *(
        b" ",
        b"\0007",
        b"\xff" * 12,
        b"\xff" * 11 + b"\xf0",
        b"\xff" * 10 + b"\xfe\0",
        b"\x80" + bytes(11),
        b"\x80" + b"\xff" * 11,
    ),
    *(b"\x80" + bytes(10) + b"\5", b"\x80" + bytes(5) + b"\xff" * 6, b"0004755\0", b"0001777\0"),
)
NAMES: Final = (
    *(b"a", b"a/", b"a/x", b"b", b"b/c", b"b//c/.", b"B", b"index.html", b"guide", b"latest", b"latest/x", b"latest/start.html"),
    *(
        b"",
        b".",
        b"./",
        b"..",
        b"/",
        b"../outside",
        b"b/../../outside",
        b"../site/a",
        bytes(ESCAPED),
        b"../" * 9 + bytes(ESCAPED),
    ),
    *(b"C:/x", b"a\0b", b"\xff", b"\xed\xa0\x80", b"a\\b", b"a\n", b"x" * 300, b"p/" * 520, b"p/" * 600, b"q/" * 49, b"._a"),
    *("e\u0301.html".encode(), "é.html".encode(), b"__MACOSX/a", b"guide/._start.html"),
)
TYPES: Final = tuple(bytes([flag]) for flag in b"0\x00123456789ALKSxXgVDMN \xff")
FIELDS: Final[Mapping[str, tuple[tuple[tuple[int, int], ...], tuple[bytes, ...]]]] = {
    "types": (((156, 1),), TYPES),
    "names": (((0, 100), (157, 100), (345, 155), (345, 131)), NAMES),
    "numbers": (((100, 8), (108, 8), (124, 12), (136, 12), (329, 8), (386, 12), (398, 12), (482, 1), (483, 12)), NUMBERS),
    "anything": (((0, 512), (257, 8), (386, 110), (148, 8), (500, 12)), HOSTILE_BYTES),
}
"""Places in a tar header, as offset and length, and values for them. GNU's map of holes begins at 386."""

SPARSE: Final = (
    *(b"GNU.sparse.major", b"GNU.sparse.minor", b"GNU.sparse.size", b"GNU.sparse.realsize", b"GNU.sparse.numblocks"),
    *(b"GNU.sparse.offset", b"GNU.sparse.numbytes", b"GNU.sparse.map"),
)
SPARSE_VALUES: Final = (
    *(b"1", b"0", b"0,5", b"0,5,9,4", b"9,4,0,5", b"5,-5,1,9", b"1,", b",", b"-1", b"512", b"9" * 12),
    b"\xff",
)
texts = st.one_of(
    st.tuples(st.sampled_from([b"path", b"linkpath", b"GNU.sparse.name"]), st.sampled_from(NAMES)),
    st.tuples(st.sampled_from([b"size", b"mtime", b"uid"]), st.sampled_from([*NUMBERS, b"9" * 5000, b"1e999", b"nan"])),
    st.tuples(st.sampled_from(SPARSE), st.sampled_from(SPARSE_VALUES)),
    st.tuples(st.sampled_from([b"hdrcharset", b"", b"comment"]), st.sampled_from([b"BINARY", b"a=b\n", b"\xff"])),
)
broken_records = st.sampled_from(
    [b"9 path=x\n", b"99999 path=x\n", b"-5 path=x\n", b"0 \n", b"8 =\n", b"\0", b"9" * 400, b"5" * 5000]
)
records = texts.map(lambda record: pax_record(*record)) | broken_records
extensions = st.one_of(
    st.builds(
        lambda type_, found: entry(b"pax", b"".join(found), type_=type_),
        *(st.sampled_from([b"x", b"x", b"X", b"g"]), st.lists(records, min_size=1, max_size=4)),
    ),
    st.builds(
        lambda type_, name: entry(b"././@LongLink", name, type_=type_), st.sampled_from([b"L", b"K"]), st.sampled_from(NAMES)
    ),
)
new_entries = st.builds(
    lambda name, type_, target, content: entry(name[:100], content if type_ == b"0" else b"", type_=type_, target=target[:100]),
    *(st.sampled_from(NAMES), st.sampled_from([*TYPES, *[b"0", b"1", b"2", b"5"] * 6]), st.sampled_from(NAMES)),
    st.sampled_from([b"", b"<h1>Docs</h1>", b"1\n0\n5\n", b"2\n9\n4\n0\n5\n", b"x" * 600]),
)


def alter_tar(where: float, archive: bytes, *, change: bytes | tuple[tuple[int, int], bytes], replaces: bool) -> bytes:
    """Change a field of a header under its checksum, or insert blocks before it or in its place."""
    headers = [at for at in range(0, len(archive), 512) if archive[at + 257 : at + 262] == b"ustar"] or [0]
    at = headers[int(where * (len(headers) - 1))]
    if isinstance(change, bytes):
        return archive[:at] + change + archive[at + 512 * replaces :]
    (start, length), value = change
    block = bytearray(archive[at : at + 512])
    block[start : start + length] = value[:length].ljust(length if length < 512 else 0, b"\0")
    return archive[:at] + checksummed(bytes(block)) + archive[at + 512 :]


def alter_bytes(todo: list[Edit[bytes]], archive: bytes) -> bytes:
    """Apply edits, but not to a bomb, which is too long for them."""
    return bytes(edited(archive, todo)) if len(archive) < MAX_UNPACKED_BYTES else archive


def alter_zip(where: float, archive: bytes, *, offset: int, value: bytes, both: bool) -> bytes:
    """Change bytes of a record, or the same field in both headers of an entry."""
    records = [found.start() for found in re.finditer(rb"PK[\1\3\5\6\7][\2\4\6\7\10]", archive)] or [0]
    at = records[int(where * (len(records) - 1))]
    places, changed = [at + offset], bytearray(archive)
    if both and archive[at : at + 4] == b"PK\1\2" and 6 <= offset < 30 and len(archive) >= at + 46:
        places.append(struct.unpack_from("<I", archive, at + 42)[0] + offset - 2)
    for place in places:
        changed[place : place + len(value)] = value
    return bytes(changed)


Alter = functools.partial[bytes]
Drawn = tuple[str, list[Alter]]

fields = st.sampled_from([*FIELDS.values()]).flatmap(lambda pair: st.tuples(*map(st.sampled_from, pair)))
tar_edits: st.SearchStrategy[Alter] = st.builds(
    functools.partial, st.just(alter_tar), st.floats(0, 1), change=fields | extensions | new_entries, replaces=st.booleans()
)
zip_edits: st.SearchStrategy[Alter] = st.builds(
    functools.partial,
    *(st.just(alter_zip), st.floats(0, 1)),
    offset=st.sampled_from([*range(4, 48, 2), 50]),
    value=st.one_of(
        byte_pieces, st.sampled_from([*NAMES, b"up\x09\0\1"]), st.sampled_from([b"\xff\xa1", b"\xed\x41", b"\0\x60"])
    ),
    both=st.booleans(),
)
byte_edits: st.SearchStrategy[Alter] = st.builds(functools.partial, st.just(alter_bytes), edits(byte_pieces))


def altered(names: list[str], edit: st.SearchStrategy[Alter]) -> st.SearchStrategy[Drawn]:
    """Draw an archive and a few edits."""
    return st.tuples(st.sampled_from(names), st.lists(edit, max_size=1 if edit is byte_edits else 4))


SPARSE_LINK: Final = functools.partial(
    alter_tar, 1, change=entry(b"pax", pax_record(b"GNU.sparse.map", b"0,0"), type_=b"x"), replaces=False
)


@fuzz(
    "archives altered",
    drawn=altered([*SOURCES], byte_edits) | altered(TARS, tar_edits) | altered(ZIPS, zip_edits),
    packer=mostly([""], [*PACK], times=1),
)
@example(("bomb in a tar", []), "xz")
@example(("bomb in a zip", []), "")
@example(("tar", [SPARSE_LINK]), "")
def test_any_archive_is_unpacked_inside_or_refused(drawn: Drawn, packer: str) -> None:
    name, todo = drawn
    is_of_bytes = any(edit.func is alter_bytes for edit in todo)
    archive = functools.reduce(lambda data, edit: edit(data), todo, (SOURCES if is_of_bytes else PLAIN)[name])

    with contextlib.suppress(InvalidBundle):
        unpacked(PACK[packer](archive) if packer else archive)


@fuzz("archives damaged", kind=st.sampled_from(CHECKED_KINDS), todo=edits(byte_pieces))
def test_a_damaged_archive_gives_the_same_site_or_is_refused(kind: str, todo: list[Edit[bytes]]) -> None:
    archive = KINDS[kind](SMALL_SITE)
    with contextlib.suppress(InvalidBundle):
        assert unpacked(bytes(edited(archive, todo))) == unpacked(archive)


@fuzz(
    "noise",
    noise=st.binary(max_size=2000),
    start=st.sampled_from([b"", b"\x1f\x8b\x08", b"BZh9", b"\xfd7zXZ\0", b"PK\3\4", b"PK\5\6"]),
)
def test_noise_is_refused(noise: bytes, start: bytes) -> None:
    with pytest.raises(InvalidBundle):
        unpacked(start + noise)
