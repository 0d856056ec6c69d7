"""Staging: a result is made under a temporary name beside its target, and gets its own name in one step once it is complete."""

import contextlib
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ..cleanups import Cleanups
from ..ownership import FILE_MODE, FOLDER_MODE, MAX_PART_BYTES, Owner, set_mode

ABANDONED_SECONDS: Final = 24 * 3600.0
"""Age at which an unfinished part is taken to be left over from a process that was killed."""

_ENDING: Final = re.compile(r"\.[0-9a-f]{16}\.part\Z")


class Staged:
    """A file or folder in the making, which replaces a file or an empty folder at its target.

    `path` is where it is: a temporary name until it is published, then the target.
    """

    def __init__(self, target: Path, *, is_folder: bool) -> None:
        self.path = self._part = _part_beside(target)
        self.is_published = False
        self._target = target
        self._is_folder = is_folder

    def create(self) -> None:
        """Create an empty part that only this process may read. Raises `OSError`."""
        if self._is_folder:
            self._part.mkdir(0o700)
        else:
            self._part.touch(0o600, exist_ok=False)

    def publish(self) -> None:
        """Set the mode and rename to the target. Raises `OSError`."""
        set_mode(self._part, FOLDER_MODE if self._is_folder else FILE_MODE)
        self._part.replace(self._target)  # also an empty folder (source: rename(2))
        self.path, self.is_published = self._target, True

    def remove(self) -> None:
        """Remove the part and everything in it, if there is one. Raises `OSError`."""
        if not self._is_folder:
            self._part.unlink(missing_ok=True)
        elif self._part.exists():
            shutil.rmtree(self._part)


@contextlib.contextmanager
def staged(target: Path, owner: Owner | None, cleanups: Cleanups, *, is_folder: bool = False) -> Iterator[Staged]:
    """Yield an empty file or folder beside the target, which is removed at the end unless it is published.

    The caller gives what it puts into a folder to the owner. Raises `OSError`.
    """
    result = Staged(target, is_folder=is_folder)
    with cleanups.folder(target.parent, owner), cleanups.holding(result.remove):
        try:
            result.create()
            if owner is not None:
                owner.chown(result.path)
            _remove_abandoned(result.path)
            yield result
        except BaseException:
            with contextlib.suppress(OSError):  # the first error is the one to report
                result.remove()
            raise
        if not result.is_published:
            result.remove()


def _part_beside(target: Path) -> Path:
    """Return a new, hidden name beside the target; hidden, so that no glob of a later step matches it."""
    ending = f".{secrets.token_hex(8)}.part"
    name = target.name.encode()[: MAX_PART_BYTES - 1 - len(ending)].decode(errors="ignore")
    return target.with_name(f".{name}{ending}")


def _remove_abandoned(part: Path) -> None:
    """Remove old parts of the same target, which killed processes left; they would fill up a workspace that is kept.

    The new part's time is the reference, because the file system's clock may differ from this machine's.
    """
    same_target = re.compile(re.escape(_ENDING.sub("", part.name)) + _ENDING.pattern)
    with contextlib.suppress(OSError):  # leftovers cost disk space, which is checked before the download
        oldest = part.stat().st_mtime - ABANDONED_SECONDS
        for other in part.parent.iterdir():
            if same_target.fullmatch(other.name) and (found := other.lstat()).st_mtime < oldest:
                shutil.rmtree(other) if stat.S_ISDIR(found.st_mode) else other.unlink()
