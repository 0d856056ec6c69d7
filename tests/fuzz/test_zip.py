"""Zip archives with hostile values in any field: an accepted one stays inside, and is what Python's reader sees."""

import struct
import zlib
from dataclasses import dataclass, field
from typing import Final

from hypothesis import example
from hypothesis import strategies as st

from docs_platform_action.errors import InvalidBundle
from tests.archives import Zipped, zip_of
from tests.fuzz import fuzz
from tests.fuzz.mutation import mostly, seldom
from tests.fuzz.tools import trees_of_others
from tests.fuzz.tree import ESCAPED, NAMES, plain, unpacked

Fields = dict[str, int]

LOCAL: Final = struct.Struct("<4s5H3I2H")
LISTED: Final = struct.Struct("<4s6H3I5H2I")
END: Final = struct.Struct("<4s4H2IH")
END_64: Final = struct.Struct("<4sQ2H2I4Q")
LOCATOR: Final = struct.Struct("<4sIQI")

LOCAL_NAMES: Final = ("needs", "flags", "method", "time", "date", "checksum", "packed", "size", "name", "extra")
LISTED_NAMES: Final = (
    *("made", "needs", "flags", "method", "time", "date", "checksum", "packed", "size", "name", "extra", "comment"),
    *("disk", "internal", "external", "offset"),
)
END_NAMES: Final = ("disk", "first_disk", "here", "entries", "length", "start", "comment")
END_64_NAMES: Final = ("record", "made", "needs", "disk", "first_disk", "here", "entries", "length", "start")
LOCATOR_NAMES: Final = ("disk", "start", "disks")

HOSTILE: Final = (
    *(0, 1, 2, 7, 0x7FFF, 0xFFFE, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF, 1 << 32, 1 << 63),
    *((1 << 64) - 1,),
)
ODD_NAMES: Final = (
    *(b"b/", b"", b".", b"/", b"../" + ESCAPED.encode(), b"/" + ESCAPED.encode(), b"/tmp/" + ESCAPED.encode(), b"b/../../x"),
    b"C:/x",
    *(b"B", b"a/x", b"a\0b", b"\xff", b"a\\b", b"x" * 256, "e\u0301.html".encode(), b"a\n", b"p/" * 600, b"a" * 70, b"b", b"h/"),
)
MODES: Final = (0o100644, 0o100600, 0, 0o644, 0o120777)
ODD_MODES: Final = (0o40755, 0o104755, 0o101777, 0o60644, 0o10644, 0o140755, 0o170000, 0o7777)
CONTENTS: Final = (
    *(b"", b"<h1>Docs</h1>", b"index.html", b"../" + ESCAPED.encode(), b"b/c", b"x" * 5000, b"PK\5\6" + bytes(18)),
    bytes(100_000),
)


@dataclass(frozen=True, kw_only=True)
class Change:
    """A changed field: `value` replaces the true value, or is added to it."""

    name: str
    value: int
    is_added: bool

    def on(self, fields: Fields) -> Fields:
        return {**fields, self.name: fields[self.name] * self.is_added + self.value}


def changes(*names: str) -> st.SearchStrategy[list[Change]]:
    """Draw no changes, mostly, or a few."""
    one = st.builds(
        Change, name=st.sampled_from(names), value=st.sampled_from([*HOSTILE, -1]) | st.integers(0, 200), is_added=st.booleans()
    )
    return seldom(st.lists(one, min_size=1, max_size=2), times=14)


def packed(layout: struct.Struct, signature: bytes, fields: Fields, todo: list[Change]) -> bytes:
    """Pack a record; the fields are in the layout's order, and each is cut to its size."""
    for change in todo:
        fields = change.on(fields)
    sizes = [{"H": 2, "I": 4, "Q": 8, "B": 1}[kind] for kind in _kinds(layout.format)]
    return layout.pack(signature, *(value % (1 << 8 * size) for value, size in zip(fields.values(), sizes, strict=True)))


def unicode_field(stored_name: bytes, name: bytes) -> bytes:
    """Pack a Unicode field (0x7075) with a name; an empty one gets a checksum that does not match."""
    return struct.pack("<2HBI", 0x7075, 5 + len(name), 1, zlib.crc32(stored_name) ^ (not name)) + name


def _kinds(form: str) -> str:
    found, times = "", ""
    for character in form.removeprefix("<4s"):
        if character.isdigit():
            times += character
        else:
            found, times = found + character * int(times or 1), ""
    return found


@dataclass(frozen=True, kw_only=True)
class Member:
    """One entry: its true values, and the changes in its two headers."""

    name: bytes
    content: bytes
    method: int
    flags: int
    system: int
    mode: int
    is_zip64: bool
    described: int
    local_extra: bytes
    extra: bytes
    comment: bytes
    before: bytes
    unicode_names: tuple[bytes | None, bytes | None] = (None, None)
    attributes: int = 0
    local: list[Change] = field(default_factory=list)
    listed: list[Change] = field(default_factory=list)

    @property
    def is_honest(self) -> bool:
        """Whether this is a regular file with true headers."""
        as_usual = (self.method, self.flags & ~0x800, self.before, self.extra, self.local_extra) in {
            (0, 0, b"", b"", b""),
            (8, 0, b"", b"", b""),
            (12, 0, b"", b"", b""),
        } and not (any(self.unicode_names) or self.attributes)
        return as_usual and self.name in NAMES and self.mode == 0o100644 and not self.local and not self.listed

    def headers(self, offset: int) -> tuple[bytes, bytes]:
        """Return the entry at this offset of the file, and the directory's record of it."""
        data = Zipped(content=self.content, method=self.method).data
        numbers = {"checksum": zlib.crc32(self.content), "packed": len(data), "size": len(self.content)}
        flags = self.flags | (8 if self.described else 0)
        common = {"needs": 20, "flags": flags, "method": self.method, "time": 0, "date": 33}
        known = dict.fromkeys(numbers, 0) if self.described else numbers
        local_extra, extra = (
            field + (b"" if name is None else unicode_field(self.name, name))
            for field, name in zip((self.local_extra, self.extra), self.unicode_names, strict=True)
        )
        local = {**common, **known, "name": len(self.name), "extra": len(local_extra)}
        after = struct.pack("<3I", *numbers.values())
        descriptor = (b"", after, b"PK\7\10" + after, b"PK\7\10" + struct.pack("<I2Q", *numbers.values()))[self.described]
        entry = packed(LOCAL, b"PK\3\4", local, self.local) + self.name + local_extra + data + descriptor
        if self.is_zip64:
            extra += struct.pack("<2H3Q", 1, 24, len(self.content), len(data), offset)
            numbers |= {"packed": 0xFFFFFFFF, "size": 0xFFFFFFFF}
        listed = {"made": self.system << 8 | 20, **common, **numbers, "name": len(self.name), "extra": len(extra)}
        listed |= {"comment": len(self.comment), "disk": 0, "internal": 0, "external": self.mode << 16 | self.attributes}
        listed |= {"offset": 0xFFFFFFFF if self.is_zip64 else offset}
        return self.before + entry, packed(LISTED, b"PK\1\2", listed, self.listed) + self.name + extra + self.comment


@dataclass(frozen=True, kw_only=True)
class Ending:
    """The end of the directory, and the changes in it."""

    is_zip64: bool
    comment: bytes
    junk: bytes
    end: list[Change]
    end_64: list[Change]
    locator: list[Change]

    @property
    def is_honest(self) -> bool:
        """Whether nothing in it is hostile."""
        padded = not self.junk.strip(b"\0") and len(self.junk) <= 1 << 20
        return padded and not (self.end or self.end_64 or self.locator or self.comment.startswith(b"PK"))

    def packed(self, count: int, start: int, length: int) -> bytes:
        numbers = {"disk": 0, "first_disk": 0, "here": count, "entries": count, "length": length, "start": start}
        ends = b""
        if self.is_zip64:
            large = {"record": 44, "made": 45, "needs": 45, **numbers}
            ends = packed(END_64, b"PK\6\6", large, self.end_64)
            ends += packed(LOCATOR, b"PK\6\7", {"disk": 0, "start": start + length, "disks": 1}, self.locator)
        return ends + packed(END, b"PK\5\6", {**numbers, "comment": len(self.comment)}, self.end) + self.comment + self.junk


def archive_of(members: list[Member], order: list[int], ending: Ending) -> bytes:
    """Make an archive; `order` are the indices of the entries that the directory lists."""
    body, records = b"", []
    for member in members:
        entry, record = member.headers(len(body) + len(member.before))
        body += entry
        records.append(record)
    listed = [records[number % len(records)] for number in order] or records
    directory = b"".join(listed)
    return body + directory + ending.packed(len(listed), len(body), len(directory))


extras = seldom(
    st.one_of(
        st.sampled_from(
            [b"UT\5\0\1abcd", b"\1\0\0\0", b"\1\0\x08\0" + b"\xff" * 8, b"\1\0\x18\0" + b"\xff" * 24, b"\1\0\xff\xff", b"xx"]
        ),
        st.binary(max_size=12),
    ).map(lambda extra: [extra])
).map(b"".join)
unicode_names = st.sampled_from([None, *NAMES, *ODD_NAMES])
HIDDEN: Final = zip_of(Zipped(name=b"hidden", content=b"x")).partition(b"PK\1\2")[0]
members = st.builds(
    Member,
    name=mostly((*NAMES, b"caf\x82.html", b"caf?.html"), ODD_NAMES),
    content=st.sampled_from(CONTENTS) | st.binary(max_size=20),
    method=mostly([0, 8, 8, 12], [9, 14, 77]),
    flags=mostly([0x800, 0x800, 0], [1, 1 << 6, 1 << 13, 1 << 3, 1 << 5]),
    system=st.sampled_from([3, 3, 3, 0, 19, 10]),
    mode=mostly(MODES, ODD_MODES),
    is_zip64=st.sampled_from([False, False, True]),
    described=st.sampled_from([0, 0, 0, 1, 2, 3]),
    local_extra=extras,
    extra=extras,
    comment=st.sampled_from([b"", b"", b"comment", b"PK\5\6" + bytes(18)]),
    before=mostly([b""], [b"MZ", bytes(30), b"PK\3\4", HIDDEN], times=20),
    unicode_names=st.one_of(
        st.just((None, None)), unicode_names.map(lambda name: (name, name)), st.tuples(unicode_names, unicode_names)
    ),
    attributes=mostly([0], [0x10, 0x20, 0x8000], times=5),
    local=changes(*LOCAL_NAMES),
    listed=changes(*LISTED_NAMES),
)
endings = st.builds(
    Ending,
    is_zip64=st.sampled_from([False, False, True]),
    comment=mostly([b"", b"a comment"], [b"PK\5\6" + bytes(18), bytes(0xFFFF)]),
    junk=mostly([b""], [b"\0", bytes(9000), bytes(70_000), b"PK\5\6", bytes(30) + b"x", bytes(1 << 20) + b"\0"], times=4),
    end=changes(*END_NAMES),
    end_64=changes(*END_64_NAMES),
    locator=changes(*LOCATOR_NAMES),
)
orders = seldom(st.lists(st.integers(0, 5), max_size=5))


def member(*listed: Change) -> Member:
    """Make a file with changes in its directory record."""
    return Member(
        name=b"a",
        content=b"<h1>Docs</h1>",
        method=8,
        flags=0,
        system=3,
        mode=0o100644,
        is_zip64=False,
        described=0,
        local_extra=b"UT\5\0\1abcd",
        extra=b"",
        comment=b"",
        before=b"",
        listed=[*listed],
    )


USUAL: Final = Ending(is_zip64=False, comment=b"", junk=b"", end=[], end_64=[], locator=[])


@fuzz("zip fields", found=st.lists(members, min_size=1, max_size=3), order=orders, ending=endings)
@example([member()], [], USUAL)
@example([member(Change(name="checksum", value=1, is_added=True))], [], USUAL)
@example([member(Change(name="size", value=-1, is_added=True))], [], USUAL)
@example([member()], [0, 0], USUAL)
def test_whatever_its_fields_hold_it_stays_inside_and_means_what_others_read(
    found: list[Member], order: list[int], ending: Ending
) -> None:
    archive = archive_of(found, order, ending)
    try:
        tree = unpacked(archive)
    except InvalidBundle:
        names = {plain(member.name) for member in found if member.is_honest}
        assert len(names) < len(found) or order or not ending.is_honest
        return

    assert trees_of_others(archive, tree) == {}
