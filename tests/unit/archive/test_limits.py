"""An archive unpacks to no more than the limits and the disk allow."""

import contextlib
import gzip
import os
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from docs_platform_action.archive.limits import Disk, Quota, Space
from docs_platform_action.errors import InvalidBundle
from tests.archive_limits import EXACT, Exact, Limits
from tests.archives import KINDS, SMALL_SITE, Site, Zipped, entry, header, pax, tar, tar_of, zip_of
from tests.unit.archive.places import INDEX, SMALL_TREE, Place


class TestBounds:
    @pytest.mark.parametrize("kind", ["tar.gz", "zip"])
    def test_on_entries_count_folders_that_names_imply(self, place: Place, kind: str) -> None:
        archive = KINDS[kind](Site(files={"a/b/c": b"1", "a/b/d": b"2"}))

        place.refusal(archive, limits=Limits(entries=3))

    @pytest.mark.parametrize("kind", KINDS)
    def test_allow_what_is_just_within(self, place: Place, kind: str) -> None:
        archive = KINDS[kind](Site(files={"a/b": b"x" * 5000}))

        assert place.unpack(archive, limits=Limits(entries=2, unpacked_bytes=5000)).size == 5000

    @pytest.mark.parametrize("kind", KINDS)
    def test_on_bytes_hold_for_all_files_together(self, place: Place, kind: str) -> None:
        archive = KINDS[kind](Site(files={"a": b"x" * 2500, "b": b"x" * 2500}))

        place.refusal(archive, limits=Limits(unpacked_bytes=4096))

    @pytest.mark.parametrize("exact", EXACT.values(), ids=EXACT)
    def test_on_anything_else_are_exact(self, place: Place, exact: Exact) -> None:
        with exact.applied():
            place.unpack(exact.archive)
        place.empty()

        with exact.applied(lowered=1):
            place.refusal(exact.archive)

    def test_hold_for_copies_too(self, place: Place) -> None:
        links = [entry(b"%d" % number, type_=b"1", target=b"a") for number in range(20)]

        place.refusal(tar_of(entry(b"a", bytes(50_000)), *links), limits=Limits(unpacked_bytes=1_000_000))

    def test_do_not_include_the_ratio_which_real_sites_push_to_thousands(self, place: Place) -> None:
        page = b"<nav>" + b"<a href='/guide'>Guide</a>" * 40_000
        links = b"".join(entry(b"%d" % number, type_=b"1", target=b"page") for number in range(256 * 2**20 // len(page)))
        archive = gzip.compress(tar_of(entry(b"page", page), links), compresslevel=1)

        unpacked = place.unpack(archive)

        assert unpacked.size > max(256 * 2**20, 1000 * len(archive))

    @pytest.mark.parametrize("layers", [1, 2])
    def test_hold_for_zeros_at_the_end(self, place: Place, layers: int) -> None:
        archive = tar_of() + bytes(17 * 2**20)
        for _ in range(layers):
            archive = gzip.compress(archive)

        place.refusal(archive, limits=Limits(unpacked_bytes=10 * 1024, entries=5))

    def test_hold_for_each_of_two_layers_of_gzip(self, place: Place) -> None:
        padded = gzip.compress(tar_of()) + bytes(17 * 2**20)

        place.refusal(gzip.compress(padded))


def entries_below(folder: str | Path) -> Iterator[os.DirEntry[str]]:
    """Return all entries of a folder, at a tenth of the cost of `rglob`: a disk is read hundreds of times."""
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry
            if entry.is_dir(follow_symlinks=False):
                yield from entries_below(entry.path)


class FakeDisk(Disk):
    """A disk with this much free at first, which only the site fills."""

    def __init__(self, place: Place, *, total: int, free: int, inodes: int = 0, free_inodes: int = 0) -> None:
        super().__init__(place.folder)
        self.place = place
        self.total, self.free = total, free
        self.inodes, self.free_inodes = inodes, free_inodes
        self.space_reads = 0
        self.before: Callable[[], None] = lambda: None

    @property
    def used(self) -> int:
        found = entries_below(self.place.folder)
        return self.unnamed + sum(4096 + entry.stat(follow_symlinks=False).st_size * entry.is_file() for entry in found)

    @property
    def unnamed(self) -> int:
        """Return the bytes of open files in the folder that have no name."""
        found = 0
        for descriptor in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):  # closed since, such as the listing's own
                status = descriptor.stat()
                if stat.S_ISREG(status.st_mode) and not status.st_nlink:
                    is_here = descriptor.readlink().is_relative_to(self.place.folder)
                    found += status.st_size * is_here
        return found

    @property
    def used_inodes(self) -> int:
        return sum(1 for _ in entries_below(self.place.folder))

    def space(self) -> Space:
        self.space_reads += 1
        self.before()
        return Space(
            total_bytes=self.total,
            free_bytes=self.free - self.used,
            total_inodes=self.inodes,
            free_inodes=self.free_inodes - self.used_inodes if self.inodes else sys.maxsize,
        )


class TestDisk:
    """A part of the disk stays free, whatever an archive holds."""

    @pytest.mark.parametrize("kind", KINDS)
    def test_stops_a_bomb_while_the_reserve_is_free(self, place: Place, kind: str) -> None:
        archive = KINDS[kind](Site(files={f"{number}": bytes(300_000) for number in range(20)}))
        disk = FakeDisk(place, total=10_000_000, free=4_000_000)

        place.refusal(archive, disk=disk)

        assert 2_500_000 < disk.used <= 3_000_000

    @pytest.mark.parametrize("kind", KINDS)
    def test_takes_what_fits_beside_the_reserve(self, place: Place, kind: str) -> None:
        archive = KINDS[kind](Site(files={f"{number}": bytes(300_000) for number in range(20)}))
        disk = FakeDisk(place, total=10_000_000, free=7_500_000)

        assert place.unpack(archive, disk=disk).size == 6_000_000

    def test_stops_before_a_file_that_only_announces_to_be_too_large(self, place: Place) -> None:
        disk = FakeDisk(place, total=100 * 2**30, free=3 * 2**30)

        place.refusal(tar_of(pax(size=b"%d" % (5 * 2**30)), header(b"a")), disk=disk)

        assert place.tree() == INDEX

    @pytest.mark.parametrize("type_", [b"0", b"5", b"2"], ids=["files", "folders", "links"])
    def test_counts_a_block_for_each_entry_however_little_is_in_it(self, place: Place, type_: bytes) -> None:
        entries = [entry(b"%d" % number, type_=type_, target=b"index.html" * (type_ == b"2")) for number in range(100)]
        disk = FakeDisk(place, total=2_000_000, free=400_000)

        place.refusal(tar_of(*entries), disk=disk)

        assert disk.used <= 200_000

    def test_keeps_inodes_free_too(self, place: Place) -> None:
        entries = [entry(b"a/%d" % number) for number in range(100)]
        disk = FakeDisk(place, total=10**12, free=10**12, inodes=65_536, free_inodes=6_600)

        place.refusal(tar_of(*entries), disk=disk)

        assert disk.used_inodes == 6_600 - 6_553

    def test_is_read_again_because_others_fill_it_too(self, place: Place) -> None:
        disk = FakeDisk(place, total=10**12, free=10**12)
        filling = iter([10**12, 10**12, 0])

        def fill() -> None:
            disk.free = next(filling)

        disk.before = fill

        place.refusal(KINDS["tar.gz"](Site(files={"a": bytes(40 * 2**20), "b": b""})), disk=disk)

        assert disk.used <= 33 * 2**20

    def test_keeps_its_reserve_when_many_archives_are_unpacked_side_by_side(self) -> None:
        free = 150 * 2**20
        written = 0

        class SharedDisk(Disk):
            def space(self) -> Space:
                return Space(total_bytes=200 * 2**20, free_bytes=free - written, total_inodes=1000, free_inodes=1000)

        disk = SharedDisk(-1)
        quotas = [Quota(disk) for _ in range(10)]
        while quotas:
            for quota in [*quotas]:
                try:
                    quota.add_bytes(64 * 1024)
                except InvalidBundle:
                    quotas.remove(quota)
                else:
                    written += 64 * 1024

        assert free - written >= 0.9 * disk.space().reserved_bytes

    def test_is_read_seldom_while_there_is_plenty(self, place: Place) -> None:
        disk = FakeDisk(place, total=10**12, free=10**12)

        place.unpack(KINDS["tar.gz"](Site(files={f"{number}": b"page" for number in range(1000)})), disk=disk)

        assert disk.space_reads == 1

    def test_limits_a_zip_archive_from_gzip_too(self, place: Place) -> None:
        archive = gzip.compress(zip_of(Zipped(content=bytes(2_000_000), method=0)))
        seen: list[int] = []
        disk = FakeDisk(place, total=10_000_000, free=2_900_000)
        disk.before = lambda: seen.append(disk.unnamed)

        place.refusal(archive, disk=disk)

        assert 1_800_000 < max(seen) <= 1_900_000
        assert place.tree() == {}
        assert disk.unnamed == 0

    def test_keeps_a_tenth_of_itself_but_no_more_than_a_gibibyte(self) -> None:
        assert Space(total_bytes=5 * 2**30, free_bytes=0).reserved_bytes == 2**29
        assert Space(total_bytes=500 * 2**30, free_bytes=0).reserved_bytes == 2**30
        assert Space(total_bytes=1, free_bytes=0, total_inodes=10**7, free_inodes=10**6).reserved_inodes == 10_000

    def test_reports_its_space(self, tmp_path: Path) -> None:
        found = os.statvfs(tmp_path)

        space = Disk(tmp_path).space()

        assert space.total_bytes == found.f_blocks * found.f_frsize
        assert 0 < space.free_bytes < space.total_bytes

    def test_that_reports_no_sizes_is_not_limited(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        nothing = SimpleNamespace(f_blocks=0, f_bavail=0, f_frsize=4096, f_files=0, f_favail=0)
        monkeypatch.setattr(os, "statvfs", lambda _: nothing)

        place.unpack(tar(SMALL_SITE))

        assert place.tree() == SMALL_TREE
