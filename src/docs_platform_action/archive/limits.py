"""Limits on what an archive may unpack to, enforced while it is unpacked, because an archive can declare false sizes."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import InvalidBundle
from ..text import format_bytes

MAX_ENTRIES: Final = 250_000  # with the folders that only names imply; large documentation sites have some 50,000 pages
MAX_UNPACKED_BYTES: Final = 20 * 1024**3  # runners' disks have at least 14 GiB (GitHub docs, "GitHub-hosted runners reference")

MAX_RESERVED_BYTES: Final = 1024**3  # stay free; on a small disk, a tenth of it
MAX_RESERVED_INODES: Final = 10_000  # the same; every file, folder and symbolic link takes one

ENTRY_BYTES: Final = 4096  # on the disk beside the content: the rest of a file's last block, or a folder's block
_MAX_CONCURRENT_UNPACKS: Final = 100  # the upper limit of `max-parallel`
_HEADER_BYTES: Final = 4096  # in a tar archive, on average, for an entry's headers and padding
_LAST_RECORD_BYTES: Final = 16 * 1024**2  # of padding at the end of a tar archive; GNU tar writes up to 10 KiB by default

_INSPECT: Final = "To inspect the archive, save it with `bundle-path`, without `site-path`."


@dataclass(frozen=True, kw_only=True)
class Space:
    """The size and the free space of a file system. A total of 0 means that the file system does not report it."""

    total_bytes: int
    free_bytes: int
    total_inodes: int = 0
    free_inodes: int = sys.maxsize

    @property
    def reserved_bytes(self) -> int:
        """Return the bytes that must stay free."""
        return min(self.total_bytes // 10, MAX_RESERVED_BYTES)

    @property
    def reserved_inodes(self) -> int:
        """Return the inodes that must stay free."""
        return min(self.total_inodes // 10, MAX_RESERVED_INODES)

    @property
    def usable_bytes(self) -> int:
        """Return the bytes that may be written; negative if less is free than must stay free."""
        return self.free_bytes - self.reserved_bytes


class Disk:
    """The file system of a path or an open file."""

    def __init__(self, place: Path | int) -> None:
        self.place = place

    def space(self) -> Space:
        """Return the current space. Raises `OSError`.

        Some network and FUSE file systems report no sizes, and Btrfs reports no inodes. What is not reported is not limited.
        """
        status = os.statvfs(self.place)
        return Space(
            total_bytes=status.f_blocks * status.f_frsize,
            free_bytes=status.f_bavail * status.f_frsize if status.f_blocks else sys.maxsize,
            total_inodes=status.f_files,
            free_inodes=status.f_favail if status.f_files else sys.maxsize,
        )


class Quota:
    """Counts what an archive unpacks to, before it is written. Each method raises `InvalidBundle` beyond the limits."""

    def __init__(self, disk: Disk) -> None:
        self.unpacked_bytes = 0
        self._disk = disk
        self._entries = 0
        self._budget_bytes = 0  # until the next check of the disk
        self._budget_inodes = 0

    def check_entries(self, count: int) -> None:
        """Check a number of entries that the archive declares or holds."""
        if count > MAX_ENTRIES:
            raise _too_large(f"The archive holds more than {MAX_ENTRIES:,} files and folders.")

    def check_declared_bytes(self, count: int) -> None:
        """Check a file size that the archive declares."""
        self._check_bytes(self.unpacked_bytes + count)
        self._check_space(count, next_file=f"; the next file is {format_bytes(count)}")

    def check_stream_bytes(self, count: int) -> None:
        """Check the total of bytes that a compressed stream was decompressed to, whatever they are."""
        if count > MAX_UNPACKED_BYTES + MAX_ENTRIES * _HEADER_BYTES + _LAST_RECORD_BYTES:
            self._check_bytes(count)

    def add_entry(self) -> None:
        """Count an entry, or a folder that a name implies."""
        self._entries += 1
        self.check_entries(self._entries)
        self.add_space(ENTRY_BYTES, inodes=1)

    def add_bytes(self, count: int) -> None:
        """Count bytes of a file."""
        self._check_bytes(self.unpacked_bytes + count)
        self.add_space(count)
        self.unpacked_bytes += count

    def add_space(self, count: int, *, inodes: int = 0) -> None:
        """Count bytes and inodes on the disk, whatever they are for."""
        self._check_space(count, inodes=inodes)
        self._budget_bytes -= count
        self._budget_inodes -= inodes

    def _check_bytes(self, count: int) -> None:
        if count > MAX_UNPACKED_BYTES:
            raise _too_large(f"The archive unpacks to more than {format_bytes(MAX_UNPACKED_BYTES)}.")

    def _check_space(self, count: int, *, inodes: int = 0, next_file: str = "") -> None:
        if count <= self._budget_bytes and inodes <= self._budget_inodes:
            return
        space = self._disk.space()
        usable_inodes = space.free_inodes - space.reserved_inodes
        if count > space.usable_bytes or inodes > usable_inodes:
            total, free, kept = (format_bytes(size) for size in (space.total_bytes, space.free_bytes, space.reserved_bytes))
            shortage = f"{free} of the disk's {total} are free; the action keeps {kept} free."
            if count <= space.usable_bytes:
                shortage = (
                    f"{space.free_inodes:,} of the disk's {space.total_inodes:,} inodes are free; the action keeps "
                    f"{space.reserved_inodes:,} free. Each file, folder and link takes one."
                )
            raise InvalidBundle(
                "the bundle is too large for the runner's disk",
                details=(f"Unpacking stopped after {format_bytes(self.unpacked_bytes)}{next_file}.", shortage),
                cause="The disk is too small or too full, or the archive was made to fill it.",
                remedy=f"Free space in an earlier step, or use a runner with a larger disk. {_INSPECT}",
            )
        # the budgets of all archives that may be unpacked at the same time fit into the reserve
        self._budget_bytes = min(space.usable_bytes, space.reserved_bytes // _MAX_CONCURRENT_UNPACKS or sys.maxsize)
        self._budget_inodes = min(usable_inodes, space.reserved_inodes // _MAX_CONCURRENT_UNPACKS or sys.maxsize)


def _too_large(fact: str) -> InvalidBundle:
    return InvalidBundle(
        "the bundle is too large to be opened safely",
        details=(fact,),
        cause="The archive was made to fill the runner's disk, or holds more than a documentation site.",
        remedy=f"{_INSPECT} If the site needs all of it, unpack it in a separate step.",
    )
