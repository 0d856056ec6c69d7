"""The bundle as a file that is here already, which is only read."""

import hashlib
import io
import os

from ..clock import Cancellation
from ..errors import Advice, InvalidBundle
from ..models import Archive, OutputPath
from ..text import quoted
from .archive import CHUNK_BYTES, START_BYTES
from .faults import DISK_FAULTY, FILE_REPLACED


def open_archive(source: OutputPath) -> io.BufferedReader:
    """Open the archive. Raises `InvalidBundle` if it is gone since the check of the inputs."""
    try:
        return source.path.open("rb")
    except OSError as error:
        is_replaced = isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError)
        advice = FILE_REPLACED if is_replaced else DISK_FAULTY
        raise _unreadable(source.name, error, advice) from error


class BundleFile(io.RawIOBase):
    """The bundle as an open `file`, which is read twice: by `verify`, and by what unpacks it.

    Closing it closes the file.

    `verify` and `drain` raise `InvalidBundle` if the SHA-256 is not the given one: the file may be
    written to between them.
    """

    def __init__(
        self,
        file: io.BufferedReader,
        name: str,
        sha256: str,
        cancellation: Cancellation,
    ) -> None:
        self._file = file
        self._name = name
        self._expected = sha256
        self._cancellation = cancellation
        self._sha256 = hashlib.sha256()
        self.size = os.fstat(file.fileno()).st_size

    def verify(self) -> Archive:
        """Read the whole file, return what it is, and go back to its first byte."""
        found = self.drain()
        self._file.seek(0)
        self._sha256 = hashlib.sha256()
        return found

    def read(self, size: int = CHUNK_BYTES) -> bytes:
        """Return between one and `size` bytes; none only at the end."""
        self._cancellation.check()
        try:
            chunk = self._file.read(size)
        except OSError as error:
            raise _unreadable(self._name, error, DISK_FAULTY) from error
        self._sha256.update(chunk)
        return chunk

    def peek(self) -> bytes:
        """Return the first `START_BYTES`, fewer only if the bundle is smaller.

        They are read again later.
        """
        return self._file.peek(START_BYTES)[:START_BYTES]

    def drain(self) -> Archive:
        """Read the rest, and return what all of it is."""
        while self.read():
            pass
        found = self._sha256.hexdigest()
        if found != self._expected:
            raise InvalidBundle(
                "the archive does not match `bundle-sha256`",
                details=(
                    f"SHA-256 of {quoted(self._name)}: {found}.",
                    f"Expected: {self._expected}.",
                ),
                cause=(
                    "The archive was replaced or changed, "
                    "or `bundle-sha256` belongs to another one."
                ),
                remedy="Take the archive and its SHA-256 from the same run. Nothing was unpacked.",
            )
        return Archive(size=self._file.tell(), sha256=found)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


def _unreadable(name: str, error: OSError, advice: Advice) -> InvalidBundle:
    return InvalidBundle(f"the archive {quoted(name)} cannot be read ({error.strerror})", **advice)
