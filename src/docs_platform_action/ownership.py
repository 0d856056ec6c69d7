"""Who owns what the action writes, its modes, and the longest name of a file."""

import errno
import os
from pathlib import Path
from typing import Final

FILE_MODE: Final = 0o644
FOLDER_MODE: Final = 0o755
"""Whatever an archive or the umask says: later steps, which need not run as root, read, change and delete what is there."""

LONGEST_PART_BYTES: Final = 255
"""Linux's `NAME_MAX`, for a file or folder in its folder."""

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


def set_mode(path: bytes | Path | int, mode: int, *, dir_fd: int | None = None) -> None:
    """Set the mode of a file or folder, but on a share that has modes of its own. Raises `OSError`."""
    try:
        os.chmod(path, mode, dir_fd=dir_fd)
    except OSError as error:
        if error.errno not in _NOT_ALLOWED:
            raise
