"""The check that a bundle, and the site in it, fit on the runner's disks."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..archive.limits import space_at
from ..errors import Advice, DownloadFailed
from ..text import format_bytes

DISK_FULL: Final = Advice(
    cause="The runner's disk is full or too small.",
    remedy="Free space in an earlier step, or use a runner with a larger disk.",
)


class DiskTooSmall(DownloadFailed):
    """The bundle does not fit on the disk of `folder`."""

    default_cause = DISK_FULL.cause
    default_remedy = DISK_FULL.remedy

    def __init__(self, folder: Path, fact: str) -> None:
        super().__init__("the bundle does not fit on the runner's disk", details=(fact,))
        self.folder = folder


@dataclass(frozen=True, kw_only=True)
class DiskSpace:
    """The disks that a bundle needs: the archive's and, if it is unpacked, the site's. `site_folder` may not exist yet."""

    archive_folder: Path
    site_folder: Path | None

    def check(self, size: int) -> None:
        """Raise `DiskTooSmall` unless an archive of `size` bytes fits, and a site of at least as many bytes.

        Unpacking keeps a part of the site's disk free.
        """
        folders, site_folder = [self.archive_folder], None
        if self.site_folder is not None:
            site_folder = existing_folder(self.site_folder)
            folders.append(site_folder)
        for device in dict.fromkeys(folder.stat().st_dev for folder in folders):
            on_device = [folder for folder in folders if folder.stat().st_dev == device]
            space = space_at(on_device[0])
            needed = size * len(on_device)
            reserved = space.reserved_bytes if site_folder in on_device else 0
            if needed > space.free_bytes - reserved:
                parts = " (archive and unpacked site)" if len(on_device) > 1 else ""
                kept = f", of which {format_bytes(reserved)} must stay free" if reserved else ""
                fact = f"It needs at least {format_bytes(needed)}{parts}; {format_bytes(space.free_bytes)} are free{kept}."
                raise DiskTooSmall(on_device[0], fact)


def existing_folder(folder: Path) -> Path:
    """Return the folder, or its nearest parent that exists."""
    while not folder.exists():
        folder = folder.parent
    return folder
