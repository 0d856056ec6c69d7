"""Where a result is made before it gets its name: beside it, so that it comes there whole, in one step, or not at all."""

import contextlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from ..cleanups import Cleanups
from ..ownership import FILE_MODE, FOLDER_MODE, LONGEST_PART_BYTES, Owner, set_mode

ABANDONED_SECONDS: Final = 24 * 3600.0
"""A part that nothing was written to for so long has no maker any more: its process was killed, or the machine died."""

_ENDING: Final = re.compile(r"\.[0-9a-f]{16}\.part\Z")


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
def staged_file(goal: Path, owner: Owner | None, cleanups: Cleanups) -> Iterator[Staged]:
    """Make room for a file beside its goal, which it replaces; what is not published is removed. Raises `OSError`."""

    def publish() -> None:
        set_mode(part, FILE_MODE)
        part.replace(goal)

    with _folder_for(goal, owner, cleanups):
        part = _beside(goal)
        staged = Staged(part, goal, publish)
        with _removed_unless_published(staged, lambda: part.unlink(missing_ok=True), cleanups):
            os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            if owner is not None:
                owner.take(part)
            _remove_abandoned(part)
            yield staged


@contextlib.contextmanager
def staged_folder(goal: Path, owner: Owner | None, cleanups: Cleanups) -> Iterator[Staged]:
    """Make an empty folder beside its goal, which is missing or empty; what is not published is removed.

    Whoever fills it gives what is in it to the owner. Raises `OSError`.
    """

    def publish() -> None:
        set_mode(part, FOLDER_MODE)
        part.rename(goal)  # takes the place of an empty folder too (source: rename(2))

    with _folder_for(goal, owner, cleanups):
        part = _beside(goal)
        staged = Staged(part, goal, publish)
        with _removed_unless_published(staged, lambda: _remove_tree(part), cleanups):
            part.mkdir(0o700)
            if owner is not None:
                owner.take(part)
            _remove_abandoned(part)
            yield staged


@contextlib.contextmanager
def _removed_unless_published(staged: Staged, remove: Callable[[], None], cleanups: Cleanups) -> Iterator[None]:
    with cleanups.holding(remove):
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
def _folder_for(goal: Path, owner: Owner | None, cleanups: Cleanups) -> Iterator[None]:
    """Make the folders that lead to a goal; the last that needs one removes it if it stays empty."""
    needed: list[Path] = []

    def leave() -> None:
        with cleanups.ways:
            while needed:
                cleanups.ways.leave(needed.pop(0))

    with cleanups.holding(leave):
        try:
            with cleanups.ways:
                for folder in cleanups.ways.missing(goal.parent):
                    needed.insert(0, folder)
                    if cleanups.ways.enter(folder):
                        set_mode(folder, FOLDER_MODE)
                        if owner is not None:
                            owner.take(folder)
            yield
        finally:
            leave()
