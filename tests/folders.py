"""Reads folders for comparison."""

from pathlib import Path


def read_tree(folder: Path) -> dict[str, bytes | str | None]:
    """Return the content of each file in a folder by path, the target of each link, and `None` for folders."""
    tree: dict[str, bytes | str | None] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        tree[name] = str(path.readlink()) if path.is_symlink() else None if path.is_dir() else path.read_bytes()
    return tree
