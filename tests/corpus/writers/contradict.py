"""Write an archive that says two things about an entry: python3 contradict.py KIND > ARCHIVE."""

import io
import struct
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable

_PAGE = b"<h1>Docs</h1>\n"
_LOCAL_FIELDS = {"flags": (6, 1 << 11), "method": (8, 8), "checksum": (14, 1), "size": (22, 1)}
"""The offset in a local header, and another value for two bytes there."""


def main(kind: str) -> None:
    """Write the archive to standard output."""
    form, _, what = kind.partition("-")
    sys.stdout.buffer.write(_tar(what) if form == "tar" else _zip(what))


def _zip(what: str) -> bytes:
    if what in _LOCAL_FIELDS:
        return _with_other_local_header(_packed("index.html"), *_LOCAL_FIELDS[what])
    if what == "unlisted":
        return _with_unlisted_entry()
    stored_name = "page.html" if what == "unicode-flag" else "%U65E5.html"
    about = "another.html" if what == "unicode-outdated" else stored_name
    return _packed(stored_name, _unicode_field("日.html", about), flags=1 << 11 if what == "unicode-flag" else 0)


def _packed(name: str, extra: bytes = b"", *, flags: int = 0) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        entry = zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0))
        entry.create_system, entry.external_attr, entry.extra = 3, 0o100644 << 16, extra
        archive.writestr(entry, _PAGE)
    archive_bytes = bytearray(packed.getvalue())
    listed = archive_bytes.index(b"PK\1\2")
    struct.pack_into("<H", archive_bytes, 6, flags)
    struct.pack_into("<H", archive_bytes, listed + 8, flags)
    return bytes(archive_bytes)


def _unicode_field(name: str, stored_name: str) -> bytes:
    data = struct.pack("<BI", 1, zlib.crc32(stored_name.encode())) + name.encode()
    return struct.pack("<2H", 0x7075, len(data)) + data


def _with_other_local_header(archive: bytes, offset: int, value: int) -> bytes:
    return archive[:offset] + struct.pack("<H", value) + archive[offset + 2 :]


def _with_unlisted_entry() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in ("index.html", "hidden.html", "guide.html"):
            archive.writestr(zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0)), _PAGE)
        del archive.filelist[1]  # the directory is written from this list
    return packed.getvalue()


def _tar(what: str) -> bytes:
    write: Callable[[], bytes] = {
        "two-headers": lambda: _extended(b"x", path="a.html") + _extended(b"x", path="b.html"),
        "solaris-header": lambda: _extended(b"x", path="a.html") + _extended(b"X", mtime="1"),
        "realsize": lambda: _extended(b"x", **{"SCHILY.realsize": "1"}),
        "many-records": lambda: _header("pax", b"6 a=b\n" * 170_000, b"x") * 200,
    }[what]
    return write() + _header("index.html", _PAGE, tarfile.REGTYPE) + bytes(2 * tarfile.BLOCKSIZE)


def _extended(type_flag: bytes, **records: str) -> bytes:
    text = b"".join(_record(f" {key}={value}\n".encode()) for key, value in records.items())
    return _header("pax", text, type_flag)


def _record(rest: bytes) -> bytes:
    digits = next(digits for digits in map(str, range(len(rest), len(rest) + 9)) if int(digits) == len(rest) + len(digits))
    return digits.encode() + rest


def _header(name: str, content: bytes, type_flag: bytes) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.size, entry.type = len(content), type_flag
    return entry.tobuf(tarfile.USTAR_FORMAT) + content + bytes(-len(content) % tarfile.BLOCKSIZE)


if __name__ == "__main__":
    main(sys.argv[1])
