"""Validation of the names in an archive, and the registry of the paths that its entries claim."""

import hashlib
import re
import unicodedata
from typing import Final

from ..ownership import MAX_PART_BYTES
from .entries import EntryType, quoted, unsafe

MAX_NAME_BYTES: Final = 1024  # as S3's keys (source: Amazon S3 User Guide, "Naming Amazon S3 objects"); Linux allows 4095

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")  # Unicode's category Cc
_ABSOLUTE: Final = re.compile(r"([A-Za-z]:)?/")  # on Windows too


def decode_name(name: bytes, subject: str) -> str:
    """Return a name as text. Raises `InvalidBundle` for an unsafe one; `subject` begins the message."""
    try:
        text = name.decode()
    except UnicodeDecodeError:
        raise unsafe(f"{subject} is not valid UTF-8.") from None
    if not text:
        raise unsafe(f"{subject} is empty.")
    if _CONTROL.search(text):
        raise unsafe(f"{subject} contains a control character.")
    if "\\" in text:
        raise unsafe(f"{subject} contains a backslash. The archive formats allow only slashes between folders.")
    if _ABSOLUTE.match(text):
        raise unsafe(f"{subject} is an absolute path.")
    return text


def path_of(name: bytes) -> str:
    """Return an entry's path below the folder, without `.` and doubled slashes; empty for the folder itself.

    Raises `InvalidBundle` for a name that leads outside, or that S3 or common file systems cannot store.
    """
    subject = f"The name of entry {quoted(name)}"
    parts = [part for part in decode_name(name, subject).split("/") if part not in {"", "."}]
    if ".." in parts:
        raise unsafe(f"{subject} contains '..', which leads outside the folder.")
    path = "/".join(parts)
    if len(path.encode()) > MAX_NAME_BYTES:
        raise unsafe(f"{subject} is longer than {MAX_NAME_BYTES:,} bytes, the maximum that S3 can store.")
    if any(len(part.encode()) > MAX_PART_BYTES for part in parts):
        raise unsafe(f"{subject} has a part longer than {MAX_PART_BYTES} bytes, the maximum of most file systems.")
    return path


class PathRegistry:
    """The claimed paths, each with the type of its entry.

    Only digests are kept, so a path of any length takes about 250 bytes of memory: 60 MiB for the maximum of entries.
    """

    def __init__(self) -> None:
        self._entries: dict[bytes, tuple[bytes, EntryType]] = {}

    def claim(self, path: str, type_: EntryType) -> bool:
        """Claim a path for an entry, and return whether it is new. Only a folder may be claimed again.

        Raises `InvalidBundle` for a path that is claimed, also if it differs only in case, which the file systems of Windows and
        macOS ignore, or in Unicode composition, which that of macOS ignores.
        """
        key, exact = _digests(path)
        if key not in self._entries:
            self._entries[key] = (exact, type_)
            return True
        earlier_exact, earlier_type = self._entries[key]
        entry = f"Entry {quoted(path.encode())}"
        if earlier_exact != exact:
            raise unsafe(f"{entry} differs from another entry only in upper and lower case or in Unicode composition.")
        if earlier_type is not type_:
            raise unsafe(f"{entry} is {earlier_type.value} in one place and {type_.value} in another.")
        if type_ is not EntryType.FOLDER:
            raise unsafe(f"{entry} is in the archive twice.")
        return False

    def type_at(self, path: str) -> EntryType | None:
        """Return the type of the entry at exactly this path, if there is one."""
        key, exact = _digests(path)
        claimed_exact, type_ = self._entries.get(key, (None, None))
        return type_ if claimed_exact == exact else None


def _digests(path: str) -> tuple[bytes, bytes]:
    """Return the digests of a path without its case and Unicode composition, and of the path as it is."""
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())
    key = hashlib.blake2b(folded.encode(), digest_size=16).digest()
    return key, key if folded == path else hashlib.blake2b(path.encode(), digest_size=16).digest()
