"""What to remove when the run is left behind, and the folders that lead to results."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path


class Ways:
    """The folders that were made to lead to results, each with how many still need it; a `with` keeps other threads out.

    Several results may be made side by side in one folder, which must not be removed from under another.
    """

    def __init__(self) -> None:
        self._needed: dict[Path, int] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def missing(self, folder: Path) -> list[Path]:
        """Tell which folders are to be made or were, from the uppermost to this one."""
        found: list[Path] = []
        while folder in self._needed or not folder.exists():
            found.insert(0, folder)
            folder = folder.parent
        return found

    def enter(self, folder: Path) -> bool:
        """Count one more that needs a folder, and make it for the first, which is told so. Raises `OSError`."""
        self._needed[folder] = self._needed.get(folder, 0) + 1
        folder.mkdir(exist_ok=True)
        return self._needed[folder] == 1

    def leave(self, folder: Path) -> None:
        """Count one less, and remove the folder after the last."""
        self._needed[folder] -= 1
        if self._needed[folder] == 0:
            del self._needed[folder]
            with contextlib.suppress(OSError):  # it holds something by now, or was never made
                folder.rmdir()


class Cleanups:
    """What is to be removed once nobody is left to do so, and the `ways` to results. Safe to use from several threads."""

    def __init__(self) -> None:
        self.ways = Ways()
        self._removals: dict[object, Callable[[], None]] = {}
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._removals)

    @contextlib.contextmanager
    def holding(self, remove: Callable[[], None]) -> Iterator[None]:
        """Remember how to remove something for as long as its maker is at work on it."""
        key = object()
        with self._lock:
            self._removals[key] = remove
        try:
            yield
        finally:
            with self._lock:
                self._removals.pop(key, None)

    def clear(self) -> None:
        """Remove all, the latest first: its makers were left behind, in a look-up of a name that cannot be cut short, say."""
        with self._lock:
            removals = [*reversed(self._removals.values())]
        for remove in removals:
            with contextlib.suppress(OSError):  # its maker came in time after all
                remove()
