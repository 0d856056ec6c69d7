"""Archives for tests: of every supported kind, and made of single entries."""

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

EMPTY_END: Final = bytes(2 * tarfile.BLOCKSIZE)
"""A tar archive's end marker."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """The content of an archive."""

    files: Mapping[str, bytes]  # by path
    folders: Iterable[str] = ()  # empty ones
    links: Mapping[str, str] = field(default_factory=dict)  # targets of symbolic links by path


SMALL_SITE: Final = Site(
    files={
        "index.html": b"<h1>Docs</h1>",
        "guide/start.html": b"<p>Start</p>" * 50,
        "guide/empty.txt": b"",
    },
    folders=["assets"],
    links={"latest": "guide", "guide/home.html": "../index.html"},
)


def tar(site: Site, *, form: int = tarfile.PAX_FORMAT) -> bytes:
    """Pack as Python's `tarfile` does."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=form, encoding="utf-8") as archive:
        for name in site.folders:
            folder = tarfile.TarInfo(name)
            folder.type = tarfile.DIRTYPE
            folder.mode = 0o2700
            archive.addfile(folder)
        for name, content in site.files.items():
            file = tarfile.TarInfo(name)
            file.size = len(content)
            file.mode = 0o600
            file.mtime = 1_000_000_000.5
            archive.addfile(file, io.BytesIO(content))
        for name, target in site.links.items():
            link = tarfile.TarInfo(name)
            link.type = tarfile.SYMTYPE
            link.linkname = target
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
            link.create_system = 3
            link.external_attr = 0o120777 << 16
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


def entry(
    name: bytes,
    content: bytes = b"",
    *,
    type_: bytes = b"0",
    target: bytes = b"",
    size: int | None = None,
) -> bytes:
    """Make a tar entry with its content, and with its true size unless another one is given."""
    member = tarfile.TarInfo(name.decode("utf-8", "surrogateescape"))
    member.type = type_
    member.linkname = target.decode("utf-8", "surrogateescape")
    member.size = len(content) if size is None else size
    header = member.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
    padding = bytes(-len(content) % tarfile.BLOCKSIZE)
    return header + content + padding


def extended_entry(**records: str) -> bytes:
    """Make a tar entry without content, with an extended header of these records."""
    member = tarfile.TarInfo("a")
    member.pax_headers = records
    return member.tobuf(tarfile.PAX_FORMAT)


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

    @property
    def declared_size(self) -> int:
        return len(self.content) if self.size is None else self.size

    @property
    def declared_checksum(self) -> int:
        return zlib.crc32(self.content) if self.checksum is None else self.checksum


def zip_of(*entries: Zipped) -> bytes:
    """Make a zip archive of entries."""
    archive = bytearray()
    directory = bytearray()
    for item in entries:
        offset = len(archive) if item.offset is None else item.offset
        archive += _local_header(item) + item.name + item.content
        directory += _directory_header(item, offset) + item.name + item.extra
    end = zip_end(len(entries), directory=len(directory), start=len(archive))
    return bytes(archive + directory) + end


def _local_header(item: Zipped) -> bytes:
    return struct.pack(
        "<4s5H3I2H",
        b"PK\3\4",
        20,  # the version that is needed
        item.flags,
        item.method,
        0,  # the time
        0,  # the date
        item.declared_checksum,
        len(item.content),
        item.declared_size,
        len(item.name),
        0,  # bytes of extra fields
    )


def _directory_header(item: Zipped, offset: int) -> bytes:
    return struct.pack(
        "<4s2B5H3I5H2I",
        b"PK\1\2",
        20,  # the version that made it
        item.system,
        20,  # the version that is needed
        item.flags,
        item.method,
        0,  # the time
        0,  # the date
        item.declared_checksum,
        len(item.content),
        item.declared_size,
        len(item.name),
        len(item.extra),
        0,  # bytes of the comment
        0,  # the disk
        0,  # internal attributes
        item.mode << 16 | item.attributes,
        offset,
    )


def zip_end(count: int, *, directory: int, start: int) -> bytes:
    """Make the end of a zip archive of `count` entries.

    Their directory has `directory` bytes, and begins at `start`.
    """
    return struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, directory, start, 0)


SEVEN_ZIP: Final = b"7z\xbc\xaf\x27\x1c" + bytes(600)
"""An archive of an unsupported format."""
