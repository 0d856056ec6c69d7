"""Reads folders for comparison, and limits the size of files."""

import contextlib
import os
import resource
from collections.abc import Generator
from pathlib import Path

Tree = dict[str, bytes | str | None]
"""By the path: a file's content, a link's target as it is, or `None` for a folder."""


def read_tree(folder: Path) -> Tree:
    """Return the tree in a folder, sorted."""
    tree: Tree = {}
    for inside, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(inside, name)
            node: bytes | str | None = None
            if path.is_symlink():
                node = os.readlink(path)  # noqa: PTH115  # `Path` normalizes it
            elif name not in folders:
                node = path.read_bytes()
            tree[str(path.relative_to(folder))] = node
    return dict(sorted(tree.items()))


@contextlib.contextmanager
def files_of_at_most(size: int) -> Generator[None]:
    """Limit the size of files, as a full disk does: a write is cut at the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
