"""The check that a bundle, and the site in it, fit on the runner's disks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ..archive.limits import Disk
from ..errors import Advice, DownloadFailed
from ..text import format_bytes

DISK_FULL: Final = Advice(
    cause="The runner's disk is full or too small.",
    remedy="Free space in an earlier step, or use a runner with a larger disk.",
)


class DiskTooSmall(DownloadFailed):
    """The bundle does not fit on the disk of `folder`."""

    def __init__(self, folder: Path, detail: str) -> None:
        summary = "the bundle does not fit on the runner's disk"
        super().__init__(summary, details=(detail,), **DISK_FULL)
        self.folder = folder


def check_disk_space(size: int, folders: Sequence[Path]) -> None:
    """Raise `DiskTooSmall` unless an archive of `size` bytes fits in the first folder, and as large a site in a second."""
    existing = [existing_folder(folder) for folder in folders]
    for folder in existing:
        on_same_disk = [other for other in existing if other.stat().st_dev == folder.stat().st_dev]
        needed, space = size * len(on_same_disk), Disk(folder).space()
        reserved = 0 if on_same_disk == existing[:1] else space.reserved_bytes  # unpacking keeps it free
        if needed > space.free_bytes - reserved:
            parts = " (archive and unpacked site)" if len(on_same_disk) > 1 else ""
            kept = f", of which {format_bytes(reserved)} must stay free" if reserved else ""
            detail = f"It needs at least {format_bytes(needed)}{parts}; {format_bytes(space.free_bytes)} are free{kept}."
            raise DiskTooSmall(folder, detail)


def existing_folder(folder: Path) -> Path:
    """Return the folder, or its nearest parent that exists."""
    while not folder.exists():
        folder = folder.parent
    return folder
