"""Staging: a result is written under a temporary name beside its target.

It is renamed in one step once it is complete.
"""

import contextlib
import errno
import itertools
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, Self

from ..clock import Cancellation
from ..errors import DENIED, ActionError, Advice, InternalError
from ..models import OutputPath
from ..ownership import FILE_MODE, FOLDER_MODE, MAX_PART_BYTES, Owner, set_mode
from ..text import format_bytes, quoted
from .archive import Chunk
from .faults import DISK_FAULTY, DISK_FULL, PATH_SHARED, DiskTooSmall

_BLOCK_LINES: Final = 10_000  # that are written at once
_NO_SPACE: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_INTERFERENCE: Final = {errno.ENOTEMPTY, errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENOENT}
"""Of paths that were usable before the run (source: rename(2) and open(2))."""


class Staged:
    """A file or folder to be published.

    `path` is temporary until then, and the target afterwards. `descriptor` is of both.

    As a context it is created empty, with the missing folders above it. At the end everything that
    was made is removed, unless it is published. An `OSError` is raised as the `failure`, whose
    `summary` says what cannot be written.
    """

    def __init__(
        self,
        target: OutputPath,
        owner: Owner | None,
        failure: type[ActionError],
        summary: str,
        *,
        is_folder: bool = False,
    ) -> None:
        self.target = target
        self._owner = owner
        self._failure = failure
        self._summary = summary
        self._is_folder = is_folder
        self._part = _temporary_path(target.path)
        self.path = self._part
        self.descriptor = -1  # until the part is created
        self._made: list[Path] = []

    def __enter__(self) -> Self:
        try:
            with self.errors_explained():
                try:
                    self._create()
                except FileNotFoundError:
                    # Another job of the run has just removed a folder that it had made.
                    self._create()
        except BaseException as error:
            self.__exit__(type(error))
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                with self.errors_explained():
                    self._close()
            else:
                with contextlib.suppress(OSError):  # the first error is reported
                    self._close()
        finally:
            for folder in reversed(self._made):
                with contextlib.suppress(OSError):  # it is not empty
                    folder.rmdir()

    def _close(self) -> None:
        """Remove what is not published, and close the descriptor."""
        is_published = self.path != self._part
        try:
            if not is_published:
                self._remove()
        finally:
            os.close(self.descriptor)

    @contextlib.contextmanager
    def errors_explained(self) -> Iterator[None]:
        """Raise an `OSError` as the failure."""
        try:
            yield
        except OSError as error:
            details = []
            if error.errno in _INTERFERENCE:
                details.append(
                    f"Another process changed `{self.target.name}` or its temporary files "
                    "during the run."
                )
            details.append(f"The system reported: {_reason_of(error)}.")
            advice = _advice_for(error)
            raise self._failure(self._summary, details=tuple(details), **advice) from error

    def _create(self) -> None:
        for folder in reversed(self._part.parents):
            if not folder.exists():
                self._make_folder(folder)
        if self._is_folder:
            self._part.mkdir(0o700)
            flags = os.O_RDONLY | os.O_DIRECTORY
        else:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
        self.descriptor = os.open(self._part, flags | os.O_NOFOLLOW, 0o600)
        if self._owner is not None:
            self._owner.chown(self.descriptor)

    def _make_folder(self, folder: Path) -> None:
        try:
            folder.mkdir()
        except FileExistsError:  # another job has made it
            return
        self._made.append(folder)
        set_mode(folder, FOLDER_MODE)
        if self._owner is not None:
            self._owner.chown(folder)

    def _remove(self) -> None:
        if self._is_folder:
            shutil.rmtree(self._part)
        else:
            self._part.unlink()

    def check_space(self, needed: int) -> None:
        """Raise `DiskTooSmall` if the disk has less than `needed` bytes free."""
        with self.errors_explained():
            disk = shutil.disk_usage(self._part.parent)
        # Some network file systems report no sizes.
        reports_sizes = disk.total > 0
        if reports_sizes and needed > disk.free:
            raise DiskTooSmall(
                f"At least {format_bytes(needed)} are needed; {format_bytes(disk.free)} are free."
            )

    def write(self, data: bytes) -> None:
        """Append to the file."""
        with self.errors_explained():
            write_all(self.descriptor, data)

    def write_lines(self, lines: Iterable[bytes]) -> None:
        """Append many short lines to the file."""
        rest = iter(lines)
        while block := list(itertools.islice(rest, _BLOCK_LINES)):
            self.write(b"".join(block))

    def open(self) -> BinaryIO:
        """Open the file to read it."""
        return os.fdopen(os.dup(self.descriptor), "rb")

    def publish(self) -> None:
        """Set the mode, and rename to the target.

        The target may be an empty folder (source: rename(2)).
        """
        mode = FOLDER_MODE if self._is_folder else FILE_MODE
        with self.errors_explained():
            set_mode(self.descriptor, mode)
            os.close(os.dup(self.descriptor))  # reports late errors of network shares
            self._part.replace(self.target.path)
        self.path = self.target.path


def write_file(
    target: OutputPath,
    what: str,
    lines: Iterable[bytes],
    *,
    owner: Owner | None,
    cancellation: Cancellation,
) -> None:
    """Write a file in one step. `what` names it in an error.

    Raises `InternalError` and `Cancelled`.
    """
    with Staged(target, owner, InternalError, f"{what} cannot be written to {target.name}") as file:
        file.write_lines(lines)
        cancellation.check()
        file.publish()


def _temporary_path(target: Path) -> Path:
    """Return a new path beside the target, hidden so that no glob of a later step matches it."""
    suffix = f".{secrets.token_hex(8)}.part"
    max_name_bytes = MAX_PART_BYTES - len(".") - len(suffix)
    name = target.name.encode()[:max_name_bytes].decode(errors="ignore")
    return target.with_name(f".{name}{suffix}")


def _reason_of(error: OSError) -> str:
    """Return what the system reported, with the name of the archive's entry if it is of one."""
    reason = error.strerror or type(error).__name__
    if isinstance(error.filename, bytes):  # only the names of entries are bytes
        return f"{reason} ({quoted(error.filename.decode())})"
    return reason


def _advice_for(error: OSError) -> Advice:
    if error.errno in _NO_SPACE:
        return DISK_FULL
    if error.errno in _INTERFERENCE:
        return PATH_SHARED
    if isinstance(error, PermissionError):
        return DENIED
    return DISK_FAULTY


def write_all(descriptor: int, data: Chunk) -> None:
    """Write all bytes to an open file. Raises `OSError`."""
    remaining = memoryview(data)
    while remaining:
        written = os.write(descriptor, remaining)
        remaining = remaining[written:]
