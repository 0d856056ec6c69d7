"""Unpacks an archive within low limits, and checks the promises that hold for every archive."""

import contextlib
import hashlib
import io
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, cast
from unittest.mock import patch

from docs_platform_action.bundle import archive as archives
from docs_platform_action.bundle import decompression
from docs_platform_action.bundle import tree as trees
from docs_platform_action.bundle.archive import START_BYTES, ZIP_MAGICS, Entry
from docs_platform_action.bundle.plan import Digests
from docs_platform_action.bundle.tar import TarSource, tar_entries
from docs_platform_action.bundle.zip import zip_entries
from docs_platform_action.clock import Cancellation
from docs_platform_action.manifest import DIGEST_BYTES
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
    look: Callable[[Path, Mapping[bytes, bytes]], None] = lambda _folder, _digests: None,
) -> Tree:
    """Unpack an archive within low limits, assert that all promises hold, and return the tree. Raises `InvalidBundle` alone.

    `look` gets the folder and the digests of its files.
    """
    with tempfile.TemporaryDirectory() as temporary, contextlib.ExitStack() as stack:
        for (module, limit), value in LIMITS.items():
            stack.enter_context(patch.object(module, limit, value))
        folder = Path(temporary).resolve() / "site"
        folder.mkdir()
        (folder.parent / "outside").write_bytes(b"precious")
        descriptor = os.open(folder, os.O_RDONLY)
        stack.callback(os.close, descriptor)
        try:
            digests = Digests({})
            tree = trees.Tree(folder, descriptor, Cancellation(), None, digests)
            for entry in entries_of(archive):
                tree.add(entry)
            tree.finish()
        finally:
            assert not ESCAPED.exists()
            assert {path.name for path in folder.parent.iterdir()} == {"site", "outside"}
            assert (folder.parent / "outside").read_bytes() == b"precious"
        found = read_tree(folder)
        for path, node in found.items():
            if isinstance(node, str):
                assert Path(os.path.realpath(folder / path, strict=True)).is_relative_to(folder)
            else:
                assert stat.filemode((folder / path).lstat().st_mode) == (
                    "drwxr-xr-x" if node is None else "-rw-r--r--"
                )
        files = [path for path, node in found.items() if isinstance(node, bytes)]
        assert tree.files == len(files) > 0
        assert tree.html_files == sum(path.lower().endswith(".html") for path in files)
        leaves = [
            folder / path
            for path, node in found.items()
            if node is not None and not (folder / path).is_dir()
        ]
        expected = {
            os.fsencode(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).digest()
            for path in leaves
        }
        assert {path: known[:DIGEST_BYTES] for path, known in digests.files.items()} == expected
        look(folder, digests.files)
        return found


def entries_of(archive: bytes) -> Iterator[Entry]:
    if archive.startswith(ZIP_MAGICS):
        return zip_entries(io.BytesIO(archive))
    stream = cast("io.RawIOBase", io.BytesIO(archive))
    chunks = decompression.decompressed(stream, archive[:START_BYTES])
    return tar_entries(TarSource(chunks))
