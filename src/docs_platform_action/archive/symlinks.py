"""The symbolic links of an archive: verified by their names alone, before any of them is on the disk."""

from bisect import bisect_left
from collections.abc import Mapping
from typing import Final

from ..clock import Cancellation
from ..errors import InvalidBundle
from .entries import EntryType, quoted, unsafe
from .names import Register

MAX_LINKS: Final = 10_000
"""Maximum symbolic links. They are kept in memory until everything else is unpacked."""

MAX_LINK_CHAIN: Final = 40
"""Maximum links that lead from one to the next. Linux follows no more (source: path_resolution(7))."""

MAX_STEPS: Final = 1_000_000
"""Maximum names to look up in all. The links of a site have a few each."""

MAX_FOLDERS_SEEN: Final = 2 * MAX_LINKS
"""Maximum folders that a walk which follows links goes through because of them. A few links can make that any number."""

MAX_FOLDER_CHAIN: Final = 100


class Links:
    """Symbolic links: the target of each by its path, in a tree whose paths are in the register."""

    def __init__(self, targets: Mapping[str, str], register: Register, cancellation: Cancellation) -> None:
        self._targets = targets
        self._register = register
        self._cancellation = cancellation
        self._steps = 0
        self._ends: dict[str, tuple[str, int]] = {}
        self._followed: set[str] = set()
        self._to_folders: list[str] = []
        self._seen: dict[str, int] = {}
        self._entered: set[str] = set()

    def verify(self) -> None:
        """Verify that each link leads to something in the tree, and that following the links ends soon.

        Raises `InvalidBundle` and `Cancelled`.
        """
        self._to_folders = sorted(link for link in self._targets if self._is_folder(self._end_of(link)[0]))
        self._walk("")

    def _end_of(self, link: str) -> tuple[str, int]:
        """Return the path that a link leads to in the end, and how many links that takes."""
        if link in self._ends:
            return self._ends[link]
        if link in self._followed or len(self._followed) >= MAX_LINK_CHAIN:
            raise leads_nowhere(link)
        self._followed.add(link)
        at, crossed = link.rpartition("/")[0], 1
        for part in self._targets[link].split("/"):
            self._step()
            if not self._is_folder(at):
                raise leads_nowhere(link)
            if part == "..":
                if not at:
                    raise leads_outside(link)
                at = at.rpartition("/")[0]
            elif part not in {"", "."}:
                at = f"{at}/{part}" if at else part
                if at in self._targets:
                    at, more = self._end_of(at)
                    crossed += more
        if crossed > MAX_LINK_CHAIN or (at and self._register.type_at(at) is None):
            raise leads_nowhere(link)
        self._followed.remove(link)
        self._ends[link] = (at, crossed)
        return at, crossed

    def _walk(self, folder: str) -> int:
        """Return how many folders a walk through this one goes through if it follows links."""
        if folder in self._seen:
            return self._seen[folder]
        self._entered.add(folder)
        within = f"{folder}/" if folder else ""
        seen = 1
        for number in range(bisect_left(self._to_folders, within), len(self._to_folders)):
            link = self._to_folders[number]
            if not link.startswith(within):
                break
            self._step()
            end = self._ends[link][0]
            if end in self._entered:
                raise unsafe(f"Symbolic link {quoted(link.encode())} leads in a circle, back to {quoted((end or '.').encode())}.")
            if len(self._entered) >= MAX_FOLDER_CHAIN:
                raise _entangled(link)
            seen += self._walk(end)
            if seen > MAX_FOLDERS_SEEN:
                raise _entangled(link)
        self._entered.remove(folder)
        self._seen[folder] = seen
        return seen

    def _is_folder(self, path: str) -> bool:
        return not path or self._register.type_at(path) is EntryType.FOLDER

    def _step(self) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise unsafe("It has so many and so long symbolic links that following them takes too much time.")
        if self._steps % 1000 == 0:
            self._cancellation.check()


def leads_outside(link: str) -> InvalidBundle:
    """Return the error for a link that leads out of the tree."""
    return unsafe(f"Symbolic link {quoted(link.encode())} leads outside the folder.")


def leads_nowhere(link: str) -> InvalidBundle:
    """Return the error for a link that leads to nothing, or in a circle."""
    return unsafe(f"Symbolic link {quoted(link.encode())} leads to nothing, or in a circle.")


def _entangled(link: str) -> InvalidBundle:
    return unsafe(f"Symbolic link {quoted(link.encode())} leads through too many other links.")
