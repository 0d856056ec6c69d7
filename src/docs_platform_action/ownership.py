"""The owner and the modes of what the action writes, and the longest file name."""

import errno
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

FILE_MODE: Final = 0o644
FOLDER_MODE: Final = 0o755
"""Modes of everything that is written, whatever an archive or the umask says: later steps may not run as root."""

MAX_PART_BYTES: Final = 255
"""Linux's `NAME_MAX`: the longest name of a file or folder."""

_NOT_ALLOWED: Final = frozenset({errno.EPERM, errno.EACCES, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})
"""Errors of file systems that do not support chown or chmod, such as network shares."""


@dataclass
class Owner:
    """The user and group that files are given to.

    A container's files belong to root on the runner, where later steps could neither change nor delete them (source: GitHub's
    documentation of container actions; actions/runner starts the container without `--user`). Each file is given away when it is
    created, so that the owner can delete it even after the container was killed. `chown_error` is the file system's error
    where it does not allow that; the files then stay as they are.
    """

    uid: int
    gid: int
    chown_error: str | None = field(default=None, init=False)

    def chown(self, path: bytes | Path, *, dir_fd: int | None = None) -> None:
        """Change the owner of a file, folder or link; a relative path is below the open folder `dir_fd`.

        Raises `OSError`, unless it is a refusal.
        """
        try:
            os.chown(path, self.uid, self.gid, dir_fd=dir_fd, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NOT_ALLOWED:
                raise
            self.chown_error = error.strerror


def owner_of(root: Path) -> Owner | None:
    """Return the owner for files below a folder; `None` if this process is not root or the folder belongs to root."""
    found = root.stat()
    return Owner(found.st_uid, found.st_gid) if os.geteuid() == 0 and found.st_uid != 0 else None


def set_mode(path: bytes | Path | int, mode: int, *, dir_fd: int | None = None) -> None:
    """Set the mode of a file or folder, unless the file system does not allow that. Raises `OSError`."""
    try:
        os.chmod(path, mode, dir_fd=dir_fd)
    except OSError as error:
        if error.errno not in _NOT_ALLOWED:
            raise
