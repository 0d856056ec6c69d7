"""The tree of files, folders and links that an archive becomes.

This is the only place that decides what is written, and where. The folder on the disk is the
registry of the names that are taken: nobody else writes to it. It has no symbolic link until
everything else is written, so no path leads through a link.
"""

import os
import re
import stat
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Final

from ..clock import Cancellation
from ..errors import InvalidBundle
from ..ownership import FILE_MODE, FOLDER_MODE, MAX_PART_BYTES, Owner, set_mode
from ..site.digests import Digests
from ..site.page import is_page
from ..text import UNUSABLE, format_bytes, quoted
from .archive import (
    FOLDER,
    HARD_LINK,
    MAX_UNPACKED_BYTES,
    SYMBOLIC_LINK,
    Chunk,
    Entry,
    check_entries,
    chunks_of,
)
from .faults import DiskTooSmall, too_large, unsafe
from .staging import write_all

MAX_RESERVED_BYTES: Final = 1024**3  # of the disk stay free; on a small one, a tenth of it
# On the disk beside the content: the rest of a file's last block, or a folder's block.
_ENTRY_BYTES: Final = 4096
_MAX_CONCURRENT_UNPACKS: Final = 100  # the upper limit of `max-parallel`

# As S3's keys (source: Amazon S3 User Guide, "Naming Amazon S3 objects"). Linux allows 4095.
MAX_PATH_BYTES: Final = 1024
MAX_LINKS: Final = 10_000  # symbolic ones, which stay in memory until everything else is written

_ABSOLUTE: Final = re.compile(r"([A-Za-z]:)?/")  # on Windows too
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


class Tree:
    """The tree below an empty folder.

    It is written relative to the folder's open descriptor `root`, so no path is longer than in the
    archive.
    """

    def __init__(
        self,
        folder: Path,
        root: int,
        cancellation: Cancellation,
        owner: Owner | None,
        digests: Digests | None = None,
    ) -> None:
        self.files = 0
        self.html_files = 0
        self.bytes = 0
        self._entries = 0
        self._budget = 0  # bytes until the next look at the disk
        self._folder = folder
        self._root = root
        self._cancellation = cancellation
        self._owner = owner
        self._digests = digests
        self._folders = {""}
        self._links: dict[str, str] = {}

    def add(self, entry: Entry) -> None:
        """Add an entry, in place of an earlier file or link with its name.

        What macOS adds to an archive is left out. Raises `InvalidBundle`, `OSError` and
        `Cancelled`.
        """
        self._cancellation.check()
        # Python's `tarfile` may give the folder itself such a name.
        is_root = entry.type == FOLDER and not entry.name.strip("/")
        path = "" if is_root else path_of(entry.name)
        if _is_added_by_macos(path, entry.type):
            self._count_entry()
            return
        if entry.type == FOLDER:
            self._add_folder(path)
            return
        self._count_entry()
        if not path or entry.name.endswith(("/", "/.")):
            raise unsafe(
                f"Entry {quoted(entry.name)} is {entry.type}, but has the name of a folder."
            )
        self._make_folder(_parent_of(path))
        if entry.type == SYMBOLIC_LINK:
            self._add_link(path, entry.target)
        elif entry.type == HARD_LINK:
            self._add_copy(path, path_of(entry.target))
        else:
            self._add_file(path, entry.content)

    def finish(self) -> None:
        """Create the symbolic links.

        Raises `InvalidBundle` if there are no files, or if one of the links does not stay inside.
        """
        if not self.files:
            # Delivering it would empty the site.
            raise InvalidBundle(
                "the bundle holds no files",
                cause="The export wrote nothing, or only a part of its bundle.",
            )
        for path, target in self._links.items():
            os.symlink(target.encode(), path.encode(), dir_fd=self._root)
            self._chown(path)
        top = os.path.realpath(os.fsencode(self._folder))
        for path in self._links:
            found = self._link_target(path, top)
            if self._digests is not None:
                self._digests.add_link(path.encode(), found)

    @property
    def links(self) -> Container[str]:
        """The paths of the symbolic links."""
        return self._links

    def only_folder(self) -> str | None:
        """Return the only folder at the top, if it has an `index.html` and the top has none."""
        folders = [path for path in self._folders if path and "/" not in path]
        if len(folders) != 1:
            return None
        folder = folders[0]
        if self._is_file("index.html") or not self._is_file(f"{folder}/index.html"):
            return None
        return folder

    def _is_file(self, path: str) -> bool:
        try:
            return stat.S_ISREG(os.stat(path.encode(), dir_fd=self._root).st_mode)
        except OSError:
            return False

    def _link_target(self, path: str, top: bytes) -> bytes:
        """Return the path of the file or folder that a symbolic link leads to, below `top`.

        Raises `InvalidBundle` if the link is broken, leads outside, or leads to a folder above it.
        """
        self._cancellation.check()
        subject = f"Symbolic link {quoted(path)}"
        link = top + b"/" + path.encode()
        try:
            # Unlike `realpath`, this refuses `file/../file`.
            os.stat(path.encode(), dir_fd=self._root)
            target = os.path.realpath(link, strict=True)
            link_folder = os.path.realpath(link.rpartition(b"/")[0])
        except OSError:
            raise unsafe(
                f"{subject} is broken: its target does not exist, or is part of a loop."
            ) from None
        if not _is_inside(target, top):
            raise unsafe(f"{subject} leads outside the folder.")
        if _is_inside(link_folder, target):
            raise unsafe(f"{subject} leads to a folder that it is in.")
        return target[len(top) + 1 :]

    def _add_folder(self, path: str) -> None:
        if path in self._folders:
            self._count_entry()
        else:
            self._make_folder(path)  # counts it

    def _make_folder(self, path: str) -> None:
        """Create a folder and those above it, and count each, unless it is there."""
        if path in self._folders:
            return
        self._make_folder(_parent_of(path))
        if path in self._links:
            raise _taken(path)
        self._count_entry()
        try:
            os.mkdir(path.encode(), FOLDER_MODE, dir_fd=self._root)
        except FileExistsError:
            raise _taken(path) from None
        # Before chown, after which it may be denied.
        set_mode(path.encode(), FOLDER_MODE, dir_fd=self._root)
        self._chown(path)
        self._folders.add(path)

    def _add_file(self, path: str, content: Iterable[Chunk]) -> None:
        """Write a file, with the current time.

        With a fixed date, `aws s3 sync` misses a change that keeps the size.
        """
        self._links.pop(path, None)
        if self._digests is not None:
            content = self._digests.record(path.encode(), content)
        descriptor = self._create_file(path)
        try:
            set_mode(descriptor, FILE_MODE)
            self._chown(path)
            for chunk in content:
                self._cancellation.check()
                self.bytes += len(chunk)
                if self.bytes > MAX_UNPACKED_BYTES:
                    raise too_large(
                        f"The archive unpacks to more than {format_bytes(MAX_UNPACKED_BYTES)}."
                    )
                self.take_space(len(chunk))
                write_all(descriptor, chunk)
        finally:
            os.close(descriptor)
        self._count(path, 1)

    def _create_file(self, path: str) -> int:
        """Create a file, in place of an earlier one, and return its descriptor."""
        try:
            return os.open(path.encode(), _NEW_FILE, FILE_MODE, dir_fd=self._root)
        except FileExistsError:
            self._remove_file(path)
            return os.open(path.encode(), _NEW_FILE, FILE_MODE, dir_fd=self._root)

    def _add_copy(self, path: str, source: str) -> None:
        """Write a copy of a hard link's target, so that a change of one never changes the other."""
        if source in self._links:  # as GNU tar unpacks it
            self._add_link(path, self._links[source])
            return
        if source in self._folders or source == path or not self._is_file(source):
            raise unsafe(
                f"Hard link {quoted(path)} leads to {quoted(source)}, "
                "but no such file comes before it."
            )
        descriptor = os.open(source.encode(), os.O_RDONLY | os.O_NOFOLLOW, dir_fd=self._root)
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            self._add_file(path, chunks_of(file))

    def _add_link(self, path: str, target: str) -> None:
        _check_text(target, f"The target of symbolic link {quoted(path)}")
        self._remove_file(path)
        self._links[path] = target
        if len(self._links) > MAX_LINKS:
            raise unsafe(f"The archive holds more than {MAX_LINKS:,} symbolic links.")

    def _remove_file(self, path: str) -> None:
        """Remove an earlier file with this name, if there is one."""
        if path in self._folders:
            raise _taken(path)
        try:
            os.unlink(path.encode(), dir_fd=self._root)
        except FileNotFoundError:
            return
        self._count(path, -1)
        if self._digests is not None:
            self._digests.files.pop(path.encode(), None)

    def take_space(self, count: int) -> None:
        """Count bytes that are about to be written to the disk.

        Raises `DiskTooSmall` if it becomes too full, and `OSError`.
        """
        if count > self._budget:
            self._renew_budget(count)
        self._budget -= count

    def _renew_budget(self, needed: int) -> None:
        """Look at the disk, and set how many bytes may be written until the next look."""
        disk = os.statvfs(self._root)
        free = disk.f_bavail * disk.f_frsize
        reserved = min(disk.f_blocks * disk.f_frsize // 10, MAX_RESERVED_BYTES)
        # Some network and FUSE file systems report no sizes.
        reports_sizes = disk.f_blocks > 0
        if reports_sizes and needed > free - reserved:
            raise DiskTooSmall(
                f"Unpacking stopped after {format_bytes(self.bytes)}.",
                f"{format_bytes(free)} are free, "
                f"of which the action leaves {format_bytes(reserved)}.",
            )
        # The budgets of all archives that may be unpacked at the same time fit into the reserve.
        self._budget = max(needed, reserved // _MAX_CONCURRENT_UNPACKS)

    def _count_entry(self) -> None:
        self._entries += 1
        check_entries(self._entries)
        self.take_space(_ENTRY_BYTES)

    def _count(self, path: str, change: int) -> None:
        self.files += change
        if is_page(path.encode()):
            self.html_files += change

    def _chown(self, path: str) -> None:
        if self._owner is not None:
            self._owner.chown(path.encode(), dir_fd=self._root)


def path_of(name: str) -> str:
    """Return an entry's path below the folder, without `.` and doubled slashes.

    It is empty for the folder itself. Raises `InvalidBundle` for a name that leads outside, or that
    S3 or common file systems cannot store.
    """
    subject = f"The name of entry {quoted(name)}"
    _check_text(name, subject)
    parts = [part for part in name.split("/") if part not in {"", "."}]
    if ".." in parts:
        raise unsafe(f"{subject} contains '..', which leads outside the folder.")
    for part in parts:
        if len(part.encode()) > MAX_PART_BYTES:
            raise unsafe(
                f"{subject} has a part longer than {MAX_PART_BYTES} bytes, the usual maximum."
            )
    return "/".join(parts)


def _parent_of(path: str) -> str:
    """Return the folder of a path, empty at the top."""
    return path.rpartition("/")[0]


def _is_added_by_macos(path: str, type_: str) -> bool:
    top, _, _ = path.partition("/")
    if top == "__MACOSX":
        return True
    _, _, name = path.rpartition("/")
    return name.startswith("._") and type_ != FOLDER


def _is_inside(path: bytes, folder: bytes) -> bool:
    """Return whether a path is a folder, or below it."""
    return path == folder or path.startswith(folder + b"/")


def _check_text(text: str, subject: str) -> None:
    if not text:
        raise unsafe(f"{subject} is empty.")
    if _ABSOLUTE.match(text):
        raise unsafe(f"{subject} is an absolute path.")
    if UNUSABLE.search(text) or "\\" in text:
        raise unsafe(
            f"{subject} contains a backslash, a control character, or bytes that are not UTF-8."
        )
    if len(text.encode()) > MAX_PATH_BYTES:
        raise unsafe(f"{subject} is longer than {MAX_PATH_BYTES:,} bytes, the maximum of S3.")


def _taken(path: str) -> InvalidBundle:
    return unsafe(f"Entry {quoted(path)} is a folder in one place and a file or a link in another.")
