"""The entries of a zip archive, one after another."""

import stat
import struct
import zipfile
import zlib
from collections.abc import Generator
from typing import Any, BinaryIO, Final, cast

from ..text import quoted
from .archive import (
    CHUNK_BYTES,
    FILE,
    FOLDER,
    SYMBOLIC_LINK,
    Entry,
    content_chunks,
    damage_explained,
)
from .faults import unsafe

# All section numbers are of PKWARE's APPNOTE.TXT 6.3.10.
_UTF_8: Final = 1 << 11  # flags (section 4.4.4)
_ENCRYPTED: Final = 1 << 0 | 1 << 6 | 1 << 13
_UNIX: Final = 3  # the system that the entry was made on (section 4.4.2)
_DOS_FOLDER: Final = 0x10  # an attribute on other systems (section 4.4.15)
_FIELD_HEADER: Final = struct.Struct("<2H")  # an extra field's id and length (section 4.5.1)
_UNICODE_NAME: Final = 0x7075  # an extra field's id (section 4.6.9)

_TYPES: Final = {0, stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK}  # 0: not given


def zip_entries(file: BinaryIO) -> Generator[Entry]:
    """Yield the entries of a zip archive, in the order of its directory.

    Raises `InvalidBundle` and `OSError`.
    """
    with damage_explained(), zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            name = _name(info)
            mode = _unix_mode(info)
            _check_supported(info, name, mode)
            if _is_folder(info, name, mode):
                yield Entry(name=name, type=FOLDER)
                continue
            with archive.open(info) as content:
                if stat.S_ISLNK(mode):
                    target = content.read(CHUNK_BYTES).decode()
                    yield Entry(name=name, type=SYMBOLIC_LINK, target=target)
                    continue
                if info.file_size == 0:
                    content.read(1)  # compares the checksum of an empty file, too
                chunks = content_chunks(content.read, info.file_size)
                yield Entry(name=name, type=FILE, content=chunks)


def _unix_mode(info: zipfile.ZipInfo) -> int:
    """Return an entry's type and permissions, or 0 if it was made on another system."""
    if info.create_system != _UNIX:
        return 0
    return info.external_attr >> 16


def _check_supported(info: zipfile.ZipInfo, name: str, mode: int) -> None:
    if info.flag_bits & _ENCRYPTED:
        raise unsafe(f"Entry {quoted(name)} is encrypted.")
    # `zipfile` may need any amount of memory for other methods.
    if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        names: dict[int, str] = cast("Any", zipfile).compressor_names  # missing in the type stubs
        method = names.get(info.compress_type, f"method {info.compress_type}")
        raise unsafe(
            f"Entry {quoted(name)} is compressed with {method}. In zip, only deflate is supported."
        )
    if stat.S_IFMT(mode) not in _TYPES:
        raise unsafe(f"Entry {quoted(name)} is not a file, folder or link.")


def _is_folder(info: zipfile.ZipInfo, name: str, mode: int) -> bool:
    if name.endswith("/") or stat.S_ISDIR(mode):
        return True
    return info.create_system != _UNIX and bool(info.external_attr & _DOS_FOLDER)


def _name(info: zipfile.ZipInfo) -> str:
    """Return an entry's name.

    It is in UTF-8 if its flag or its Unicode field says so, or if it can be. Otherwise it is in
    CP437.
    """
    if info.flag_bits & _UTF_8:
        return info.orig_filename
    stored_name = info.orig_filename.encode("cp437")
    unicode_name = _unicode_name(info.extra, stored_name)
    if unicode_name is not None:
        return unicode_name
    try:
        return stored_name.decode()
    except UnicodeDecodeError:
        return info.orig_filename


def _unicode_name(extra: bytes, stored_name: bytes) -> str | None:
    """Return the name in an entry's Unicode field, if that was made for the stored name."""
    version = b"\x01"
    checksum = zlib.crc32(stored_name).to_bytes(4, "little")
    start = version + checksum
    rest = extra
    while len(rest) >= _FIELD_HEADER.size:
        field_id, length = _FIELD_HEADER.unpack_from(rest)
        end = _FIELD_HEADER.size + length
        data = rest[_FIELD_HEADER.size : end]
        if field_id == _UNICODE_NAME and data.startswith(start):
            return data.removeprefix(start).decode()
        rest = rest[end:]
    return None
