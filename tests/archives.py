"""Archives for tests: valid ones of every supported kind, and hostile ones by the kind of their refusal."""

import bz2
import functools
import gzip
import io
import lzma
import os
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import starmap
from pathlib import Path
from typing import Any, Final

from docs_platform_action.archive.reading import ArchiveFile
from docs_platform_action.clock import Cancellation

EMPTY_END: Final = bytes(2 * tarfile.BLOCKSIZE)
"""A tar archive's end marker."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """The content of an archive: files by path, empty folders, and targets of symbolic links by path."""

    files: Mapping[str, bytes]
    folders: Iterable[str] = ()
    links: Mapping[str, str] = field(default_factory=dict)


SMALL_SITE: Final = Site(
    files={"index.html": b"<h1>Docs</h1>", "guide/start.html": b"<p>Start</p>" * 50, "guide/empty.txt": b""},
    folders=["assets"],
    links={"latest": "guide", "guide/home.html": "../index.html"},
)


@contextmanager
def open_archive(path: Path, cancellation: Cancellation) -> Iterator[ArchiveFile]:
    """Open an archive for `unpack`."""
    with path.open("rb", buffering=0) as file:
        yield ArchiveFile(file.fileno(), os.fstat(file.fileno()).st_size, cancellation)


def tar(site: Site, *, form: int = tarfile.PAX_FORMAT) -> bytes:
    """Pack as Python's `tarfile` does."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=form, encoding="utf-8") as archive:
        for name in site.folders:
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o2700
            archive.addfile(folder)
        for name, content in site.files.items():
            file = tarfile.TarInfo(name)
            file.size, file.mode, file.mtime = len(content), 0o600, 1_000_000_000.5
            archive.addfile(file, io.BytesIO(content))
        for name, target in site.links.items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            archive.addfile(link)
    return packed.getvalue()


def zipped(site: Site, *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Pack as Python's `zipfile` does."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name in site.folders:
            archive.writestr(f"{name}/", b"")
        for name, content in site.files.items():
            archive.writestr(name, content)
        for name, target in site.links.items():
            link = zipfile.ZipInfo(name)
            link.create_system, link.external_attr = 3, 0o120777 << 16
            archive.writestr(link, target)
    return packed.getvalue()


KINDS: Final[Mapping[str, Callable[[Site], bytes]]] = {
    "tar": tar,
    "tar-gnu": lambda site: tar(site, form=tarfile.GNU_FORMAT),
    "tar.gz": lambda site: gzip.compress(tar(site)),
    "tar.bz2": lambda site: bz2.compress(tar(site)),
    "tar.xz": lambda site: lzma.compress(tar(site), preset=0),
    "zip": zipped,
    "zip-stored": lambda site: zipped(site, method=zipfile.ZIP_STORED),
    "zip-bzip2": lambda site: zipped(site, method=zipfile.ZIP_BZIP2),
    "zip-padded": lambda site: zipped(site) + bytes(9000),
    "gzip of zip": lambda site: gzip.compress(zipped(site)),
    "gzip of tar.gz": lambda site: gzip.compress(gzip.compress(tar(site))),
    "gzip of tar.bz2": lambda site: gzip.compress(bz2.compress(tar(site))),
    "gzip of tar.xz": lambda site: gzip.compress(lzma.compress(tar(site), preset=0)),
}
"""Every supported kind, as a function that packs a site. A storage may add the outer gzip, with `Content-Encoding: gzip`."""


def checksummed(block: bytes) -> bytes:
    """Return a tar header with its correct checksum."""
    blank = block[:148] + b" " * 8 + block[156:]
    return blank[:148] + f"{sum(blank):06o}\0 ".encode() + blank[156:]


def header(name: bytes, *, type_: bytes = b"0", size: int = 0, mode: int = 0o644, target: bytes = b"") -> bytes:
    """Make a POSIX header of a tar entry."""
    numbers = f"{mode:07o}\0{0:07o}\0{0:07o}\0{size:011o}\0{0:011o}\0".encode()
    block = name.ljust(100, b"\0") + numbers + b" " * 8 + type_ + target.ljust(100, b"\0") + b"ustar\x0000"
    return checksummed(block.ljust(512, b"\0"))


def entry(name: bytes, content: bytes = b"", *, type_: bytes = b"0", mode: int = 0o644, target: bytes = b"") -> bytes:
    """Make a tar entry with its content."""
    padding = bytes(-len(content) % 512)
    return header(name, type_=type_, size=len(content), mode=mode, target=target) + content + padding


def pax(**records: bytes) -> bytes:
    """Make an extended header for the next tar entry; `__` in a key stands for a dot."""
    return entry(
        b"pax", b"".join(pax_record(key.replace("__", ".").encode(), value) for key, value in records.items()), type_=b"x"
    )


def pax_record(key: bytes, value: bytes) -> bytes:
    """Make one record of an extended header. Its length includes the digits of the length."""
    length = rest = len(key) + len(value) + 3
    while length != rest + len(str(length)):
        length = rest + len(str(length))
    return b"%d %s=%s\n" % (length, key, value)


FILE: Final = entry(b"index.html", b"<h1>Docs</h1>")
"""A valid tar entry."""


def tar_of(*entries: bytes) -> bytes:
    """Make a tar archive of a valid entry and these."""
    return FILE + b"".join(entries) + EMPTY_END


@dataclass(frozen=True, kw_only=True)
class Zipped:
    """An entry of a zip archive, and what its two headers say about it; `None` stands for the true value.

    `numbers_inside` are the checksum, the compressed size and the size. `after` follows the content.
    """

    name: bytes = b"index.html"
    content: bytes = b"<h1>Docs</h1>"
    method: int = 8
    flags: int = 0
    system: int = 3
    mode: int = 0o100644
    attributes: int = 0
    name_inside: bytes | None = None
    size: int | None = None
    length: int | None = None
    checksum: int | None = None
    offset: int | None = None
    packed: bytes | None = None
    extra: bytes = b""
    extra_inside: bytes = b""
    method_inside: int | None = None
    flags_inside: int | None = None
    numbers_inside: tuple[int, int, int] | None = None
    zip64: bool = False
    listed_only: bool = False
    after: bytes = b""

    @property
    def data(self) -> bytes:
        """The content as it is packed."""
        if self.packed is not None:
            return self.packed
        if self.method == 8:
            packer = zlib.compressobj(wbits=-15)
            return packer.compress(self.content) + packer.flush()
        return bz2.compress(self.content) if self.method == 12 else self.content


def zip_of(
    *entries: Zipped, before: bytes = b"", comment: bytes = b"", count: int | None = None, disk: int = 0, zip64: bool = False
) -> bytes:
    """Make a zip archive of entries. Its end record may declare something else."""
    archive, directory = bytearray(before), bytearray()
    for item in entries:
        offset = len(archive) if item.offset is None else item.offset
        checksum = zlib.crc32(item.content) if item.checksum is None else item.checksum
        size = len(item.content) if item.size is None else item.size
        inside = item.name if item.name_inside is None else item.name_inside
        length = len(item.data) if item.length is None else item.length
        numbers = (checksum, length, size)
        extra = item.extra
        listed = numbers
        if item.zip64:
            extra += struct.pack("<2H3Q", 1, 24, size, length, offset)
            listed, offset = (checksum, 0xFFFFFFFF, 0xFFFFFFFF), 0xFFFFFFFF
        flags = item.flags if item.flags_inside is None else item.flags_inside
        method = item.method if item.method_inside is None else item.method_inside
        lengths = (len(inside), len(item.extra_inside))
        local = struct.pack("<4s5H3I2H", b"PK\3\4", 20, flags, method, 0, 0, *(item.numbers_inside or numbers), *lengths)
        archive += b"" if item.listed_only else local + inside + item.extra_inside + item.data + item.after
        directory += struct.pack(
            "<4s2B5H3I5H2I",
            *(b"PK\1\2", 20, item.system, 20, item.flags, item.method, 0, 0, *listed),
            *(len(item.name), len(extra), 0, 0, 0, item.mode << 16 | item.attributes, offset),
        )
        directory += item.name + extra
    start = len(archive)
    declared = len(entries) if count is None else count
    small = min(declared, 0xFFFF)
    end = struct.pack("<4s4H2IH", b"PK\5\6", disk, 0, small, small, len(directory), start, len(comment))
    end_64 = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, disk, 0, declared, declared, len(directory), start)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, start + len(directory), 1)
    return bytes(archive + directory + (end_64 + locator if zip64 else b"") + end + comment)


def unicode_field(name: bytes, stored_name: bytes, *, version: int = 1) -> bytes:
    """Make the extra field of a zip entry with its name in UTF-8."""
    return struct.pack("<2HBI", 0x7075, 5 + len(name), version, zlib.crc32(stored_name)) + name


def unicode_zipped(name: bytes, stored_name: bytes, **changes: Any) -> Zipped:
    """Make a zip entry with another name in the Unicode field of both headers."""
    field = unicode_field(name, stored_name)
    return Zipped(name=stored_name, **{"extra": field, "extra_inside": field, **changes})


def descriptor(item: Zipped, *, layout: str = "<3I", magic: bytes = b"PK\x07\x08") -> bytes:
    """Make the data descriptor of a zip entry."""
    return magic + struct.pack(layout, zlib.crc32(item.content), len(item.data), len(item.content))


WEB_PAGE: Final = b"\n<!DOCTYPE html><html><title>Sign in</title></html>"
XML: Final = b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>"
_GOOD_TAR: Final = tar(SMALL_SITE)
_GOOD_ZIP: Final = zipped(SMALL_SITE)
_NESTED: Final = Zipped(name=b"a/b", content=b"x" * 200)


def _link(name: bytes, target: bytes) -> bytes:
    return entry(name, type_=b"2", target=target)


def _hard_link(name: bytes, target: bytes) -> bytes:
    return entry(name, type_=b"1", target=target)


def _zip_link(name: bytes, target: bytes, *, system: int = 3) -> Zipped:
    return Zipped(name=name, content=target, mode=0o120777, system=system)


def _zip_with_entry_in_another() -> bytes:
    """Make an archive whose entries have the total size of its content, but leave a gap of the size of the one inside another."""
    inside = zip_of(_NESTED).partition(b"PK\1\2")[0]
    outer = Zipped(content=inside, method=0, after=bytes(len(inside)))
    return zip_of(outer, replace(_NESTED, offset=30 + len(outer.name), listed_only=True))


def _zip64_in_parts() -> bytes:
    archive = zip_of(Zipped(), zip64=True)
    at = archive.index(b"PK\6\7") + 16
    return archive[:at] + struct.pack("<I", 2) + archive[at + 4 :]


def stream_field(mode: int, *, parts: int = 7) -> bytes:
    """Make libarchive's extra field of a zip entry: bits for its parts, then the version and system, and attributes."""
    values = (struct.pack("<H", 3 << 8 | 20), struct.pack("<H", 0), struct.pack("<I", mode << 16))
    data = bytes([parts]) + b"".join(value for bit, value in enumerate(values) if parts & 1 << bit)
    return struct.pack("<2H", 0x6C78, len(data)) + data


def unix_field(mode: int) -> bytes:
    """Make the ASi Unix field of a zip entry, with its mode."""
    data = struct.pack("<HI2H", mode, 0, 0, 0)
    return struct.pack("<2HI", 0x756E, 4 + len(data), zlib.crc32(data)) + data


def _with_prefix(block: bytes, magic: bytes) -> bytes:
    return checksummed(block[:257] + magic + block[265:345] + b"prefix" + block[351:512]) + block[512:]


def _with_map_of_holes(block: bytes) -> bytes:
    """Return an entry with GNU's magic and map of holes in its header, but another type."""
    return checksummed(block[:257] + b"ustar  \0" + block[265:386] + b"00000000001\0" * 2 + block[410:512]) + block[512:]


def _names(*entries: bytes) -> bytes:
    return tar_of(*(entry(name) for name in entries))


def _zip_names(*entries: bytes) -> bytes:
    return zip_of(*(Zipped(name=name) for name in entries))


def _flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def _odd_number(field_: bytes, *, start: int = 124, length: int = 12, type_: bytes = b"0") -> bytes:
    block = header(b"odd", type_=type_)
    return checksummed(block[:start] + field_[:length].ljust(length, b"\0") + block[start + length :])


_UNSAFE_NAMES: Final[Mapping[str, tuple[bytes, ...]]] = {
    "with an absolute name": (b"/etc/cron.d/x",),
    "with a drive in a name": (b"C:/x",),
    "that leads out": (b"../outside",),
    "that leads out from within": (b"a/../../outside",),
    "that leads out and back": (b"a/../b",),
    "with a line break in a name": (b"a\n::error::b",),
    "with an escape in a name": (b"a\x1b[31mb",),
    "with a control character beyond ASCII": ("a\x85b".encode(),),
    "with a name that is not UTF-8": (b"caf\xe9",),
    "with a surrogate in a name": (b"a\xed\xa0\x80",),
    "with a backslash in a name": (b"..\\outside",),
    "with a drive and a backslash in a name": (b"C:\\x",),
    "with an empty name": (b"",),
    "with a file for the folder itself": (b".",),
    "with a name twice": (b"a", b"a"),
    "with a name twice, spelled otherwise": (b"a/b", b"./a//b"),
    "with names that differ in case": (b"Readme", b"README"),
    "with folders that differ in case": (b"docs/a", b"Docs/b"),
    "with a folder and a file that differ in case": (b"docs/a", b"DOCS"),
    "with names that differ in composition": ("caf\u00e9".encode(), "cafe\u0301".encode()),
    "with names that fold alike": ("stra\u00dfe".encode(), b"STRASSE"),
    "with a file in a file": (b"a", b"a/b"),
    "with a file for a folder": (b"a/b", b"a"),
}
_UNSAFE_LINKS: Final[Mapping[str, Mapping[bytes, bytes]]] = {
    "with an absolute link": {b"a": b"/etc/passwd"},
    "with a link that leads out": {b"a": b"../outside"},
    "with a link that leads out from within": {b"a/b": b"c/../../../outside"},
    "with a link to nothing": {b"a": b"b"},
    "with a link to no name": {b"a": b""},
    "with a link to itself": {b"a": b"a"},
    "with links to each other": {b"a": b"b", b"b": b"a"},
    "with a link to its own folder": {b"a": b"."},
    "with a link to the folder above": {b"a/b/c": b"../../a"},
    "with a link through a file": {b"a": b"index.html/x"},
    "with a link out of a file": {b"a": b"index.html/../index.html"},
    "with a link to a line break": {b"a": b"b\nc"},
    "with a link to what is not UTF-8": {b"a": b"\xff"},
}
_IGNORED_NUMBERS: Final = {"user": (108, 8), "group": (116, 8), "time": (136, 12), "device": (329, 8), "part": (337, 8)}
_HIDDEN: Final = zip_of(Zipped(name=b"hidden")).partition(b"PK\1\2")[0]

SEVEN_ZIP: Final = b"7z\xbc\xaf\x27\x1c" + bytes(600)
"""An archive of an unsupported format."""

NOT_ARCHIVES: Final[Mapping[str, bytes]] = {
    "empty file": b"",
    "web page": WEB_PAGE,
    "web page after a byte order mark": b"\xef\xbb\xbf<html>",
    "storage error": XML,
    "storage error without a declaration": b"<Error>",
    "JSON": b' {"error": "expired"}',
    "JSON list": b"[1]",
    "noise": b"\x00\x01\x02\x03",
    "noise as long as a header": b"\x01" * 2000,
}
"""Responses that are no bundle."""

UNSUPPORTED: Final[Mapping[str, bytes]] = {
    "Zstandard": b"\x28\xb5\x2f\xfd" + bytes(600),
    "7z": SEVEN_ZIP,
    "rar": b"Rar!\x1a\x07\x01\x00" + bytes(600),
    "Zstandard after a skippable frame": b"\x50\x2a\x4d\x18" + bytes(600),
    "LZMA": b"\x5d\x00\x00\x80\x00" + bytes(600),
    "compress": b"\x1f\x9d\x90" + bytes(600),
    "lzip": b"LZIP\x01" + bytes(600),
    "LZ4": b"\x04\x22\x4d\x18" + bytes(600),
    "split zip": b"PK\x07\x08PK\x03\x04" + bytes(600),
    "split zip in one part": b"PK00PK\x03\x04" + bytes(600),
    "gzip of nothing": gzip.compress(b""),
    "gzip of a web page": gzip.compress(WEB_PAGE),
    "gzip of gzip of gzip": gzip.compress(gzip.compress(gzip.compress(_GOOD_TAR))),
    "gzip of gzip of a zip without entries": gzip.compress(gzip.compress(zip_of())),
    "gzip of gzip of a zip": gzip.compress(gzip.compress(_GOOD_ZIP)),
    "gzip of xz of text": gzip.compress(lzma.compress(b"hello")),
    "gzip of 7z": gzip.compress(b"7z\xbc\xaf\x27\x1c" + bytes(600)),
    "bzip2 of a zip": bz2.compress(_GOOD_ZIP),
    "xz of gzip": lzma.compress(gzip.compress(_GOOD_TAR)),
    "xz of text": lzma.compress(b"hello"),
    "bzip2 of text": bz2.compress(b"hello"),
}
"""Archives of other formats, and archives in too many layers."""

DAMAGED: Final[Mapping[str, bytes]] = {
    "gzip cut": gzip.compress(_GOOD_TAR)[:-20],
    "gzip cut in its trailer": gzip.compress(_GOOD_TAR)[:-1],
    "gzip cut in its header": gzip.compress(_GOOD_TAR)[:5],
    "gzip with a wrong checksum": _flipped(gzip.compress(_GOOD_TAR), -6),
    "gzip with a wrong length": _flipped(gzip.compress(_GOOD_TAR), -2),
    "gzip with something behind it": gzip.compress(_GOOD_TAR) + b"something",
    "gzip with something behind padding": gzip.compress(_GOOD_TAR) + bytes(200_000) + b"!",
    "gzip with a byte behind it": gzip.compress(_GOOD_TAR) + b"\x1f",
    "gzip of half a tar": gzip.compress(_GOOD_TAR[:1500]),
    "bzip2 cut": bz2.compress(_GOOD_TAR)[:-9],
    "bzip2 flipped": _flipped(bz2.compress(_GOOD_TAR), 50),
    "bzip2 with something behind it": bz2.compress(_GOOD_TAR) + b"something",
    "xz cut": lzma.compress(_GOOD_TAR)[:-9],
    "xz flipped": _flipped(lzma.compress(_GOOD_TAR), 90),
    "xz with something behind it": lzma.compress(_GOOD_TAR) + b"something",
    "tar without an end": FILE,
    "tar cut in a file": FILE[:520],
    "tar cut in a header": FILE + FILE[:100],
    "tar cut in an extended header": FILE + entry(b"pax", b"x" * 600, type_=b"x")[:600],
    "tar with something behind its end": FILE + EMPTY_END + FILE,
    "tar with a damaged header": tar_of(_flipped(entry(b"a"), 20)),
    "tar with a damaged checksum": tar_of(_flipped(entry(b"a"), 149)),
    "tar that ends where an entry was announced": tar_of(pax(path=b"a")),
    "tar with a negative size": tar_of(_odd_number(b"\xff" * 11 + b"\xf0")),
    **{
        f"tar with a {name} that is no number": tar_of(_odd_number(b"no number", start=start, length=length))
        for name, (start, length) in _IGNORED_NUMBERS.items()
    },
    "tar with a time of an extended header that is no number": tar_of(
        _odd_number(b"no number", start=136, type_=b"x"), entry(b"b")
    ),
    "tar with a mode in binary": tar_of(_odd_number(b"\x80", start=100, length=8)),
    "tar with digits after a zero byte": tar_of(_odd_number(b"\x007")),
    "tar with an extended header without a name": entry(b"", pax_record(b"path", b"a"), type_=b"x") + tar_of(),
    "tar with an odd size beside another": tar_of(pax(size=b"0"), _odd_number(b"no number")),
    "tar with a label after a file": tar_of(header(b"label", type_=b"V")),
    "tar with an underscore in a size": tar_of(_odd_number(b"0000000_001\0")),
    "tar with a size that goes beyond it": tar_of(header(b"a", size=4000)),
    "tar with a folder that has content": tar_of(entry(b"a", b"content", type_=b"5")),
    "tar with a file that hides others behind a folder's name": tar_of(entry(b"a/", entry(b"hidden", b"content"))),
    "tar with a label that hides files": tar_of(header(b"label", type_=b"V", size=1024) + entry(b"hidden", b"x")),
    "tar with a label of another name": tar_of(pax(path=b"other"), entry(b"label", type_=b"V"), entry(b"a")),
    "tar with a link that has content": tar_of(entry(b"a", b"content", type_=b"2", target=b"b")),
    "tar with an extended header that is text": tar_of(entry(b"pax", b"hello", type_=b"x"), entry(b"a")),
    "tar with a record without a key": tar_of(
        entry(b"pax", pax_record(b"", b"x") + pax_record(b"path", b"other"), type_=b"x"), entry(b"a")
    ),
    "tar with a record without a value": tar_of(entry(b"pax", b"8 hello\n", type_=b"x"), entry(b"a")),
    "tar with a record that is too long": tar_of(entry(b"pax", b"99 path=a\n", type_=b"x"), entry(b"a")),
    "tar with a record that is too short": tar_of(entry(b"pax", b"1 path=a\n", type_=b"x"), entry(b"a")),
    "tar with a record of no length": tar_of(entry(b"pax", b"0 path=a\n", type_=b"x"), entry(b"a")),
    "tar with a size that is not a number": tar_of(pax(size=b"-1"), entry(b"a")),
    "tar with a size of many digits": tar_of(pax(size=b"1" * 5000), entry(b"a")),
    "zip cut": _GOOD_ZIP[:-1],
    "zip with something behind it": _GOOD_ZIP + b"\n",
    "zip with something behind padding": _GOOD_ZIP + bytes(9000) + b"\n",
    "zip with padding of a mebibyte and more": _GOOD_ZIP + bytes(1024**2 + 1),
    "zip that is cut and padded": _GOOD_ZIP[:-6] + bytes(9000),
    "zip whose comment goes beyond its padding": _GOOD_ZIP[:-2] + struct.pack("<H", 5000) + bytes(4999),
    "gzip of a zip, cut": gzip.compress(_GOOD_ZIP)[:-20],
    "gzip of a zip, with a wrong checksum": _flipped(gzip.compress(_GOOD_ZIP), -6),
    "gzip of a zip, with something behind it": gzip.compress(_GOOD_ZIP) + b"something",
    "gzip of half a zip": gzip.compress(_GOOD_ZIP[:-1]),
    "gzip of gzip, cut inside": gzip.compress(gzip.compress(_GOOD_TAR)[:-20]),
    "zip with a second end in its comment": zip_of(Zipped(), comment=zip_of(Zipped(name=b"evil")) + b"longer than it says"),
    "zip without its directory's end": _GOOD_ZIP[:60],
    "zip without a piece": _GOOD_ZIP[:40] + _GOOD_ZIP[41:],
    "zip of another number of entries": zip_of(Zipped(), count=2),
    "zip with something before it": b"PK\3\4" + _GOOD_ZIP,
    "zip with a wrong checksum": zip_of(Zipped(checksum=1)),
    "zip with a file that is longer than declared": zip_of(Zipped(size=5)),
    "zip with a file that is shorter than declared": zip_of(Zipped(size=500)),
    "zip with deflate data that is none": zip_of(Zipped(packed=b"\xff" * 20)),
    "zip with deflate data that is cut": zip_of(Zipped(packed=Zipped().data[:-3])),
    "zip with something behind deflate data": zip_of(Zipped(packed=Zipped().data + b"!")),
    "zip with two bzip2 streams in an entry": zip_of(
        Zipped(method=12, packed=bz2.compress(b"<h1>") + bz2.compress(b"Docs</h1>"))
    ),
    "zip with another name inside": zip_of(Zipped(name_inside=b"other.html")),
    "zip with an entry outside of the file": zip_of(Zipped(offset=1 << 31)),
    "zip with an entry at the directory": zip_of(Zipped(), Zipped(name=b"b", offset=60)),
    "zip with a folder that has content": zip_of(Zipped(name=b"a/")),
    "zip64 without its field": zip_of(Zipped(size=0xFFFFFFFF)),
    "zip64 without its field among others": zip_of(Zipped(size=0xFFFFFFFF, extra=b"\x02\x00\x01\x00!\x01")),
    "zip64 whose end is elsewhere": zip_of(Zipped(), zip64=True).replace(b"PK\6\6", b"PK\6\5"),
    "tar with a size for a folder": tar_of(pax(size=b"5"), entry(b"a/", type_=b"5")),
    "tar with a blank before a key": tar_of(pax(**{" path": b"a"}), entry(b"b")),
    "tar with a tab before a key": tar_of(pax(**{"\tsize": b"0"}), entry(b"b")),
}

CONTRADICTORY: Final[Mapping[str, bytes]] = {
    "tar with a long name that continues after its size": tar_of(
        header(b"././@LongLink", type_=b"L", size=1) + b"ab".ljust(512, b"\0"), entry(b"b")
    ),
    "zip with an entry that is not listed": zip_of(Zipped(), _NESTED, count=1),
    "zip with something before it that is counted": zip_of(Zipped(), before=b"PK\3\4hidden"),
    "zip with a longer name inside": zip_of(Zipped(name_inside=b"index.html5")),
    "zip64 that contradicts itself": zip_of(Zipped(), zip64=True).replace(struct.pack("<2Q", 1, 1), struct.pack("<2Q", 2, 2)),
    "tar with two names for an entry": tar_of(pax(path=b"a"), pax(path=b"b"), entry(b"c")),
    "tar with two kinds of names for an entry": tar_of(pax(path=b"a"), entry(b"././@LongLink", b"b\0", type_=b"L"), entry(b"c")),
    "tar with two extended headers for an entry": tar_of(
        pax(path=b"a"), entry(b"pax", pax_record(b"mtime", b"1"), type_=b"X"), entry(b"b")
    ),
    "tar with two long names for an entry": tar_of(*[entry(b"././@LongLink", b"a\0", type_=b"L")] * 2, entry(b"b")),
    "tar with a prefix under another magic": tar_of(_with_prefix(entry(b"a"), b"ustar 00")),
    "zip with two names for an entry": zip_of(unicode_zipped(b"a", b"b", flags=1 << 11)),
    "zip with two Unicode names for an entry": zip_of(
        Zipped(extra=unicode_field(b"a", b"index.html") + unicode_field(b"b", b"index.html"))
    ),
    "zip with another name in one of two Unicode fields": zip_of(
        unicode_zipped(b"a", b"b", extra_inside=unicode_field(b"c", b"b"))
    ),
    "zip with a Unicode name in one header alone": zip_of(unicode_zipped(b"a", b"b", extra_inside=b"")),
    "zip with a zero byte in the name before a Unicode name": zip_of(unicode_zipped(b"a", b"b\0c")),
    "zip with a Unicode name of a folder for a file": zip_of(unicode_zipped(b"a/", b"a")),
    "zip with another method inside": zip_of(Zipped(method=0, method_inside=8)),
    "zip with other flags inside": zip_of(Zipped(flags_inside=1 << 11)),
    "zip with encryption inside": zip_of(Zipped(flags_inside=1)),
    "zip with another checksum inside": zip_of(Zipped(method=0, numbers_inside=(1, 13, 13))),
    "zip with another compressed size inside": zip_of(Zipped(method=0, numbers_inside=(zlib.crc32(b"<h1>Docs</h1>"), 12, 13))),
    "zip with another size inside": zip_of(Zipped(method=0, numbers_inside=(zlib.crc32(b"<h1>Docs</h1>"), 13, 14))),
    "zip with no sizes inside and no data descriptor": zip_of(Zipped(flags=8, numbers_inside=(0, 0, 0))),
    "zip with another data descriptor": zip_of(
        Zipped(flags=8, numbers_inside=(0, 0, 0), after=descriptor(Zipped(content=b"other")))
    ),
    "zip with a wrong size before a data descriptor": zip_of(
        Zipped(flags=8, numbers_inside=(0, 0, 1), after=descriptor(Zipped()))
    ),
    "zip with a data descriptor that no flag announces": zip_of(Zipped(after=descriptor(Zipped()))),
    "zip with an unlisted entry between two": zip_of(Zipped(after=_HIDDEN), Zipped(name=b"a")),
    "zip with an unlisted entry at the end": zip_of(Zipped(), Zipped(name=b"a", after=_HIDDEN)),
    "zip with an entry in another and a gap": _zip_with_entry_in_another(),
    "zip with a link that DOS made": zip_of(_zip_link(b"a", b"index.html", system=0)),
    "zip with a link that Darwin made": zip_of(_zip_link(b"a", b"index.html", system=19)),
    "zip with a link named as a folder": zip_of(_zip_link(b"a/", b"index.html")),
    "zip with a folder that OS/2 made, without a slash": zip_of(
        Zipped(name=b"a", content=b"", system=6, mode=0, attributes=0x10)
    ),
    "zip with a link in a field of libarchive": zip_of(
        Zipped(), Zipped(name=b"a", content=b"index.html", extra_inside=stream_field(0o120777))
    ),
    "zip with a link in a field of Unix": zip_of(
        Zipped(), Zipped(name=b"a", content=b"index.html", mode=0, extra=unix_field(0o120777))
    ),
}

UNSAFE: Final[Mapping[str, bytes]] = {
    **{f"tar {what}": _names(*names) for what, names in _UNSAFE_NAMES.items()},
    **{f"zip {what}": _zip_names(*names) for what, names in _UNSAFE_NAMES.items()},
    **{f"tar {what}": tar_of(*starmap(_link, links.items())) for what, links in _UNSAFE_LINKS.items()},
    **{f"zip {what}": zip_of(Zipped(), *starmap(_zip_link, links.items())) for what, links in _UNSAFE_LINKS.items()},
    "xz that needs much memory": lzma.compress(
        _GOOD_TAR, filters=[{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 512 * 1024**2}]
    ),
    "tar that leads out by a folder": tar_of(entry(b"../outside/", type_=b"5")),
    "tar that leads out by an extended header": tar_of(pax(path=b"../outside"), entry(b"inside")),
    "tar that leads out by a long name": tar_of(entry(b"././@LongLink", b"../outside\0", type_=b"L"), entry(b"inside")),
    "tar with a zero in a name": tar_of(pax(path=b"a\0b"), entry(b"inside")),
    "tar with a long part of a name": tar_of(pax(path=b"x" * 256), entry(b"a")),
    "tar with a long name": tar_of(pax(path=b"/".join([b"x" * 200] * 6)), entry(b"a")),
    "tar with a huge name": tar_of(pax(path=b"x" * 1_000_000), entry(b"a")),
    "tar with a folder for a file": tar_of(entry(b"a"), entry(b"a/", type_=b"5")),
    "tar with a link that leads out by another": tar_of(
        entry(b"top/", type_=b"5"), _link(b"a/b/c/up", b"../../../top"), _link(b"a/b/c/out", b"up/../..")
    ),
    "tar with links into each other's folders": tar_of(
        entry(b"a/x"), entry(b"b/x"), _link(b"a/l", b"../b"), _link(b"b/l", b"../a")
    ),
    "tar with a link to the folder that holds it all": tar_of(entry(b"a/b"), _link(b"a/c", b"..")),
    "tar with links in a long row": tar_of(
        *(_link(b"l%d" % number, b"l%d" % (number - 1)) for number in range(5000, 0, -1)), entry(b"l0")
    ),
    "tar with links that fan out": tar_of(
        *(entry(b"d%d/x" % number) for number in range(40)),
        *(_link(b"d%d/%s" % (number, side), b"../d%d" % (number + 1)) for number in range(39) for side in (b"l", b"r")),
    ),
    "tar with links through very many folders": tar_of(
        *(entry(b"d%d/x" % number) for number in range(150)),
        *(_link(b"d%d/l" % number, b"../d%d" % (number + 1)) for number in range(149)),
    ),
    "tar with a link to a long part": tar_of(pax(linkpath=b"x" * 300), _link(b"a", b"")),
    "tar with a link to a long name": tar_of(pax(linkpath=b"x/" * 600), _link(b"a", b"")),
    "tar with a file through a link": tar_of(_link(b"a", b"b"), entry(b"a/c")),
    "tar with a file through a link that leads out": tar_of(_link(b"a", b".."), entry(b"a/c")),
    "tar with a file over a link": tar_of(_link(b"a", b"index.html"), entry(b"a")),
    "tar with a link twice": tar_of(_link(b"a", b"index.html"), _link(b"a", b"index.html")),
    "tar with a hard link that leads out": tar_of(_hard_link(b"a", b"../outside")),
    "tar with an absolute hard link": tar_of(_hard_link(b"a", b"/etc/passwd")),
    "tar with a hard link to nothing": tar_of(_hard_link(b"a", b"b")),
    "tar with a hard link to what comes later": tar_of(_hard_link(b"a", b"b"), entry(b"b")),
    "tar with a hard link to itself": tar_of(_hard_link(b"a", b"a")),
    "tar with a hard link to a folder": tar_of(entry(b"b/c"), _hard_link(b"a", b"b")),
    "tar with a hard link through a link": tar_of(entry(b"b/c"), _link(b"d", b"b"), _hard_link(b"a", b"d/c")),
    "tar with a hard link to a link that comes later": tar_of(_hard_link(b"a", b"b"), _link(b"b", b"index.html")),
    "tar with a hard link to a link in other case": tar_of(_link(b"b", b"index.html"), _hard_link(b"a", b"B")),
    "tar with a hard link to a link that leads out from there": tar_of(_link(b"b/c", b"../index.html"), _hard_link(b"a", b"b/c")),
    "tar with a hard link to a link that leads nowhere from there": tar_of(
        entry(b"b/d"), _link(b"b/c", b"d"), _hard_link(b"a", b"b/c")
    ),
    "tar with a hard link to a link that leads to itself from there": tar_of(
        entry(b"b/a"), _link(b"b/c", b"a"), _hard_link(b"a", b"b/c")
    ),
    "tar with a hard link in other case": tar_of(_hard_link(b"a", b"INDEX.HTML")),
    "tar with a character device": tar_of(entry(b"a", type_=b"3")),
    "tar with a block device": tar_of(entry(b"a", type_=b"4")),
    "tar with a pipe": tar_of(entry(b"a", type_=b"6")),
    "tar with a type that no reader knows": tar_of(entry(b"a", type_=b"?")),
    "tar with a contiguous file": tar_of(entry(b"a", type_=b"7")),
    "tar with a sparse file": tar_of(entry(b"a", type_=b"S")),
    "tar with a sparse file of pax": tar_of(pax(GNU__sparse__major=b"1"), entry(b"a")),
    "tar with an absolute folder": tar_of(entry(b"/a/", type_=b"5")),
    "tar with a setuid file": tar_of(entry(b"a", mode=0o4755)),
    "tar with a setgid file": tar_of(entry(b"a", mode=0o2755)),
    "tar with a sticky file": tar_of(entry(b"a", mode=0o1644)),
    "tar with a setuid hard link": tar_of(entry(b"a", type_=b"1", mode=0o4755, target=b"index.html")),
    "tar with a header of a gigabyte": tar_of(header(b"pax", type_=b"x", size=1 << 30)),
    "tar with a long name of a gigabyte": tar_of(header(b"pax", type_=b"L", size=1 << 30)),
    "tar with an extended header without a name in it": tar_of(pax(path=b""), entry(b"a")),
    "tar with an extended header without a size in it": tar_of(pax(size=b""), entry(b"a", b"content")),
    "tar with a long name that is empty": tar_of(entry(b"././@LongLink", b"\0", type_=b"L"), entry(b"a")),
    "tar with another size for readers of sparse files": tar_of(pax(SCHILY__realsize=b"1"), entry(b"a", b"123")),
    "tar with a map of holes in the header of a file": tar_of(_with_map_of_holes(entry(b"a", b"123"))),
    "tar with a file named as a folder": _names(b"a/."),
    "tar with a link named as a folder": tar_of(_link(b"a/", b"index.html")),
    "tar with very many records": tar_of(entry(b"pax", b"6 a=b\n" * 1001, type_=b"x"), entry(b"a")),
    "tar with very many headers": tar_of(*[entry(b"pax", type_=b"g")] * 1001, entry(b"a")),
    "tar with large headers": tar_of(
        pax(comment=b"x" * 600_000), entry(b"pax", pax_record(b"comment", b"x" * 600_000), type_=b"g"), entry(b"a")
    ),
    "tar with a map of holes of star": tar_of(pax(SUN__holesdata=b" 1 2"), entry(b"a", b"123")),
    "tar with one name for all": tar_of(entry(b"pax", pax_record(b"path", b"a"), type_=b"g"), entry(b"b")),
    "gzip of a zip that leads out": gzip.compress(_zip_names(b"../outside")),
    "gzip of gzip that leads out": gzip.compress(gzip.compress(_names(b"../outside"))),
    "gzip that leads out": gzip.compress(_names(b"../outside")),
    "bzip2 that leads out": bz2.compress(_names(b"../outside")),
    "xz that leads out": lzma.compress(_names(b"../outside")),
    "zip with a zero in a name": _zip_names(b"a\0b"),
    "zip with a long name": _zip_names(b"/".join([b"x" * 200] * 6)),
    "zip with a link to a long name": zip_of(Zipped(), _zip_link(b"a", b"x" * 5000)),
    "zip with a file through a link": zip_of(Zipped(), _zip_link(b"a", b"b"), Zipped(name=b"a/c")),
    "zip with a device": zip_of(Zipped(mode=0o060644)),
    "zip with a pipe": zip_of(Zipped(mode=0o010644)),
    "zip with a socket": zip_of(Zipped(mode=0o140644)),
    "zip with a setuid file": zip_of(Zipped(mode=0o104755)),
    "zip that is encrypted": zip_of(Zipped(flags=1)),
    "zip that is strongly encrypted": zip_of(Zipped(flags=1 << 6)),
    "zip with an encrypted directory": zip_of(Zipped(flags=1 << 13)),
    "zip with LZMA": zip_of(Zipped(method=14)),
    "zip with Zstandard": zip_of(Zipped(method=93)),
    "zip with an unknown method": zip_of(Zipped(method=77)),
    "zip with entries that share their content": zip_of(Zipped(), *[Zipped(offset=0, listed_only=True)] * 40),
    "zip with an entry over its directory": zip_of(Zipped(length=200)),
    "zip with a Unicode name that leads out": zip_of(unicode_zipped(b"../outside", b"a")),
    "zip with an empty Unicode name": zip_of(unicode_zipped(b"", b"a")),
    "zip with very many extra fields": zip_of(Zipped(extra=b"\2\0\0\0" * 100 + unicode_field(b"a", b"b"))),
    "zip with an entry of empty blocks": zip_of(Zipped(packed=b"\0\0\0\xff\xff" * 1000 + Zipped().data)),
    "gzip of very many empty streams": gzip.compress(gzip.compress(b"") * 60_000 + gzip.compress(_GOOD_TAR)),
    "zip with a volume label": zip_of(Zipped(), Zipped(name=b"a", system=0, mode=0, attributes=8)),
    "zip in several parts": _zip64_in_parts(),
    "zip in parts": zip_of(Zipped(), disk=1),
}

EMPTY: Final[Mapping[str, bytes]] = {
    "gzip of a tar without entries": gzip.compress(bytes(10240)),
    "tar with folders alone": entry(b"a/", type_=b"5") + EMPTY_END,
    "tar with a link alone": _link(b"a", b"a") + EMPTY_END,
    "gzip of a zip without entries": gzip.compress(zip_of()),
    "zip of a padded directory's end alone": zip_of() + bytes(9000),
    "gzip of an empty tar": gzip.compress(bytes(10240)),
    "zip without entries": zip_of(),
    "zip with a folder alone": zip_of(Zipped(name=b"a/", content=b"")),
}

TOO_LARGE: Final[Mapping[str, bytes]] = {
    "tar with a giant file": tar_of(pax(size=b"21474836480"), header(b"a")),
    "zip with a giant number of entries": zip_of(Zipped(), count=1 << 40, zip64=True),
}

REFUSED: Final[Mapping[str, Mapping[str, bytes]]] = {
    "not an archive": {**NOT_ARCHIVES, **UNSUPPORTED},
    "damaged": DAMAGED,
    "contradictory": CONTRADICTORY,
    "unsafe": UNSAFE,
    "empty": EMPTY,
    "too large": TOO_LARGE,
}
"""What must be refused, by the kind of the refusal."""

HOSTILE: Final = {name: (archive, kind) for kind, archives in REFUSED.items() for name, archive in archives.items()}
"""The same by name, each with its kind."""


@functools.cache
def crowded(count: int) -> bytes:
    """Pack small files. With many of them, unpacking takes far longer than the delivery of a signal."""
    entries = (entry(b"%d/%d.html" % (number % 100, number), b"page") for number in range(count))
    return gzip.compress(b"".join((*entries, EMPTY_END)), compresslevel=1)
