"""What an archive holds, whatever its kind: entries one after another, and the words for what cannot be taken."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ..errors import InvalidBundle

LONGEST_SHOWN: Final = 160
"""Characters of a foreign name that a message shows; of a longer one it shows both ends."""

LONGEST_TARGET_BYTES: Final = 1024
"""The most that a link may lead to, which is the longest name that an entry may have."""


class EntryType(enum.Enum):
    """The types of entries that a site may need."""

    FILE = "a file"
    FOLDER = "a folder"
    SYMBOLIC_LINK = "a symbolic link"
    HARD_LINK = "a hard link"


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One entry. `name` and a link's `target` are the archive's own bytes, which nobody has judged yet.

    `size` is what the archive announces, in bytes. `content` is read to its end before the next entry is asked for.
    """

    name: bytes
    type: EntryType
    mode: int
    size: int = 0
    target: bytes = b""
    content: Iterable[bytes] = ()


def damaged(fact: str) -> InvalidBundle:
    """Make the failure of an archive that is not whole or not well made."""
    return InvalidBundle("the bundle is damaged", facts=(fact,))


def unsafe(fact: str) -> InvalidBundle:
    """Make the failure of an archive that is whole but holds what must not be unpacked."""
    return InvalidBundle(
        "the bundle cannot be opened safely",
        facts=(fact,),
        cause="It was not made by the platform, or the site holds something that cannot be delivered as files.",
        remedy="Where it comes from the site's sources, mend it there and export again; else report it to the platform.",
    )


def target_too_long(name: bytes) -> InvalidBundle:
    """Make the failure of a link that no entry can be at the end of."""
    return unsafe(f"Entry {shown(name)} is a link to a name of more than {LONGEST_TARGET_BYTES:,} bytes.")


def shown(name: bytes) -> str:
    """Quote a name for a message: bytes that are no text as escapes, both ends of a long one."""
    text = name[: 4 * LONGEST_SHOWN].decode("utf-8", "backslashreplace")
    if len(text) > LONGEST_SHOWN or len(name) > 4 * LONGEST_SHOWN:
        half = LONGEST_SHOWN // 2
        text = f"{text[:half]}…{name[-half:].decode('utf-8', 'backslashreplace')[-half:]}"
    return f"'{text}'"
