"""The symbolic links of an archive: verified by name alone, before any of them is on the disk."""

from bisect import bisect_left
from collections.abc import Mapping
from typing import Final

from ..clock import Cancellation
from .entries import EntryType, quoted, unsafe, unsafe_link
from .names import PathRegistry

MAX_LINKS: Final = 10_000  # they stay in memory until everything else is unpacked
MAX_LINK_CHAIN: Final = 40  # links to follow for one path, as on Linux (source: path_resolution(7))
MAX_STEPS: Final = 1_000_000  # names to look up for all links together; a site's links need a few each
MAX_FOLDERS_SEEN: Final = 2 * MAX_LINKS  # in a walk that follows links; a few of them can multiply the folders
MAX_FOLDER_CHAIN: Final = 100  # maximum depth of such a walk, in links

LEADS_OUTSIDE: Final = "leads outside the folder"
_BROKEN: Final = "is broken: its target does not exist, or is part of a loop"
_TOO_MANY_LINKS: Final = "leads through too many other links"


class SymlinkVerifier:
    """Verifies symbolic links: `targets` by the link's path, in a tree whose paths are in the registry."""

    def __init__(self, targets: Mapping[str, str], paths: PathRegistry, cancellation: Cancellation) -> None:
        self._targets = targets
        self._paths = paths
        self._cancellation = cancellation
        self._steps = 0
        self._resolved: dict[str, tuple[str, int]] = {}
        self._resolving: set[str] = set()
        self._links_to_folders: list[str] = []
        self._folder_counts: dict[str, int] = {}
        self._walking: set[str] = set()

    def verify(self) -> None:
        """Raise `InvalidBundle` unless each link leads to an entry of the tree, and a walk that follows links stays small."""
        self._links_to_folders = sorted(link for link in self._targets if self._is_folder(self._resolve(link)[0]))
        self._count_folders("")

    def _resolve(self, link: str) -> tuple[str, int]:
        """Return the path that a link leads to in the end, and how many links are followed."""
        if link in self._resolved:
            return self._resolved[link]
        if link in self._resolving or len(self._resolving) >= MAX_LINK_CHAIN:
            raise unsafe_link(link, _BROKEN)
        self._resolving.add(link)
        path, followed = link.rpartition("/")[0], 1
        for part in self._targets[link].split("/"):
            self._count_step()
            if not self._is_folder(path):
                raise unsafe_link(link, _BROKEN)
            if part == "..":
                if not path:
                    raise unsafe_link(link, LEADS_OUTSIDE)
                path = path.rpartition("/")[0]
            elif part not in {"", "."}:
                path = f"{path}/{part}" if path else part
                if path in self._targets:
                    path, more = self._resolve(path)
                    followed += more
        if followed > MAX_LINK_CHAIN or (path and self._paths.type_at(path) is None):
            raise unsafe_link(link, _BROKEN)
        self._resolving.remove(link)
        self._resolved[link] = (path, followed)
        return path, followed

    def _count_folders(self, folder: str) -> int:
        """Return how many folders a walk through this one visits if it follows links."""
        if folder in self._folder_counts:
            return self._folder_counts[folder]
        self._walking.add(folder)
        links = self._links_to_folders
        if folder:
            links = links[bisect_left(links, f"{folder}/") : bisect_left(links, f"{folder}0")]  # `0` follows `/` in ASCII
        count = 1
        for link in links:
            self._count_step()
            target, _ = self._resolved[link]
            if target in self._walking:
                raise unsafe_link(link, f"is part of a loop: it leads back to {quoted((target or '.').encode())}")
            if len(self._walking) >= MAX_FOLDER_CHAIN:
                raise unsafe_link(link, _TOO_MANY_LINKS)
            count += self._count_folders(target)
            if count > MAX_FOLDERS_SEEN:
                raise unsafe_link(link, _TOO_MANY_LINKS)
        self._walking.remove(folder)
        self._folder_counts[folder] = count
        return count

    def _is_folder(self, path: str) -> bool:
        return not path or self._paths.type_at(path) is EntryType.FOLDER

    def _count_step(self) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise unsafe("The archive's symbolic links are too many or too long to follow in a reasonable time.")
        if self._steps % 1000 == 0:
            self._cancellation.check()
