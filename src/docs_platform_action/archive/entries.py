"""The entries of an archive: which types are unpacked, and the errors for those that are refused."""

import enum
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ..errors import InvalidBundle

_MAX_QUOTED_LENGTH: Final = 160  # characters of an archive's name in a message; of a longer one, both ends are shown


class EntryType(enum.Enum):
    """The types of entries that a site may need."""

    FILE = "a file"
    FOLDER = "a folder"
    SYMBOLIC_LINK = "a symbolic link"
    HARD_LINK = "a hard link"


TAR_TYPES: Final = {
    b"0": EntryType.FILE,
    b"\0": EntryType.FILE,
    b"1": EntryType.HARD_LINK,
    b"2": EntryType.SYMBOLIC_LINK,
    b"5": EntryType.FOLDER,
}
"""The type flags of a tar header (POSIX, pax). An entry of any other type is refused."""

REFUSED_TAR_TYPES: Final = {
    b"3": "a character device",
    b"4": "a block device",
    b"6": "a named pipe",
    b"7": "a contiguous file",
    b"S": "a sparse file",
}
"""Descriptions, for the error, of types that are refused."""

ZIP_TYPES: Final = {
    0: EntryType.FILE,
    stat.S_IFREG: EntryType.FILE,
    stat.S_IFDIR: EntryType.FOLDER,
    stat.S_IFLNK: EntryType.SYMBOLIC_LINK,
}
"""The types in a Unix mode, as zip archives hold it. An entry of any other type is refused."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One entry. `name` and a link's `target` are the bytes in the archive, and not validated yet.

    `size` is the size in bytes that the archive announces. `content` is to be read to its end before the next entry is read.
    """

    name: bytes
    type: EntryType
    mode: int
    size: int = 0
    target: bytes = b""
    content: Iterable[bytes] = ()


def damaged(fact: str) -> InvalidBundle:
    """Return the error for an archive that is incomplete or malformed."""
    return InvalidBundle("the bundle is damaged", details=(fact,))


def unsafe(fact: str) -> InvalidBundle:
    """Return the error for an archive that holds something that must not be unpacked."""
    return InvalidBundle(
        "the bundle cannot be opened safely",
        details=(fact,),
        cause="It was not made by the platform, or the site contains something that cannot be delivered as files.",
        remedy="Where it comes from the site's sources, fix it there and export again; otherwise report it to the platform.",
    )


def quoted(name: bytes) -> str:
    """Quote a name for a message. Bytes that are not UTF-8 are escaped, and a long name is shortened in the middle."""
    text = name[: 4 * _MAX_QUOTED_LENGTH].decode("utf-8", "backslashreplace")
    if len(text) > _MAX_QUOTED_LENGTH or len(name) > 4 * _MAX_QUOTED_LENGTH:
        half = _MAX_QUOTED_LENGTH // 2
        text = f"{text[:half]}…{name[-half:].decode('utf-8', 'backslashreplace')[-half:]}"
    return f"'{text}'"
