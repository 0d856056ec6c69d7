"""Unpacks an archive safely: it becomes a tree of plain files in one folder, or is refused.

Only names, contents and types come from the archive; owners, modes, times and other attributes are ignored.
"""

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ..errors import InvalidBundle
from ..ownership import Owner
from .formats import archive_entries
from .limits import Disk, Quota
from .prefetch import prefetch
from .reading import ArchiveFile
from .tree import Tree


@dataclass(frozen=True, kw_only=True)
class Unpacked:
    """What was unpacked: the number of files without symbolic links, their bytes, and how many are `.html` files."""

    files: int
    size: int
    html_files: int


def unpack(
    archive: ArchiveFile,
    folder: Path,
    *,
    on_progress: Callable[[int, int], None],
    owner: Owner | None = None,
    disk: Disk | None = None,
) -> Unpacked:
    """Unpack an archive into an empty folder that nobody else uses. After a failure the caller removes what is in it.

    `on_progress` gets the files and bytes so far after every entry. `disk` is the folder's by default. Raises `Cancelled`,
    `OSError`, and `InvalidBundle` for an archive that is refused, also if it would leave too little of the disk free.
    """
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        quota = Quota(disk or Disk(root))
        tree = Tree(root, quota, archive.cancellation, owner)
        with (
            closing(archive_entries(archive, quota, scratch=folder)) as entries,
            prefetch(entries, archive.cancellation) as prefetched,
        ):
            for entry in prefetched:
                archive.cancellation.check()
                tree.add(entry)
                on_progress(tree.files, quota.unpacked_bytes)
        if not tree.files:
            # delivering it would empty the site
            raise InvalidBundle("the bundle holds no files", cause="The export wrote nothing, or only a part of its bundle.")
        tree.create_symlinks()
    finally:
        os.close(root)
    return Unpacked(files=tree.files, size=quota.unpacked_bytes, html_files=tree.html_files)
