"""The entries of a tar archive.

The reader is our own because `tarfile` trusts what it reads: even with `filter="data"` it accepts more than half of the hostile
archives in the tests. It takes a damaged header for the end of the archive, reads extended headers of any size into memory and,
in older releases, can be kept busy for minutes (CVE-2025-8194, CVE-2024-6232).

Sources: POSIX.1-2017, pax, "ustar Interchange Format" and "pax Extended Header"; GNU tar's manual, "Basic Tar Format".
"""

from collections.abc import Generator, Iterator
from typing import Final

from .entries import REFUSED_TAR_TYPES, TAR_TYPES, Entry, EntryType, damaged, quoted, unsafe
from .reading import CHUNK_BYTES, Stream

BLOCK_BYTES: Final = 512

_MAX_HEADER_BYTES: Final = 1024 * 1024  # of an extended header; a name needs a thousandth of it
_ZEROS: Final = bytes(BLOCK_BYTES)
_GNU_LONG: Final = {b"L": b"path", b"K": b"linkpath"}
_EXTENDING: Final = frozenset({*_GNU_LONG, b"x", b"X", b"g"})  # describe the next entry, or all; `X` is Solaris' `x`


def is_header(block: bytes) -> bool:
    """Return whether a block holds its own checksum, as every tar header does."""
    if len(block) < BLOCK_BYTES:
        return False
    field = block[148:156]
    try:
        announced = _number(field)
    except ValueError:
        return False
    unsigned = sum(block) - sum(field) + 8 * ord(" ")
    # Some old writers took bytes for signed (source: POSIX asks readers to expect it no more, but GNU tar still does).
    return announced == unsigned or announced == unsigned - 256 * sum(byte > 127 for byte in block[:148] + block[156:])


def begins_tar(block: bytes) -> bool:
    """Return whether a stream that begins with this block is a tar archive, which may be empty."""
    return is_header(block) or block == _ZEROS


def tar_entries(stream: Stream) -> Generator[Entry]:
    """Return the entries of an archive, to its very end.

    Raises `InvalidBundle` for an archive that is damaged, that ends without its mark or goes on behind it, and for entries that
    are neither files, folders nor links.
    """
    attributes: dict[bytes, bytes] = {}
    while (block := stream.read(BLOCK_BYTES)) != _ZEROS:
        if len(block) < BLOCK_BYTES:
            raise damaged("The tar archive ends without its end marker: a part is missing.")
        if not is_header(block):
            raise damaged("The header of an entry does not match its checksum.")
        if (type_flag := block[156:157]) == b"V":  # a name for the archive as a whole (GNU tar's `--label`)
            if attributes or _field(block, 124, 136):
                raise damaged("The archive's label has content, or a header that describes it.")
        elif type_flag in _EXTENDING:
            _extend(attributes, type_flag, _text_of(stream, _field(block, 124, 136)))
        else:
            yield from _entry(block, attributes, stream)
            attributes = {}
    if attributes:
        raise damaged("The tar archive ends where an entry should follow.")
    while rest := stream.some(CHUNK_BYTES):
        if rest.strip(b"\0"):
            raise damaged("Something follows the tar archive's end marker.")


def _extend(attributes: dict[bytes, bytes], type_flag: bytes, text: bytes) -> None:
    """Add what an extending header says about the entry behind it, by the keys of pax."""
    if type_flag in _GNU_LONG:
        _set_attribute(attributes, _GNU_LONG[type_flag], text.rstrip(b"\0"))
        return
    for key, value in _records(text):
        if key.startswith(b"GNU.sparse."):
            named = f" ({quoted(value)})" if key == b"GNU.sparse.name" else ""
            raise unsafe(f"It holds a sparse file{named}, whose size need not match its content.")
        if key in {b"path", b"linkpath", b"size"}:
            if type_flag == b"g":
                raise unsafe(f"It gives one {key.decode()} to all of its entries.")
            _set_attribute(attributes, key, value)


def _set_attribute(attributes: dict[bytes, bytes], key: bytes, value: bytes) -> None:
    # Readers differ in which of two they believe, and whether none is the header's or an empty one, so nothing honest has that.
    if key in attributes:
        raise unsafe(f"It gives the {key.decode()} of one entry twice.")
    if not value:
        raise unsafe(f"It gives an empty {key.decode()} to an entry.")
    attributes[key] = value


def _entry(block: bytes, attributes: dict[bytes, bytes], stream: Stream) -> Iterator[Entry]:
    name = attributes.get(b"path") or _name(block)
    type_flag = block[156:157]
    if type_flag not in TAR_TYPES:
        what = REFUSED_TAR_TYPES.get(type_flag, f"of the unknown type {quoted(type_flag)}")
        raise unsafe(f"Entry {quoted(name)} is {what}.")
    entry_type = TAR_TYPES[type_flag]
    if entry_type is EntryType.FILE and name.endswith(b"/"):
        entry_type = EntryType.FOLDER  # as writers before POSIX marked them
    size = 0 if type_flag == b"5" else _size(block, attributes)  # for a folder POSIX has it mean the room to set aside
    if entry_type is not EntryType.FILE and size:
        raise damaged(f"Entry {quoted(name)} is {entry_type.value}, but has content.")
    yield Entry(
        name=name,
        type=entry_type,
        mode=_field(block, 100, 108),
        size=size,
        target=attributes.get(b"linkpath") or _until_zero(block[157:257]),
        content=stream.pieces(size),
    )
    stream.read(-size % BLOCK_BYTES)


def _size(block: bytes, attributes: dict[bytes, bytes]) -> int:
    digits = attributes.get(b"size")
    if digits is None:
        return _field(block, 124, 136)
    if not digits.isdigit() or len(digits) > 20:
        raise damaged("An extended header gives a size that is not a number.")
    return int(digits)


def _name(block: bytes) -> bytes:
    name = _until_zero(block[:100])
    prefix = _until_zero(block[345:500])
    # GNU tar keeps times where POSIX has the prefix, and spells its magic with blanks.
    return prefix + b"/" + name if prefix and block[257:263] == b"ustar\0" else name


def _text_of(stream: Stream, size: int) -> bytes:
    if size > _MAX_HEADER_BYTES:
        raise unsafe("An extended header holds more than 1 MiB, where it should hold a name.")
    text = stream.read(size)
    if len(text) < size:
        raise damaged("The tar archive ends in the middle of a header: a part is missing.")
    stream.read(-size % BLOCK_BYTES)
    return text


def _records(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Read the records of an extended header, each `<length> <key>=<value>` and a newline, all of which the length counts."""
    text, at = text.rstrip(b"\0"), 0
    while at < len(text):
        digits, space, _ = text[at : at + 8].partition(b" ")
        end = at + int(digits) if space and digits.isdigit() else 0
        key, equals, value = text[at + len(digits) + 1 : end - 1].partition(b"=")
        if not (at + len(digits) < end <= len(text) and text[end - 1] == ord("\n") and key and equals):
            raise damaged("An extended header cannot be read.")
        yield key, value
        at = end


def _field(block: bytes, start: int, end: int) -> int:
    try:
        return _number(block[start:end])
    except ValueError:
        raise damaged("The header of an entry holds a number that cannot be read.") from None


def _number(field: bytes) -> int:
    """Read octal digits, or GNU's binary form for what they cannot hold; raises ValueError."""
    if field[0] == 0o200:
        return int.from_bytes(field[1:], "big")
    digits = _until_zero(field).strip(b" ")
    if digits.strip(b"01234567"):
        raise ValueError  # also what `int` would take: signs, underscores, white space within
    return int(digits or b"0", 8)


def _until_zero(field: bytes) -> bytes:
    return field.partition(b"\0")[0]
