"""Archives of real packers, each with the tree that it unpacks to.

README.md says how they were made.
"""

import hashlib
import json
from pathlib import Path
from typing import Final

from tests.folders import Tree

FOLDER: Final = Path(__file__).parent
_MANIFEST: Final = json.loads((FOLDER / "manifest.json").read_text("utf-8"))

ACCEPTED: Final = {
    name: entry["tree"] for name, entry in _MANIFEST["archives"].items() if "tree" in entry
}
"""The name of each archive's tree, by the name of the archive."""

REFUSED: Final = {
    name: entry["refused"] for name, entry in _MANIFEST["archives"].items() if "refused" in entry
}
"""Why an archive is refused, in a word."""


def read(name: str) -> bytes:
    """Return an archive."""
    return (FOLDER / "archives" / name).read_bytes()


def expected(name: str) -> dict[str, str | None]:
    """Return the tree that an archive unpacks to.

    It has the digest of a file, `-> target` for a link, and `None` for a folder.
    """
    return dict(_MANIFEST["trees"][ACCEPTED[name]])


def digests(tree: Tree) -> dict[str, str | None]:
    """Return an unpacked tree in that form."""
    return {path: _digest(node) for path, node in tree.items()}


def _digest(node: bytes | str | None) -> str | None:
    if node is None:
        return None
    if isinstance(node, str):
        return f"-> {node}"
    return hashlib.sha256(node).hexdigest()
