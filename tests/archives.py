"""Archives for tests: valid ones of every supported kind, and hostile ones by the kind of their refusal."""

import bz2
import functools
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import starmap
from typing import Final

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
    "zip-padded": lambda site: zipped(site) + bytes(9000),
}
"""Every supported kind, as a function that packs a site."""


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
    """An entry of a zip archive. `None` stands for the true value; `name_inside` is the name before the content."""

    name: bytes = b"index.html"
    content: bytes = b"<h1>Docs</h1>"
    method: int = 8
    flags: int = 0
    system: int = 3
    mode: int = 0o100644
    attributes: int = 0
    name_inside: bytes | None = None
    size: int | None = None
    checksum: int | None = None
    offset: int | None = None
    packed: bytes | None = None
    extra: bytes = b""

    @property
    def data(self) -> bytes:
        """The content as it is packed."""
        if self.packed is not None:
            return self.packed
        if self.method == 8:
            packer = zlib.compressobj(wbits=-15)
            return packer.compress(self.content) + packer.flush()
        return bz2.compress(self.content) if self.method == 12 else self.content


def zip_of(*entries: Zipped, comment: bytes = b"") -> bytes:
    """Make a zip archive of entries."""
    archive, directory = bytearray(), bytearray()
    for item in entries:
        offset = len(archive) if item.offset is None else item.offset
        checksum = zlib.crc32(item.content) if item.checksum is None else item.checksum
        size = len(item.content) if item.size is None else item.size
        inside = item.name if item.name_inside is None else item.name_inside
        shared = (item.flags, item.method, 0, 0, checksum, len(item.data), size)
        archive += struct.pack("<4s5H3I2H", b"PK\3\4", 20, *shared, len(inside), 0) + inside + item.data
        directory += struct.pack(
            "<4s2B5H3I5H2I",
            *(b"PK\1\2", 20, item.system, 20, *shared, len(item.name), len(item.extra)),
            *(0, 0, 0, item.mode << 16 | item.attributes, offset),
        )
        directory += item.name + item.extra
    end = (b"PK\5\6", 0, 0, len(entries), len(entries), len(directory), len(archive), len(comment))
    return bytes(archive + directory + struct.pack("<4s4H2IH", *end) + comment)


def unicode_zipped(name: bytes, stored_name: bytes, *, version: int = 1, content: bytes = b"<h1>Docs</h1>") -> Zipped:
    """Make a zip entry whose name in UTF-8 is in an extra field."""
    field = struct.pack("<2HBI", 0x7075, 5 + len(name), version, zlib.crc32(stored_name)) + name
    return Zipped(name=stored_name, content=content, extra=field)


WEB_PAGE: Final = b"\n<!DOCTYPE html><html><title>Sign in</title></html>"
XML: Final = b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>"
_GOOD_TAR: Final = tar(SMALL_SITE)
_GOOD_ZIP: Final = zipped(SMALL_SITE)


def _link(name: bytes, target: bytes) -> bytes:
    return (pax(linkpath=target) if len(target) > 100 else b"") + entry(name, type_=b"2", target=target[:100])


def _hard_link(name: bytes, target: bytes) -> bytes:
    return entry(name, type_=b"1", target=target)


def _zip_link(name: bytes, target: bytes) -> Zipped:
    return Zipped(name=name, content=target, mode=0o120777)


def _names(*entries: bytes) -> bytes:
    return tar_of(*((pax(path=name) if len(name) > 100 else b"") + entry(name[:100]) for name in entries))


def _flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def _odd_number(number: bytes, *, start: int = 124, length: int = 12) -> bytes:
    block = header(b"odd")
    return checksummed(block[:start] + number[:length].ljust(length, b"\0") + block[start + length :])


_UNSAFE_NAMES: Final[Mapping[str, tuple[bytes, ...]]] = {
    "with an absolute name": (b"/etc/cron.d/x",),
    "that leads out": (b"../outside",),
    "with a line break in a name": (b"a\n::error::b",),
    "with a backslash in a name": (b"..\\outside",),
    "with a long part of a name": (b"x" * 100 + "ü".encode() * 78,),
    "with a long name": (b"/".join([b"x" * 200] * 6),),
    "with an empty name": (b"",),
    "with a file for the folder itself": (b".",),
    "with a file in a file": (b"a", b"a/b"),
    "with a file for a folder": (b"a/b", b"a"),
}
_UNSAFE_LINKS: Final[Mapping[str, Mapping[bytes, bytes]]] = {
    "with an absolute link": {b"a": b"/etc/passwd"},
    "with a link that leads out": {b"a": b"../outside"},
    "with a link to nothing": {b"a": b"b"},
    "with a link to no name": {b"a": b""},
    "with a link to its own folder": {b"a": b"."},
    "with a link to the folder above": {b"a/b/c": b"../../a"},
    "with a link to a line break": {b"a": b"b\nc"},
}

SEVEN_ZIP: Final = b"7z\xbc\xaf\x27\x1c" + bytes(600)
"""An archive of an unsupported format."""

NOT_ARCHIVES: Final[Mapping[str, bytes]] = {
    "empty file": b"",
    "web page": WEB_PAGE,
    "storage error": XML,
    "JSON": b' {"error": "expired"}',
    "noise": b"\x00\x01\x02\x03",
}
"""Responses that are no bundle."""

UNSUPPORTED: Final[Mapping[str, bytes]] = {
    "Zstandard": b"\x28\xb5\x2f\xfd" + bytes(600),
    "7z": SEVEN_ZIP,
    "rar": b"Rar!\x1a\x07\x01\x00" + bytes(600),
    "split zip": b"PK\x07\x08PK\x03\x04" + bytes(600),
    "gzip of a web page": gzip.compress(WEB_PAGE),
    "gzip of gzip": gzip.compress(gzip.compress(_GOOD_TAR)),
    "gzip of a zip": gzip.compress(_GOOD_ZIP),
}
"""Archives of other formats, and archives that are compressed twice."""

DAMAGED: Final[Mapping[str, bytes]] = {
    "gzip cut": gzip.compress(_GOOD_TAR)[:-20],
    "gzip with a wrong checksum": _flipped(gzip.compress(_GOOD_TAR), -6),
    "gzip with something behind it": gzip.compress(_GOOD_TAR) + b"something",
    "tar without an end": FILE,
    "tar cut in a file": FILE[:520],
    "tar with something behind its end": FILE + EMPTY_END + FILE,
    "tar with a damaged header": tar_of(_flipped(entry(b"a"), 20)),
    "tar with a negative size": tar_of(_odd_number(b"\xff" * 11 + b"\xf0")),
    "zip cut": _GOOD_ZIP[:-1],
    "zip with padding of a mebibyte and more": _GOOD_ZIP + bytes(1024**2 + 1),
    "zip with a wrong checksum": zip_of(Zipped(checksum=1)),
    "zip with a file that is longer than declared": zip_of(Zipped(size=5)),
    "zip with a file that is shorter than declared": zip_of(Zipped(size=500)),
    "zip with an entry at the directory": zip_of(Zipped(), Zipped(name=b"b", offset=60)),
}

UNSAFE: Final[Mapping[str, bytes]] = {
    **{f"tar {what}": _names(*names) for what, names in _UNSAFE_NAMES.items()},
    **{f"zip {what}": zip_of(*(Zipped(name=name) for name in names)) for what, names in _UNSAFE_NAMES.items()},
    "xz that needs much memory": lzma.compress(
        _GOOD_TAR, filters=[{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 512 * 1024**2}]
    ),
    **{f"tar {what}": tar_of(*starmap(_link, links.items())) for what, links in _UNSAFE_LINKS.items()},
    **{f"zip {what}": zip_of(Zipped(), *starmap(_zip_link, links.items())) for what, links in _UNSAFE_LINKS.items()},
    "tar with a name that is not UTF-8": _names(b"caf\xe9"),
    "tar that leads out by a folder": tar_of(entry(b"../outside/", type_=b"5")),
    "tar that leads out by an extended header": tar_of(pax(path=b"../outside"), entry(b"inside")),
    "tar with a huge name": tar_of(pax(path=b"x" * 1_000_000), entry(b"a")),
    "tar with a link named as a folder": tar_of(_link(b"a/", b"index.html")),
    "tar with a link that leads out by another": tar_of(
        entry(b"top/", type_=b"5"), _link(b"a/b/c/up", b"../../../top"), _link(b"a/b/c/out", b"up/../..")
    ),
    "tar with links that fan out": tar_of(
        *(entry(b"d%d/x" % number) for number in range(40)),
        *(_link(b"d%d/%s" % (number, side), b"../d%d" % (number + 1)) for number in range(39) for side in (b"l", b"r")),
    ),
    "tar with a file through a link": tar_of(_link(b"a", b"b"), entry(b"a/c")),
    "tar with a hard link that leads out": tar_of(_hard_link(b"a", b"../outside")),
    "tar with a hard link to nothing": tar_of(_hard_link(b"a", b"b")),
    "tar with a hard link to what comes later": tar_of(_hard_link(b"a", b"b"), entry(b"b")),
    "tar with a hard link to a folder": tar_of(entry(b"b/c"), _hard_link(b"a", b"b")),
    "tar with a pipe": tar_of(entry(b"a", type_=b"6")),
    "tar with large headers": tar_of(
        pax(comment=b"x" * 600_000), entry(b"pax", pax_record(b"comment", b"x" * 600_000), type_=b"g"), entry(b"a")
    ),
    "zip with a file through a link": zip_of(Zipped(), _zip_link(b"a", b"b"), Zipped(name=b"a/c")),
    "zip that is encrypted": zip_of(Zipped(flags=1)),
    "zip with bzip2": zipped(SMALL_SITE, method=zipfile.ZIP_BZIP2),
    "zip with an unknown method": zip_of(Zipped(method=77)),
    "zip with a Unicode name that leads out": zip_of(unicode_zipped(b"../outside", b"a")),
}

EMPTY: Final[Mapping[str, bytes]] = {
    "tar without entries": bytes(10240),
    "tar with folders alone": entry(b"a/", type_=b"5") + EMPTY_END,
    "zip without entries": zip_of(),
    "zip with a folder alone": zip_of(Zipped(name=b"a/", content=b"")),
}

TOO_LARGE: Final[Mapping[str, bytes]] = {
    "zip with a giant number of entries": b"PK\3\4"
    + b"PK\1\2" * 250_001
    + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0, 0, 4 * 250_001, 4, 0),
}

REFUSED: Final[Mapping[str, Mapping[str, bytes]]] = {
    "not an archive": {**NOT_ARCHIVES, **UNSUPPORTED},
    "damaged": DAMAGED,
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
