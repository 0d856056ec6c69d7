"""Unpacks a bundle while it is still being downloaded, which only saves time.

After any error the unpacked files are removed, and the caller unpacks the complete archive, so that one place reports errors.
"""

import os
import threading
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any, ClassVar, Final

from ..archive.formats import START_BYTES, is_streamable
from ..archive.limits import Disk, Space
from ..archive.reading import POLL_SECONDS, ArchiveFile
from ..archive.unpack import Unpacked, unpack
from ..context import Context
from ..events import Events
from ..job import Job
from ..ownership import Owner
from .disk_space import existing_folder
from .staging import Staged, staged

MIN_RECEIVED_BYTES: Final = 4 * 1024**2  # before unpacking starts; smaller bundles are downloaded too fast to save any time


class GrowingFile(ArchiveFile):
    """An archive that is still being downloaded. `size` is its final size; a read waits for bytes that are not there yet."""

    LARGE_DECODERS: ClassVar = BoundedSemaphore(2)
    """Others than those of complete archives, which must not wait for a download that has stalled and keeps its decoder."""

    received = 0
    is_complete = False

    def acquire_large_decoder(self) -> None:
        """Take one of `LARGE_DECODERS`. Raises `BlockingIOError` if there is none: the complete archive will wait for one."""
        if not self.LARGE_DECODERS.acquire(blocking=False):
            raise BlockingIOError

    def read(self, length: int, offset: int) -> bytes:
        """Return between one and `length` bytes from this offset; none at the end of the complete file."""
        while True:
            was_complete = self.is_complete  # first, because the last bytes may be written after the read
            block = super().read(length, offset)
            if block or was_complete:
                return block
            self.cancellation.wait(POLL_SECONDS)


class _DiskWithArchive(Disk):
    """A disk with space reserved for the rest of the archive, even if the archive is on another disk."""

    def __init__(self, folder: Path, archive: GrowingFile) -> None:
        super().__init__(folder)
        self._archive = archive

    def space(self) -> Space:
        space = super().space()
        return replace(space, free_bytes=space.free_bytes - (self._archive.size - self._archive.received))


class _Unpacking(threading.Thread):
    def __init__(self, archive: GrowingFile, site: Staged, disk: Disk, owner: Owner | None) -> None:
        super().__init__(daemon=True, name="overlap")
        self.archive = archive
        self.site = site
        self.disk = disk
        self.unpacked: Unpacked | None = None  # stays so after a failure
        self.progress = (0, 0)
        self._owner = owner

    def run(self) -> None:
        with suppress(Exception):  # unpacking the complete archive reports it
            self.unpacked = unpack(self.archive, self.site.path, on_progress=self._on_progress, owner=self._owner, disk=self.disk)

    def _on_progress(self, files: int, size: int) -> None:
        self.progress = (files, size)


class OverlappedUnpack(Events, AbstractContextManager["OverlappedUnpack"]):
    """Unpacks an open archive while a download, whose events it receives, writes it.

    Exit removes the site unless it is published.
    """

    def __init__(self, archive: int, site: Path, owner: Owner | None, context: Context) -> None:
        self._archive = archive
        self._site = site
        self._owner = owner
        self._context = context
        self._stack = ExitStack()
        self._may_start = True
        self._unpacking: _Unpacking | None = None

    def __exit__(self, *exception: Any) -> None:
        self._stack.__exit__(*exception)

    def download_progressed(self, _job: Job, received: int, size: int | None) -> None:
        """Start to unpack when enough is received; stop if the rest of the archive needs the disk space."""
        try:
            if self._may_start and size is not None and received >= MIN_RECEIVED_BYTES:
                self._start(received, size)
            elif self._unpacking is not None:
                self._unpacking.archive.received = received
                if self._unpacking.disk.space().free_bytes < 0:  # others write to the disk too
                    self._discard()
        except (OSError, RuntimeError):  # RuntimeError: no more threads can be started
            self._discard()

    def download_restarted(self, _job: Job, _reason: str) -> None:
        """Discard the unpacked files: they may be from another bundle."""
        self._discard()

    def result(self, job: Job) -> tuple[Staged, Unpacked] | None:
        """Wait until the downloaded bundle is unpacked; return `None` if that was not started, or failed. Raises `Cancelled`."""
        unpacking = self._unpacking
        if unpacking is None:
            return None
        unpacking.archive.is_complete = True
        is_running = True
        while is_running:
            unpacking.join(POLL_SECONDS)
            is_running = unpacking.is_alive()
            self._context.clock.cancellation.check()
            self._context.events.unpack_progressed(job, *unpacking.progress)
        if unpacking.unpacked is None or unpacking.archive.received != unpacking.archive.size:
            self._discard()
            return None
        return unpacking.site, unpacking.unpacked

    def _start(self, received: int, size: int) -> None:
        self._may_start = False
        archive = GrowingFile(self._archive, size, self._context.clock.cancellation)
        archive.received = received
        disk = _DiskWithArchive(existing_folder(self._site.parent), archive)
        if disk.space().usable_bytes < size or not is_streamable(os.pread(self._archive, START_BYTES, 0)):
            self._discard()
            return
        site = self._stack.enter_context(staged(self._site, self._owner, self._context.cleanups, is_folder=True))
        unpacking = _Unpacking(archive, site, disk, self._owner)
        unpacking.start()
        self._stack.callback(unpacking.join)
        self._stack.callback(archive.cancellation.cancel)
        self._unpacking = unpacking

    def _discard(self) -> None:
        self._may_start = False
        self._unpacking = None
        with suppress(OSError):  # files that stay take disk space, but do no harm
            self._stack.close()
