"""Reads entries in a thread of their own, ahead of the thread that writes them.

Decompressing and writing both release the interpreter lock, so on two cores they take the time of the longer one. Entries come in
the same order as without the thread, and failures in the same place.
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

MAX_BATCHES: Final = 4
"""Maximum batches in the queue. A disk can pause for longer than they last, but many sites side by side share the memory."""

BATCH_BYTES: Final = 2 * CHUNK_BYTES
"""A batch with this much content is full. Its last chunk may go beyond."""

BATCH_ITEMS: Final = 64
"""A batch with this many entries and chunks is full, however short they are."""

_MAX_WAIT_SECONDS: Final = 0.05  # for a batch to fill

_Item = Entry | bytes | BaseException | None
"""An entry, a chunk of its content (an empty one ends the content), or the end: what the reading failed with, or `None`."""


@contextmanager
def prefetch(entries: Iterator[Entry], cancellation: Cancellation) -> Iterator[Iterator[Entry]]:
    """Iterate over the entries in a thread of its own, which ends with this context, and return them.

    What the iteration raises is raised to whoever takes the entries. A file's content is to be read to its end before the next
    entry is asked for. An error in the context cancels the iteration: the next entry may be gigabytes away.
    """
    pipe = _Pipe()
    reader = threading.Thread(target=pipe.fill, args=(entries,), daemon=True, name="reader")
    try:
        reader.start()
    except RuntimeError:  # the system is at its limit of threads: go without
        yield entries
        return
    try:
        yield pipe.entries()
    except BaseException:
        cancellation.cancel()
        raise
    finally:
        pipe.stop()
        reader.join()  # before the archive is closed, which it reads from


class _Pipe:
    """A queue between the two threads. It holds batches, because handing over one item costs as much as a small file."""

    def __init__(self) -> None:
        self._batches: Queue[list[_Item]] = Queue(MAX_BATCHES)
        self._batch: list[_Item] = []
        self._bytes = 0
        self._lock = threading.Lock()  # of the batch that is being filled
        self._stopped = False

    def fill(self, entries: Iterator[Entry]) -> None:
        """Put in all entries, and how their reading ended, unless `stop` is called before."""
        end: BaseException | None = None
        try:
            for item in _items(entries):
                self._put(item)
                if self._bytes >= BATCH_BYTES or len(self._batch) >= BATCH_ITEMS:
                    self._hand_over()
                    if self._stopped:
                        return
        except BaseException as error:  # noqa: BLE001  # handed to the thread that takes the entries, which raises it
            end = error
        self._put(end)
        self._hand_over()

    def entries(self) -> Iterator[Entry]:
        """Take the entries out. Raises what their reading failed with."""
        items = self._taken()
        for entry in cast(Iterator[Entry], items):
            if entry.type is EntryType.FILE:
                yield replace(entry, content=iter(cast(Iterator[bytes], items).__next__, b""))
            else:
                yield entry

    def stop(self) -> None:
        """End `fill` when it next hands over a batch."""
        self._stopped = True
        with suppress(Empty):
            self._batches.get_nowait()  # `fill` may wait for room

    def _put(self, item: _Item) -> None:
        with self._lock:
            self._batch.append(item)
        if isinstance(item, bytes):
            self._bytes += len(item)

    def _hand_over(self) -> None:
        with self._lock:
            batch, self._batch, self._bytes = self._batch, [], 0
        self._batches.put(batch)  # without the lock, which whoever takes batches may wait for

    def _next_batch(self) -> list[_Item]:
        """Return the next batch, or what there is of it after a while: gigabytes may lie between one entry and the next."""
        while True:
            with suppress(Empty):
                return self._batches.get(timeout=_MAX_WAIT_SECONDS)
            with self._lock:
                if self._batches.empty() and self._batch:
                    batch, self._batch = self._batch, []
                    return batch

    def _taken(self) -> Iterator[Entry | bytes]:
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
