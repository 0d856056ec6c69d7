"""Appends to the files that the runner names, and is never blocked: one may be a pipe or a device that nobody reads."""

import contextlib
import errno
import os
import select
from io import FileIO
from pathlib import Path
from typing import Final

MAX_WAIT_SECONDS: Final = 1.0  # for a reader to make room for the next part; a cancelled run has a few seconds

UNREAD: Final = frozenset({errno.ENXIO, errno.EPIPE, errno.EAGAIN})
"""Errors of a pipe or a device that nobody reads, or no longer, and of a socket (source: open(2), write(2))."""

UNREAD_CAUSE: Final = "It is a pipe or a device that nobody reads, or a socket."


def open_to_append(path: Path) -> int:
    """Return the descriptor of a file, which is created if it is missing. Raises `OSError`."""
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_NOCTTY, 0o666)


def append(record: bytes, file: FileIO) -> None:
    """Append a record as a whole, or not at all; an empty one checks that there is room. Raises `OSError`.

    A pipe may get a part of it: if the reader stops, `BlockingIOError` is raised after `MAX_WAIT_SECONDS`.
    """
    size = os.fstat(file.fileno()).st_size  # not `tell`, which a pipe refuses
    try:
        while True:
            written = file.write(record)  # `None` if there is no room; a full device refuses even an empty record
            record = record[written or 0 :]
            if not record and written:
                return
            _wait_for_room(file)
            if not record:
                return
    except OSError:
        with contextlib.suppress(OSError):  # the first error is the one to report
            file.truncate(size)
        raise


def _wait_for_room(file: FileIO) -> None:
    poller = select.poll()
    poller.register(file, select.POLLOUT)
    if not poller.poll(MAX_WAIT_SECONDS * 1000):
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
