"""The entries of an archive, and the errors for an archive that is refused."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import InvalidBundle


class EntryType(enum.Enum):
    """The types of entries that are unpacked, each with its description."""

    FILE = "a file"
    FOLDER = "a folder"
    SYMBOLIC_LINK = "a symbolic link"
    HARD_LINK = "a hard link"


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One entry. `name` and a link's `target` are the archive's bytes, not validated; `size` is the declared size in bytes.

    Read `content` to its end before the next entry.
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


def contradictory(fact: str) -> InvalidBundle:
    """Return the error for an archive that other programs may unpack to other files."""
    return InvalidBundle(
        "the bundle contradicts itself",
        details=(fact,),
        cause="The program that packed it wrote two different values, or somebody changed the archive.",
        remedy="Report it to the platform. Programs differ in which of the values they use, so the same fault may come again.",
    )


def unsafe(fact: str) -> InvalidBundle:
    """Return the error for an archive that holds something that must not be unpacked."""
    return InvalidBundle(
        "the bundle cannot be opened safely",
        details=(fact,),
        cause="The archive was not made by the platform, or the site contains something that cannot be delivered as files.",
        remedy="If the site's sources cause it, fix them and export again; otherwise report it to the platform.",
    )


def unsafe_link(path: str, fact: str) -> InvalidBundle:
    """Return the error for a symbolic link that must not be created."""
    return unsafe(f"Symbolic link {quoted(path.encode())} {fact}.")


def quoted(name: bytes) -> str:
    """Quote a name for a message. Bytes that are not UTF-8 are escaped, and a long name is shortened in the middle."""
    text = name.decode("utf-8", "backslashreplace")
    return f"'{text}'" if len(text) <= 160 else f"'{text[:80]}…{text[-80:]}'"
