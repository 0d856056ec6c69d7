"""Staging: a result is written under a temporary name beside its target, and renamed in one step once it is complete."""

import contextlib
import errno
import itertools
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, Self

from ..errors import DENIED, ActionError
from ..inputs.settings import OutputPath
from ..ownership import FILE_MODE, FOLDER_MODE, MAX_PART_BYTES, Owner, set_mode
from ..text import format_bytes, quoted
from .archive import Chunk
from .faults import DISK_FAULTY, DISK_FULL, PATH_SHARED, DiskTooSmall

_BLOCK_LINES: Final = 10_000  # that are written at once
_INTERFERENCE: Final = {errno.ENOTEMPTY, errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENOENT}
"""Of paths that were usable before the run (source: rename(2) and open(2))."""


class Staged:
    """A file or folder to be published. `path` is temporary until then, and the target afterwards. `descriptor` is of both.

    As a context it is created empty, with the missing folders above it. At the end all that was made is removed, unless it is
    published. An `OSError` is raised as the `failure`, whose `summary` says what cannot be written.
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
        suffix = f".{secrets.token_hex(8)}.part"
        name = target.path.name.encode()[: MAX_PART_BYTES - 1 - len(suffix)].decode(errors="ignore")
        self.path = self._part = target.path.with_name(
            f".{name}{suffix}"
        )  # hidden, so that no glob of a later step matches it
        self.descriptor = -1  # until the part is created
        self.target, self._owner, self._failure, self._summary = target, owner, failure, summary
        self._is_folder = is_folder
        self._made: list[Path] = []

    def __enter__(self) -> Self:
        try:
            with self.errors_explained():
                try:
                    self._create()
                except (
                    FileNotFoundError
                ):  # another job of the run has just removed a folder that it had made
                    self._create()
        except BaseException as error:
            self.__exit__(type(error))
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            # the first error is reported
            with contextlib.suppress(OSError) if kind is not None else self.errors_explained():
                try:
                    if self.path == self._part:
                        self._remove()
                finally:
                    os.close(self.descriptor)
        finally:
            for folder in reversed(self._made):
                with contextlib.suppress(OSError):  # it is not empty
                    folder.rmdir()

    @contextlib.contextmanager
    def errors_explained(self) -> Iterator[None]:
        """Raise an `OSError` as the failure."""
        try:
            yield
        except OSError as error:
            name = (
                f" ({quoted(error.filename.decode())})" if isinstance(error.filename, bytes) else ""
            )  # of an entry
            details = [f"The system reported: {error.strerror or type(error).__name__}{name}."]
            advice = DENIED if isinstance(error, PermissionError) else DISK_FAULTY
            if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
                advice = DISK_FULL
            elif error.errno in _INTERFERENCE:
                advice = PATH_SHARED
                details.insert(
                    0,
                    f"Another process changed `{self.target.name}` or its temporary files during the run.",
                )
            raise self._failure(self._summary, details=tuple(details), **advice) from error

    def _create(self) -> None:
        for folder in reversed(self._part.parents):
            if not folder.exists():
                with contextlib.suppress(FileExistsError):  # another job has made it
                    folder.mkdir()
                    self._made.append(folder)
                    set_mode(folder, FOLDER_MODE)
                    if self._owner is not None:
                        self._owner.chown(folder)
        if self._is_folder:
            self._part.mkdir(0o700)
        flags = (
            os.O_RDONLY | os.O_DIRECTORY if self._is_folder else os.O_RDWR | os.O_CREAT | os.O_EXCL
        )
        self.descriptor = os.open(self._part, flags | os.O_NOFOLLOW, 0o600)
        if self._owner is not None:
            self._owner.chown(self.descriptor)

    def _remove(self) -> None:
        if self._is_folder:
            shutil.rmtree(self._part)
        else:
            self._part.unlink()

    def check_space(self, needed: int) -> None:
        """Raise `DiskTooSmall` if the disk has less than `needed` bytes free. Some network file systems report no sizes."""
        with self.errors_explained():
            disk = shutil.disk_usage(self._part.parent)
        if disk.total and needed > disk.free:
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
        while block := b"".join(itertools.islice(rest, _BLOCK_LINES)):
            self.write(block)

    def open(self) -> BinaryIO:
        """Open the file to read it."""
        return os.fdopen(os.dup(self.descriptor), "rb")

    def publish(self) -> None:
        """Set the mode and rename to the target, which may be an empty folder (source: rename(2))."""
        with self.errors_explained():
            set_mode(self.descriptor, FOLDER_MODE if self._is_folder else FILE_MODE)
            os.close(os.dup(self.descriptor))  # reports late errors of network shares
            self._part.replace(self.target.path)
        self.path = self.target.path


def write_all(descriptor: int, data: Chunk) -> None:
    """Write all bytes to an open file. Raises `OSError`."""
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]
