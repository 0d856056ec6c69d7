"""The owner, the modes and the longest name of the files that the action writes."""

import errno
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

# regardless of the archive and the umask: later steps may not run as root
FILE_MODE: Final = 0o644
FOLDER_MODE: Final = 0o755

MAX_PART_BYTES: Final = 255  # Linux's `NAME_MAX`

_NOT_SUPPORTED: Final = frozenset(
    {errno.EPERM, errno.EACCES, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}
)
"""Errors of file systems without chown or chmod, such as network shares."""


@dataclass
class Owner:
    """The user and group that get the action's files.

    The files would otherwise belong to root, and later steps could not delete them. Source:
    GitHub's documentation of container actions; actions/runner starts the container without
    `--user`. The owner is set when a file is created, so that it can be deleted even after the
    container was killed.
    """

    uid: int
    gid: int
    # of a file system that does not support it
    chown_error: str | None = field(default=None, init=False)

    def chown(self, path: bytes | Path | int, *, dir_fd: int | None = None) -> None:
        """Set the owner of a file, folder or link, if the file system supports that.

        Raises `OSError`.
        """
        try:
            # a descriptor has no link to follow, and Python refuses the option there
            is_descriptor = isinstance(path, int)
            os.chown(path, self.uid, self.gid, dir_fd=dir_fd, follow_symlinks=is_descriptor)
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise
            self.chown_error = error.strerror


def owner_of(folder: Path) -> Owner | None:
    """Return the owner of a folder; `None` if it is root, or if this process is not root."""
    status = folder.stat()
    is_root = os.geteuid() == 0
    if not is_root or status.st_uid == 0:
        return None
    return Owner(status.st_uid, status.st_gid)


class Owners:
    """The owners of folders, each looked up once."""

    def __init__(self) -> None:
        self._owners: dict[Path, Owner | None] = {}

    def of(self, folder: Path) -> Owner | None:
        """Return who gets what is written below a folder. `None` if it needs no other owner."""
        if folder not in self._owners:
            self._owners[folder] = owner_of(folder)
        return self._owners[folder]

    @property
    def chown_error(self) -> str | None:
        """The error of the first file system on which the owner could not be set."""
        for owner in self._owners.values():
            if owner is not None and owner.chown_error is not None:
                return owner.chown_error
        return None


def set_mode(path: bytes | Path | int, mode: int, *, dir_fd: int | None = None) -> None:
    """Set the mode of a file or folder, if the file system supports that. Raises `OSError`."""
    try:
        os.chmod(path, mode, dir_fd=dir_fd)
    except OSError as error:
        if error.errno not in _NOT_SUPPORTED:
            raise
