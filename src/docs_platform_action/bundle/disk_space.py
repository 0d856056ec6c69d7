"""The check that a bundle, and the site in it, fit on the runner's disks."""

from dataclasses import dataclass
from pathlib import Path

from ..archive.limits import Disk
from ..errors import DownloadFailed
from ..text import format_bytes


class DiskTooSmall(DownloadFailed):
    """The bundle does not fit on the disk of `folder`."""

    default_cause = "The runner's disk is too small or too full."
    default_remedy = "Free space in an earlier step, or use a runner with a larger disk."

    def __init__(self, folder: Path, fact: str) -> None:
        super().__init__("the bundle does not fit on the runner's disk", details=(fact,))
        self.folder = folder


@dataclass(frozen=True, kw_only=True)
class DiskSpace:
    """The disks that a bundle needs: the archive's, and the site's if it is unpacked. `site_folder` may not exist yet."""

    archive_folder: Path
    site_folder: Path | None

    def check(self, size: int) -> None:
        """Raise `DiskTooSmall` unless there is space for an archive of `size` bytes, and for a site of at least as many.

        Unpacking leaves a part of its disk free.
        """
        site_folder = existing_folder(self.site_folder) if self.site_folder is not None else None
        folders = [folder for folder in (self.archive_folder, site_folder) if folder is not None]
        for device in dict.fromkeys(folder.stat().st_dev for folder in folders):
            on_device = [folder for folder in folders if folder.stat().st_dev == device]
            space = Disk(on_device[0]).space()
            reserved = space.reserved_bytes if site_folder in on_device else 0
            if size * len(on_device) > space.free_bytes - reserved:
                unpacked = ", and at least as much again unpacked" if len(on_device) > 1 else ""
                left = f", and the action leaves {format_bytes(reserved)} free" if reserved else ""
                fact = f"It has {format_bytes(size)}{unpacked}; {format_bytes(space.free_bytes)} are free{left}."
                raise DiskTooSmall(on_device[0], fact)


def existing_folder(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    while not folder.exists():
        folder = folder.parent
    return folder
