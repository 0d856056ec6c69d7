"""What is not an archive, cannot be read or would be unsafe is refused."""

import bz2
import gzip
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from typing import Final

import pytest

from docs_platform_action.errors import InvalidBundle
from tests.archives import (
    EMPTY_END,
    FILE,
    SEVEN_ZIP,
    SMALL_SITE,
    Zipped,
    entry,
    extended_entry,
    tar,
    tar_of,
    zip_end,
    zip_of,
    zipped,
)
from tests.unpacking import unpacked

WEB_PAGE: Final = b"\n<!DOCTYPE html><html><title>Sign in</title></html>"
GOOD_TAR: Final = tar(SMALL_SITE)
GOOD_ZIP: Final = zipped(SMALL_SITE)


def link(name: bytes, target: bytes) -> bytes:
    return entry(name, type_=tarfile.SYMTYPE, target=target)


def hard_link(name: bytes, target: bytes) -> bytes:
    return entry(name, type_=tarfile.LNKTYPE, target=target)


def zip_link(name: bytes, target: bytes) -> Zipped:
    return Zipped(name=name, content=target, mode=0o120777)


def tar_of_names(names: Iterable[bytes]) -> bytes:
    return tar_of(*[entry(name) for name in names])


def zip_of_names(names: Iterable[bytes]) -> bytes:
    return zip_of(*[Zipped(name=name) for name in names])


def tar_of_links(links: Mapping[bytes, bytes]) -> bytes:
    return tar_of(*[link(name, target) for name, target in links.items()])


def zip_of_links(links: Mapping[bytes, bytes]) -> bytes:
    return zip_of(Zipped(), *[zip_link(name, target) for name, target in links.items()])


def unicode_name_field(stored: bytes, name: bytes) -> bytes:
    version = 1
    length = 5 + len(name)
    return struct.pack("<2HBI", 0x7075, length, version, zlib.crc32(stored)) + name


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


UNSAFE_NAMES: Final[Mapping[str, tuple[bytes, ...]]] = {
    "with an absolute name": (b"/etc/cron.d/x",),
    "that leads out": (b"../outside",),
    "with a line break in a name": (b"a\n::error::b",),
    "with a backslash in a name": (b"..\\outside",),
    "with a long part of a name": (b"x" * 100 + "ü".encode() * 78,),
    "with a long name": (b"/".join([b"x" * 200] * 6),),
    "with an empty name": (b"",),
    "with a file for the folder itself": (b".",),
    "with a file named as a folder": (b"a/.",),
    "with a file in a file": (b"a", b"a/b"),
    "with a file for a folder": (b"a/b", b"a"),
}
UNSAFE_LINKS: Final[Mapping[str, Mapping[bytes, bytes]]] = {
    "with an absolute link": {b"a": b"/etc/passwd"},
    "with a link that leads out": {b"a": b"../outside"},
    "with a link to nothing": {b"a": b"b"},
    "with a link to no name": {b"a": b""},
    "with a link to the site's folder": {b"a": b"."},
    "with a link to its own folder": {b"a/b": b"."},
    "with a link to the folder above": {b"a/b/c": b"../../a"},
    "with a link to a line break": {b"a": b"b\nc"},
}

ARCHIVES: Final[Mapping[str, bytes]] = {
    # no archives
    "empty file": b"",
    "web page": WEB_PAGE,
    "storage error": b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>",
    "JSON": b' {"error": "expired"}',
    "noise": b"\x00\x01\x02\x03",
    # of another format, or compressed twice
    "Zstandard": b"\x28\xb5\x2f\xfd" + bytes(600),
    "7z": SEVEN_ZIP,
    "rar": b"Rar!\x1a\x07\x01\x00" + bytes(600),
    "split zip": b"PK\x07\x08PK\x03\x04" + bytes(600),
    "gzip of a web page": gzip.compress(WEB_PAGE),
    "gzip of a zip": gzip.compress(GOOD_ZIP),
    # damaged
    "gzip cut": gzip.compress(GOOD_TAR)[:-20],
    "gzip with a wrong checksum": flipped(gzip.compress(GOOD_TAR), -6),
    "gzip with something behind it": gzip.compress(GOOD_TAR) + b"something",
    "bzip2 with something behind it": bz2.compress(GOOD_TAR) + b"\nsomething",
    "xz with something behind it": lzma.compress(GOOD_TAR) + b"\nsomething",
    "tar without an end": FILE,
    "tar cut in a file": FILE[:520],
    "tar cut in a file that is left out": FILE + entry(b"._a", bytes(2000))[:1000],
    "xz cut": lzma.compress(GOOD_TAR)[:-20],
    "tar with something behind its end": FILE + EMPTY_END + b"\nsomething",
    "tar with another one behind its end": FILE + EMPTY_END + FILE,
    "tar with a damaged header": tar_of(flipped(entry(b"a"), 20)),
    "tar with a negative size": tar_of(entry(b"odd", size=-16)),
    "zip cut": GOOD_ZIP[:-1],
    "zip with a wrong checksum": zip_of(Zipped(checksum=1)),
    "zip with a file that is longer than declared": zip_of(Zipped(size=5)),
    "zip with a file that is shorter than declared": zip_of(Zipped(size=500)),
    "zip with a file that is empty as declared": zip_of(Zipped(size=0)),
    "zip with an entry at a wrong offset": zip_of(Zipped(), Zipped(name=b"b", offset=60)),
    # unsafe
    **{f"tar {what}": tar_of_names(names) for what, names in UNSAFE_NAMES.items()},
    **{f"zip {what}": zip_of_names(names) for what, names in UNSAFE_NAMES.items()},
    "xz that needs much memory": lzma.compress(
        GOOD_TAR, filters=[{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 512 * 1024**2}]
    ),
    **{f"tar {what}": tar_of_links(links) for what, links in UNSAFE_LINKS.items()},
    **{f"zip {what}": zip_of_links(links) for what, links in UNSAFE_LINKS.items()},
    "tar with a name that is not UTF-8": tar_of(entry(b"caf\xe9")),
    "tar that leads out by a folder": tar_of(entry(b"../outside/", type_=b"5")),
    "tar that leads out by an extended header": tar_of(extended_entry(path="../outside")),
    "tar with a link named as a folder": tar_of(link(b"a/", b"index.html")),
    "tar with a link that leads out by another": tar_of(
        entry(b"top/", type_=b"5"),
        link(b"a/b/c/up", b"../../../top"),
        link(b"a/b/c/out", b"up/../.."),
    ),
    "tar with a file through a link": tar_of(link(b"a", b"b"), entry(b"a/c")),
    "tar with a hard link that leads out": tar_of(hard_link(b"a", b"../outside")),
    "tar with a hard link to nothing": tar_of(hard_link(b"a", b"b")),
    "tar with a hard link to what comes later": tar_of(hard_link(b"a", b"b"), entry(b"b")),
    "tar with a hard link to a folder": tar_of(entry(b"b/c"), hard_link(b"a", b"b")),
    "tar with a pipe": tar_of(entry(b"a", type_=b"6")),
    "tar with large headers": tar_of(
        tarfile.TarInfo.create_pax_global_header({"comment": "x" * 600_000}),
        extended_entry(comment="x" * 600_000),
    ),
    "zip with a pipe": zip_of(Zipped(mode=0o010644)),
    "zip that is encrypted": zip_of(Zipped(flags=1)),
    "zip with bzip2": zipped(SMALL_SITE, method=zipfile.ZIP_BZIP2),
    "zip with an unknown method": zip_of(Zipped(method=77)),
    "zip with a Unicode name that leads out": zip_of(
        Zipped(name=b"a", extra=unicode_name_field(b"a", b"../outside"))
    ),
    # empty, or too large
    "tar without entries": bytes(10240),
    "tar with folders alone": entry(b"a/", type_=b"5") + EMPTY_END,
    "zip without entries": zip_of(),
    "zip with 250,001 entries": b"PK\3\4"
    + b"PK\1\2" * 250_001
    + zip_end(0, directory=4 * 250_001, start=4),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_it_is_refused(name: str) -> None:
    with pytest.raises(InvalidBundle):
        unpacked(ARCHIVES[name])


@pytest.mark.parametrize(
    "archive",
    [
        GOOD_TAR,
        GOOD_ZIP,
        gzip.compress(GOOD_TAR),
        gzip.compress(GOOD_TAR + b"\n"),
        bz2.compress(GOOD_TAR),
        lzma.compress(GOOD_TAR),
    ],
    ids=["tar", "zip", "gzip", "tar in gzip", "bzip2", "xz"],
)
@pytest.mark.parametrize("rest", [b"\n", b"\r\n", b" \t\n", bytes(1000), bytes(7) + b"\n"])
def test_white_space_and_zeros_behind_it_are_accepted(archive: bytes, rest: bytes) -> None:
    assert unpacked(archive + rest) == unpacked(archive)
