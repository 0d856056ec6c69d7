"""The entries of a zip archive.

The reader is our own because `zipfile` loads the whole directory into memory (192 MiB where this one was measured to take 41),
decompresses bzip2 without a bound, and looks for the archive anywhere in the file.

Source of the format: PKWARE's APPNOTE.TXT 6.3.10; sections in the comments.
"""

import stat
import struct
import zlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import Final

from .codecs import BZIP2, DEFLATE, decompressed
from .entries import ZIP_TYPES, Entry, EntryType, damaged, quoted, unsafe
from .limits import Quota
from .names import MAX_NAME_BYTES, target_too_long
from .reading import ArchiveFile, Stream

BEGINNINGS: Final = (b"PK\x03\x04", b"PK\x05\x06")
"""The first bytes of an archive, and of one without entries."""

_END: Final = struct.Struct("<4s4H2IH")  # 4.3.16
_END_64: Final = struct.Struct("<4sQ2H2I4Q")  # 4.3.14
_LOCATOR_64: Final = struct.Struct("<4sIQI")  # 4.3.15
_RECORD: Final = struct.Struct("<4sxB2x2H4x3I3H4x2I")  # 4.3.12
_LOCAL: Final = struct.Struct("<4s22x2H")  # 4.3.7
_MAX_COMMENT_BYTES: Final = 0xFFFF
_MAX_PADDING_BYTES: Final = 1024 * 1024
"""Maximum zeros behind the archive. bsdtar pads a piped archive, by default to a multiple of 10 KiB (source: bsdtar(1), `-b`)."""

_IN_ZIP64: Final = 0xFFFFFFFF
_IN_ZIP64_SHORT: Final = 0xFFFF

_ENCRYPTED: Final = 1 << 0 | 1 << 6 | 1 << 13  # 4.4.4
_STORED: Final = 0
_CODECS: Final = {8: DEFLATE, 12: replace(BZIP2, magic=b"")}  # one stream an entry, as other readers have it
_REFUSED_METHODS: Final = {9: "Deflate64", 14: "LZMA", 93: "Zstandard", 95: "XZ", 98: "PPMd"}  # 4.4.5
_UNIX: Final = (3, 19)  # 4.4.2; 19 is Darwin, whose attributes are Unix's too
_DOS_FOLDER: Final = 0x10


@dataclass(frozen=True, kw_only=True)
class _Record:
    """An entry as the directory lists it."""

    name: bytes
    type: EntryType
    mode: int
    method: int
    checksum: int
    compressed: int
    size: int
    offset: int


def zip_entries(archive: ArchiveFile, meter: Quota) -> Generator[Entry]:
    """Return the entries of an archive, in the directory's order.

    Raises `InvalidBundle` for an archive that is damaged, encrypted, divided, compressed in a way that cannot be read, or that is
    not the whole of the file.
    """
    directory_start, directory_end, count = _directory(archive)
    meter.check_declared_entries(count)
    records = Stream(archive.blocks(directory_start, directory_end))
    taken, first = 0, directory_start
    for _ in range(count):
        record = _read_record(records)
        start = _content_start(archive, record, directory_start)
        end = start + record.compressed
        taken += end - record.offset
        first = min(first, record.offset)
        # Entries that share their content would unpack to any size from a small file.
        if max(end, taken) > directory_start:
            raise unsafe(f"Entry {quoted(record.name)} overlaps with another, or with the archive's directory.")
        yield _entry(record, archive.blocks(start, end))
    if records.some(1) or first:
        raise damaged("The zip archive holds something that its directory does not list.")


def _directory(archive: ArchiveFile) -> tuple[int, int, int]:
    """Return where the directory starts and ends, and how many entries it has, by its end record, which only zeros may follow."""
    tail_at = max(0, archive.size - _END.size - _MAX_COMMENT_BYTES - _MAX_PADDING_BYTES)
    tail = archive.read(archive.size - tail_at, tail_at)
    padding_at = len(tail.rstrip(b"\0"))  # or earlier than the padding, as a record or a comment may end with zeros
    at = tail.rfind(b"PK\x05\x06")
    # the last one alone: readers differ in which of several they believe
    if at < 0 or not max(padding_at, len(tail) - _MAX_PADDING_BYTES) <= _record_end(tail, at) <= len(tail):
        raise damaged("The end of the zip archive is missing, or something follows it.")
    _, *numbers, _ = _END.unpack_from(tail, at)
    end = tail_at + at
    locator = archive.read(_LOCATOR_64.size, max(0, end - _LOCATOR_64.size))
    if locator.startswith(b"PK\x06\x07"):
        *numbers, end = _numbers_64(archive, locator, end - _LOCATOR_64.size, numbers)
    disk, first_disk, here, entries, length, start = numbers
    if disk or first_disk or here != entries:
        raise unsafe("It is one part of a split zip archive.")
    if start + length != end:
        raise damaged("The directory of the zip archive is not where it should be.")
    return start, end, entries


def _record_end(tail: bytes, at: int) -> int:
    """Return where the end record at this offset and its comment end, or 0 if the record is cut off."""
    return at + _END.size + int(_END.unpack_from(tail, at)[-1]) if at + _END.size <= len(tail) else 0


def _numbers_64(archive: ArchiveFile, locator: bytes, end: int, numbers: list[int]) -> list[int]:
    """Return the numbers of the record that holds what is too large for the usual one, and where that record begins."""
    _, _, start, _ = _LOCATOR_64.unpack(locator)
    record = archive.read(_END_64.size, start) if start + _END_64.size <= end else b""
    if len(record) < _END_64.size or not record.startswith(b"PK\x06\x06"):
        raise damaged("The zip64 directory's end is not where it should be.")
    _, length, _, _, *numbers_64 = _END_64.unpack(record)
    limits = [_IN_ZIP64_SHORT] * 4 + [_IN_ZIP64] * 2
    agree = all(small in (large, limit) for small, large, limit in zip(numbers, numbers_64, limits, strict=True))
    if start + 12 + length != end or not agree:
        raise damaged("The zip archive's two directory ends contradict each other.")
    return [*numbers_64, start]


def _read_record(records: Stream) -> _Record:
    fixed = records.read(_RECORD.size)
    if len(fixed) < _RECORD.size or not fixed.startswith(b"PK\x01\x02"):
        raise damaged("The directory of the zip archive cannot be read.")
    _, system, flags, method, checksum, compressed, size, *lengths, attributes, offset = _RECORD.unpack(fixed)
    name, extra, _ = (records.read(length) for length in lengths)
    if flags & _ENCRYPTED:
        raise unsafe(f"Entry {quoted(name)} is encrypted.")
    if method != _STORED and method not in _CODECS:
        how = _REFUSED_METHODS.get(method, f"method {method}")
        raise unsafe(f"Entry {quoted(name)} is compressed with {how}; in a zip archive only deflate and bzip2 can be read.")
    size, compressed, offset = _large(extra, [size, compressed, offset])
    mode = attributes >> 16 if system in _UNIX else 0
    return _Record(
        name=name,
        type=_type(name, mode, attributes),
        mode=mode,
        method=method,
        checksum=checksum,
        compressed=compressed,
        size=size,
        offset=offset,
    )


def _large(extra: bytes, numbers: list[int]) -> list[int]:
    """Replace the numbers that did not fit into the record by those of its zip64 field (4.5.3)."""
    missing = numbers.count(_IN_ZIP64)
    while missing and len(extra) >= 4:
        field, length = struct.unpack_from("<2H", extra)
        if field == 1 and 8 * missing <= length <= len(extra) - 4:
            found = iter(struct.unpack_from(f"<{missing}Q", extra, 4))
            return [next(found) if number == _IN_ZIP64 else number for number in numbers]
        extra = extra[4 + length :]
    if missing:
        raise damaged("The directory of the zip archive lacks a zip64 field.")
    return numbers


def _type(name: bytes, mode: int, attributes: int) -> EntryType:
    announced = stat.S_IFMT(mode)
    # A folder is told by the slash at its name's end (4.3.17): many writers give it no type, and old Mavens a wrong one. DOS
    # and Windows have an attribute for it.
    if announced != stat.S_IFLNK and (name.endswith(b"/") or (not announced and attributes & _DOS_FOLDER)):
        return EntryType.FOLDER
    if announced not in ZIP_TYPES:
        raise unsafe(f"Entry {quoted(name)} is neither a file, a folder nor a symbolic link.")
    return ZIP_TYPES[announced]


def _content_start(archive: ArchiveFile, record: _Record, end: int) -> int:
    length = _LOCAL.size + len(record.name)
    header = archive.read(length, record.offset) if record.offset + length <= end else b""
    if not header.startswith(b"PK\x03\x04") or header[_LOCAL.size :] != record.name:
        raise damaged(f"Entry {quoted(record.name)} is not where the zip archive's directory has it.")
    _, name_length, extra_length = _LOCAL.unpack_from(header)
    if name_length != len(record.name):
        raise damaged(f"Entry {quoted(record.name)} has another name in the zip archive's directory.")
    return int(record.offset + length + extra_length)


def _entry(record: _Record, compressed: Iterator[bytes]) -> Entry:
    content = compressed if record.method == _STORED else decompressed(_CODECS[record.method], compressed)
    verified = _verified(record, content)
    if record.type is EntryType.FOLDER and record.size:
        raise damaged(f"Entry {quoted(record.name)} is a folder, but has content.")
    if record.type is not EntryType.SYMBOLIC_LINK:
        return Entry(name=record.name, type=record.type, mode=record.mode, size=record.size, content=verified)
    if record.size > MAX_NAME_BYTES:
        raise target_too_long(record.name)
    return Entry(name=record.name, type=record.type, mode=record.mode, target=b"".join(verified))


def _verified(record: _Record, content: Iterator[bytes]) -> Iterator[bytes]:
    """Return the content. Raises `InvalidBundle` if it does not match its announced size or checksum."""
    left, checksum = record.size, 0
    for chunk in content:
        left -= len(chunk)
        if left < 0:
            break
        checksum = zlib.crc32(chunk, checksum)
        yield chunk
    if left or checksum != record.checksum:
        raise damaged(f"The content of entry {quoted(record.name)} does not match its size and checksum.")
