"""A place to unpack archives into, without a network, and lower limits: a test of the real ones would write gigabytes."""

import gzip
import io
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self, cast
from unittest.mock import patch

import pytest

from docs_platform_action.bundle.archive import START_BYTES, ZIP_MAGICS, Entry, TarSource, decompressed, tar_entries, zip_entries
from docs_platform_action.bundle.tree import Tree
from docs_platform_action.clock import Cancellation
from docs_platform_action.errors import InvalidBundle
from docs_platform_action.ownership import Owner
from tests import folders
from tests.archives import SMALL_SITE, Zipped, entry, pax, tar, tar_of, zip_of

INDEX: Final[folders.Tree] = {"index.html": b"<h1>Docs</h1>"}
"""What comes out of the valid entry in `tests/archives.py`."""

SMALL_TREE: Final[folders.Tree] = {
    "assets": None,
    "guide": None,
    "guide/empty.txt": b"",
    "guide/home.html": "../index.html",
    "guide/start.html": b"<p>Start</p>" * 50,
    **INDEX,
    "latest": "guide",
}


def entries_of(archive: bytes) -> Iterator[Entry]:
    """Yield the entries of an archive."""
    if archive.startswith(ZIP_MAGICS):
        return zip_entries(io.BytesIO(archive))
    return tar_entries(TarSource(decompressed(cast("io.RawIOBase", io.BytesIO(archive)), archive[:START_BYTES])))


class Place:
    """A folder to unpack into, as a context. Nothing beside it may change."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.folder = root / "beside" / "site"
        self.folder.mkdir(parents=True)
        (root / "outside").write_text("precious")
        (root / "beside" / "outside").write_text("precious too")
        self._descriptor = os.open(self.folder, os.O_RDONLY)
        self._before = self._outside()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Remove everything: the files that a test leaves are searched for the key, and these never hold it."""
        os.close(self._descriptor)
        after = self._outside()
        shutil.rmtree(self._root)
        assert after == self._before

    def _outside(self) -> folders.Tree:
        return {path: node for path, node in folders.read_tree(self._root).items() if not path.startswith("beside/site/")}

    def new_tree(self, *, cancellation: Cancellation | None = None, owner: Owner | None = None) -> Tree:
        return Tree(self.folder, self._descriptor, cancellation or Cancellation(), owner)

    def unpack(self, archive: bytes, *, cancellation: Cancellation | None = None, owner: Owner | None = None) -> Tree:
        tree = self.new_tree(cancellation=cancellation, owner=owner)
        for unpacked in entries_of(archive):
            tree.add(unpacked)
        tree.finish()
        return tree

    def refusal(self, archive: bytes) -> InvalidBundle:
        with pytest.raises(InvalidBundle) as caught:
            self.unpack(archive)
        return caught.value

    def empty(self) -> None:
        """Remove what was unpacked."""
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    def tree(self) -> folders.Tree:
        return folders.read_tree(self.folder)


def limited(limit: str, value: int) -> AbstractContextManager[object]:
    """Set a limit, a constant of the module `archive` or `tree`, in this context."""
    return patch(f"docs_platform_action.bundle.{limit}", value)


@dataclass(frozen=True)
class Exact:
    """An archive that a limit of this `value` just allows. `limit` is a constant of the module `archive` or `tree`."""

    limit: str
    value: int
    archive: bytes


_LINKS: Final = [entry(b"%d/%d" % (number % 3, number), type_=b"2", target=b"../a") for number in range(30)]
_COPY: Final = entry(b"a", type_=b"1", target=b"index.html")
_TAR: Final = tar(SMALL_SITE)
_LONG_HEADER: Final = pax(comment=b"x" * 1024**2)

EXACT: Final[Mapping[str, Exact]] = {
    "files and folders": Exact("archive.MAX_ENTRIES", 4, tar_of(entry(b"a/b"), entry(b"a/c"))),
    "bytes of all files": Exact("tree.MAX_UNPACKED_BYTES", 39, tar_of(_COPY, entry(b"b", bytes(13)))),
    "bytes of a tar archive": Exact("archive.MAX_STREAM_BYTES", len(_TAR), gzip.compress(_TAR)),
    "bytes of extended headers": Exact("archive.MAX_HEADER_BYTES", len(_LONG_HEADER) + 512, tar_of(_LONG_HEADER, entry(b"a"))),
    "bytes of a zip archive's directory": Exact(
        "archive.MAX_DIRECTORY_BYTES", 17 * 65_056, zip_of(*[Zipped(extra=bytes(65_000))] * 17)
    ),
    "symbolic links": Exact("tree.MAX_LINKS", 30, tar_of(entry(b"a/b"), *_LINKS)),
    "what is behind symbolic links": Exact("tree.MAX_SEEN", 66, tar_of(entry(b"a/b"), *_LINKS)),
}
