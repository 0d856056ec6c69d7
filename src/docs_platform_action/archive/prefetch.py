"""Reads entries in a separate thread, ahead of the thread that writes them.

Decompressing and writing both release the interpreter lock, so on two cores they take the time of the longer one. Entries and
errors keep their order.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from queue import Empty, Queue
from typing import Final, cast

from ..clock import Cancellation
from .entries import Entry, EntryType
from .reading import CHUNK_BYTES

MAX_BATCHES: Final = 4  # in the queue; more would outlast longer pauses of the disk, but many sites share the memory
BATCH_BYTES: Final = 2 * CHUNK_BYTES  # make a batch full; its last chunk may exceed this
BATCH_ITEMS: Final = 64  # entries and chunks that make a batch full, however short they are
_MAX_WAIT_SECONDS: Final = 0.05  # for a full batch

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
        queue.stop()
        reader.join()  # before the archive that it reads is closed


class _EntryQueue:
    """A queue between two threads. It transfers batches, because transferring one item costs as much as a small file."""

    def __init__(self) -> None:
        self._batches: Queue[list[_Item]] = Queue(MAX_BATCHES)
        self._batch: list[_Item] = []
        self._batch_bytes = 0
        self._batch_lock = threading.Lock()
        self._is_stopped = False

    def put_all(self, entries: Iterator[Entry]) -> None:
        """Put all entries and the end of their iteration, unless `stop` is called before."""
        end: BaseException | None = None
        try:
            for item in _items(entries):
                self._put(item)
                if self._batch_bytes >= BATCH_BYTES or len(self._batch) >= BATCH_ITEMS:
                    self._flush()
                    if self._is_stopped:
                        return
        except BaseException as error:  # noqa: BLE001  # raised in the thread that takes the entries
            end = error
        self._put(end)
        self._flush()

    def entries(self) -> Iterator[Entry]:
        """Take the entries. Raises what their iteration raised."""
        items = self._take_items()
        for entry in cast(Iterator[Entry], items):
            content = iter(cast(Iterator[bytes], items).__next__, b"") if entry.type is EntryType.FILE else ()
            yield replace(entry, content=content)

    def stop(self) -> None:
        """End `put_all` at its next batch."""
        self._is_stopped = True
        with suppress(Empty):
            self._batches.get_nowait()  # `put_all` may wait for a free place

    def _put(self, item: _Item) -> None:
        with self._batch_lock:
            self._batch.append(item)
        if isinstance(item, bytes):
            self._batch_bytes += len(item)

    def _flush(self) -> None:
        with self._batch_lock:
            batch, self._batch, self._batch_bytes = self._batch, [], 0
        self._batches.put(batch)  # without the lock: the other thread may need it to make room

    def _next_batch(self) -> list[_Item]:
        """Return the next batch; after a while an incomplete one, because gigabytes may lie between two entries."""
        while True:
            with suppress(Empty):
                return self._batches.get(timeout=_MAX_WAIT_SECONDS)
            with self._batch_lock:
                if self._batches.empty() and self._batch:
                    batch, self._batch = self._batch, []
                    return batch

    def _take_items(self) -> Iterator[Entry | bytes]:
        while True:
            for item in self._next_batch():
                if item is None:
                    return
                if isinstance(item, BaseException):
                    raise item
                yield item


def _items(entries: Iterator[Entry]) -> Iterator[Entry | bytes]:
    for entry in entries:
        yield replace(entry, content=())
        if entry.type is EntryType.FILE:
            yield from entry.content
            yield b""
