"""The entries of a tar archive.

The reader is our own because `tarfile`, even with `filter="data"`, accepts more than half of the hostile archives in the tests,
treats a damaged header as the archive's end, reads extended headers of any size into memory and, in older releases, can be kept
busy for minutes (CVE-2025-8194, CVE-2024-6232).

Sources: POSIX.1-2017, pax, "ustar Interchange Format" and "pax Extended Header"; GNU tar's manual, "Basic Tar Format".
"""

from collections.abc import Generator, Iterator
from typing import Final

from ..errors import InvalidBundle
from .entries import Entry, EntryType, damaged, quoted, unsafe
from .reading import CHUNK_BYTES, Stream

BLOCK_BYTES: Final = 512

_MAX_EXTENSION_BYTES: Final = 1024 * 1024  # a name needs a thousandth of it
_ZEROS: Final = bytes(BLOCK_BYTES)
_SIZE: Final = slice(124, 136)  # the field of the header

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
_EXTENSIONS: Final = frozenset({*_GNU_LONG, b"x", b"X", _GLOBAL})  # describe the next entry, or all; `X` is Solaris' `x`


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
    attributes: dict[bytes, bytes] = {}
    while (block := stream.read(BLOCK_BYTES)) != _ZEROS:
        if len(block) < BLOCK_BYTES:
            raise damaged("The tar archive ends without its end marker: a part is missing.")
        if not is_tar_header(block):
            raise damaged("The header of an entry does not match its checksum.")
        type_flag = block[156:157]
        if type_flag == _LABEL:
            if attributes or _number(block[_SIZE]):
                raise damaged("The tar archive's label has content, or a header that describes it.")
        elif type_flag in _EXTENSIONS:
            _add_attributes(attributes, type_flag, _read_extension(stream, _number(block[_SIZE])))
        else:
            entry = _entry(block, attributes, stream)
            yield entry
            stream.read(-entry.size % BLOCK_BYTES)
            attributes = {}
    if attributes:
        raise damaged("The tar archive ends where an entry should follow.")
    while rest := stream.read_some(CHUNK_BYTES):
        if rest.strip(b"\0"):
            raise damaged("Other data follows the tar archive's end marker.")


def _read_extension(stream: Stream, size: int) -> bytes:
    if size > _MAX_EXTENSION_BYTES:
        raise unsafe("An extended header holds more than 1 MiB.")
    text = stream.read(size)
    if len(text) < size:
        raise damaged("The tar archive ends in the middle of a header: a part is missing.")
    stream.read(-size % BLOCK_BYTES)
    return text


def _add_attributes(attributes: dict[bytes, bytes], type_flag: bytes, text: bytes) -> None:
    """Add the attributes in an extension header, by the keys of pax."""
    records = [(_GNU_LONG[type_flag], text.rstrip(b"\0"))] if type_flag in _GNU_LONG else _pax_records(text)
    for key, value in records:
        if key.startswith(b"GNU.sparse."):
            name = f" ({quoted(value)})" if key == b"GNU.sparse.name" else ""
            raise unsafe(f"The archive holds a sparse file{name}, whose size may not match its content.")
        if key not in {b"path", b"linkpath", b"size"}:
            continue
        if type_flag == _GLOBAL:
            raise unsafe(f"The archive gives the same {key.decode()} to all of its entries.")
        # readers differ in which of two values they use, and in what an empty one means; no honest archive has either
        if key in attributes:
            raise unsafe(f"The archive gives the {key.decode()} of an entry twice.")
        if not value:
            raise unsafe(f"The archive gives an empty {key.decode()} to an entry.")
        attributes[key] = value


def _pax_records(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Read the records of an extended header: `<length> <key>=<value>` and a newline, with the length of the whole record."""
    text, start = text.rstrip(b"\0"), 0
    while start < len(text):
        digits, space, _ = text[start : start + 8].partition(b" ")
        end = start + int(digits) if space and digits.isdigit() else 0
        key, equals, value = text[start + len(digits) + 1 : end - 1].partition(b"=")
        if not (start + len(digits) < end <= len(text) and text[end - 1] == ord("\n") and key and equals):
            raise damaged("An extended header cannot be read.")
        yield key, value
        start = end


def _entry(block: bytes, attributes: dict[bytes, bytes], stream: Stream) -> Entry:
    name = attributes.get(b"path") or _header_name(block)
    type_flag = block[156:157]
    if type_flag not in _TYPES:
        description = _REFUSED_TYPES.get(type_flag, f"of the unknown type {quoted(type_flag)}")
        raise unsafe(f"Entry {quoted(name)} is {description}.")
    entry_type = _TYPES[type_flag]
    if entry_type is EntryType.FILE and name.endswith(b"/"):
        entry_type = EntryType.FOLDER  # as writers before POSIX marked folders
    size = 0 if type_flag == b"5" else _size(block, attributes)  # a folder's is the space to reserve for it (POSIX)
    if entry_type is not EntryType.FILE and size:
        raise damaged(f"Entry {quoted(name)} is {entry_type.value}, but has content.")
    mode, target = _number(block[100:108]), attributes.get(b"linkpath") or _until_zero(block[157:257])
    return Entry(name=name, type=entry_type, mode=mode, size=size, target=target, content=stream.pieces(size))


def _size(block: bytes, attributes: dict[bytes, bytes]) -> int:
    digits = attributes.get(b"size")
    if digits is None:
        return _number(block[_SIZE])
    if not digits.isdigit() or len(digits) > 20:
        raise damaged("An extended header gives a size that is not a number.")
    return int(digits)


def _header_name(block: bytes) -> bytes:
    name, prefix = _until_zero(block[:100]), _until_zero(block[345:500])
    # GNU tar keeps times where POSIX has the prefix, and spells its magic with blanks
    return prefix + b"/" + name if prefix and block[257:263] == b"ustar\0" else name


def _number(field: bytes) -> int:
    """Read octal digits, or GNU's binary form for larger numbers."""
    if field[0] == 0o200:
        return int.from_bytes(field[1:], "big")
    digits = _until_zero(field).strip(b" ")
    if digits.strip(b"01234567"):
        # `int` would accept signs, underscores and white space inside
        raise damaged("The header of an entry holds a number that cannot be read.")
    return int(digits or b"0", 8)


def _until_zero(field: bytes) -> bytes:
    return field.partition(b"\0")[0]
