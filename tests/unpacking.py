"""Unpacks an archive within low limits, and checks the promises that hold for every archive."""

import contextlib
import hashlib
import io
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, cast
from unittest.mock import patch

from docs_platform_action.bundle import archive as archives
from docs_platform_action.bundle import decompression
from docs_platform_action.bundle import tree as trees
from docs_platform_action.bundle.archive import START_BYTES, ZIP_MAGICS, Entry
from docs_platform_action.bundle.tar import TarSource, tar_entries
from docs_platform_action.bundle.zip import zip_entries
from docs_platform_action.clock import Cancellation
from docs_platform_action.models import Manifest
from docs_platform_action.site.digests import Digests
from tests.folders import Tree, read_tree

LIMITS: Final = {
    (archives, "MAX_ENTRIES"): 400,
    (decompression, "MAX_STREAM_BYTES"): 4 << 20,
    (trees, "MAX_UNPACKED_BYTES"): 1 << 20,
}
"""Lower limits than the real ones, which would take gigabytes."""

ESCAPED: Final = Path("/tmp/fuzz-escaped")  # noqa: S108  # nothing is put there
"""Where hostile absolute names lead to."""


def unpacked(
    archive: bytes,
    look: Callable[[Path, Manifest], None] = lambda _folder, _manifest: None,
) -> Tree:
    """Unpack an archive within low limits, assert that all promises hold, and return the tree.

    `look` gets the folder and its manifest. Raises `InvalidBundle` alone.
    """
    with tempfile.TemporaryDirectory() as temporary, contextlib.ExitStack() as stack:
        for (module, limit), value in LIMITS.items():
            stack.enter_context(patch.object(module, limit, value))
        folder = Path(temporary).resolve() / "site"
        folder.mkdir()
        outside = folder.parent / "outside"
        outside.write_bytes(b"precious")
        descriptor = os.open(folder, os.O_RDONLY)
        stack.callback(os.close, descriptor)
        digests = Digests({})
        tree = trees.Tree(folder, descriptor, Cancellation(), None, digests)
        try:
            for entry in entries_of(archive):
                tree.add(entry)
            tree.finish()
        finally:
            assert not ESCAPED.exists()
            assert {path.name for path in folder.parent.iterdir()} == {"site", "outside"}
            assert outside.read_bytes() == b"precious"
        found = read_tree(folder)
        _assert_links_inside_and_usual_modes(folder, found)
        _assert_counts(tree, found)
        _assert_listed(digests.manifest, folder, found)
        look(folder, digests.manifest)
        return found


def _assert_links_inside_and_usual_modes(folder: Path, found: Tree) -> None:
    for path, node in found.items():
        mode = stat.filemode((folder / path).lstat().st_mode)
        if isinstance(node, str):
            assert Path(os.path.realpath(folder / path, strict=True)).is_relative_to(folder)
        elif node is None:
            assert mode == "drwxr-xr-x"
        else:
            assert mode == "-rw-r--r--"


def _assert_counts(tree: trees.Tree, found: Tree) -> None:
    files = [path for path, node in found.items() if isinstance(node, bytes)]
    pages = [path for path in files if path.lower().endswith(".html")]
    assert tree.files == len(files) > 0
    assert tree.html_files == len(pages)


def _assert_listed(manifest: Manifest, folder: Path, found: Tree) -> None:
    """Assert that files have their digests, and that links have what they lead to."""
    expected = {}
    folder_links = {}
    for name in found:
        path = folder / name
        if path.is_file():
            expected[os.fsencode(name)] = hashlib.sha256(path.read_bytes()).digest()
        elif path.is_symlink():
            target = Path(os.path.realpath(path)).relative_to(folder)
            folder_links[os.fsencode(name)] = os.fsencode(target)
    assert {path: known.content for path, known in manifest.files.items()} == expected
    assert manifest.folder_links == folder_links


def entries_of(archive: bytes) -> Iterator[Entry]:
    if archive.startswith(ZIP_MAGICS):
        return zip_entries(io.BytesIO(archive))
    stream = cast("io.RawIOBase", io.BytesIO(archive))
    chunks = decompression.decompressed(stream, archive[:START_BYTES])
    return tar_entries(TarSource(chunks))
