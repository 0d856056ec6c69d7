"""Where a result is made before it gets its name: beside it, so that it comes there whole, in one step, or not at all."""

import contextlib
import errno
import os
import re
import secrets
import shutil
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from ..archive.names import LONGEST_PART_BYTES

FILE_MODE: Final = 0o644
FOLDER_MODE: Final = 0o755
"""Whatever an archive or the umask says: later steps, which need not run as root, read, change and delete what is there."""

ABANDONED_SECONDS: Final = 24 * 3600.0
"""A part that nothing was written to for so long has no maker any more: its process was killed, or the machine died."""

_ENDING: Final = re.compile(r"\.[0-9a-f]{16}\.part\Z")

_NOT_ALLOWED: Final = frozenset({errno.EPERM, errno.EACCES, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})
"""What a file system answers that lets nobody give files away, such as a network share or one of mapped users."""


class Owner:
    """Whom files are given to.

    A container's files are root's on the runner, where later steps could neither change nor delete them (source: GitHub's
    documentation of container actions; actions/runner starts the container without `--user`). Each is given away when it is made,
    so that the owner can delete even what a killed container leaves. `refused` is what the file system said where it did not
    allow that; the files are then left as they are.
    """

    def __init__(self, uid: int, gid: int) -> None:
        self._uid = uid
        self._gid = gid
        self.refused: str | None = None

    def take(self, path: bytes | Path, *, dir_fd: int | None = None) -> None:
        """Make this the owner of a file, a folder or a link, below an open folder if there is one.

        Raises `OSError` that is no refusal.
        """
        try:
            os.chown(path, self._uid, self._gid, dir_fd=dir_fd, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NOT_ALLOWED:
                raise
            self.refused = error.strerror


def owner_of(root: Path) -> Owner | None:
    """Tell whom files below a folder are to be given to; `None` where whoever runs this cannot give files away, or need not."""
    found = root.stat()
    return Owner(found.st_uid, found.st_gid) if os.geteuid() == 0 and found.st_uid != 0 else None


class Ways:
    """The folders that were made to lead to results, each with how many still need it; a `with` keeps other threads out.

    Several results may be made side by side in one folder, which must not be removed from under another.
    """

    def __init__(self) -> None:
        self._needed: dict[Path, int] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def missing(self, folder: Path) -> list[Path]:
        """Tell which folders are to be made or were, from the uppermost to this one."""
        found: list[Path] = []
        while folder in self._needed or not folder.exists():
            found.insert(0, folder)
            folder = folder.parent
        return found

    def enter(self, folder: Path) -> bool:
        """Count one more that needs a folder, and make it for the first, which is told so. Raises `OSError`."""
        self._needed[folder] = self._needed.get(folder, 0) + 1
        folder.mkdir(exist_ok=True)
        return self._needed[folder] == 1

    def leave(self, folder: Path) -> None:
        """Count one less, and remove the folder after the last."""
        self._needed[folder] -= 1
        if self._needed[folder] == 0:
            del self._needed[folder]
            with contextlib.suppress(OSError):  # it holds something by now, or was never made
                folder.rmdir()


class Litter:
    """What is to be removed once nobody is left to do so, and the `ways` to results. Safe to use from several threads."""

    def __init__(self) -> None:
        self.ways = Ways()
        self._removals: dict[object, Callable[[], None]] = {}
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._removals)

    @contextlib.contextmanager
    def holding(self, remove: Callable[[], None]) -> Iterator[None]:
        """Remember how to remove something for as long as its maker is at work on it."""
        key = object()
        with self._lock:
            self._removals[key] = remove
        try:
            yield
        finally:
            with self._lock:
                self._removals.pop(key, None)

    def clear(self) -> None:
        """Remove all, the latest first: its makers were left behind, in a look-up of a name that cannot be cut short, say."""
        with self._lock:
            removals = [*reversed(self._removals.values())]
        for remove in removals:
            with contextlib.suppress(OSError):  # its maker came in time after all
                remove()


class Staged:
    """Something that is being made at `path`, which is its goal once it is published."""

    def __init__(self, path: Path, goal: Path, publish: Callable[[], None]) -> None:
        self.path = path
        self._goal = goal
        self._publish = publish
        self.published = False

    def publish(self) -> None:
        """Give it its mode and its name, in one step for whoever looks on. Raises `OSError`."""
        self._publish()
        self.path = self._goal
        self.published = True


@contextlib.contextmanager
def staged_file(goal: Path, owner: Owner | None, litter: Litter) -> Iterator[Staged]:
    """Make room for a file beside its goal, which it replaces; what is not published is removed. Raises `OSError`."""

    def publish() -> None:
        set_mode(part, FILE_MODE)
        part.replace(goal)

    with _folder_for(goal, owner, litter):
        part = _beside(goal)
        staged = Staged(part, goal, publish)
        with _removed_unless_published(staged, lambda: part.unlink(missing_ok=True), litter):
            os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            if owner is not None:
                owner.take(part)
            _remove_abandoned(part)
            yield staged


@contextlib.contextmanager
def staged_folder(goal: Path, owner: Owner | None, litter: Litter) -> Iterator[Staged]:
    """Make an empty folder beside its goal, which is missing or empty; what is not published is removed.

    Whoever fills it gives what is in it to the owner. Raises `OSError`.
    """

    def publish() -> None:
        set_mode(part, FOLDER_MODE)
        part.rename(goal)  # takes the place of an empty folder too (source: rename(2))

    with _folder_for(goal, owner, litter):
        part = _beside(goal)
        staged = Staged(part, goal, publish)
        with _removed_unless_published(staged, lambda: _remove_tree(part), litter):
            part.mkdir(0o700)
            if owner is not None:
                owner.take(part)
            _remove_abandoned(part)
            yield staged


def set_mode(path: bytes | Path | int, mode: int, *, dir_fd: int | None = None) -> None:
    """Set the mode of a file or folder, but on a share that has modes of its own. Raises `OSError`."""
    try:
        os.chmod(path, mode, dir_fd=dir_fd)
    except OSError as error:
        if error.errno not in _NOT_ALLOWED:
            raise


@contextlib.contextmanager
def _removed_unless_published(staged: Staged, remove: Callable[[], None], litter: Litter) -> Iterator[None]:
    with litter.holding(remove):
        try:
            yield
        except BaseException:
            if not staged.published:
                with contextlib.suppress(OSError):  # the first error is the one to tell
                    remove()
            raise
        if not staged.published:
            remove()


def _remove_tree(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


def _beside(goal: Path) -> Path:
    """Think of a name for a part that nobody has: hidden, so that no glob of a later step takes it for the result."""
    ending = f".{secrets.token_hex(8)}.part"
    name = goal.name.encode()[: LONGEST_PART_BYTES - 1 - len(ending)].decode(errors="ignore")
    return goal.with_name(f".{name}{ending}")


def _remove_abandoned(part: Path) -> None:
    """Remove older parts of the same goal, which killed processes left: a workspace that is kept would fill up with them.

    The new part tells what time it is to the file system, whose clock need not be this machine's.
    """
    alike = re.compile(re.escape(_ENDING.sub("", part.name)) + _ENDING.pattern)
    with contextlib.suppress(OSError):  # it costs room, which a download looks for by itself, but no result
        since = part.stat().st_mtime - ABANDONED_SECONDS
        for other in part.parent.iterdir():
            if alike.fullmatch(other.name) and (found := other.lstat()).st_mtime < since:
                shutil.rmtree(other) if stat.S_ISDIR(found.st_mode) else other.unlink()


@contextlib.contextmanager
def _folder_for(goal: Path, owner: Owner | None, litter: Litter) -> Iterator[None]:
    """Make the folders that lead to a goal; the last that needs one removes it if it stays empty."""
    needed: list[Path] = []

    def leave() -> None:
        with litter.ways:
            while needed:
                litter.ways.leave(needed.pop(0))

    with litter.holding(leave):
        try:
            with litter.ways:
                for folder in litter.ways.missing(goal.parent):
                    needed.insert(0, folder)
                    if litter.ways.enter(folder):
                        set_mode(folder, FOLDER_MODE)
                        if owner is not None:
                            owner.take(folder)
            yield
        finally:
            leave()
