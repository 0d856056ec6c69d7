"""Tar archives with hostile values in any field, under correct checksums: an accepted one is what Python's reader sees."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import example
from hypothesis import strategies as st

from docs_platform_action.errors import InvalidBundle
from tests.archives import EMPTY_END, checksummed, entry, pax_record
from tests.fuzz import fuzz
from tests.fuzz.mutation import mostly, seldom
from tests.fuzz.tools import trees_of_others
from tests.fuzz.tree import ESCAPED, NAMES, plain, unpacked

FIELDS: Final[Mapping[str, tuple[int, int]]] = {
    "name": (0, 100),
    "mode": (100, 8),
    "uid": (108, 8),
    "gid": (116, 8),
    "size": (124, 12),
    "mtime": (136, 12),
    "checksum": (148, 8),
    "type": (156, 1),
    "target": (157, 100),
    "magic": (257, 8),
    "user": (265, 32),
    "group": (297, 32),
    "major": (329, 8),
    "minor": (337, 8),
    "prefix": (345, 155),
    "rest": (500, 12),
}
"""The offset and length of each field of a header (POSIX.1-2017, pax, "ustar Interchange Format")."""

NUMBERS: Final = (
    *(b"", b"0", b"1", b"7", b"644\0", b"0000644\0", b"0000755 ", b"  755 \0", b"04755\0", b"02644\0", b"01777\0"),
    b"777777777777",
    *(b"8", b"-1", b"+1", b"0x1", b"0o7", b"1_0", b"1 0", b"\0007", b" ", b"\xff" * 12, b"\x80" + b"\xff" * 11),
    *(b"\x80" + bytes(11),),
    *(b"\x80" + bytes(10) + b"\5", b"\xff" * 11 + b"\xf0", b"\xd9", b"00000000005", b"00000001000\0", b"77777777777\0"),
)
ODD_NAMES: Final = (
    *(b"b/", b"b", b"", b".", b"..", b"/", b"./", b"../" + ESCAPED.encode(), b"/" + ESCAPED.encode()),
    *(b"/tmp/" + ESCAPED.encode(),),
    *(b"b/../../x", b"B", b"A", b"a/x", b"a\0b", b"\xff", b"a\\b", b"x" * 100, "e\u0301.html".encode(), b"a\n"),
    *(b"b/" + b"y" * 98,),
    *(b"../kept", b"b/.", b"a/"),
)
TARGETS: Final = (*NAMES, b"b", b"../a", b"a")
ODD_TARGETS: Final = (*ODD_NAMES, b"../index.html", b"b/..", b"c/../..", b"../site/a", b"../../bundle")
TYPES: Final = (*[b"0"] * 8, b"\0", *[b"5"] * 2, *[b"2"] * 2, *[b"1"] * 2)
ODD_TYPES: Final = tuple(bytes([flag]) for flag in b"34678ASLKxXgVDMNINz \xff") + (b"V",) * 4
MAGICS: Final = (b"ustar\x0000", b"ustar  \0", bytes(8))
ODD_MAGICS: Final = (b"ustar\0\0\0", b"ustar\x00  ", b"\xff" * 8)
PATHS: Final = (
    *NAMES,
    *ODD_NAMES,
    b"p/" * 20 + b"q",
    b"q" * 255,
    b"q" * 256,
    b"p/" * 520,
    b"new",
    b"new/one",
    b"new/two",
    b"three",
)

contents = st.one_of(
    st.sampled_from([b"", b"<h1>Docs</h1>", b"x" * 511, b"x" * 512, b"x" * 513, entry(b"inside", b"smuggled"), bytes(1024)]),
    st.binary(max_size=20),
)
records = st.one_of(
    st.builds(pax_record, st.sampled_from([b"path", b"linkpath"]), st.sampled_from(PATHS)),
    st.builds(
        pax_record,
        st.just(b"size"),
        st.sampled_from([b"", b"0", b"5", b"13", b"-1", b"1e3", b" 5", b"9" * 20, b"9" * 30, "٣".encode()]),
    ),
    st.builds(
        pax_record,
        st.sampled_from(
            [
                *(b"mtime", b"mode", b"uid", b"hdrcharset", b"comment", b"", b"GNU.sparse.size", b"GNU.sparse.name"),
                *(b"SCHILY.xattr.a", b"SCHILY.realsize"),
            ]
        ),
        st.sampled_from([b"", b"1", b"-1.5", b"BINARY", b"nan", b"a=b\n", b"\xff", b"1" * 5000]),
    ),
    st.sampled_from(
        [b"9 path=x\n", b"99999 path=x\n", b"-5 path=x\n", b"0 \n", b"10 path=a\0", b"\0", b"8 =\n", b"11path=a/b\n", b"9" * 400]
    ),
)
extensions = st.one_of(
    st.builds(
        lambda flag, found, note: entry(note, b"".join(found), type_=flag),
        *(
            st.sampled_from([b"x", b"x", b"x", b"X", b"g"]),
            st.lists(records, min_size=1, max_size=3),
            st.sampled_from([b"pax", b"../x", b""]),
        ),
    ),
    st.builds(
        lambda flag, name, end: entry(b"././@LongLink", name + end, type_=flag),
        *(st.sampled_from([b"L", b"K"]), st.sampled_from(PATHS), st.sampled_from([b"\0", b"", b"\0\0x"])),
    ),
)


@dataclass(frozen=True, kw_only=True)
class Member:
    """One entry: its true values, and the fields that hold something else."""

    name: bytes
    type: bytes
    content: bytes
    target: bytes
    magic: bytes
    odd: Mapping[str, bytes] = field(default_factory=dict)
    before: list[bytes] = field(default_factory=list)
    checksum: str = "right"

    @property
    def packed(self) -> bytes:
        return b"".join(self.before) + self.header + self.stored + bytes(-len(self.stored) % 512)

    @property
    def stored(self) -> bytes:
        """The content, if this type can have any."""
        return self.content if self.type in {b"0", b"\0", b"x", b"L", b"K", b"g"} else b""

    @property
    def is_honest(self) -> bool:
        """Whether this is a regular file with a true header."""
        return self.type in {b"0", b"\0"} and self.name in NAMES and self.checksum == "right" and not self.odd and not self.before

    @property
    def header(self) -> bytes:
        fields = {
            "name": self.name,
            "mode": b"0000644\0",
            "size": f"{len(self.stored):011o}\0".encode(),
            "type": self.type,
            "target": self.target if self.type in {b"1", b"2"} else b"",
            "magic": self.magic,
            **self.odd,
        }
        block = bytearray(512)
        for name, value in fields.items():
            start, length = FIELDS[name]
            block[start : start + length] = value[:length].ljust(length, b"\0")
        return checksummed(bytes(block)) if self.checksum == "right" else _wrongly_summed(bytes(block), self.checksum)


def _wrongly_summed(block: bytes, how: str) -> bytes:
    blank = block[:148] + b" " * 8 + block[156:]
    total = sum(byte - 256 if byte > 127 else byte for byte in blank) if how == "signed" else sum(blank) + 1
    return blank[:148] + f"{total & 0o777777:06o}\0 ".encode() + blank[156:]


odd_fields = st.one_of(
    st.tuples(st.sampled_from(["mode", "uid", "gid", "size", "mtime", "major", "minor"]), st.sampled_from(NUMBERS)),
    st.tuples(st.sampled_from(["prefix", "target", "name"]), st.sampled_from(TARGETS + ODD_TARGETS)),
    st.tuples(st.sampled_from(sorted(FIELDS)), st.binary(max_size=12)),
)
members = st.builds(
    Member,
    name=mostly(NAMES, ODD_NAMES),
    type=mostly(TYPES, ODD_TYPES),
    content=contents,
    target=mostly(TARGETS, ODD_TARGETS, times=3),
    magic=mostly(MAGICS, ODD_MAGICS),
    odd=seldom(st.lists(odd_fields, min_size=1, max_size=2), times=5).map(dict),
    before=seldom(st.lists(extensions, min_size=1, max_size=2), times=4),
    checksum=mostly(["right"], ["signed", "wrong"]),
)
GOOD_ENDS: Final = (EMPTY_END, EMPTY_END + bytes(9216))
ends = mostly(
    GOOD_ENDS,
    [bytes(512), b"", EMPTY_END + b"x", EMPTY_END + entry(b"later", b"x") + EMPTY_END],
    times=3,
)


def member(name: bytes, type_: bytes = b"0", content: bytes = b"", **changes: Any) -> Member:
    return Member(name=name, type=type_, content=content, target=b"", magic=b"ustar\x0000", **changes)


HIDDEN: Final = entry(b"hidden", b"x")


@fuzz("tar fields", found=st.lists(members, min_size=1, max_size=4), end=ends)
@example([member(b"a"), member(b"b/", content=HIDDEN)], EMPTY_END)
@example([member(b"a"), member(b"label", b"V", odd={"size": b"00000002000\0"}), member(b"b", content=b"x")], EMPTY_END)
@example([member(b"a", content=b"x", before=[entry(b"pax", pax_record(b"size", b""), type_=b"x")])], EMPTY_END)
@example([member(b"a"), member(b"b", before=[entry(b"././@LongLink", b"\0", type_=b"L")])], EMPTY_END)
@example([member(b"a", before=[entry(b"pax", pax_record(b"", b"") + pax_record(b"path", b"other"), type_=b"x")])], EMPTY_END)
@example([member(b"a"), member(b"b", odd={"mode": b"0004755\0"})], EMPTY_END)
@example([member(b"a"), member(b"b", b"2", odd={"target": b"a"}), member(b"h", b"1", odd={"target": b"b"})], EMPTY_END)
def test_whatever_its_fields_hold_it_stays_inside_and_means_what_others_read(found: list[Member], end: bytes) -> None:
    archive = b"".join(member.packed for member in found) + end
    try:
        tree = unpacked(archive)
    except InvalidBundle:
        assert not (
            all(member.is_honest for member in found)
            and len({plain(member.name) for member in found}) == len(found)
            and end in GOOD_ENDS
        )
        return

    assert trees_of_others(archive, tree) == {}
