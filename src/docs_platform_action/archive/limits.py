"""Limits on what an archive may unpack to, enforced while it is unpacked, because an archive can announce false sizes."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import InvalidBundle
from ..text import format_bytes

MAX_ENTRIES: Final = 250_000
"""Maximum entries, with the folders that only their names imply. Large documentation sites have some 50,000 pages."""

MAX_UNPACKED_BYTES: Final = 20 * 1024**3
"""Maximum bytes of all files. A hosted runner has at least 14 GiB (source: GitHub docs, "GitHub-hosted runners reference")."""

MAX_RESERVED_BYTES: Final = 1024**3
"""Bytes of a disk that stay free; on a disk of less than 10 GiB, a tenth of it."""

MAX_RESERVED_INODES: Final = 10_000
"""Inodes of a disk that stay free, with the same rule. Every file, folder and symbolic link takes one."""

_ENTRY_BYTES: Final = 4096  # on the disk beside the content: the last block of a file is rounded up, a folder has a block
_BYTES_BETWEEN_CHECKS: Final = 16 * 1024**2  # of the disk, because others write to it too
_MAX_CONCURRENT_UNPACKS: Final = 100  # archives that are unpacked at the same time: the upper limit of `max-parallel`
_HEADER_BYTES: Final = 4096  # in a tar archive, on average, for an entry's headers and padding
_LAST_RECORD_BYTES: Final = 16 * 1024**2  # of padding at the end of a tar archive; GNU tar writes up to 10 KiB by default


@dataclass(frozen=True, kw_only=True)
class Space:
    """The size of a file system and what is free of it. A total of 0 means that the file system does not report it."""

    total_bytes: int
    free_bytes: int
    total_inodes: int = 0
    free_inodes: int = sys.maxsize

    @property
    def reserved_bytes(self) -> int:
        """The bytes that have to stay free: 10 % of the disk or 1 GiB, whichever is smaller."""
        return min(self.total_bytes // 10, MAX_RESERVED_BYTES)

    @property
    def reserved_inodes(self) -> int:
        """The inodes that have to stay free."""
        return min(self.total_inodes // 10, MAX_RESERVED_INODES)

    @property
    def usable_bytes(self) -> int:
        """The bytes that may be written; negative if less is free than has to stay free."""
        return self.free_bytes - self.reserved_bytes

    @property
    def usable_inodes(self) -> int:
        """The files, folders and links that may be created; can be negative as well."""
        return self.free_inodes - self.reserved_inodes


def space_at(place: Path | int) -> Space:
    """Return the space on the file system of a path or an open file. Raises `OSError`.

    Some network and FUSE file systems report no sizes, and Btrfs reports no inodes. What is not reported is not limited.
    """
    found = os.statvfs(place)
    return Space(
        total_bytes=found.f_blocks * found.f_frsize,
        free_bytes=found.f_bavail * found.f_frsize if found.f_blocks else sys.maxsize,
        total_inodes=found.f_files,
        free_inodes=found.f_favail if found.f_files else sys.maxsize,
    )


class Disk:
    """The file system of a path or an open file, which others write to as well."""

    def __init__(self, place: Path | int) -> None:
        self._place = place

    def space(self) -> Space:
        """Return the current space. Raises `OSError`."""
        return space_at(self._place)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits for one archive, whatever the disk."""

    entries: int = MAX_ENTRIES
    unpacked_bytes: int = MAX_UNPACKED_BYTES


class Quota:
    """Counts what an archive unpacks to on a disk. Each method raises `InvalidBundle` beyond the limits."""

    def __init__(self, limits: Limits, disk: Disk) -> None:
        self.unpacked_bytes = 0
        self._limits = limits
        self._disk = disk
        self._entries = 0
        self._budget_bytes = 0  # what may be written, and made, before the next look at the disk
        self._budget_inodes = 0
        self._stream_bytes = limits.unpacked_bytes + limits.entries * _HEADER_BYTES + _LAST_RECORD_BYTES

    def check_declared_entries(self, count: int) -> None:
        """Check a number of entries that the archive announces."""
        if count > self._limits.entries:
            raise _too_large(f"It holds more than {self._limits.entries:,} files and folders.")

    def check_declared_bytes(self, count: int) -> None:
        """Check a file size that the archive announces."""
        self._hold_bytes(self.unpacked_bytes + count)
        self._hold_space(count, next_file=f"; the next file is {format_bytes(count)}")

    def add_entry(self) -> None:
        """Count an entry, or a folder that a name implies, before it is created."""
        self._entries += 1
        self.check_declared_entries(self._entries)
        self.add_entry_space()

    def add_entry_space(self) -> None:
        """Count the disk space of an entry without its content, before it is created."""
        self._hold_space(_ENTRY_BYTES, inodes=1)
        self._budget_bytes -= _ENTRY_BYTES
        self._budget_inodes -= 1

    def add_bytes(self, count: int) -> None:
        """Count bytes of a file, before they are written."""
        self._hold_bytes(self.unpacked_bytes + count)
        self.add_scratch_bytes(count)
        self.unpacked_bytes += count

    def add_scratch_bytes(self, count: int) -> None:
        """Count bytes that are on the disk only until the archive is unpacked, before they are written."""
        self._hold_space(count)
        self._budget_bytes -= count

    def check_stream_bytes(self, count: int) -> None:
        """Check how many bytes of one compressed stream were decompressed, whatever they are."""
        if count > self._stream_bytes:
            self._hold_bytes(count)

    def _hold_bytes(self, count: int) -> None:
        if count > self._limits.unpacked_bytes:
            raise _too_large(f"It unpacks to more than {format_bytes(self._limits.unpacked_bytes)}.")

    def _hold_space(self, count: int, *, inodes: int = 0, next_file: str = "") -> None:
        if count <= self._budget_bytes and inodes <= self._budget_inodes:
            return
        space = self._disk.space()
        if count > space.usable_bytes:
            free = (
                f"{format_bytes(space.free_bytes)} of the disk's {format_bytes(space.total_bytes)} are free; the action "
                f"keeps {format_bytes(space.reserved_bytes)} free."
            )
        elif inodes > space.usable_inodes:
            free = (
                f"{space.free_inodes:,} of the disk's {space.total_inodes:,} inodes are free; the action keeps "
                f"{space.reserved_inodes:,} free. Each file, folder and link takes one."
            )
        else:
            # so little of the reserve that all the archives which are unpacked at the same time keep the rest of it
            share = space.reserved_bytes // _MAX_CONCURRENT_UNPACKS or space.usable_bytes
            self._budget_bytes = min(space.usable_bytes, share, _BYTES_BETWEEN_CHECKS)
            share = space.reserved_inodes // _MAX_CONCURRENT_UNPACKS or space.usable_inodes
            self._budget_inodes = min(space.usable_inodes, share)
            return
        raise InvalidBundle(
            "the bundle is too large for the runner's disk",
            details=(f"Unpacking stopped after {format_bytes(self.unpacked_bytes)}{next_file}.", free),
            cause="The disk is too small or too full, or the archive was made to fill it.",
            remedy=(
                "Free space in an earlier step, or use a runner with a larger disk. If the site should be smaller than "
                "this, inspect the archive: save it with `bundle-path`, without `site-path`."
            ),
        )


def _too_large(fact: str) -> InvalidBundle:
    return InvalidBundle(
        "the bundle is too large to be opened safely",
        details=(fact,),
        cause="It was made to fill the runner's disk, or it holds more than a documentation site.",
        remedy=(
            "Inspect the archive: save it with `bundle-path`, without `site-path`. If it is what the site needs, "
            "unpack it in a separate step."
        ),
    )
