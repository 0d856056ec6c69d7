"""Unpacks an archive safely: it becomes a tree of plain files in one folder, or is refused.

Only names, contents, and what is a folder or a link come from the archive. Its owners, modes, times and further attributes are
ignored.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import InvalidBundle
from ..ownership import Owner
from .formats import archive_entries
from .limits import Disk, Limits, Meter
from .prefetch import prefetch
from .reading import ArchiveFile
from .tree import Tree

_DEFAULT_LIMITS: Final = Limits()


@dataclass(frozen=True, kw_only=True)
class Unpacked:
    """What came out of an archive: how many files, links not counted, and their bytes; and how many of them are `.html` files."""

    files: int
    size: int
    html_files: int


def unpack(
    archive: ArchiveFile,
    folder: Path,
    *,
    on_progress: Callable[[int, int], None],
    owner: Owner | None = None,
    limits: Limits = _DEFAULT_LIMITS,
    disk: Disk | None = None,
) -> Unpacked:
    """Unpack an archive into an empty folder that nobody else uses.

    `on_progress` gets the files and bytes so far after every entry. Everything that is made is given to `owner`. `disk` is the
    folder's own by default. Raises `InvalidBundle` for everything that is wrong with the archive, also when it would leave too
    little of the disk free, `Cancelled`, and `OSError`. After a failure the caller removes what is in the folder.
    """
    with _opened(folder) as root:
        meter = Meter(limits, disk or Disk(root))
        tree = Tree(root, meter, archive.cancellation, owner)
        with (
            closing(archive_entries(archive, meter, scratch=folder)) as entries,
            prefetch(entries, archive.cancellation) as prefetched,
        ):
            for entry in prefetched:
                archive.cancellation.check()
                tree.add(entry)
                on_progress(tree.files, meter.unpacked_bytes)
        if not tree.files:
            # To deliver it would empty the site.
            raise InvalidBundle("the bundle holds no files", cause="The export wrote nothing, or only part of its bundle.")
        tree.link()
    return Unpacked(files=tree.files, size=meter.unpacked_bytes, html_files=tree.html_files)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
