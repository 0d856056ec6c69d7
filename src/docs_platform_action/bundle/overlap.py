"""Unpacks a bundle while it is still on its way, as far as all goes well: else it is as if nobody had tried.

Nothing is decided here. A bundle that is whole and was unpacked whole is taken as it is; after any trouble, of the download or of
the archive, what is there is removed, and the whole file is unpacked as it would have been. So each failure is told by what tells
it without this, in the same words.
"""

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ..archive.formats import START_BYTES, is_read_in_order
from ..archive.limits import Space
from ..archive.unpack import Unpacked, unpack
from ..ownership import Owner
from .download import Listener
from .staging import Staged

FROM_BYTES: Final = 4 * 1024**2
"""How much of a bundle has to be there first. A smaller one is there at once."""

LOOK_SECONDS: Final = 0.05
"""How long a wait for the unpacking to end goes on between two looks at a cancel."""


class _GivenUp(Exception):
    """The bundle is not what was begun with, or nobody needs it unpacked any more."""


class _Growing:
    """A file that another thread writes to the end of: who reads waits for what is still to come."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.received = 0
        self._whole = False
        self._stopped = False

    def grow(self, received: int) -> None:
        """Take note that so many bytes are there."""
        with self._changed:
            self.received = received
            self._changed.notify_all()

    def finish(self) -> None:
        """Take note that nothing more is to come."""
        with self._changed:
            self._whole = True
            self._changed.notify_all()

    def stop(self) -> None:
        """End each read that waits, and all that are still to come, with `_GivenUp`."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def check(self) -> None:
        """Raise `_GivenUp` once this is stopped."""
        if self._stopped:
            raise _GivenUp

    def read(self, descriptor: int, length: int, at: int) -> bytes:
        """Read between one and `length` bytes, and none only at the end of the whole file."""
        while True:
            received, whole = self.received, self._whole  # as they were before the look into the file
            self.check()
            if (block := os.pread(descriptor, length, at)) or whole:
                return block
            with self._changed:
                self._changed.wait_for(lambda: self._stopped or self._whole or self.received != received)  # noqa: B023  # ends here


class Follower:
    """Unpacks what is there of a bundle, behind the download that writes it to `archive`.

    `stage` makes the folder for the site, which is removed unless it is published in this context. `space` returns what its
    disk has, `owner` whom files are given to, and `check` ends the work by what it raises.
    """

    def __init__(
        self,
        archive: Path,
        *,
        stage: Callable[[], AbstractContextManager[Staged]],
        space: Callable[[], Space],
        owner: Callable[[], Owner | None],
        check: Callable[[], None],
    ) -> None:
        self._archive = archive
        self._stage = stage
        self._space = space
        self._owner = owner
        self._check_run = check
        self._growing = _Growing()
        self._stack = ExitStack()
        self._began = False
        self._size = 0
        self._thread: threading.Thread | None = None
        self._staged: Staged | None = None
        self._unpacked: Unpacked | None = None
        self._so_far = (0, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._stop()
        self._stack.__exit__(kind, error, traceback)

    def progressed(self, received: int, size: int | None) -> None:
        """Hear that so many bytes are there, and of how many. Begins when that is worth it; once, whatever becomes of it."""
        try:
            if not self._began and size is not None and received >= FROM_BYTES:
                self._began = True
                self._begin(received, size)
            elif self._staged is not None and self._space().free_bytes < self._size - received:
                self.give_up()  # others fill the disk too, and the archive comes first
        except (OSError, RuntimeError):  # the latter is no further thread; whoever unpacks the whole file meets it again
            self.give_up()
        self._growing.grow(received)

    def give_up(self) -> None:
        """Remove what is there: the bundle is another than it was, or something is wrong with it."""
        self._began = True
        self._stop()
        self._staged = self._unpacked = None  # also what was unpacked to its end by then
        with suppress(OSError):  # it costs room on the disk, but no result
            self._stack.close()

    def result(self, on_progress: Callable[[int, int], None]) -> tuple[Staged, Unpacked] | None:
        """Wait until the bundle, which is there whole by now, is unpacked; give the folder, or `None` where that did not go well.

        `on_progress` gets the files and bytes so far meanwhile.
        """
        if self._thread is None:
            return None
        self._growing.finish()
        while self._thread.is_alive():
            self._thread.join(LOOK_SECONDS)
            self._check_run()
            on_progress(*self._so_far)
        if self._staged is None or self._unpacked is None or self._growing.received != self._size:
            self.give_up()
            return None
        return self._staged, self._unpacked

    def _begin(self, received: int, size: int) -> None:
        with self._archive.open("rb", buffering=0) as file:
            start = file.read(START_BYTES)
        self._growing.grow(received)
        self._size = size
        if self._space_beside_archive().usable_bytes < size or not is_read_in_order(start):
            return
        staged = self._staged = self._stack.enter_context(self._stage())
        owner = self._owner()
        thread = threading.Thread(target=self._unpack, args=(staged.path, owner), daemon=True, name="follower")
        thread.start()
        self._thread = thread

    def _space_beside_archive(self) -> Space:
        """Look at the disk as it will be once the whole archive is on it; it may be on another disk, which does no harm."""
        space = self._space()
        return replace(space, free_bytes=space.free_bytes - (self._size - self._growing.received))

    def _unpack(self, folder: Path, owner: Owner | None) -> None:
        with suppress(Exception):  # whatever it is: whoever unpacks the whole file meets it again, and tells it
            self._unpacked = unpack(
                self._archive,
                folder,
                check=self._check,
                on_progress=self._note,
                owner=owner,
                space=self._space_beside_archive,
                read=self._growing.read,
                size=self._size,
            )

    def _check(self) -> None:
        self._growing.check()
        self._check_run()

    def _note(self, files: int, size: int) -> None:
        self._so_far = (files, size)

    def _stop(self) -> None:
        self._growing.stop()
        if self._thread is not None:
            self._thread.join()


class Followed:
    """Tells a listener how a download goes, and has a follower keep up with it."""

    def __init__(self, listener: Listener, follower: Follower) -> None:
        self._listener = listener
        self._follower = follower
        self.answered = listener.answered
        self.link_died = listener.link_died
        self.trouble = listener.trouble
        self.recovered = listener.recovered

    def progressed(self, received: int, size: int | None) -> None:
        """Hear how many bytes are there."""
        self._listener.progressed(received, size)
        self._follower.progressed(received, size)

    def started_over(self, why: str) -> None:
        """Hear that what was there is of no use."""
        self._follower.give_up()
        self._listener.started_over(why)
