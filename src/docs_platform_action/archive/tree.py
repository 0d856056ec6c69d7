"""The tree of files, folders and links on the disk that an archive becomes."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Final

from ..clock import Cancellation
from ..ownership import FILE_MODE, FOLDER_MODE, MAX_PART_BYTES, Owner, set_mode
from .entries import Entry, EntryType, quoted, unsafe
from .limits import Quota
from .names import MAX_NAME_BYTES, Register, path_of, target_too_long, text_of
from .reading import CHUNK_BYTES
from .symlinks import MAX_LINKS, Links, leads_nowhere, leads_outside

_NAME_REFUSED: Final = frozenset({errno.EEXIST, errno.EILSEQ, errno.EINVAL, errno.ENAMETOOLONG})
"""Errors of a file system that refuses a name: the same as another's, not in its characters, or too long."""


class Tree:
    """The tree below an open folder.

    Paths are bytes relative to its descriptor, so no locale changes them, and the folder's own path does not make them longer.
    """

    def __init__(self, root: int, meter: Quota, cancellation: Cancellation, owner: Owner | None) -> None:
        self.files = 0
        self.html_files = 0
        self._root = root
        self._meter = meter
        self._cancellation = cancellation
        self._owner = owner
        self._register = Register()
        self._links: dict[str, str] = {}

    def add(self, entry: Entry) -> None:
        """Add an entry. Symbolic links are created by `link` in the end, so that nothing can be written through one."""
        self._meter.add_entry()
        is_root = entry.type is EntryType.FOLDER and not entry.name.strip(b"/")  # as Python's tarfile names it for some
        path = "" if is_root else path_of(entry.name)
        if not path:
            if entry.type is not EntryType.FOLDER:
                raise unsafe(f"Entry {quoted(entry.name)} is {entry.type.value} where the folder itself must be.")
            return
        self._add_parents(path)
        if entry.type is EntryType.FOLDER:
            self._add_folder(path)
        elif entry.type is EntryType.SYMBOLIC_LINK:
            self._add_link(path, entry.target)
        elif entry.type is EntryType.HARD_LINK and (target := self._links.get(path_of(entry.target))) is not None:
            self._add_link(path, target.encode())  # with the same text as its target, as GNU tar unpacks it
        else:
            self._add_file(path, entry)

    def link(self) -> None:
        """Create the symbolic links, once it is verified that all lead to something in the tree."""
        Links(self._links, self._register, self._cancellation).verify()
        for path, target in self._links.items():
            self._cancellation.check()
            self._meter.add_entry_space()  # again: those that were counted before are not on the disk yet
            with _name_explained(path):
                os.symlink(target.encode(), path.encode(), dir_fd=self._root)
            self._give(path)

    def _add_parents(self, path: str) -> None:
        *above, _ = path.split("/")
        if self._register.type_at("/".join(above)) is EntryType.FOLDER:
            return
        for folder in accumulate(above, "{}/{}".format):
            if self._add_folder(folder):
                self._meter.add_entry()

    def _add_folder(self, path: str) -> bool:
        """Create a folder unless it exists, and return whether it was created."""
        if not self._register.claim(path, EntryType.FOLDER):
            return False
        with _name_explained(path):
            os.mkdir(path.encode(), FOLDER_MODE, dir_fd=self._root)
        set_mode(path.encode(), FOLDER_MODE, dir_fd=self._root)  # before it is given away, which may end the right to do so
        self._give(path)
        return True

    def _add_file(self, path: str, entry: Entry) -> None:
        """Write a file, or a copy of the one that a hard link leads to, so that a change of one never changes the other.

        Its time of modification is now. Archives may have one fixed date for all builds, and then `aws s3 sync`, rsync and
        nginx's ETag take a changed file of the same size for the old one.
        """
        if entry.mode & (stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX):
            raise unsafe(f"Entry {quoted(entry.name)} has the setuid, setgid or sticky bit set (mode {entry.mode & 0o7777:04o}).")
        self._meter.check_declared_bytes(entry.size)
        content = entry.content
        if entry.type is EntryType.HARD_LINK:
            target = path_of(entry.target)
            if self._register.type_at(target) is not EntryType.FILE:
                raise unsafe(
                    f"Entry {quoted(entry.name)} is a hard link to {quoted(entry.target)}, which is not an earlier file."
                )
            content = self._read(target)
        self._register.claim(path, EntryType.FILE)
        with _name_explained(path):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            descriptor = os.open(path.encode(), flags, FILE_MODE, dir_fd=self._root)
        try:
            set_mode(descriptor, FILE_MODE)
            self._give(path)
            for chunk in content:
                self._cancellation.check()
                self._meter.add_bytes(len(chunk))
                rest = memoryview(chunk)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
        finally:
            os.close(descriptor)
        self.files += 1
        self.html_files += path.lower().endswith(".html")

    def _give(self, path: str) -> None:
        if self._owner is not None:
            self._owner.chown(path.encode(), dir_fd=self._root)

    def _read(self, path: str) -> Iterator[bytes]:
        with os.fdopen(os.open(path.encode(), os.O_RDONLY | os.O_NOFOLLOW, dir_fd=self._root), "rb", buffering=0) as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk

    def _add_link(self, path: str, target: bytes) -> None:
        if len(target) > MAX_NAME_BYTES:
            raise target_too_long(path.encode())
        depth = path.count("/")
        text = text_of(target, f"The target of symbolic link {quoted(path.encode())}")
        for part in text.split("/"):
            depth += -1 if part == ".." else part not in {"", "."}
            if depth < 0:
                raise leads_outside(path)
            if len(part.encode()) > MAX_PART_BYTES:
                raise leads_nowhere(path)
        self._register.claim(path, EntryType.SYMBOLIC_LINK)
        if len(self._links) >= MAX_LINKS:
            raise unsafe(f"It holds more than {MAX_LINKS:,} symbolic links.")
        self._links[path] = text


@contextmanager
def _name_explained(path: str) -> Iterator[None]:
    """Raise `InvalidBundle` for an `OSError` that is about the name, not about the disk."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NAME_REFUSED:
            raise
        raise unsafe(
            f"Entry {quoted(path.encode())} has a name that the runner's disk does not accept ({error.strerror})."
        ) from error
