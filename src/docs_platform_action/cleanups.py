"""Clean-up of unfinished results when a run is cut short, and the folders that are made to hold results."""

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from .ownership import FOLDER_MODE, Owner, set_mode


class ResultFolders:
    """Folders made for results, each with the number of results that use it. Safe to use from several threads.

    Jobs that run side by side may share a folder, so only the last one to release it removes it.
    """

    def __init__(self) -> None:
        self._uses: Counter[Path] = Counter()
        self._lock = threading.Lock()

    def acquire(self, folder: Path, owner: Owner | None, acquired: list[Path]) -> None:
        """Make a folder and its missing parents, and append each to `acquired`, also when a later one cannot be made.

        Raises `OSError`.
        """
        with self._lock:
            for path in self._missing(folder):
                acquired.append(path)
                self._uses[path] += 1
                path.mkdir(exist_ok=True)
                if self._uses[path] == 1:
                    set_mode(path, FOLDER_MODE)
                    if owner is not None:
                        owner.take(path)

    def release(self, acquired: list[Path]) -> None:
        """Empty `acquired`, and remove the folders in it that are empty and that no other result uses."""
        with self._lock:
            while acquired:
                path = acquired.pop()
                self._uses[path] -= 1
                if not self._uses[path]:
                    del self._uses[path]
                    with contextlib.suppress(OSError):  # it is not empty, or was never made
                        path.rmdir()

    def _missing(self, folder: Path) -> list[Path]:
        """Return the folders to make or to share, parents first."""
        missing: list[Path] = []
        while folder in self._uses or not folder.exists():
            missing.insert(0, folder)
            folder = folder.parent
        return missing


class Cleanups:
    """The removals of everything unfinished; true while there are any. Safe to use from several threads."""

    def __init__(self) -> None:
        self.folders = ResultFolders()
        self._removals: dict[object, Callable[[], None]] = {}
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._removals)

    @contextlib.contextmanager
    def holding(self, remove: Callable[[], None]) -> Iterator[None]:
        """Register a removal for the duration of the context."""
        key = object()
        with self._lock:
            self._removals[key] = remove
        try:
            yield
        finally:
            with self._lock:
                self._removals.pop(key, None)

    def clear(self) -> None:
        """Run the registered removals, the latest first.

        For a run that ends while a thread is still at work, because it hangs in something that cannot be interrupted.
        """
        with self._lock:
            removals = [*reversed(self._removals.values())]
        for remove in removals:
            with contextlib.suppress(OSError):  # the thread may have removed it meanwhile
                remove()
