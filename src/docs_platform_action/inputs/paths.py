"""Paths in inputs: inside the folders that outlive the container, and usable for what is written there."""

import contextlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Final

from ..errors import DENIED_BY
from ..models import UNUSABLE
from ..ownership import MAX_PART_BYTES
from .settings import OutputPath

MIN_FREE_BYTES: Final = 1024 * 1024
PLACEHOLDER: Final = "{domain}"
MAX_ERRORS_PER_PATH: Final = 3  # of several domains


def quoted(value: str) -> str:
    """Quote a value for an error, shortened. Not for a key, or for an address that may contain one."""
    return f"'{value[:80]}…'" if len(value) > 80 else f"'{value}'"


def join_errors(errors: Sequence[str], limit: int) -> str:
    """Join errors into one text; those beyond the limit are counted."""
    more = [f"and {len(errors) - limit} more"] if len(errors) > limit else []
    return "; ".join([*errors[:limit], *more])


def read_path(value: str, roots: Sequence[Path]) -> OutputPath:
    """Read a path inside one of the `roots`; a relative path starts at the first. Raises `ValueError`."""
    if UNUSABLE.search(value):
        raise ValueError("contains a control character")
    path = Path(os.path.realpath(roots[0] / value))  # not `resolve`, which raises for a circle before Python 3.13 only
    if any(map(os.path.islink, (path, *path.parents))):  # `realpath` resolves all others
        raise ValueError(f"{quoted(value)} is a symbolic link that leads to itself")
    workspace, *others = [root.resolve() for root in roots]
    root = next((root for root in (workspace, *others) if path.is_relative_to(root)), None)
    if root is None:
        named_workspace = roots[0].absolute()
        looks_inside = Path(os.path.normpath(named_workspace / value)).is_relative_to(named_workspace)
        link = " (through a symbolic link)" if looks_inside else ""
        reason = "so it is not shared with the container; use a path inside the workspace"
        raise ValueError(f"{quoted(value)} is outside the workspace{link}, {reason}")
    if any(len(os.fsencode(part)) > MAX_PART_BYTES for part in path.parts):
        raise ValueError(f"{quoted(value)} contains a name longer than {MAX_PART_BYTES} bytes")
    if UNUSABLE.search(str(path)):
        raise ValueError(f"{quoted(value)} leads to a path that contains a control character")
    return OutputPath(path=path, root=root, name=str(path.relative_to(workspace)) if root == workspace else str(path))


def read_target(value: str, roots: Sequence[Path], *, is_folder: bool) -> OutputPath:
    """Read the path of a file to write, or of a folder to create. Raises `ValueError`."""
    target = read_path(value, roots)
    if not target.root.is_dir():
        raise ValueError(f"{quoted(value)} is in {quoted(str(target.root))}, which does not exist")
    try:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            target.path.stat()  # raises the other errors, which `exists` hides in some versions of Python
        if is_folder:
            _check_folder(value, target.path, roots)
        else:
            _check_file(value, target.path)
        _check_writable(target.path.parent)
    except OSError as error:
        raise ValueError(f"{quoted(value)} cannot be used ({reason_of(error)})") from None
    return target


def _check_file(value: str, path: Path) -> None:
    if value.endswith("/") or path.is_dir():
        raise ValueError(f"{quoted(value)} is a folder; use the path of a file")
    if path.exists() and not path.is_file():
        raise ValueError(f"{quoted(value)} is not a regular file")


def _check_folder(value: str, path: Path, roots: Sequence[Path]) -> None:
    if path in {root.resolve() for root in roots} or path.is_mount():
        raise ValueError(f"{quoted(value)} cannot be replaced; use a folder inside it")
    if path.exists() and not path.is_dir():
        raise ValueError(f"{quoted(value)} is a file; use a folder that is missing or empty")
    found = next(path.iterdir(), None) if path.exists() else None
    if found is not None:
        contents = f"it contains {quoted(found.name)}"
        raise ValueError(f"{quoted(value)} is not empty ({contents}); empty it in an earlier step, or use another folder")


def is_usable(folder: Path) -> bool:
    """Return whether a folder exists and can be written to."""
    with contextlib.suppress(OSError, ValueError):
        _check_writable(folder)
        return folder.is_dir()
    return False


def read_targets(value: str, roots: Sequence[Path], domains: Sequence[str | None], *, is_folder: bool) -> list[OutputPath]:
    """Read a path for each domain, which replaces `{domain}` in it. Raises `ValueError`."""
    if PLACEHOLDER in value and None in domains:
        raise ValueError(f"contains {PLACEHOLDER}, but `domain` is not set; set it, or use a path without {PLACEHOLDER}")
    if PLACEHOLDER not in value and len(domains) > 1:
        raise ValueError(f"must contain {PLACEHOLDER}, such as out/{PLACEHOLDER}, so that each domain gets its own path")
    targets, errors = [], []
    for domain in domains:
        try:
            targets.append(read_target(value.replace(PLACEHOLDER, domain or ""), roots, is_folder=is_folder))
        except ValueError as error:
            errors.append(str(error))
    if errors:
        raise ValueError(join_errors(errors, MAX_ERRORS_PER_PATH))
    return targets


def overlaps(targets: Mapping[str, Sequence[OutputPath]]) -> list[tuple[str, str]]:
    """Return an input name and an error for each overlap of the first domain's paths, or for one of all domains' paths."""
    first = [(name, paths[0]) for name, paths in targets.items()]
    found = [(one, other) for one, other in combinations(first, 2) if _is_overlap(one[1].path, other[1].path)]
    if not found:  # sorted, a path is followed by those inside it
        every = sorted(((name, path) for name, paths in targets.items() for path in paths), key=lambda item: item[1].path.parts)
        found = [(one, other) for one, other in pairwise(every) if _is_overlap(one[1].path, other[1].path)][:1]
    return [
        (name, f"'{target.name}' overlaps with {other_name}, '{other.name}'; use separate paths")
        for (other_name, other), (name, target) in found
    ]


def overlaps_with_env_file(targets: Mapping[str, Sequence[OutputPath]], env_file: Path) -> list[tuple[str, str]]:
    """Return an input name and an error for each input with a path that overlaps with the file that OUTPUT_ENV_FILE names."""
    file = Path(os.path.realpath(env_file.parent), env_file.name)  # a link at the path itself is replaced
    found = {name: path.name for name, paths in targets.items() for path in paths if _is_overlap(path.path, file)}
    return [
        (name, f"'{target}' overlaps with OUTPUT_ENV_FILE, {quoted(str(env_file))}; use separate paths")
        for name, target in found.items()
    ]


def _is_overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


def reason_of(error: OSError) -> str:
    """Return the system's reason, with the likely causes where access is denied."""
    return f"{error.strerror}; likely causes: {DENIED_BY}" if isinstance(error, PermissionError) else str(error.strerror)


def _check_writable(folder: Path) -> None:
    """Raise `ValueError` or `OSError` unless the folder, or the nearest one above it that exists, can be written to."""
    folder = next(existing for existing in (folder, *folder.parents) if existing.exists())
    if not folder.is_dir():
        raise ValueError(f"{quoted(folder.name)} in this path is a file, not a folder")
    try:
        # not `os.access`, which knows neither a server's own rules nor a quota
        with tempfile.TemporaryFile(dir=folder) as probe:
            disk = os.fstatvfs(probe.fileno())
    except OSError as error:
        raise ValueError(f"the folder {quoted(folder.name)} cannot be written to ({reason_of(error)})") from None
    # some network and FUSE file systems report no sizes
    if disk.f_blocks * disk.f_frsize and disk.f_bavail * disk.f_frsize < MIN_FREE_BYTES:
        raise ValueError(f"the disk of the folder {quoted(folder.name)} is full")
