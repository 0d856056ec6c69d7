"""The entries of a tar archive.

The reader is our own because `tarfile`, even with `filter="data"`, accepts more than half of the hostile archives in the tests,
treats a damaged header as the archive's end, reads extended headers of any size into memory and, in older releases, can be kept
busy for minutes (CVE-2025-8194, CVE-2024-6232).

Sources: POSIX.1-2017, pax, "ustar Interchange Format" and "pax Extended Header"; GNU tar's manual, "Basic Tar Format".
"""

import re
from collections.abc import Generator, Iterator
from typing import Final

from ..errors import InvalidBundle
from .entries import Entry, EntryType, contradictory, damaged, quoted, unsafe
from .reading import CHUNK_BYTES, Stream

BLOCK_BYTES: Final = 512

# A short extension header costs as much time as a file, and thousands of them compress to nothing.
MAX_EXTENSION_BYTES: Final = 1024 * 1024  # before an entry; a name needs a thousandth of it
MAX_RECORDS: Final = 1000  # before an entry; writers use up to 20, and one or two for each extended attribute
MAX_TOTAL_EXTENSION_BYTES: Final = 1024**3  # 4 KiB for each of the maximum of entries
MAX_TOTAL_RECORDS: Final = 5_000_000  # 20 for each of them
_ZEROS: Final = bytes(BLOCK_BYTES)
_SIZE: Final = slice(124, 136)  # the field of the header
_MODE: Final = slice(100, 108)
_IGNORED_NUMBERS: Final = (slice(108, 116), slice(116, 124), slice(136, 148))
"""The fields for the owner, the group and the time."""
_OCTAL_NUMBERS: Final = (_MODE, slice(329, 337), slice(337, 345))
"""The fields for the mode and a device's numbers, which need no binary form."""
_MAGIC: Final = slice(257, 265)
_POSIX: Final = b"ustar\0"
_GNU: Final = b"ustar  \0"
_GNU_SPARSE_MAP: Final = slice(386, 495)

_TYPES: Final = {
    b"0": EntryType.FILE,
    b"\0": EntryType.FILE,
    b"1": EntryType.HARD_LINK,
    b"2": EntryType.SYMBOLIC_LINK,
    b"5": EntryType.FOLDER,
}
_REFUSED_TYPES: Final = {
    b"3": "a character device",
    b"4": "a block device",
    b"6": "a named pipe",
    b"7": "a contiguous file",
    b"S": "a sparse file",
}
_LABEL: Final = b"V"  # names the archive itself (GNU tar's `--label`)
_GNU_LONG: Final = {b"L": b"path", b"K": b"linkpath"}
_GLOBAL: Final = b"g"
_EXTENSION_TYPES: Final = {b"x": b"x", b"X": b"x", b"L": b"L", b"K": b"K", _GLOBAL: _GLOBAL}
"""The types of headers that describe the next entry, or all; `X` is Solaris' `x`."""

_USUAL_NUMBERS: Final = re.compile(rb".{100}([0-7]{7}[ \0]){3}([0-7]{11}[ \0]){2}.{181}([0-7]{7}[ \0]|\0{8}){2}", re.DOTALL)


def is_tar_header(block: bytes) -> bool:
    """Return whether a block holds its own checksum, as every tar header does."""
    if len(block) < BLOCK_BYTES:
        return False
    field = block[148:156]
    try:
        declared = _number(field)
    except InvalidBundle:
        return False
    unsigned = sum(block) - sum(field) + 8 * ord(" ")
    # some old writers summed signed bytes (source: GNU tar, which still reads them)
    return declared == unsigned or declared == unsigned - 256 * sum(byte > 127 for byte in block[:148] + block[156:])


def begins_tar(block: bytes) -> bool:
    """Return whether data with this first block is a tar archive, which may be empty."""
    return is_tar_header(block) or block == _ZEROS


def tar_entries(stream: Stream) -> Generator[Entry]:
    """Return the entries of an archive.

    Raises `InvalidBundle` for an archive that is damaged, lacks its end marker or continues after it, and for entries that are
    not files, folders or links.
    """
    extensions = _Extensions()
    is_begun = False
    while (block := stream.read(BLOCK_BYTES)) != _ZEROS:
        if len(block) < BLOCK_BYTES:
            raise damaged("The tar archive ends without its end marker: a part is missing.")
        if not is_tar_header(block):
            raise damaged("The header of an entry does not match its checksum.")
        _check_numbers(block)
        type_flag = block[156:157]
        if type_flag == _LABEL:
            if is_begun or _number(block[_SIZE]):
                raise damaged("The tar archive's label has content, or is not at the beginning.")
        elif type_flag in _EXTENSION_TYPES:
            extensions.read(block, stream)
        else:
            entry = _entry(block, extensions.attributes, stream)
            extensions.end_entry()
            yield entry
            stream.read(-entry.size % BLOCK_BYTES)
        is_begun = True
    if extensions.types:
        raise damaged("The tar archive ends where an entry should follow.")
    while rest := stream.read_some(CHUNK_BYTES):
        if rest.strip(b"\0"):
            raise damaged("Other data follows the tar archive's end marker.")


class _Extensions:
    """The extension headers before the next entry: the types of those that describe it, and what they say by the keys of pax."""

    def __init__(self) -> None:
        self.types: set[bytes] = set()
        self.attributes: dict[bytes, bytes] = {}
        self._bytes = 0
        self._records = 0
        self._total_bytes = 0
        self._total_records = 0

    def read(self, block: bytes, stream: Stream) -> None:
        """Read the content of a header."""
        if not block[0]:
            raise damaged("An extended header has no name.")  # with one at the beginning, bsdtar unpacks nothing
        type_flag, size = _EXTENSION_TYPES[block[156:157]], _number(block[_SIZE])
        self.count_record()
        self._bytes += size
        if self._bytes > MAX_EXTENSION_BYTES:
            raise unsafe("The extended headers of an entry hold more than 1 MiB.")
        text = stream.read(size)
        if len(text) < size:
            raise damaged("The tar archive ends in the middle of a header: a part is missing.")
        padding = stream.read(-size % BLOCK_BYTES)
        if type_flag in _GNU_LONG and not text.endswith(b"\0") and padding.strip(b"\0"):
            raise contradictory("A long name continues after its end.")  # GNU tar reads it up to a zero
        if type_flag in self.types:
            raise contradictory("An entry has two extended headers of the same type. Some programs use only the later one.")
        if type_flag != _GLOBAL:
            self.types.add(type_flag)
        records = [(_GNU_LONG[type_flag], text.rstrip(b"\0"))] if type_flag in _GNU_LONG else _pax_records(text)
        for key, value in records:
            self.count_record()
            self._add(key, value, is_global=type_flag == _GLOBAL)

    def count_record(self) -> None:
        """Count a record, or a header, which may be without any."""
        self._records += 1
        if self._records > MAX_RECORDS:
            raise unsafe(f"The extended headers of an entry hold more than {MAX_RECORDS:,} records.")

    def end_entry(self) -> None:
        """Forget what described the entry, except what it cost."""
        if not self._records:
            return
        self._total_bytes += self._bytes
        self._total_records += self._records
        if self._total_bytes > MAX_TOTAL_EXTENSION_BYTES:
            raise unsafe("The extended headers of the archive hold more than 1 GiB.")
        if self._total_records > MAX_TOTAL_RECORDS:
            raise unsafe(f"The extended headers of the archive hold more than {MAX_TOTAL_RECORDS:,} records.")
        self.types, self.attributes, self._bytes, self._records = set(), {}, 0, 0

    def _add(self, key: bytes, value: bytes, *, is_global: bool) -> None:
        if key.startswith(b"GNU.sparse.") or key in {b"SCHILY.realsize", b"SUN.holesdata"}:
            name = f" ({quoted(value)})" if key == b"GNU.sparse.name" else ""
            raise unsafe(f"The archive holds a sparse file{name}, whose size may not match its content.")
        if key not in {b"path", b"linkpath", b"size"}:
            return
        if is_global:
            raise unsafe(f"The archive gives the same {key.decode()} to all of its entries.")
        # readers differ in which of two values they use, and in what an empty one means; no honest archive has either
        if key in self.attributes:
            raise contradictory(f"The archive gives the {key.decode()} of an entry twice.")
        if not value:
            raise unsafe(f"The archive gives an empty {key.decode()} to an entry.")
        self.attributes[key] = value


def _pax_records(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Read the records of an extended header: `<length> <key>=<value>` and a newline, with the length of the whole record."""
    text, start = text.rstrip(b"\0"), 0
    while start < len(text):
        digits, space, _ = text[start : start + 8].partition(b" ")
        end = start + int(digits) if space and digits.isdigit() else 0
        key, equals, value = text[start + len(digits) + 1 : end - 1].partition(b"=")
        is_blank = key.startswith((b" ", b"\t"))  # GNU tar skips it
        if not (start + len(digits) < end <= len(text) and text[end - 1] == ord("\n") and key and equals and not is_blank):
            raise damaged("An extended header cannot be read.")
        yield key, value
        start = end


def _entry(block: bytes, attributes: dict[bytes, bytes], stream: Stream) -> Entry:
    name = attributes.get(b"path") or _header_name(block)
    type_flag = block[156:157]
    if type_flag not in _TYPES:
        description = _REFUSED_TYPES.get(type_flag, f"of the unknown type {quoted(type_flag)}")
        raise unsafe(f"Entry {quoted(name)} is {description}.")
    if block[_MAGIC] == _GNU and any(block[_GNU_SPARSE_MAP]):  # bsdtar uses it whatever the type
        raise unsafe(f"Entry {quoted(name)} is a sparse file.")
    entry_type = _TYPES[type_flag]
    if entry_type is EntryType.FILE and name.endswith(b"/"):
        entry_type = EntryType.FOLDER  # as writers before POSIX marked folders
    size = _size(block, attributes)
    if type_flag == b"5" and b"size" not in attributes:
        size = 0  # in the header of a folder, it is the space to reserve for it (POSIX)
    if entry_type is not EntryType.FILE and size:
        raise damaged(f"Entry {quoted(name)} is {entry_type.value}, but has content.")
    mode, target = _octal(block[_MODE]), attributes.get(b"linkpath") or _until_zero(block[157:257])
    return Entry(name=name, type=entry_type, mode=mode, size=size, target=target, content=stream.pieces(size))


def _check_numbers(block: bytes) -> None:
    """Raise `InvalidBundle` for a number that cannot be read. With one, some readers skip the entry, and some end there."""
    if _USUAL_NUMBERS.match(block):  # as almost all are
        return
    for field in _IGNORED_NUMBERS:
        if block[field][0] != 0o377:  # a negative number in GNU's binary form
            _number(block[field])
    _number(block[_SIZE])
    for field in _OCTAL_NUMBERS:
        _octal(block[field])


def _size(block: bytes, attributes: dict[bytes, bytes]) -> int:
    digits = attributes.get(b"size")
    if digits is None:
        return _number(block[_SIZE])
    if not digits.isdigit() or len(digits) > 20:
        raise damaged("An extended header gives a size that is not a number.")
    return int(digits)


def _header_name(block: bytes) -> bytes:
    name, prefix = _until_zero(block[:100]), _until_zero(block[345:500])
    magic = block[_MAGIC]
    if prefix and magic.startswith(_POSIX):
        return prefix + b"/" + name
    if prefix and magic.startswith(b"ustar") and magic != _GNU:  # GNU tar keeps times where POSIX has the prefix
        raise contradictory(f"Entry {quoted(name)} has a prefix that only some programs read.")
    return name


def _number(field: bytes) -> int:
    """Read octal digits, or GNU's binary form for larger numbers."""
    return int.from_bytes(field[1:], "big") if field[0] == 0o200 else _octal(field)


def _octal(field: bytes) -> int:
    digits = _until_zero(field).strip(b" ")
    # `int` would accept signs, underscores and white space inside, and GNU tar reads digits after a leading zero byte
    if digits.strip(b"01234567") or (not digits and field.strip(b" \0")):
        raise damaged("The header of an entry holds a number that cannot be read.")
    return int(digits or b"0", 8)


def _until_zero(field: bytes) -> bytes:
    return field.partition(b"\0")[0]
