"""Staging: a result is written under a temporary name beside its target, and renamed in one step once it is complete."""

import contextlib
import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from ..cleanups import Cleanups
from ..ownership import FILE_MODE, FOLDER_MODE, MAX_PART_BYTES, Owner, set_mode

ABANDONED_SECONDS: Final = 24 * 3600.0  # age of a part that a killed process must have left
_SUFFIX: Final = re.compile(r"\.[0-9a-f]{16}\.part\Z")


class Staged:
    """A file or folder to be published. `path` is temporary until then, and the target afterwards. `descriptor` is of both."""

    def __init__(self, target: Path, *, is_folder: bool) -> None:
        self.path = self._part = _part_beside(target)
        self.descriptor = -1  # until the part is created
        self._target = target
        self._is_folder = is_folder

    @contextlib.contextmanager
    def created(self, owner: Owner | None) -> Iterator[None]:
        """Create the part, and keep it open for the duration of the context. Raises `OSError`."""
        if self._is_folder:
            self._part.mkdir(0o700)
            self.descriptor = os.open(self._part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        else:
            self.descriptor = os.open(self._part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            if owner is not None:
                owner.chown(self.descriptor)
            yield
        finally:
            os.close(self.descriptor)

    def open(self) -> BinaryIO:
        """Open the file to write it. Its `close` reports late errors of network shares."""
        return os.fdopen(os.dup(self.descriptor), "r+b")

    def publish(self) -> None:
        """Set the mode and rename to the target, which may be an empty folder (source: rename(2)). Raises `OSError`."""
        set_mode(self.descriptor, FOLDER_MODE if self._is_folder else FILE_MODE)
        self._check(self._part)
        self._part.replace(self._target)
        self._check(self._target)
        self.path = self._target

    def _check(self, path: Path) -> None:
        if not os.path.samestat(os.fstat(self.descriptor), os.lstat(path)):
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    def remove(self) -> None:
        """Remove the part, if it exists. Raises `OSError`."""
        if not self._is_folder:
            self._part.unlink(missing_ok=True)
        elif self._part.exists():
            shutil.rmtree(self._part)


@contextlib.contextmanager
def staged(target: Path, owner: Owner | None, cleanups: Cleanups, *, is_folder: bool = False) -> Iterator[Staged]:
    """Yield an empty file or folder beside the target, which is removed at the end unless it is published. Raises `OSError`."""
    result = Staged(target, is_folder=is_folder)
    with cleanups.folder(target.parent, owner), cleanups.registered(result.remove):
        try:
            with result.created(owner):
                _remove_abandoned(result.path)
                yield result
        except BaseException:
            with contextlib.suppress(OSError):  # the first error is reported
                result.remove()
            raise
        if result.path != target:  # it is not published
            result.remove()


def _part_beside(target: Path) -> Path:
    """Return a new path beside the target. Its name is hidden, so that no glob of a later step matches it."""
    suffix = f".{secrets.token_hex(8)}.part"
    name = target.name.encode()[: MAX_PART_BYTES - 1 - len(suffix)].decode(errors="ignore")
    return target.with_name(f".{name}{suffix}")


def _remove_abandoned(part: Path) -> None:
    """Remove old parts of the same target that killed processes left: self-hosted runners keep the workspace."""
    same_target = re.compile(re.escape(_SUFFIX.sub("", part.name)) + _SUFFIX.pattern)
    with contextlib.suppress(OSError):  # leftovers take disk space, which is checked before the download
        oldest = part.stat().st_mtime - ABANDONED_SECONDS  # the file system's clock may differ from this machine's
        for other in part.parent.iterdir():
            if same_target.fullmatch(other.name) and (found := other.lstat()).st_mtime < oldest:
                shutil.rmtree(other) if stat.S_ISDIR(found.st_mode) else other.unlink()
