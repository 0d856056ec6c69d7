"""Paths that inputs name: inside the folders that outlive the container, and fit for what is to be put there."""

import errno
import os
import stat
import tempfile
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Final

from ..errors import DENIED_BY
from ..models import UNUSABLE
from ..ownership import MAX_PART_BYTES
from .settings import OutputPath

MIN_FREE_BYTES: Final = 1024 * 1024
"""A disk with less room is full."""

PLACEHOLDER: Final = "{domain}"

MAX_LISTED_DOMAINS: Final = 3
"""Maximum domains that an error names for one input."""


def quoted(value: str) -> str:
    """Quote a value for an error, shortened. Not for a key, or for an address that may hold one."""
    return f"'{value[:80]}…'" if len(value) > 80 else f"'{value}'"


def read_path(value: str, roots: Sequence[Path]) -> OutputPath:
    """Read a path: relative to the first of the `roots`, or absolute, and inside one of them. Raises `ValueError`."""
    if UNUSABLE.search(value):
        raise ValueError("holds a control character")
    path = Path(os.path.realpath(roots[0] / value))  # not `resolve`, which raises for a circle before Python 3.13 only
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ValueError(f"{quoted(value)} is a link that leads to itself") from None
    workspace, *others = [root.resolve() for root in roots]
    root = next((root for root in (workspace, *others) if path.is_relative_to(root)), None)
    if root is None:
        how = ", by a link" if Path(os.path.normpath(roots[0] / value)).is_relative_to(roots[0]) else ""
        raise ValueError(f"{quoted(value)} is outside the workspace{how}, which the container cannot see; use a path inside")
    if any(len(os.fsencode(part)) > MAX_PART_BYTES for part in path.parts):
        raise ValueError(f"{quoted(value)} holds a name longer than {MAX_PART_BYTES} bytes")
    if UNUSABLE.search(str(path)):
        raise ValueError(f"{quoted(value)} leads to a name with a control character")
    return OutputPath(path=path, root=root, name=str(path.relative_to(workspace)) if root == workspace else str(path))


def read_file_path(value: str, roots: Sequence[Path]) -> OutputPath:
    """Read the path of a file that is to be written; one that is there will be replaced. Raises `ValueError`."""
    place = _read_target(value, roots)
    try:
        mode = _mode(place.path)
        if value.endswith("/") or stat.S_ISDIR(mode):
            raise ValueError(f"{quoted(value)} is a folder; name the file to write")
        if mode and not stat.S_ISREG(mode):
            raise ValueError(f"{quoted(value)} is not a regular file")
        _check_writable(place.path.parent)
    except OSError as error:
        raise ValueError(f"{quoted(value)} cannot be used ({reason_of(error)})") from None
    return place


def read_folder_path(value: str, roots: Sequence[Path]) -> OutputPath:
    """Read the path of a folder that is to be filled, which is missing or empty. Raises `ValueError`."""
    place = _read_target(value, roots)
    try:
        mode = _mode(place.path)
        if place.path in {root.resolve() for root in roots} or (mode and place.path.is_mount()):
            raise ValueError(f"{quoted(value)} cannot be replaced as a whole; name a folder inside it")
        if mode and not stat.S_ISDIR(mode):
            raise ValueError(f"{quoted(value)} is a file; name a folder that is missing or empty")
        found = next(place.path.iterdir(), None) if mode else None
        if found is not None:
            held = quoted(found.name)
            raise ValueError(f"{quoted(value)} is not empty: it holds {held}; empty it in an earlier step, or name another")
        _check_writable(place.path.parent)
    except OSError as error:
        raise ValueError(f"{quoted(value)} cannot be used ({reason_of(error)})") from None
    return place


def is_usable(folder: Path) -> bool:
    """Whether something can be put into a folder."""
    try:
        _check_writable(folder)
    except (OSError, ValueError):
        return False
    return folder.is_dir()


def read_each(
    value: str,
    read: Callable[[str, Sequence[Path]], OutputPath],
    roots: Sequence[Path],
    domains: Sequence[str | None],
    *,
    several: bool,
) -> list[OutputPath]:
    """Read a place for each domain, which `{domain}` stands for in the path, and has to for `several`. Raises `ValueError`."""
    if PLACEHOLDER in value and None in domains:
        raise ValueError(f"holds {PLACEHOLDER}, but there is no domain; give `domain` beside `job-id`, or write the path out")
    if PLACEHOLDER not in value and several:
        raise ValueError(f"needs {PLACEHOLDER} in it, so that each domain gets its own path, such as out/{PLACEHOLDER}")
    places, problems = [], []
    for domain in domains:
        try:
            places.append(read(value.replace(PLACEHOLDER, domain or ""), roots))
        except ValueError as error:
            problems.append(str(error))
    if problems:
        more = len(problems) - MAX_LISTED_DOMAINS
        raise ValueError(
            "; ".join(problems[:MAX_LISTED_DOMAINS]) + (f"; and the same for {more} more of the domains" if more > 0 else "")
        )
    return places


def overlaps(places: Mapping[str, Sequence[OutputPath]]) -> list[tuple[str, str]]:
    """Return the inputs whose places, one for each domain, overlap: the name of one of them and what is wrong with it."""
    first = [(name, given[0]) for name, given in places.items()]
    found = [
        (name, _in_the_way(place, other_name, other))
        for (other_name, other), (name, place) in combinations(first, 2)
        if _overlap(place, other)
    ]
    if found:
        return found
    # of two that overlap one follows the other when they are sorted, or what stands between them overlaps too
    every = sorted(((place, name) for name, given in places.items() for place in given), key=lambda item: item[0].path.parts)
    for (place, name), (next_place, next_name) in pairwise(every):
        if _overlap(place, next_place):
            return [(next_name, _in_the_way(next_place, name, place))]
    return []


def _overlap(one: OutputPath, other: OutputPath) -> bool:
    return one.path.is_relative_to(other.path) or other.path.is_relative_to(one.path)


def _in_the_way(place: OutputPath, other_name: str, other: OutputPath) -> str:
    return f"'{place.name}' and {other_name}, '{other.name}', overlap; choose separate paths"


def _read_target(value: str, roots: Sequence[Path]) -> OutputPath:
    place = read_path(value, roots)
    if not place.root.is_dir():
        raise ValueError(f"{quoted(value)} is in {quoted(str(place.root))}, which is not there")
    return place


def _mode(path: Path) -> int:
    """Return the mode of what is there, 0 for nothing. `Path.exists` would hide other errors in some versions of Python."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0


def reason_of(error: OSError) -> str:
    """Return the system's reason, and what is likely behind it where access is denied."""
    return f"{error.strerror}; likely causes: {DENIED_BY}" if isinstance(error, PermissionError) else str(error.strerror)


def _check_writable(folder: Path) -> None:
    """Raise `ValueError` or `OSError` unless something can be put into a folder, or into what is there of the way to it."""
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise ValueError(f"{quoted(folder.name)} in that path is a file")
    try:
        # not `os.access`, which knows neither of a server's own rules nor of a quota
        with tempfile.TemporaryFile(dir=folder) as probe:
            room = os.fstatvfs(probe.fileno())
    except OSError as error:
        raise ValueError(f"the folder {quoted(folder.name)} cannot be written to ({reason_of(error)})") from None
    if room.f_bavail * room.f_frsize < MIN_FREE_BYTES:
        raise ValueError(f"the disk of this folder is full: {quoted(folder.name)}")
