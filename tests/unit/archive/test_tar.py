"""Tar archives are read as their writers mean them."""

import struct
import tarfile

import pytest

from tests.archives import EMPTY_END, FILE, SMALL_SITE, Site, checksummed, entry, header, pax, pax_record, tar, tar_of
from tests.folders import Tree
from tests.unit.archive.places import INDEX, SMALL_TREE, Place


def signed(block: bytes) -> bytes:
    """Return a header with a sum of signed bytes."""
    blank = block[:148] + b" " * 8 + block[156:]
    return blank[:148] + f"{sum(struct.unpack('512b', blank)):06o}\0 ".encode() + blank[156:]


def with_field(name: bytes, start: int, value: bytes, *, size: int = 0) -> bytes:
    """Return a header with a value at this offset."""
    block = header(name, size=size)
    return checksummed(block[:start] + value + block[start + len(value) :])


ABC = b"abc".ljust(512, b"\0")
LONG_NAME = "x" * 120
FOLDERS = [entry(name, type_=b"5") for name in (b"/", b"./", b".", b"//")]
MANY_RECORDS = entry(b"pax", b"6 a=b\n" * 999, type_=b"x")
MANY_ATTRIBUTES = pax(**{f"SCHILY__xattr__user__{number}": b"x" * 900 for number in range(998)}, path=b"a")

READ: dict[str, tuple[bytes, Tree]] = {
    "a label, and the folder itself": (entry(b"Docs", type_=b"V") + tar_of(*FOLDERS), INDEX),
    "a folder with a size": (tar_of(header(b"a/", type_=b"5", size=4096)), {"a": None, **INDEX}),
    "a folder again": (
        tar_of(entry(b"a/b"), *[entry(b"a/", type_=b"5")] * 2, entry(b"a/d")),
        {"a": None, "a/b": b"", "a/d": b"", **INDEX},
    ),
    "folders without a slash or a type": (
        tar_of(entry(b"a", type_=b"5"), entry(b"b/"), entry(b"c/", type_=b"\0")),
        {"a": None, "b": None, "c": None, **INDEX},
    ),
    "a dot and doubled slashes": (tar_of(entry(b"./a//b/./c.html")), {"a": None, "a/b": None, "a/b/c.html": b"", **INDEX}),
    "GNU's times where POSIX has a prefix": (
        tar_of(with_field(b"a", 257, b"ustar  \0".ljust(88, b"\0") + b"12345670123\0")),
        {"a": b"", **INDEX},
    ),
    "POSIX's prefix": (
        tar_of(with_field(b"b" * 100, 345, b"a" * 155)),
        {"a" * 155: None, "a" * 155 + "/" + "b" * 100: b"", **INDEX},
    ),
    "a header from before POSIX": (with_field(b"BZh91AY&SY", 156, bytes(356), size=3) + ABC + EMPTY_END, {"BZh91AY&SY": b"abc"}),
    "a sum of signed bytes": (tar_of(signed(entry("é".encode()))), {**INDEX, "é": b""}),
    "a size in binary": (tar_of(with_field(b"a", 124, b"\x80" + bytes(10) + b"\3") + ABC), {"a": b"abc", **INDEX}),
    "a size in an extended header": (tar_of(pax(size=b"3", comment=b"="), header(b"a") + ABC), {"a": b"abc", **INDEX}),
    "a header for all that names nothing": (entry(b"pax", pax_record(b"comment", b"0123abc"), type_=b"g") + tar_of(), INDEX),
    "a link to a long name": (
        tar(Site(files={LONG_NAME: b"1"}, links={"link": LONG_NAME}), form=tarfile.GNU_FORMAT),
        {"link": LONG_NAME, LONG_NAME: b"1"},
    ),
    "padding": (FILE + EMPTY_END + bytes(1_000_001), INDEX),
    "an odd number of blocks": (FILE + bytes(513), INDEX),
    "many attributes": (tar_of(MANY_ATTRIBUTES, entry(b"b")), {"a": b"", **INDEX}),
    "many records for each of two entries": (
        tar_of(MANY_RECORDS, entry(b"a"), MANY_RECORDS, entry(b"b")),
        {"a": b"", "b": b"", **INDEX},
    ),
    "POSIX.1-1988": (tar(SMALL_SITE, form=tarfile.USTAR_FORMAT), SMALL_TREE),
}


@pytest.mark.parametrize(("archive", "tree"), READ.values(), ids=READ)
def test_what_writers_pack_is_read(place: Place, archive: bytes, tree: Tree) -> None:
    place.unpack(archive)

    assert place.tree() == tree
