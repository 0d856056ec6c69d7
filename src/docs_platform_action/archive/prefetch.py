"""Reads an archive in a thread of its own, ahead of whoever takes its entries: while one is written the next is decompressed.

Decompressing and writing both leave the interpreter to other threads, so on two cores they take the time of the longer one. What
comes out, and in which order, is the same as without the thread, failures included.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Final, cast

from .codecs import CHUNK_BYTES
from .entries import Entry, EntryType

MOST_BATCHES: Final = 4
"""Batches that wait to be taken. A disk's pauses are longer, but memory is needed by each of many sites side by side."""

BATCH_BYTES: Final = 2 * CHUNK_BYTES
"""Content from which on a batch is handed over; up to one chunk more is in it."""

BATCH_ITEMS: Final = 64
"""Entries, chunks and looks-up from which on it is, however short they are."""


@dataclass(frozen=True)
class _Ended:
    """Behind the last entry: what the reading failed with, if it did."""

    failure: BaseException | None


_Item = Entry | bytes | _Ended | None
"""An entry, a chunk of its content, of which an empty one is the end, or the end of all; `None` is a look at `check`."""


@contextmanager
def ahead(read: Callable[[Callable[[], None]], Iterator[Entry]], *, check: Callable[[], None]) -> Iterator[Iterator[Entry]]:
    """Give the entries that `read` gives, read in a thread of its own, which ends with this context.

    `read` gets what it is to call for each chunk of data; then `check` is called by whoever takes the entries, in their place
    among them. What `read` raises is raised there too. A file's content is read to its end before the next entry is asked for.
    """
    pipe = _Pipe()
    reader = threading.Thread(target=pipe.fill, args=(read,), daemon=True, name="reader")
    try:
        reader.start()
    except RuntimeError:  # there is no further thread: it goes without
        yield read(check)
        return
    try:
        yield pipe.entries(check)
    finally:
        pipe.stop()
        reader.join()  # before the archive is closed, which it reads from


class _Stopped(Exception):
    """Nobody takes entries any more."""


class _Pipe:
    """What was read and not taken yet, in batches, because each hand-over costs as much as a small file."""

    def __init__(self) -> None:
        self._batches: SimpleQueue[list[_Item]] = SimpleQueue()
        self._room = threading.Semaphore(MOST_BATCHES)
        self._batch: list[_Item] = []
        self._bytes = 0
        self._stopped = False

    def fill(self, read: Callable[[Callable[[], None]], Iterator[Entry]]) -> None:
        """Put in all that is read, and how that ended."""
        with suppress(_Stopped):
            self._put(_Ended(self._fill(read)))
            self._hand_over()

    def entries(self, check: Callable[[], None]) -> Iterator[Entry]:
        """Take them out."""
        items = self._taken(check)
        for item in items:
            entry = cast(Entry, item)
            if entry.type is EntryType.FILE:
                entry = replace(entry, content=iter(cast(Iterator[bytes], items).__next__, b""))
            yield entry

    def stop(self) -> None:
        """Have `fill` end soon, wherever it is."""
        self._stopped = True
        self._room.release()

    def _fill(self, read: Callable[[Callable[[], None]], Iterator[Entry]]) -> BaseException | None:
        try:
            for entry in read(lambda: self._put(None)):
                self._put_entry(entry)
        except _Stopped:
            raise
        except BaseException as error:  # noqa: BLE001  # handed to the thread that takes the entries, which raises it
            return error
        return None

    def _put_entry(self, entry: Entry) -> None:
        self._put(replace(entry, content=()))
        if entry.type is EntryType.FILE:
            for chunk in entry.content:
                self._put(chunk)
            self._put(b"")

    def _put(self, item: _Item) -> None:
        self._batch.append(item)
        if isinstance(item, bytes):
            self._bytes += len(item)
        if self._bytes >= BATCH_BYTES or len(self._batch) >= BATCH_ITEMS:
            self._hand_over()

    def _hand_over(self) -> None:
        self._room.acquire()
        if self._stopped:
            raise _Stopped
        self._batches.put(self._batch)
        self._batch, self._bytes = [], 0

    def _taken(self, check: Callable[[], None]) -> Iterator[Entry | bytes]:
        while True:
            batch = self._batches.get()
            self._room.release()
            for item in batch:
                if item is None:
                    check()
                elif isinstance(item, _Ended):
                    if item.failure is not None:
                        raise item.failure
                    return
                else:
                    yield item
