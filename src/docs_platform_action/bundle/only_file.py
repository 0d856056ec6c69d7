"""The only file of an unpacked bundle, which may be an archive or an error in place of a site."""

import os
from pathlib import Path

from .archive import START_BYTES, kind_of


def describe_only_file(folder: Path) -> str:
    """Return what the only file below a folder looks like, in a sentence. Empty if unknown.

    Its name is whole, so that a key in it is hidden.
    """
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            if path.is_symlink():
                continue
            with path.open("rb") as file:
                kind = kind_of(file.read(START_BYTES))
            if kind is None:
                return ""
            return f"Its only file, '{path.relative_to(folder)}', looks like {kind}."
    return ""
