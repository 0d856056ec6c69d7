"""A pipe to a reader in a thread of its own.

So files are written while the next bytes are received and decompressed.
"""

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Final, Self

from ..clock import Cancellation
from ..errors import NO_THREADS, Cancelled, InternalError

_MAX_CHUNKS: Final = 4  # that are written, but not read
# How often a wait checks whether the other side has ended, or the run is cancelled.
_CHECK_SECONDS: Final = 0.05


class Pipe(threading.Thread):
    """A pipe whose reader is a function of the chunks, and waits only for them.

    Leaving the context ends the reader.
    """

    def __init__(self, read: Callable[[Iterator[bytes]], None], cancellation: Cancellation) -> None:
        super().__init__(daemon=True, name="unpack")
        self._read = read
        self._cancellation = cancellation
        self._chunks: queue.Queue[bytes | Exception] = queue.Queue(_MAX_CHUNKS)
        self._error: Exception | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except RuntimeError as error:
            raise InternalError("this machine allows no more threads", **NO_THREADS) from error
        return self

    def __exit__(self, *_: object) -> None:
        while self.is_alive():  # after an error on this side
            with contextlib.suppress(queue.Full):
                self._chunks.put(Cancelled("cancelled"), timeout=_CHECK_SECONDS)
            self.join(_CHECK_SECONDS)

    def write(self, chunk: bytes | Exception) -> None:
        """Write a chunk, an empty one at the end, or an error that the reader raises there.

        Raises the reader's error, and `Cancelled`.
        """
        while self.is_alive():
            self._cancellation.check()
            with contextlib.suppress(queue.Full):
                self._chunks.put(chunk, timeout=_CHECK_SECONDS)
                return
        self.wait()

    def wait(self) -> None:
        """Wait for the reader's end. Raises its error, and `Cancelled`."""
        while self.is_alive():
            self._cancellation.check()
            self.join(_CHECK_SECONDS)
        if self._error is not None:
            raise self._error

    def run(self) -> None:
        """Run the reader."""
        try:
            self._read(self._received())
        except Exception as error:  # noqa: BLE001  # the other side raises it
            self._error = error

    def _received(self) -> Iterator[bytes]:
        while True:
            chunk = self._chunks.get()
            if isinstance(chunk, Exception):
                raise chunk
            if not chunk:
                return
            yield chunk
