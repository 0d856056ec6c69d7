"""The entries of a zip archive.

The reader is our own because `zipfile` loads the whole directory into memory (192 MiB where this reader took 41), decompresses
bzip2 without a limit, and looks for the archive anywhere in the file.

Source of the format: PKWARE's APPNOTE.TXT 6.3.10; sections in the comments.
"""

import stat
import struct
import zlib
from array import array
from collections.abc import Generator, Iterator
from dataclasses import replace
from itertools import chain
from typing import Final, NamedTuple

from .codecs import BZIP2, DEFLATE, decompressed
from .entries import Entry, EntryType, contradictory, damaged, quoted, unsafe
from .limits import Quota
from .names import MAX_NAME_BYTES
from .reading import ArchiveFile, Stream

ZIP_MAGICS: Final = (b"PK\x03\x04", b"PK\x05\x06")  # the first bytes of an archive, and of one without entries

_END: Final = struct.Struct("<4s4H2IH")  # 4.3.16
_ZIP64_END: Final = struct.Struct("<4sQ2H2I4Q")  # 4.3.14
_ZIP64_LOCATOR: Final = struct.Struct("<4sIQI")  # 4.3.15
_CENTRAL_HEADER: Final = struct.Struct("<4sxB2x2H4x3I3H4x2I")  # 4.3.12
_LOCAL_HEADER: Final = struct.Struct("<4s2x2H4x3I2H")  # 4.3.7
_DESCRIPTORS: Final = tuple(struct.Struct(layout) for layout in ("<4sI2Q", "<I2Q", "<4s3I", "<3I"))  # 4.3.9, longest first
_DESCRIPTOR_MAGIC: Final = b"PK\x07\x08"
_MAX_COMMENT_BYTES: Final = 0xFFFF
_MAX_PADDING_BYTES: Final = 1024 * 1024
"""Maximum zeros after the archive. bsdtar pads a piped archive, by default to a multiple of 10 KiB (source: bsdtar(1), `-b`)."""

_PLACEHOLDER: Final = 0xFFFFFFFF  # for a value that is in the zip64 field or record
_SHORT_PLACEHOLDER: Final = 0xFFFF

_ENCRYPTED: Final = 1 << 0 | 1 << 6 | 1 << 13  # 4.4.4
_DESCRIBED: Final = 1 << 3  # sizes and checksum follow the content
_UTF_8: Final = 1 << 11
_ZIP64_FIELD: Final = b"\x01\x00"  # 4.5.3
_UNICODE_NAME_FIELD: Final = b"\x75\x70"  # 4.6.9
_UNIX_FIELD: Final = b"\x6e\x75"  # ASi Unix: a checksum, and a mode that unzip uses if the attributes have none
_STREAM_FIELD: Final = b"\x78\x6c"  # of libarchive, which uses the attributes in it (source: archive_write_set_format_zip.c)
_MAX_OVERHEAD_BYTES: Final = 1024  # of compressed content; bzip2 adds some 40
_USUAL_EXTRA_BYTES: Final = 64  # of fields in a local header, to read both at once
_MAX_FIELDS: Final = 100  # in one header; writers use up to 5
_STORED: Final = 0
_CODECS: Final = {8: DEFLATE, 12: replace(BZIP2, magic=b"")}  # one stream per entry, as other readers expect
_REFUSED_METHODS: Final = {9: "Deflate64", 14: "LZMA", 93: "Zstandard", 95: "XZ", 98: "PPMd"}  # 4.4.5
_DOS: Final = 0  # 4.4.2
_UNIX: Final = 3
_DOS_FOLDER: Final = 0x10
_DOS_VOLUME_LABEL: Final = 0x08
_TYPES: Final = {
    0: EntryType.FILE,
    stat.S_IFREG: EntryType.FILE,
    stat.S_IFLNK: EntryType.SYMBOLIC_LINK,
}


class _Header(NamedTuple):
    """What one of the two headers of an entry says about it."""

    name: bytes
    method: int
    flags: int
    checksum: int
    compressed_size: int
    size: int


_CONTRADICTIONS: Final = (
    "another name",
    "another method",
    "other flags",
    "another checksum",
    "another compressed size",
    "another size",
)
"""Words for a field that differs, in their order."""


def zip_entries(archive: ArchiveFile, quota: Quota) -> Generator[Entry]:
    """Return the entries of an archive, in the order of its directory.

    Raises `InvalidBundle` for an archive that is damaged, encrypted or split, that has an unsupported compression or headers that
    contradict each other, or that is not the whole file.
    """
    directory_start, directory_end, count = _find_directory(archive)
    quota.check_entries(count)
    directory = Stream(archive.chunks(directory_start, directory_end))
    total_size, starts, ends = 0, array("Q", [directory_start]), array("Q", [0])
    for _ in range(count):
        entry, offset, end = _read_entry(archive, directory, directory_start)
        starts.append(offset)
        ends.append(end)
        total_size += end - offset
        # entries that share their content would unpack a small file to any size
        if total_size > directory_start:
            raise unsafe(f"Entry {quoted(entry.name)} overlaps with another.")
        if entry.type is EntryType.FOLDER:
            if entry.size:
                raise damaged(f"Entry {quoted(entry.name)} is a folder, but has content.")
            Stream(iter(entry.content)).read(1)  # verifies its checksum
        if entry.type is EntryType.SYMBOLIC_LINK:
            # its content is its target; a longer one is refused, whatever follows
            entry = replace(entry, target=Stream(iter(entry.content)).read(MAX_NAME_BYTES + 1))
        yield entry
    # each entry must begin where another one ends
    if directory.read_some(1) or sorted(starts) != sorted(ends):
        raise contradictory("The zip archive holds something that its directory does not list.")


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
    _, disk, start, disks = _ZIP64_LOCATOR.unpack(locator)
    if (disk, disks) != (0, 1):
        raise unsafe("The bundle is one part of a split zip archive.")
    record = archive.read(_ZIP64_END.size, start) if start + _ZIP64_END.size <= end else b""
    if len(record) < _ZIP64_END.size or not record.startswith(b"PK\x06\x06"):
        raise damaged("The zip64 end record is not where it should be.")
    _, length, _, _, *zip64_numbers = _ZIP64_END.unpack(record)
    placeholders = [_SHORT_PLACEHOLDER] * 4 + [_PLACEHOLDER] * 2
    triples = zip(numbers, zip64_numbers, placeholders, strict=True)
    agree = all(short in (long, placeholder) for short, long, placeholder in triples)
    if start + 12 + length != end or not agree:
        raise contradictory("The zip archive's two end records contradict each other.")
    return [*zip64_numbers, start]


def _read_entry(archive: ArchiveFile, directory: Stream, directory_start: int) -> tuple[Entry, int, int]:
    """Return the next entry of the directory, and where its local header starts and its last part ends."""
    header = directory.read(_CENTRAL_HEADER.size)
    if len(header) < _CENTRAL_HEADER.size or not header.startswith(b"PK\x01\x02"):
        raise damaged("The directory of the zip archive cannot be read.")
    _, system, flags, method, checksum, compressed_size, size, *lengths, attributes, offset = _CENTRAL_HEADER.unpack(header)
    stored_name, extra, _ = (directory.read(length) for length in lengths)
    name = _name(stored_name, flags, extra)
    if flags & _ENCRYPTED:
        raise unsafe(f"Entry {quoted(name)} is encrypted.")
    if method != _STORED and method not in _CODECS:
        method_name = _REFUSED_METHODS.get(method, f"method {method}")
        raise unsafe(f"Entry {quoted(name)} is compressed with {method_name}. In zip, only deflate and bzip2 are supported.")
    size, compressed_size, offset = _zip64_values(stored_name, extra, [size, compressed_size, offset])
    if compressed_size > 2 * size + _MAX_OVERHEAD_BYTES:
        raise unsafe(f"Entry {quoted(name)} is much larger compressed than unpacked.")  # empty blocks only take time
    listed = _Header(name, method, flags, checksum, compressed_size, size)
    mode = attributes >> 16 if system == _UNIX else 0
    type_ = _type(name, system, attributes)
    start, end, local_extra = _content_range(archive, offset, stored_name, listed, directory_start)
    others = chain(*(_other_attributes(stored_name, fields, system) for fields in (extra, local_extra)))
    for other_system, other_attributes in others:
        if _type(name, other_system, other_attributes) is not type_:
            raise contradictory(f"Entry {quoted(name)} is {type_.value}, but of another type in an extra field.")
    chunks = archive.chunks(start, start + compressed_size)
    content = _verified(name, chunks if method == _STORED else decompressed(_CODECS[method], chunks), size, checksum)
    return Entry(name=name, type=type_, mode=mode, size=size, content=content), offset, end


def _fields(name: bytes, extra: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Return the ids and the data of the extra fields in a header (4.5.1). What is not a whole field is ignored."""
    start, end = 0, len(extra.rstrip(b"\0"))  # zipalign pads with zeros
    for _ in range(_MAX_FIELDS):
        if start >= end or start + 4 > len(extra):
            return
        field_id, length = struct.unpack_from("<2sH", extra, start)
        start += 4 + length
        if start > len(extra):
            return
        yield field_id, extra[start - length : start]
    raise unsafe(f"Entry {quoted(name)} has {_MAX_FIELDS} extra fields or more.")


def _name(stored_name: bytes, flags: int, extra: bytes) -> bytes:
    """Return an entry's name: that in the Unicode field, unless the field was written for another stored name."""
    if _UNICODE_NAME_FIELD not in extra:
        return stored_name
    fields = [data for field_id, data in _fields(stored_name, extra) if field_id == _UNICODE_NAME_FIELD]
    about_this_name = b"\x01" + struct.pack("<I", zlib.crc32(stored_name))
    names = {data[5:] for data in fields if data.startswith(about_this_name)} or {stored_name}
    if flags & _UTF_8:
        names.add(stored_name)
    name = names.pop()
    # readers differ in which of two names they use, whether the slash of a folder may be in only one, and what a zero byte ends
    if names or name.endswith(b"/") != stored_name.endswith(b"/") or b"\0" in stored_name:
        raise contradictory(f"Entry {quoted(stored_name)} has another name in its Unicode field.")
    return name


def _other_attributes(name: bytes, extra: bytes, system: int) -> Iterator[tuple[int, int]]:
    """Return the systems and the attributes in extra fields."""
    if _UNIX_FIELD not in extra and _STREAM_FIELD not in extra:
        return
    for field_id, data in _fields(name, extra):
        if field_id == _UNIX_FIELD and len(data) >= 6:
            yield _UNIX, int.from_bytes(data[4:6], "little") << 16
        elif field_id == _STREAM_FIELD and data:
            parts = data[1:]
            if data[0] & 1:
                system, parts = int.from_bytes(parts[1:2]), parts[2:]
            if data[0] & 2:
                parts = parts[2:]
            if data[0] & 4:
                yield system, int.from_bytes(parts[:4], "little")


def _zip64_values(name: bytes, extra: bytes, values: list[int]) -> list[int]:
    """Return the values, with those that did not fit into the header from its zip64 field."""
    missing = values.count(_PLACEHOLDER)
    if not missing:
        return values
    for field_id, data in _fields(name, extra):
        if field_id == _ZIP64_FIELD and len(data) >= 8 * missing:
            zip64_values = iter(struct.unpack_from(f"<{missing}Q", data))
            return [next(zip64_values) if value == _PLACEHOLDER else value for value in values]
    raise damaged("An entry of the zip archive lacks its zip64 field.")


def _content_range(
    archive: ArchiveFile, offset: int, stored_name: bytes, listed: _Header, directory_start: int
) -> tuple[int, int, bytes]:
    """Return where the content starts, where it ends with its data descriptor, and the extra fields of the local header.

    Raises `InvalidBundle` if one of them contradicts the directory.
    """
    length = _LOCAL_HEADER.size + len(stored_name)
    header = archive.read(length + _USUAL_EXTRA_BYTES, offset) if offset + length <= directory_start else b""
    if not header.startswith(b"PK\x03\x04") or header[_LOCAL_HEADER.size : length] != stored_name:
        raise damaged(f"Entry {quoted(listed.name)} is not where the zip archive's directory lists it.")
    _, flags, method, checksum, compressed_size, size, name_length, extra_length = _LOCAL_HEADER.unpack_from(header)
    is_whole = extra_length <= _USUAL_EXTRA_BYTES
    extra = header[length : length + extra_length] if is_whole else archive.read(extra_length, offset + length)
    size, compressed_size = _zip64_values(stored_name, extra, [size, compressed_size])
    name = _name(stored_name, flags, extra) if name_length == len(stored_name) else b""
    start = offset + length + extra_length
    end = start + listed.compressed_size
    if end > directory_start:
        raise unsafe(f"Entry {quoted(listed.name)} overlaps with the zip archive's directory.")
    descriptor_length = _descriptor_length(archive, end, listed) if flags & _DESCRIBED else 0
    numbers = [checksum, compressed_size, size]
    if descriptor_length:  # it says what was not known yet
        numbers = [number or listed_number for number, listed_number in zip(numbers, listed[3:], strict=True)]
    local = _Header(name, method, flags, *numbers)
    if local != listed:
        differences = zip(_CONTRADICTIONS, local, listed, strict=True)
        words, *values = next(difference for difference in differences if difference[1] != difference[2])
        here, there = (quoted(value) if isinstance(value, bytes) else f"{value:,}" for value in values)
        raise contradictory(
            f"Entry {quoted(listed.name)} has {words} in the zip archive's directory ({there}) than in its local header ({here})."
        )
    return start, end + descriptor_length, extra


def _descriptor_length(archive: ArchiveFile, start: int, listed: _Header) -> int:
    """Return the length of the data descriptor that says the same as the directory; 0 if there is none."""
    data = archive.read(_DESCRIPTORS[0].size, start).ljust(_DESCRIPTORS[0].size, b"\0")
    for layout in _DESCRIPTORS:
        *magic, checksum, compressed_size, size = layout.unpack_from(data)
        if magic in ([], [_DESCRIPTOR_MAGIC]) and (checksum, compressed_size, size) == listed[3:]:
            return layout.size
    return 0


def _type(name: bytes, system: int, attributes: int) -> EntryType:
    """Return the type of an entry. Raises `InvalidBundle` for one that programs take for different types."""
    type_ = stat.S_IFMT(attributes >> 16)
    is_unix, is_link = system == _UNIX, type_ == stat.S_IFLNK
    # A slash at the end of the name marks a folder (4.3.17): many writers give it no type, and old Maven releases a wrong one.
    is_named_folder = name.endswith(b"/")
    is_folder = type_ == stat.S_IFDIR if is_unix else bool(attributes & _DOS_FOLDER)
    if not is_unix and attributes & _DOS_VOLUME_LABEL:
        raise unsafe(f"Entry {quoted(name)} is a volume label, which some programs skip.")
    if (is_link and (is_named_folder or not is_unix)) or (is_folder and not is_named_folder and system not in {_DOS, _UNIX}):
        raise contradictory(f"Entry {quoted(name)} is a file for some programs, and a folder or a symbolic link for others.")
    if is_named_folder or is_folder:
        return EntryType.FOLDER
    if is_unix and type_ not in _TYPES:
        raise unsafe(f"Entry {quoted(name)} is not a file, folder or symbolic link.")
    return _TYPES[type_] if is_unix else EntryType.FILE


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
