"""The tree of files, folders and links that an archive becomes: the only place that decides what is written, and where.

The folder on the disk is the registry of what is taken: nobody else writes to it, and it has no symbolic link until everything
else is written. So no path leads through a link.
"""

import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ..clock import Cancellation
from ..errors import InvalidBundle
from ..ownership import FILE_MODE, FOLDER_MODE, MAX_PART_BYTES, Owner, set_mode
from ..text import UNUSABLE, format_bytes, quoted
from .archive import (
    CHUNK_BYTES,
    FOLDER,
    HARD_LINK,
    MAX_UNPACKED_BYTES,
    SYMBOLIC_LINK,
    Chunk,
    Entry,
    check_entries,
)
from .faults import DiskTooSmall, too_large, unsafe
from .plan import Digests
from .staging import write_all

MAX_RESERVED_BYTES: Final = 1024**3  # of the disk stay free; on a small one, a tenth of it
_ENTRY_BYTES: Final = (
    4096  # on the disk beside the content: the rest of a file's last block, or a folder's block
)
_MAX_CONCURRENT_UNPACKS: Final = 100  # the upper limit of `max-parallel`

MAX_PATH_BYTES: Final = 1024  # as S3's keys (source: Amazon S3 User Guide, "Naming Amazon S3 objects"); Linux allows 4095
MAX_LINKS: Final = 10_000  # symbolic ones, which stay in memory until everything else is written

_ABSOLUTE: Final = re.compile(r"([A-Za-z]:)?/")  # on Windows too
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


class Tree:
    """The tree below an empty folder, written relative to its open descriptor `root`: no path is longer than in the archive."""

    def __init__(
        self,
        folder: Path,
        root: int,
        cancellation: Cancellation,
        owner: Owner | None,
        digests: Digests | None = None,
    ) -> None:
        self.files = self.html_files = self.bytes = self._entries = 0
        self._budget = 0  # bytes until the next look at the disk
        self._folder = folder
        self._root = root
        self._cancellation = cancellation
        self._owner = owner
        self._digests = digests
        self._folders = {""}
        self._links: dict[str, str] = {}

    def add(self, entry: Entry) -> None:
        """Add an entry, in place of an earlier file or link with its name. Raises `InvalidBundle`, `OSError` and `Cancelled`.

        What macOS adds to an archive is left out.
        """
        self._cancellation.check()
        is_root = entry.type == FOLDER and not entry.name.strip(
            "/"
        )  # Python's tarfile may name the folder itself so
        path = "" if is_root else path_of(entry.name)
        parents, _, name = path.rpartition("/")
        is_left_out = path.split("/", 1)[0] == "__MACOSX" or (
            name.startswith("._") and entry.type != FOLDER
        )
        if entry.type == FOLDER and not is_left_out and path not in self._folders:
            self._make_folder(path)  # counts it
            return
        self._count_entry()
        if entry.type == FOLDER or is_left_out:
            return
        if not path or entry.name.endswith(("/", "/.")):
            raise unsafe(
                f"Entry {quoted(entry.name)} is {entry.type}, but has the name of a folder."
            )
        self._make_folder(parents)
        if entry.type == SYMBOLIC_LINK:
            self._add_link(path, entry.target)
        elif entry.type == HARD_LINK:
            self._add_copy(path, path_of(entry.target))
        else:
            self._add_file(path, entry.content)

    def finish(self) -> None:
        """Create the symbolic links. Raises `InvalidBundle` if there are no files, or one of the links does not stay inside."""
        if not self.files:
            # delivering it would empty the site
            raise InvalidBundle(
                "the bundle holds no files",
                cause="The export wrote nothing, or only a part of its bundle.",
            )
        for path, target in self._links.items():
            os.symlink(target.encode(), path.encode(), dir_fd=self._root)
            self._chown(path)
        top = os.path.realpath(os.fsencode(self._folder))
        for path in self._links:
            real = self._check_link(path, top)
            if self._digests is not None:
                self._digests.add_link(path.encode(), real)

    def only_folder(self) -> str | None:
        """Return the only folder at the top, if it has an `index.html` and the top has none."""
        folders = [path for path in self._folders if path and "/" not in path]
        is_only = (
            len(folders) == 1
            and not self._is_file("index.html")
            and self._is_file(f"{folders[0]}/index.html")
        )
        return folders[0] if is_only else None

    def _is_file(self, path: str) -> bool:
        try:
            return stat.S_ISREG(os.stat(path.encode(), dir_fd=self._root).st_mode)
        except OSError:
            return False

    def _check_link(self, path: str, top: bytes) -> bytes:
        """Return the path of the file or folder that a symbolic link leads to. Raises `InvalidBundle` if it leads outside."""
        self._cancellation.check()
        link, subject = top + b"/" + path.encode(), f"Symbolic link {quoted(path)}"
        try:
            os.stat(
                path.encode(), dir_fd=self._root
            )  # unlike `realpath`, it refuses `file/../file`
            real, above = (
                os.path.realpath(link, strict=True),
                os.path.realpath(link.rpartition(b"/")[0]),
            )
        except OSError:
            raise unsafe(
                f"{subject} is broken: its target does not exist, or is part of a loop."
            ) from None
        if not (real + b"/").startswith(top + b"/"):
            raise unsafe(f"{subject} leads outside the folder.")
        if (above + b"/").startswith(real + b"/"):
            raise unsafe(f"{subject} leads to a folder that it is in.")
        return real[len(top) + 1 :]

    def _make_folder(self, path: str) -> None:
        if path in self._folders:
            return
        self._make_folder(path.rpartition("/")[0])
        if path in self._links:
            raise _taken(path)
        self._count_entry()
        try:
            os.mkdir(path.encode(), FOLDER_MODE, dir_fd=self._root)
        except FileExistsError:
            raise _taken(path) from None
        set_mode(
            path.encode(), FOLDER_MODE, dir_fd=self._root
        )  # before chown, after which it may be denied
        self._chown(path)
        self._folders.add(path)

    def _add_file(self, path: str, content: Iterable[Chunk]) -> None:
        """Write a file, with the current time: with a fixed date, `aws s3 sync` misses a change that keeps the size."""
        self._links.pop(path, None)
        if self._digests is not None:
            content = self._digests.record(path.encode(), content)
        try:
            descriptor = os.open(path.encode(), _NEW_FILE, FILE_MODE, dir_fd=self._root)
        except FileExistsError:
            self._remove_file(path)
            descriptor = os.open(path.encode(), _NEW_FILE, FILE_MODE, dir_fd=self._root)
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

    def _add_copy(self, path: str, source: str) -> None:
        """Write a copy of a hard link's target, so that a change of one never changes the other."""
        if source in self._links:  # as GNU tar unpacks it
            self._add_link(path, self._links[source])
            return
        if source in self._folders or source == path or not self._is_file(source):
            raise unsafe(
                f"Hard link {quoted(path)} leads to {quoted(source)}, but no such file comes before it."
            )
        with os.fdopen(
            os.open(source.encode(), os.O_RDONLY | os.O_NOFOLLOW, dir_fd=self._root),
            "rb",
            buffering=0,
        ) as file:
            self._add_file(path, iter(lambda: file.read(CHUNK_BYTES), b""))

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
        """Count bytes that are about to be written to the disk. Raises `DiskTooSmall` if it becomes too full, and `OSError`."""
        if count > self._budget:
            disk = os.statvfs(self._root)
            free, reserved = (
                disk.f_bavail * disk.f_frsize,
                min(disk.f_blocks * disk.f_frsize // 10, MAX_RESERVED_BYTES),
            )
            if (
                disk.f_blocks and count > free - reserved
            ):  # some network and FUSE file systems report no sizes
                written = f"Unpacking stopped after {format_bytes(self.bytes)}."
                raise DiskTooSmall(
                    written,
                    f"{format_bytes(free)} are free, of which the action leaves {format_bytes(reserved)}.",
                )
            # the budgets of all archives that may be unpacked at the same time fit into the reserve
            self._budget = max(count, reserved // _MAX_CONCURRENT_UNPACKS)
        self._budget -= count

    def _count_entry(self) -> None:
        self._entries += 1
        check_entries(self._entries)
        self.take_space(_ENTRY_BYTES)

    def _count(self, path: str, change: int) -> None:
        self.files += change
        self.html_files += change * path.lower().endswith(".html")

    def _chown(self, path: str) -> None:
        if self._owner is not None:
            self._owner.chown(path.encode(), dir_fd=self._root)


def path_of(name: str) -> str:
    """Return an entry's path below the folder, without `.` and doubled slashes; empty for the folder itself.

    Raises `InvalidBundle` for a name that leads outside, or that S3 or common file systems cannot store.
    """
    subject = f"The name of entry {quoted(name)}"
    _check_text(name, subject)
    parts = [part for part in name.split("/") if part not in {"", "."}]
    if ".." in parts:
        raise unsafe(f"{subject} contains '..', which leads outside the folder.")
    path = "/".join(parts)
    if any(len(part.encode()) > MAX_PART_BYTES for part in parts):
        raise unsafe(f"{subject} has a part longer than {MAX_PART_BYTES} bytes, the usual maximum.")
    return path


def _check_text(text: str, subject: str) -> None:
    if not text or _ABSOLUTE.match(text):
        raise unsafe(f"{subject} is {'an absolute path' if text else 'empty'}.")
    if UNUSABLE.search(text) or "\\" in text:
        raise unsafe(
            f"{subject} contains a backslash, a control character, or bytes that are not UTF-8."
        )
    if len(text.encode()) > MAX_PATH_BYTES:
        raise unsafe(f"{subject} is longer than {MAX_PATH_BYTES:,} bytes, the maximum of S3.")


def _taken(path: str) -> InvalidBundle:
    return unsafe(f"Entry {quoted(path)} is a folder in one place and a file or a link in another.")
