"""The unpacked tree of an archive, and the promises that hold for every archive."""

import os
import stat
import tempfile
from pathlib import Path
from typing import Final

from docs_platform_action.errors import InvalidBundle
from tests.folders import Tree
from tests.unit.bundle.places import Place, limited

MAX_UNPACKED_BYTES: Final = 1 << 20
MAX_ENTRIES: Final = 400
MAX_SEEN: Final = 5_000

ESCAPED: Final = Path("/tmp/fuzz-escaped")  # noqa: S108  # nothing is put there
"""Where hostile absolute names lead to."""


def unpacked(archive: bytes) -> Tree:
    """Unpack an archive within low limits, assert that all promises hold, and return the tree. Raises `InvalidBundle` alone."""
    with (
        tempfile.TemporaryDirectory() as temporary,
        limited("archive.MAX_ENTRIES", MAX_ENTRIES),
        limited("archive.MAX_STREAM_BYTES", 4 * MAX_UNPACKED_BYTES),
        limited("tree.MAX_UNPACKED_BYTES", MAX_UNPACKED_BYTES),
        limited("tree.MAX_SEEN", MAX_SEEN),
        Place(Path(temporary).resolve() / "top") as place,
    ):
        try:
            done = place.unpack(archive)
        except InvalidBundle:
            assert not _is_left(place.folder.parent)
            raise
        assert not _is_left(place.folder.parent)
        tree = place.tree()
        _check_nodes(place.folder, tree)
        files = [path for path, node in tree.items() if isinstance(node, bytes)]
        assert done.files == len(files) > 0
        assert done.html_files == sum(path.lower().endswith(".html") for path in files)
        return tree


def _is_left(beside: Path) -> bool:
    return ESCAPED.exists() or {path.name for path in beside.iterdir()} != {"site", "outside"}


def _check_nodes(folder: Path, tree: Tree) -> None:
    assert len(tree) <= MAX_ENTRIES
    assert not any(isinstance(node, bytes) and node.startswith(b"precious") for node in tree.values())  # from beside the folder
    assert sum(len(node) for node in tree.values() if isinstance(node, bytes)) <= MAX_UNPACKED_BYTES
    for path, node in tree.items():
        status = (folder / path).lstat()
        if isinstance(node, str):
            assert Path(os.path.realpath(folder / path, strict=True)).is_relative_to(folder)
        else:
            assert stat.filemode(status.st_mode) == ("drwxr-xr-x" if node is None else "-rw-r--r--")
            assert node is None or status.st_nlink == 1
