"""The entries of a zip archive.

The reader is our own because `zipfile` loads the whole directory into memory (192 MiB where this reader took 41), decompresses
bzip2 without a limit, and looks for the archive anywhere in the file.

Source of the format: PKWARE's APPNOTE.TXT 6.3.10; sections in the comments.
"""

import stat
import struct
import zlib
from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Final

from .codecs import BZIP2, DEFLATE, decompressed
from .entries import Entry, EntryType, damaged, quoted, unsafe
from .limits import Quota
from .names import MAX_NAME_BYTES
from .reading import ArchiveFile, Stream

ZIP_MAGICS: Final = (b"PK\x03\x04", b"PK\x05\x06")  # the first bytes of an archive, and of one without entries

_END: Final = struct.Struct("<4s4H2IH")  # 4.3.16
_ZIP64_END: Final = struct.Struct("<4sQ2H2I4Q")  # 4.3.14
_ZIP64_LOCATOR: Final = struct.Struct("<4sIQI")  # 4.3.15
_CENTRAL_HEADER: Final = struct.Struct("<4sxB2x2H4x3I3H4x2I")  # 4.3.12
_LOCAL_HEADER: Final = struct.Struct("<4s22x2H")  # 4.3.7
_MAX_COMMENT_BYTES: Final = 0xFFFF
_MAX_PADDING_BYTES: Final = 1024 * 1024
"""Maximum zeros after the archive. bsdtar pads a piped archive, by default to a multiple of 10 KiB (source: bsdtar(1), `-b`)."""

_PLACEHOLDER: Final = 0xFFFFFFFF  # for a value that is in the zip64 field or record
_SHORT_PLACEHOLDER: Final = 0xFFFF

_ENCRYPTED: Final = 1 << 0 | 1 << 6 | 1 << 13  # 4.4.4
_STORED: Final = 0
_CODECS: Final = {8: DEFLATE, 12: replace(BZIP2, magic=b"")}  # one stream per entry, as other readers expect
_REFUSED_METHODS: Final = {9: "Deflate64", 14: "LZMA", 93: "Zstandard", 95: "XZ", 98: "PPMd"}  # 4.4.5
_UNIX: Final = (3, 19)  # 4.4.2; 19 is Darwin, whose attributes are Unix's too
_DOS_FOLDER: Final = 0x10
_TYPES: Final = {
    0: EntryType.FILE,
    stat.S_IFREG: EntryType.FILE,
    stat.S_IFDIR: EntryType.FOLDER,
    stat.S_IFLNK: EntryType.SYMBOLIC_LINK,
}


def zip_entries(archive: ArchiveFile, quota: Quota) -> Generator[Entry]:
    """Return the entries of an archive, in the order of its directory.

    Raises `InvalidBundle` for an archive that is damaged, encrypted or split, that has an unsupported compression, or that is not
    the whole file.
    """
    directory_start, directory_end, count = _find_directory(archive)
    quota.check_entries(count)
    directory = Stream(archive.chunks(directory_start, directory_end))
    total_size, first_offset = 0, directory_start
    for _ in range(count):
        entry, offset, end = _read_entry(archive, directory, directory_start)
        total_size += end - offset
        first_offset = min(first_offset, offset)
        # entries that share their content would unpack a small file to any size
        if max(end, total_size) > directory_start:
            raise unsafe(f"Entry {quoted(entry.name)} overlaps with another, or with the archive's directory.")
        if entry.type is EntryType.FOLDER and entry.size:
            raise damaged(f"Entry {quoted(entry.name)} is a folder, but has content.")
        if entry.type is EntryType.SYMBOLIC_LINK:
            # its content is its target; a longer one is refused, whatever follows
            entry = replace(entry, target=Stream(iter(entry.content)).read(MAX_NAME_BYTES + 1))
        yield entry
    if directory.read_some(1) or first_offset:
        raise damaged("The zip archive holds something that its directory does not list.")


def _find_directory(archive: ArchiveFile) -> tuple[int, int, int]:
    """Return the start and the end of the central directory, and its number of entries, from the end record."""
    tail_start = max(0, archive.size - _END.size - _MAX_COMMENT_BYTES - _MAX_PADDING_BYTES)
    tail = archive.read(archive.size - tail_start, tail_start)
    position = tail.rfind(b"PK\x05\x06")  # only the last one: readers differ in which of several they use
    record_end = -1
    if 0 <= position <= len(tail) - _END.size:
        _, *numbers, comment_length = _END.unpack_from(tail, position)
        record_end = position + _END.size + comment_length
    min_padding_start = max(len(tail.rstrip(b"\0")), len(tail) - _MAX_PADDING_BYTES)  # the record may end with zeros too
    if not min_padding_start <= record_end <= len(tail):
        raise damaged("The end of the zip archive is missing, or other data follows it.")
    end = tail_start + position
    locator = archive.read(_ZIP64_LOCATOR.size, max(0, end - _ZIP64_LOCATOR.size))
    if locator.startswith(b"PK\x06\x07"):
        *numbers, end = _zip64_end(archive, locator, end - _ZIP64_LOCATOR.size, numbers)
    disk, directory_disk, count_here, count, length, start = numbers
    if disk or directory_disk or count_here != count:
        raise unsafe("The bundle is one part of a split zip archive.")
    if start + length != end:
        raise damaged("The directory of the zip archive is not where it should be.")
    return start, end, count


def _zip64_end(archive: ArchiveFile, locator: bytes, end: int, numbers: list[int]) -> list[int]:
    """Return the end record's numbers from the zip64 end record, which ends at `end`, and where that begins."""
    _, _, start, _ = _ZIP64_LOCATOR.unpack(locator)
    record = archive.read(_ZIP64_END.size, start) if start + _ZIP64_END.size <= end else b""
    if len(record) < _ZIP64_END.size or not record.startswith(b"PK\x06\x06"):
        raise damaged("The zip64 end record is not where it should be.")
    _, length, _, _, *zip64_numbers = _ZIP64_END.unpack(record)
    placeholders = [_SHORT_PLACEHOLDER] * 4 + [_PLACEHOLDER] * 2
    triples = zip(numbers, zip64_numbers, placeholders, strict=True)
    agree = all(short in (long, placeholder) for short, long, placeholder in triples)
    if start + 12 + length != end or not agree:
        raise damaged("The zip archive's two end records contradict each other.")
    return [*zip64_numbers, start]


def _read_entry(archive: ArchiveFile, directory: Stream, directory_start: int) -> tuple[Entry, int, int]:
    """Return the next entry of the directory, and where its local header starts and its content ends."""
    header = directory.read(_CENTRAL_HEADER.size)
    if len(header) < _CENTRAL_HEADER.size or not header.startswith(b"PK\x01\x02"):
        raise damaged("The directory of the zip archive cannot be read.")
    _, system, flags, method, checksum, compressed_size, size, *lengths, attributes, offset = _CENTRAL_HEADER.unpack(header)
    name, extra, _ = (directory.read(length) for length in lengths)
    if flags & _ENCRYPTED:
        raise unsafe(f"Entry {quoted(name)} is encrypted.")
    if method != _STORED and method not in _CODECS:
        method_name = _REFUSED_METHODS.get(method, f"method {method}")
        raise unsafe(f"Entry {quoted(name)} is compressed with {method_name}. In zip, only deflate and bzip2 are supported.")
    size, compressed_size, offset = _zip64_values(extra, [size, compressed_size, offset])
    mode = attributes >> 16 if system in _UNIX else 0
    type_ = _type(name, mode, attributes)
    start = _content_start(archive, name, offset, directory_start)
    end = start + compressed_size
    chunks = archive.chunks(start, end)
    content = _verified(name, chunks if method == _STORED else decompressed(_CODECS[method], chunks), size, checksum)
    return Entry(name=name, type=type_, mode=mode, size=size, content=content), offset, end


def _zip64_values(extra: bytes, values: list[int]) -> list[int]:
    """Return the values, with those that did not fit into the header from its zip64 field (4.5.3)."""
    missing = values.count(_PLACEHOLDER)
    while missing and len(extra) >= 4:
        field_id, length = struct.unpack_from("<2H", extra)
        if field_id == 1 and 8 * missing <= length <= len(extra) - 4:
            zip64_values = iter(struct.unpack_from(f"<{missing}Q", extra, 4))
            return [next(zip64_values) if value == _PLACEHOLDER else value for value in values]
        extra = extra[4 + length :]
    if missing:
        raise damaged("An entry of the zip archive lacks its zip64 field.")
    return values


def _type(name: bytes, mode: int, attributes: int) -> EntryType:
    type_ = stat.S_IFMT(mode)
    # A slash at the end of the name marks a folder (4.3.17): many writers give it no type, and old Maven releases a wrong one.
    if type_ != stat.S_IFLNK and (name.endswith(b"/") or (not type_ and attributes & _DOS_FOLDER)):
        return EntryType.FOLDER
    if type_ not in _TYPES:
        raise unsafe(f"Entry {quoted(name)} is not a file, folder or symbolic link.")
    return _TYPES[type_]


def _content_start(archive: ArchiveFile, name: bytes, offset: int, directory_start: int) -> int:
    length = _LOCAL_HEADER.size + len(name)
    header = archive.read(length, offset) if offset + length <= directory_start else b""
    if not header.startswith(b"PK\x03\x04") or header[_LOCAL_HEADER.size :] != name:
        raise damaged(f"Entry {quoted(name)} is not where the zip archive's directory lists it.")
    _, name_length, extra_length = _LOCAL_HEADER.unpack_from(header)
    if name_length != len(name):
        raise damaged(f"Entry {quoted(name)} has another name in the zip archive's directory.")
    return int(offset + length + extra_length)


def _verified(name: bytes, content: Iterator[bytes], size: int, listed_checksum: int) -> Iterator[bytes]:
    """Return the content. Raises `InvalidBundle` if it does not match its listed size or checksum."""
    remaining, checksum = size, 0
    for chunk in content:
        remaining -= len(chunk)
        if remaining < 0:
            break
        checksum = zlib.crc32(chunk, checksum)
        yield chunk
    if remaining or checksum != listed_checksum:
        raise damaged(f"The content of entry {quoted(name)} does not match its size and checksum.")
