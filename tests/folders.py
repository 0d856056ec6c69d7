"""Reads folders for comparison, and finds the files in them that this process has open."""

import contextlib
from pathlib import Path


def read_tree(folder: Path) -> dict[str, bytes | str | None]:
    """Return the content of each file in a folder by path, the target of each link, and `None` for folders."""
    tree: dict[str, bytes | str | None] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        tree[name] = str(path.readlink()) if path.is_symlink() else None if path.is_dir() else path.read_bytes()
    return tree


def open_below(folder: Path) -> list[Path]:
    """Return what this process has open in a folder. Threads of earlier tests do not change it, unlike a count of descriptors."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed since, such as the listing's own
            found.append(descriptor.readlink())
    return [path for path in found if path.is_relative_to(folder)]
