"""A place to unpack archives into."""

import shutil
from pathlib import Path
from typing import Final

import pytest

from docs_platform_action.archive.limits import Disk
from docs_platform_action.archive.unpack import Unpacked, unpack
from docs_platform_action.clock import Cancellation
from docs_platform_action.errors import InvalidBundle
from tests.archive_limits import Limits
from tests.archives import open_archive
from tests.folders import Tree, read_tree

REAL_LIMITS: Final = Limits()


class Place:
    """A folder to unpack into, with files beside it that must not change."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._archive = root.with_suffix(".bundle")
        self.folder = root / "beside" / "site"
        self.folder.mkdir(parents=True)
        (root / "outside").write_text("precious")
        (root / "beside" / "outside").write_text("precious too")
        self.progress: list[tuple[int, int]] = []
        self.before = self.outside()

    def outside(self) -> Tree:
        return {path: node for path, node in read_tree(self.root).items() if not path.startswith("beside/site/")}

    def unpack(
        self,
        archive: bytes,
        *,
        limits: Limits = REAL_LIMITS,
        disk: Disk | None = None,
        cancellation: Cancellation | None = None,
    ) -> Unpacked:
        self._archive.write_bytes(archive)
        with open_archive(self._archive, cancellation or Cancellation()) as file, limits.applied():
            return unpack(file, self.folder, on_progress=lambda *counts: self.progress.append(counts), disk=disk)

    def refusal(self, archive: bytes, *, limits: Limits = REAL_LIMITS, disk: Disk | None = None) -> InvalidBundle:
        with pytest.raises(InvalidBundle) as caught:
            self.unpack(archive, limits=limits, disk=disk)
        return caught.value

    def empty(self) -> None:
        """Remove what was unpacked."""
        shutil.rmtree(self.folder)
        self.folder.mkdir()

    def clear(self) -> None:
        """Remove everything: the files that a test leaves are searched for the key, and these never hold it."""
        shutil.rmtree(self.root)
        self._archive.unlink(missing_ok=True)

    def tree(self) -> Tree:
        return read_tree(self.folder)


INDEX: Final[Tree] = {"index.html": b"<h1>Docs</h1>"}
"""What comes out of the valid entry in `tests/archives.py`."""

SMALL_TREE: Final[Tree] = {
    "assets": None,
    "guide": None,
    "guide/empty.txt": b"",
    "guide/home.html": "../index.html",
    "guide/start.html": b"<p>Start</p>" * 50,
    **INDEX,
    "latest": "guide",
}
