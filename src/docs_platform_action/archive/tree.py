"""The tree of files, folders and links on the disk that an archive becomes."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Final

from ..clock import Cancellation
from ..ownership import FILE_MODE, FOLDER_MODE, Owner, set_mode
from .entries import Entry, EntryType, quoted, unsafe, unsafe_link
from .limits import ENTRY_BYTES, Quota
from .names import MAX_NAME_BYTES, PathRegistry, decode_name, path_of
from .reading import CHUNK_BYTES
from .symlinks import LEADS_OUTSIDE, MAX_LINKS, SymlinkVerifier

_NAME_ERRORS: Final = {errno.EEXIST, errno.EILSEQ, errno.EINVAL, errno.ENAMETOOLONG}  # EEXIST: the disk folds two names into one


class Tree:
    """The tree below the open folder `root`.

    Paths are bytes relative to it, so that no locale changes them, and the folder's own path does not make them longer.
    """

    def __init__(self, root: int, quota: Quota, cancellation: Cancellation, owner: Owner | None) -> None:
        self.files = 0
        self.html_files = 0
        self._root = root
        self._quota = quota
        self._cancellation = cancellation
        self._owner = owner
        self._paths = PathRegistry()
        self._symlinks: dict[str, str] = {}

    def add(self, entry: Entry) -> None:
        """Add an entry. Symbolic links wait for `create_symlinks`, so that nothing can be written through one."""
        self._quota.add_entry()
        is_root = entry.type is EntryType.FOLDER and not entry.name.strip(b"/")  # Python's tarfile may name the folder so
        path = "" if is_root else path_of(entry.name)
        if not path:
            if entry.type is not EntryType.FOLDER:
                raise unsafe(f"Entry {quoted(entry.name)} is {entry.type.value}, but its name is that of the folder itself.")
            return
        if entry.type is not EntryType.FOLDER and entry.name.endswith((b"/", b"/.")):
            raise unsafe(f"Entry {quoted(entry.name)} is {entry.type.value}, but its name is that of a folder.")
        self._add_parents(path)
        if entry.type is EntryType.FOLDER:
            self._add_folder(path)
        elif entry.type is EntryType.SYMBOLIC_LINK:
            self._add_symlink(path, entry.target)
        elif entry.type is EntryType.HARD_LINK and (target := self._symlinks.get(path_of(entry.target))) is not None:
            self._add_symlink(path, target.encode())  # a copy of the link, as GNU tar unpacks it
        else:
            self._add_file(path, entry)

    def create_symlinks(self) -> None:
        """Create the symbolic links, after verifying that all lead to something in the tree."""
        SymlinkVerifier(self._symlinks, self._paths, self._cancellation).verify()
        for path, target in self._symlinks.items():
            self._cancellation.check()
            self._quota.add_space(ENTRY_BYTES, inodes=1)  # a second time: what `add` counted is not on the disk yet
            with _name_errors_explained(path):
                os.symlink(target.encode(), path.encode(), dir_fd=self._root)
            self._chown(path)

    def _add_parents(self, path: str) -> None:
        *parents, _ = path.split("/")
        if self._paths.type_at("/".join(parents)) is EntryType.FOLDER:
            return
        for folder in accumulate(parents, "{}/{}".format):
            if self._add_folder(folder):
                self._quota.add_entry()

    def _add_folder(self, path: str) -> bool:
        """Create a folder unless it exists, and return whether it was created."""
        if not self._paths.claim(path, EntryType.FOLDER):
            return False
        with _name_errors_explained(path):
            os.mkdir(path.encode(), FOLDER_MODE, dir_fd=self._root)
        set_mode(path.encode(), FOLDER_MODE, dir_fd=self._root)  # before chown, after which it may be denied
        self._chown(path)
        return True

    def _add_file(self, path: str, entry: Entry) -> None:
        """Write a file, or a copy of a hard link's target, so that a change of one never changes the other.

        Its modification time is now: archives may have one fixed date for all builds, and then `aws s3 sync`, rsync and nginx's
        ETag miss a change that keeps the size.
        """
        if entry.mode & (stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX):
            raise unsafe(f"Entry {quoted(entry.name)} has the setuid, setgid or sticky bit set (mode {entry.mode & 0o7777:04o}).")
        self._quota.check_declared_bytes(entry.size)
        content = entry.content
        if entry.type is EntryType.HARD_LINK:
            target = path_of(entry.target)
            if self._paths.type_at(target) is not EntryType.FILE:
                raise unsafe(f"Hard link {quoted(entry.name)} leads to {quoted(entry.target)}, but no such file comes before it.")
            content = self._read(target)
        self._paths.claim(path, EntryType.FILE)
        with _name_errors_explained(path):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            descriptor = os.open(path.encode(), flags, FILE_MODE, dir_fd=self._root)
        try:
            set_mode(descriptor, FILE_MODE)
            self._chown(path)
            for chunk in content:
                self._cancellation.check()
                self._quota.add_bytes(len(chunk))
                remaining = memoryview(chunk)
                while remaining:
                    remaining = remaining[os.write(descriptor, remaining) :]
        finally:
            os.close(descriptor)
        self.files += 1
        self.html_files += path.lower().endswith(".html")

    def _read(self, path: str) -> Iterator[bytes]:
        with os.fdopen(os.open(path.encode(), os.O_RDONLY | os.O_NOFOLLOW, dir_fd=self._root), "rb", buffering=0) as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk

    def _add_symlink(self, path: str, target: bytes) -> None:
        if len(target) > MAX_NAME_BYTES:
            raise unsafe_link(path, f"has a target longer than {MAX_NAME_BYTES:,} bytes")
        depth = path.count("/")
        text = decode_name(target, f"The target of symbolic link {quoted(path.encode())}")
        for part in text.split("/"):
            depth += -1 if part == ".." else part not in {"", "."}
            if depth < 0:
                raise unsafe_link(path, LEADS_OUTSIDE)
        self._paths.claim(path, EntryType.SYMBOLIC_LINK)
        if len(self._symlinks) >= MAX_LINKS:
            raise unsafe(f"The archive holds more than {MAX_LINKS:,} symbolic links.")
        self._symlinks[path] = text

    def _chown(self, path: str) -> None:
        if self._owner is not None:
            self._owner.chown(path.encode(), dir_fd=self._root)


@contextmanager
def _name_errors_explained(path: str) -> Iterator[None]:
    """Raise `InvalidBundle` for an `OSError` that is about the name, not about the disk."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NAME_ERRORS:
            raise
        fact = f"The runner's disk does not accept the name of entry {quoted(path.encode())} ({error.strerror})."
        raise unsafe(fact) from error
