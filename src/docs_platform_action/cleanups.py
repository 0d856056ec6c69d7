"""Removal of unfinished results when a run is cut short, and of the folders that were made for them."""

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from .ownership import FOLDER_MODE, Owner, set_mode


class Cleanups:
    """The registered removals of unfinished results; true if there are any. Thread-safe."""

    def __init__(self) -> None:
        self._removals: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._folder_uses: Counter[Path] = Counter()
        self._folder_lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._removals)

    @contextlib.contextmanager
    def registered(self, remove: Callable[[], None]) -> Iterator[None]:
        """Register a removal for the duration of the context."""
        with self._lock:
            self._removals.append(remove)
        try:
            yield
        finally:
            with self._lock:
                self._removals.remove(remove)

    def clear(self) -> None:
        """Run the registered removals, the latest first, for a run that ends while a thread cannot be interrupted."""
        with self._lock:
            removals = [*reversed(self._removals)]
        for remove in removals:
            with contextlib.suppress(OSError):  # the thread may remove it at the same time
                remove()

    @contextlib.contextmanager
    def folder(self, folder: Path, owner: Owner | None) -> Iterator[None]:
        """Make a folder and its missing parents; the last job that uses one removes it if it is empty. Raises `OSError`."""
        acquired: list[Path] = []
        with self.registered(lambda: self._release(acquired)):
            try:
                self._acquire(folder, owner, acquired)
                yield
            finally:
                self._release(acquired)

    def _acquire(self, folder: Path, owner: Owner | None, acquired: list[Path]) -> None:
        """Make a folder and its missing parents. `acquired` gets each of them, even if a later one cannot be made."""
        with self._folder_lock:
            to_acquire: list[Path] = []
            while folder in self._folder_uses or not folder.exists():
                to_acquire.append(folder)
                folder = folder.parent
            for path in reversed(to_acquire):
                acquired.append(path)
                self._folder_uses[path] += 1
                path.mkdir(exist_ok=True)
                if self._folder_uses[path] == 1:
                    set_mode(path, FOLDER_MODE)
                    if owner is not None:
                        owner.chown(path)

    def _release(self, acquired: list[Path]) -> None:
        with self._folder_lock:
            while acquired:
                path = acquired.pop()
                self._folder_uses[path] -= 1
                if not self._folder_uses[path]:
                    del self._folder_uses[path]
                    with contextlib.suppress(OSError):  # it is not empty, or was never made
                        path.rmdir()
