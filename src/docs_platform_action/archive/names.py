"""Validation of the names in an archive, and the register of the paths that are taken."""

import hashlib
import re
import unicodedata
from typing import Final

from ..errors import InvalidBundle
from ..ownership import MAX_PART_BYTES
from .entries import EntryType, quoted, unsafe

MAX_NAME_BYTES: Final = 1024
"""The longest key that S3 takes (source: Amazon S3 User Guide, "Naming Amazon S3 objects"); Linux would take 4095."""

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")  # Unicode's category Cc


def text_of(name: bytes, what: str) -> str:
    """Decode a name. Raises `InvalidBundle`, with a message that begins with `what`, for one that is not safe."""
    try:
        text = name.decode()
    except UnicodeDecodeError:
        raise unsafe(f"{what} has a name that is not in UTF-8.") from None
    if not text:
        raise unsafe(f"{what} has an empty name.")
    if _CONTROL.search(text):
        raise unsafe(f"{what} has a control character in its name.")
    if "\\" in text:
        raise unsafe(
            f"{what} has a backslash in its name: its packer uses it to separate folders, which the format does not allow."
        )
    if text.startswith("/"):
        raise unsafe(f"{what} has an absolute name.")
    return text


def path_of(name: bytes) -> str:
    """Return an entry's path below the folder, without `.` and doubled slashes, or empty for the folder itself.

    Raises `InvalidBundle` for a name that leads elsewhere, or that some place that sites are deployed to cannot store.
    """
    what = f"Entry {quoted(name)}"
    parts = [part for part in text_of(name, what).split("/") if part not in {"", "."}]
    if ".." in parts:
        raise unsafe(f"{what} has '..' in its name, which leads outside the folder.")
    path = "/".join(parts)
    if len(path.encode()) > MAX_NAME_BYTES:
        raise unsafe(f"{what} has a name of more than {MAX_NAME_BYTES:,} bytes, the maximum that S3 can store.")
    if any(len(part.encode()) > MAX_PART_BYTES for part in parts):
        raise unsafe(f"{what} has a part of more than {MAX_PART_BYTES} bytes in its name, more than file systems allow.")
    return path


def target_too_long(name: bytes) -> InvalidBundle:
    """Return the error for a link whose target is longer than any entry's name."""
    return unsafe(f"Entry {quoted(name)} is a link to a name of more than {MAX_NAME_BYTES:,} bytes.")


class Register:
    """The paths that are taken, each with the type of its entry.

    Only digests are kept, so any path takes some 250 bytes of memory: 60 MiB for the maximum of entries.
    """

    def __init__(self) -> None:
        self._taken: dict[bytes, tuple[bytes, EntryType]] = {}

    def claim(self, path: str, type_: EntryType) -> bool:
        """Take a path, and return whether it was free. A folder may be taken as a folder again.

        Raises `InvalidBundle` for a path that is taken by something else, or by a name that some file systems do not distinguish:
        those of Windows and macOS ignore case, and that of macOS also how Unicode composes a letter.
        """
        folded = _folded(path)
        digest = _digest(folded)
        exact = digest if folded == path else _digest(path)
        taken = self._taken.get(digest)
        if taken is None:
            self._taken[digest] = (exact, type_)
            return True
        taken_by, taken_as = taken
        entry = f"Entry {quoted(path.encode())}"
        if taken_by != exact:
            raise unsafe(f"{entry} has the same name as another, except for upper and lower case or Unicode composition.")
        if taken_as is not type_:
            raise unsafe(f"{entry} is {taken_as.value} in one place and {type_.value} in another.")
        if type_ is not EntryType.FOLDER:
            raise unsafe(f"{entry} is in the archive twice.")
        return False

    def type_at(self, path: str) -> EntryType | None:
        """Return the type of the entry at exactly this path, if there is one."""
        exact, type_ = self._taken.get(_digest(_folded(path)), (None, None))
        return type_ if exact == _digest(path) else None


def _digest(path: str) -> bytes:
    return hashlib.blake2b(path.encode(), digest_size=16).digest()


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())
