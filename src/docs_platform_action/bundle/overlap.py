"""Unpacks a bundle while it is still being downloaded.

This only saves time, and decides nothing. After any trouble, of the download or of the archive, what is there is removed, and the
caller unpacks the whole file. So every failure is reported by the code that reports it without the overlap, in the same words.
"""

import threading
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Self

from ..archive.formats import START_BYTES, is_streamable
from ..archive.limits import Disk, Space
from ..archive.reading import ArchiveFile
from ..archive.unpack import Unpacked, unpack
from ..clock import Cancellation
from ..context import Context
from ..events import Events
from ..job import Job
from ..ownership import Owner
from .disk_space import existing_folder
from .staging import Staged, staged

FROM_BYTES: Final = 4 * 1024**2
"""How much of a bundle has to be there before unpacking begins. The download of a smaller one takes no time to speak of."""

CANCEL_CHECK_SECONDS: Final = 0.05
"""How often the wait for the unpacking to end checks for a cancel, and announces its progress."""


class GrowingFile(ArchiveFile):
    """An archive that a download still writes to. `size` is its final size; a read waits for bytes that are still to come."""

    def __init__(self, descriptor: int, size: int, run: Cancellation) -> None:
        super().__init__(descriptor, size, run)
        self.received = 0
        self._is_complete = False
        self._changed = threading.Condition()

    def read(self, length: int, offset: int) -> bytes:
        """Return between one and `length` bytes; none at the end of the complete file."""
        with self._changed:
            while not (block := super().read(length, offset)) and not self._is_complete:
                self._changed.wait()
        return block

    def grow(self, received: int) -> None:
        """Wake up reads, as this many bytes are received. The last of them may still be in a buffer."""
        with self._changed:
            self.received = received
            self._changed.notify_all()

    def complete(self) -> None:
        """Let reads end where the file ends: nothing more will be received."""
        with self._changed:
            self._is_complete = True
            self._changed.notify_all()

    def stop(self) -> None:
        """End all work on this archive, also reads that wait, as a cancel of the run does."""
        self.cancellation.cancel()
        with self._changed:
            self._changed.notify_all()


class _DiskWithArchive(Disk):
    """A disk as it will be once the whole archive is on it. Where the archive is on another disk, this is too cautious."""

    def __init__(self, folder: Path, archive: GrowingFile) -> None:
        super().__init__(folder)
        self._archive = archive

    def space(self) -> Space:
        space = super().space()
        return replace(space, free_bytes=space.free_bytes - (self._archive.size - self._archive.received))


class _Unpacking(threading.Thread):
    """The thread that unpacks an archive into a staged folder. `unpacked` stays `None` if it fails."""

    def __init__(self, archive: GrowingFile, site: Staged, disk: Disk, owner: Owner | None) -> None:
        super().__init__(daemon=True, name="overlap")
        self.archive = archive
        self.site = site
        self.disk = disk
        self.unpacked: Unpacked | None = None
        self.progress = (0, 0)
        self._owner = owner

    def run(self) -> None:
        with suppress(Exception):  # the caller meets it again in the whole file
            self.unpacked = unpack(self.archive, self.site.path, on_progress=self._on_progress, owner=self._owner, disk=self.disk)

    def _on_progress(self, files: int, size: int) -> None:
        self.progress = (files, size)


class OverlappedUnpack(Events):
    """Unpacks a bundle in a thread of its own, behind the download that writes it to `archive` and that this listens to.

    The staged folder is removed on exit unless it is published.
    """

    def __init__(self, archive: Path, site: Path, owner: Owner | None, context: Context) -> None:
        self._archive = archive
        self._site = site
        self._owner = owner
        self._context = context
        self._stack = ExitStack()
        self._may_begin = True
        self._unpacking: _Unpacking | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stack.__exit__(*exception)

    def download_progressed(self, _job: Job, received: int, size: int | None) -> None:
        """Follow the download. Begin once when enough is there, and give up when the rest of the archive needs the room."""
        try:
            if self._may_begin and size is not None and received >= FROM_BYTES:
                self._begin(received, size)
            elif self._unpacking is not None:
                self._unpacking.archive.grow(received)
                if self._unpacking.disk.space().free_bytes < 0:  # others fill the disk too
                    self._give_up()
        except (OSError, RuntimeError):  # RuntimeError is the limit of threads; the caller meets the others again
            self._give_up()

    def download_restarted(self, _job: Job, _reason: str) -> None:
        """Discard what is unpacked: it may be from another bundle."""
        self._give_up()

    def result(self, job: Job) -> tuple[Staged, Unpacked] | None:
        """Wait until the bundle, which is downloaded by now, is unpacked, and announce the progress.

        Return `None` if that was not begun, or failed. Raises `Cancelled`.
        """
        unpacking = self._unpacking
        if unpacking is None:
            return None
        unpacking.archive.complete()
        is_running = True
        while is_running:
            unpacking.join(CANCEL_CHECK_SECONDS)
            is_running = unpacking.is_alive()
            self._context.clock.cancellation.check()
            self._context.events.unpack_progressed(job, *unpacking.progress)
        if unpacking.unpacked is None or unpacking.archive.received != unpacking.archive.size:
            self._give_up()
            return None
        return unpacking.site, unpacking.unpacked

    def _begin(self, received: int, size: int) -> None:
        self._may_begin = False
        file = self._stack.enter_context(self._archive.open("rb", buffering=0))
        archive = GrowingFile(file.fileno(), size, self._context.clock.cancellation)
        archive.grow(received)
        disk = _DiskWithArchive(existing_folder(self._site.parent), archive)
        if disk.space().usable_bytes < size or not is_streamable(file.read(START_BYTES)):
            self._give_up()
            return
        site = self._stack.enter_context(staged(self._site, self._owner, self._context.cleanups, is_folder=True))
        unpacking = _Unpacking(archive, site, disk, self._owner)
        unpacking.start()
        self._stack.callback(unpacking.join)
        self._stack.callback(archive.stop)
        self._unpacking = unpacking

    def _give_up(self) -> None:
        """Remove what is there, and do not begin again."""
        self._may_begin = False
        self._unpacking = None
        with suppress(OSError):  # what stays costs room on the disk, but no result
            self._stack.close()
