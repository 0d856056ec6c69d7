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


def entry(name: bytes, content: bytes = b"", *, type_: bytes = b"0", target: bytes = b"", size: int | None = None) -> bytes:
    """Make a tar entry with its content, and with its true size unless another one is given."""
    found = tarfile.TarInfo(name.decode("utf-8", "surrogateescape"))
    found.type, found.linkname = type_, target.decode("utf-8", "surrogateescape")
    found.size = len(content) if size is None else size
    return found.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape") + content + bytes(-len(content) % tarfile.BLOCKSIZE)


def extended_entry(**records: str) -> bytes:
    """Make a tar entry without content, with an extended header of these records."""
    found = tarfile.TarInfo("a")
    found.pax_headers = records
    return found.tobuf(tarfile.PAX_FORMAT)


FILE: Final = entry(b"index.html", b"<h1>Docs</h1>")
"""A valid tar entry."""


def tar_of(*entries: bytes) -> bytes:
    """Make a tar archive of a valid entry and these."""
    return FILE + b"".join(entries) + EMPTY_END


@dataclass(frozen=True, kw_only=True)
class Zipped:
    """An entry of a zip archive, not compressed. `None` stands for the true value."""

    name: bytes = b"index.html"
    content: bytes = b"<h1>Docs</h1>"
    method: int = zipfile.ZIP_STORED
    flags: int = 0
    system: int = 3
    mode: int = 0o100644
    attributes: int = 0
    size: int | None = None
    checksum: int | None = None
    offset: int | None = None
    extra: bytes = b""


def zip_of(*entries: Zipped) -> bytes:
    """Make a zip archive of entries."""
    archive, directory = bytearray(), bytearray()
    for item in entries:
        offset = len(archive) if item.offset is None else item.offset
        checksum = zlib.crc32(item.content) if item.checksum is None else item.checksum
        size = len(item.content) if item.size is None else item.size
        shared = (item.flags, item.method, 0, 0, checksum, len(item.content), size, len(item.name))
        archive += struct.pack("<4s5H3I2H", b"PK\3\4", 20, *shared, 0) + item.name + item.content
        directory += struct.pack(
            "<4s2B5H3I5H2I",
            *(b"PK\1\2", 20, item.system, 20, *shared, len(item.extra)),
            *(0, 0, 0, item.mode << 16 | item.attributes, offset),
        )
        directory += item.name + item.extra
    return bytes(archive + directory) + _zip_end(len(entries), directory=len(directory), start=len(archive))


def _zip_end(count: int, *, directory: int, start: int) -> bytes:
    """Make the end of a zip archive: the number of entries, and the size and the start of their directory."""
    return struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, directory, start, 0)


WEB_PAGE: Final = b"\n<!DOCTYPE html><html><title>Sign in</title></html>"
_GOOD_TAR: Final = tar(SMALL_SITE)
_GOOD_ZIP: Final = zipped(SMALL_SITE)


def _link(name: bytes, target: bytes) -> bytes:
    return entry(name, type_=tarfile.SYMTYPE, target=target)


def _hard_link(name: bytes, target: bytes) -> bytes:
    return entry(name, type_=tarfile.LNKTYPE, target=target)


def _zip_link(name: bytes, target: bytes) -> Zipped:
    return Zipped(name=name, content=target, mode=0o120777)


def _flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


_UNSAFE_NAMES: Final[Mapping[str, tuple[bytes, ...]]] = {
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
    "storage error": b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>",
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
    "tar with a negative size": tar_of(entry(b"odd", size=-16)),
    "zip cut": _GOOD_ZIP[:-1],
    "zip with a wrong checksum": zip_of(Zipped(checksum=1)),
    "zip with a file that is longer than declared": zip_of(Zipped(size=5)),
    "zip with a file that is shorter than declared": zip_of(Zipped(size=500)),
    "zip with a file that is empty as declared": zip_of(Zipped(size=0)),
    "zip with an entry at a wrong offset": zip_of(Zipped(), Zipped(name=b"b", offset=60)),
}

UNSAFE: Final[Mapping[str, bytes]] = {
    **{f"tar {what}": tar_of(*map(entry, names)) for what, names in _UNSAFE_NAMES.items()},
    **{f"zip {what}": zip_of(*(Zipped(name=name) for name in names)) for what, names in _UNSAFE_NAMES.items()},
    "xz that needs much memory": lzma.compress(
        _GOOD_TAR, filters=[{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 512 * 1024**2}]
    ),
    **{f"tar {what}": tar_of(*starmap(_link, links.items())) for what, links in _UNSAFE_LINKS.items()},
    **{f"zip {what}": zip_of(Zipped(), *starmap(_zip_link, links.items())) for what, links in _UNSAFE_LINKS.items()},
    "tar with a name that is not UTF-8": tar_of(entry(b"caf\xe9")),
    "tar that leads out by a folder": tar_of(entry(b"../outside/", type_=b"5")),
    "tar that leads out by an extended header": tar_of(extended_entry(path="../outside")),
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
        tarfile.TarInfo.create_pax_global_header({"comment": "x" * 600_000}), extended_entry(comment="x" * 600_000)
    ),
    "zip with a pipe": zip_of(Zipped(mode=0o010644)),
    "zip that is encrypted": zip_of(Zipped(flags=1)),
    "zip with bzip2": zipped(SMALL_SITE, method=zipfile.ZIP_BZIP2),
    "zip with an unknown method": zip_of(Zipped(method=77)),
    "zip with a Unicode name that leads out": zip_of(
        Zipped(name=b"a", extra=struct.pack("<2HBI", 0x7075, 15, 1, zlib.crc32(b"a")) + b"../outside")
    ),
}

REFUSED: Final[Mapping[str, Mapping[str, bytes]]] = {
    "not an archive": {**NOT_ARCHIVES, **UNSUPPORTED},
    "damaged": DAMAGED,
    "unsafe": UNSAFE,
    "empty": {
        "tar without entries": bytes(10240),
        "tar with folders alone": entry(b"a/", type_=b"5") + EMPTY_END,
        "zip without entries": zip_of(),
    },
    "too large": {
        "zip with 250,001 entries": b"PK\3\4" + b"PK\1\2" * 250_001 + _zip_end(0, directory=4 * 250_001, start=4),
    },
}
"""What must be refused, by the kind of the refusal."""

HOSTILE: Final = {name: (archive, kind) for kind, archives in REFUSED.items() for name, archive in archives.items()}
"""The same by name, each with its kind."""


@functools.cache
def crowded(count: int) -> bytes:
    """Pack small files. With many of them, unpacking takes far longer than the delivery of a signal."""
    entries = (entry(b"%d/%d.html" % (number % 100, number), b"page") for number in range(count))
    return gzip.compress(b"".join((*entries, EMPTY_END)), compresslevel=1)
