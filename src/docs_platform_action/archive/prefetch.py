"""Reads entries in a separate thread, ahead of the thread that writes them.

Decompressing and writing both release the interpreter lock, so on two cores they take the time of the longer one. Entries and
errors keep their order.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, cast

from ..clock import Cancellation
from .entries import Entry, EntryType
from .reading import CHUNK_BYTES

MAX_BATCHES: Final = 3  # in the queue; more would outlast longer pauses of the disk, but many sites share the memory
BATCH_BYTES: Final = 2 * CHUNK_BYTES
BATCH_ITEMS: Final = 64  # entries and chunks, however short they are
_MAX_WAIT_SECONDS: Final = 0.05  # for a batch; gigabytes may lie between two entries

_Item = Entry | bytes | BaseException | None
"""An entry, a chunk of its content (empty at the end of the content), or the end of all: an error, or `None`."""


@contextmanager
def prefetch(entries: Iterator[Entry], cancellation: Cancellation) -> Iterator[Iterator[Entry]]:
    """Iterate over the entries in a separate thread, which ends with this context, and return them.

    Errors of that thread are raised by the returned iterator. An error inside the context cancels `cancellation`, because the
    next entry may be gigabytes away.
    """
    queue = _EntryQueue()
    reader = threading.Thread(target=queue.put_all, args=(entries,), daemon=True, name="reader")
    try:
        reader.start()
    except RuntimeError:  # the system's limit of threads
        yield entries
        return
    try:
        yield queue.entries()
    except BaseException:
        cancellation.cancel()
        raise
    finally:
        queue.close()
        reader.join()  # before the archive that it reads is closed


class _EntryQueue:
    """A queue between two threads. It transfers batches, because transferring one item costs as much as a small file."""

    def __init__(self) -> None:
        self._items: list[_Item] = []
        self._bytes = 0
        self._is_closed = False
        self._changed = threading.Condition()

    def put_all(self, entries: Iterator[Entry]) -> None:
        """Put all entries and the end of their iteration, unless the queue is closed before."""
        try:
            for item in _items(entries):
                self._put(item)
                if self._is_closed:
                    return
            self._put(None)
        except BaseException as error:  # noqa: BLE001  # raised in the thread that takes the entries
            self._put(error)
        self.close()

    def entries(self) -> Iterator[Entry]:
        """Take the entries. Raises what their iteration raised."""
        items = self._take_items()
        for entry in cast(Iterator[Entry], items):
            content = iter(cast(Iterator[bytes], items).__next__, b"") if entry.type is EntryType.FILE else ()
            yield replace(entry, content=content)

    def close(self) -> None:
        """End the queue from either side, and wake the other thread."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    def _put(self, item: _Item) -> None:
        with self._changed:
            while not self._is_closed and self._holds(MAX_BATCHES):
                self._changed.wait()
            self._items.append(item)
            self._bytes += len(item) if isinstance(item, bytes) else 0
            if self._holds(1):
                self._changed.notify()

    def _holds(self, batches: int) -> bool:
        return self._bytes >= batches * BATCH_BYTES or len(self._items) >= batches * BATCH_ITEMS

    def _take_items(self) -> Iterator[Entry | bytes]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed or self._holds(1), _MAX_WAIT_SECONDS)
                items, self._items, self._bytes = self._items, [], 0
                self._changed.notify()
            for item in items:
                if item is None:
                    return
                if isinstance(item, BaseException):
                    raise item
                yield item


def _items(entries: Iterator[Entry]) -> Iterator[Entry | bytes]:
    for entry in entries:
        yield entry
        if entry.type is EntryType.FILE:
            yield from entry.content
            yield b""
