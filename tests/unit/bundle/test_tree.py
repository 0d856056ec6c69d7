"""Files, folders and links are written, all of one kind and inside the folder, and a part of the disk stays free."""

import contextlib
import os
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Final

import pytest

from docs_platform_action.clock import Cancellation
from docs_platform_action.errors import Cancelled, InvalidBundle
from docs_platform_action.ownership import Owner
from tests.archives import KINDS, SMALL_SITE, Site, Zipped, entry, tar, tar_of, zip_of
from tests.corpus import trees
from tests.corpus.trees import Source
from tests.unit.bundle.places import INDEX, SMALL_TREE, Place

GIB: Final = 1024**3
LONG_NAMES: Final = {"ü" * 127: b"1", "a .c — ☃.html": b"2", "/".join(["x" * 204] * 5): b"3", "con/aux. ": b"4", "~": b"5"}


def link(name: bytes, target: bytes) -> bytes:
    return entry(name, type_=b"2", target=target)


def copy(name: bytes, target: bytes) -> bytes:
    return entry(name, type_=b"1", target=target)


OUT: Final[Mapping[str, tuple[bytes, Source]]] = {
    "the last of files with one name": (
        tar_of(entry(b"./a//b", b"1"), entry(b"a/b", b"2"), entry(b"index.html", b"3")),
        {"a/b": b"2", "index.html": b"3"},
    ),
    "the last of files with one name in zip": (zip_of(Zipped(content=b"1"), Zipped()), INDEX),
    "a file in place of a link": (tar_of(link(b"a", b"index.html"), entry(b"a", b"1")), {"a": b"1", **INDEX}),
    "a link in place of a file": (tar_of(entry(b"a"), link(b"a", b"index.html")), {"a": "index.html", **INDEX}),
    "the last of links with one name": (tar_of(link(b"a", b"b"), link(b"a", b"index.html")), {"a": "index.html", **INDEX}),
    "a folder again": (
        tar_of(entry(b"a/b"), *[entry(b"a/", type_=b"5")] * 2, entry(b"a/d")),
        {"a/b": b"", "a/d": b"", **INDEX},
    ),
    "names that differ in case": (
        tar_of(entry(b"INDEX.html"), entry(b"docs/a"), entry(b"Docs/a")),
        {"Docs/a": b"", "INDEX.html": b"", "docs/a": b"", **INDEX},
    ),
    "no files of macOS": (
        tar_of(entry(b"__MACOSX/._index.html"), entry(b"._index.html"), entry(b"a/._b"), entry(b"a/__MACOSX"), entry(b"._c/d")),
        {"._c/d": b"", "a/__MACOSX": b"", **INDEX},
    ),
    "a large file that macOS adds, before another one": (
        tar_of(entry(b"._a", bytes(2 * 1024**2)), entry(b"b")),
        {"b": b"", **INDEX},
    ),
    "links that come before what they lead to": (
        tar_of(link(b"link", b"later/file"), entry(b"later/file")),
        {"later/file": b"", "link": "later/file", **INDEX},
    ),
    "links to links to folders and into each other's targets": (
        tar_of(
            *(entry(b"v1/a"), entry(b"v2/a"), link(b"v1/b", b"../b"), link(b"v2/b", b"../b"), entry(b"b/c")),
            *(link(b"latest", b"v2"), link(b"stable", b"./latest"), link(b"old", b"v2/../v1/a")),
        ),
        {
            **dict.fromkeys(["v1/a", "v2/a", "b/c"], b""),
            **dict.fromkeys(["v1/b", "v2/b"], "../b"),
            "latest": "v2",
            "stable": "./latest",
            "old": "v2/../v1/a",
            **INDEX,
        },
    ),
    "copies of what hard links lead to, which may be links": (
        tar_of(
            *(entry(b"v1/a", b"1"), link(b"v1/b", b"a"), copy(b"v2/a", b"./v1/a"), copy(b"v2/b", b"v1/b")),
            *(copy(b"c", b"v2/a"), entry(b"v1/a", b"2")),
        ),
        {"c": b"1", "v1/a": b"2", "v1/b": "a", "v2/a": b"1", "v2/b": "a", **INDEX},
    ),
    "names as long as a key of S3, with any letters": (tar(Site(files=LONG_NAMES)), LONG_NAMES),
}


class TestWhatComesOut:
    @pytest.mark.parametrize(("archive", "tree"), OUT.values(), ids=OUT)
    def test_is(self, place: Place, archive: bytes, tree: Source) -> None:
        unpacked = place.unpack(archive)

        assert place.tree() == trees.unpacked(tree)
        assert unpacked.files == sum(isinstance(content, bytes) for content in tree.values())

    @pytest.mark.parametrize("umask", [0o000, 0o077])
    def test_has_the_same_modes_whatever_the_archive_and_the_umask_say(self, place: Place, umask: int) -> None:
        before = os.umask(umask)
        try:
            place.unpack(tar_of(entry(b"a/b", mode=0o6600), entry(b"c/", type_=b"5", mode=0o1700), copy(b"d", b"a/b")))
        finally:
            os.umask(before)

        modes = {path.is_dir(): stat.S_IMODE(path.stat().st_mode) for path in place.folder.rglob("*")}
        assert modes == {True: 0o755, False: 0o644}

    def test_has_the_time_of_unpacking(self, place: Place) -> None:
        began = time.time() - 1

        place.unpack(tar(SMALL_SITE))

        assert all(path.stat().st_mtime >= began for path in place.folder.rglob("*"))

    def test_is_given_to_the_owner(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        owned: list[object] = []
        monkeypatch.setattr(os, "chown", lambda path, *_, **__: owned.append(path))

        place.unpack(tar(SMALL_SITE), owner=Owner(1, 1))

        assert sorted(map(str, owned)) == sorted(str(path.encode()) for path in SMALL_TREE)

    def test_counts_copies_of_pages_as_pages_but_not_links(self, place: Place) -> None:
        links = copy(b"copy.html", b"a.HTML"), link(b"latest.html", b"a.HTML"), link(b"gone.html", b"a.HTML")

        unpacked = place.unpack(tar_of(entry(b"gone.html"), entry(b"a.HTML"), entry(b"a.html.txt"), entry(b"html"), *links))

        assert unpacked.html_files == 3  # with `index.html`

    @pytest.mark.parametrize(
        ("files", "folder"),
        [
            (["docs/index.html", "docs/a/b.html", "robots.txt"], "docs"),
            (["docs/index.html", "index.html"], None),
            (["docs/index.html", "api/index.html"], None),
            (["docs/a.html"], None),
            (["docs/index.html/a"], None),
            (["a.html"], None),
        ],
    )
    def test_may_be_a_site_in_its_only_folder(self, place: Place, files: list[str], folder: str | None) -> None:
        unpacked = place.unpack(tar(Site(files=dict.fromkeys(files, b""))))

        assert unpacked.only_folder() == folder


class CountedCancellation(Cancellation):
    """Counts the checks, and is cancelled at the check with the number `last`."""

    def __init__(self, last: int = 0) -> None:
        super().__init__()
        self.checks = 0
        self._last = last

    def check(self) -> None:
        self.checks += 1
        if self.checks == self._last:
            self.cancel()
        super().check()


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_a_cancel_ends_the_work_wherever_it_is(place: Place, kind: str) -> None:
    archive = KINDS[kind](Site(files={"small": b"x", "large": bytes(200_000)}, links={"link": "small"}))
    counted = CountedCancellation()
    place.unpack(archive, cancellation=counted)

    assert counted.checks >= 6  # entries, chunks, and the link
    for number in range(1, counted.checks + 1):
        place.empty()
        with pytest.raises(Cancelled):
            place.unpack(archive, cancellation=CountedCancellation(number))


@dataclass
class Disk:
    """A disk with this much free at first, which only the site fills."""

    place: Place
    size: int
    free: int
    reads: int = 0

    @property
    def used(self) -> int:
        found = [path.lstat() for path in self.place.folder.rglob("*")]
        return sum(4096 + status.st_size * stat.S_ISREG(status.st_mode) for status in found)

    def read(self, _: object) -> SimpleNamespace:
        self.reads += 1
        return SimpleNamespace(f_frsize=1, f_blocks=self.size, f_bavail=max(self.free - self.used, 0))


@pytest.fixture
def disk(place: Place, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Return a disk of 10 MB, half of it full."""
    disk = Disk(place, size=10_000_000, free=5_000_000)
    monkeypatch.setattr(os, "statvfs", disk.read)
    return disk


class TestTheDisk:
    @pytest.mark.parametrize("kind", ["tar.gz", "zip"])
    @pytest.mark.parametrize("count", [12, 20])
    def test_keeps_a_tenth_free(self, place: Place, disk: Disk, kind: str, count: int) -> None:
        archive = KINDS[kind](Site(files={f"{number}": bytes(300_000) for number in range(count)}))

        if count == 12:
            place.unpack(archive)
        else:
            place.refusal(archive)

        assert 3_600_000 < disk.used <= 4_000_000 + disk.size // 1000

    @pytest.mark.parametrize("type_", [b"0", b"5"], ids=["files", "folders"])
    def test_holds_a_block_for_each_entry_however_little_is_in_it(self, place: Place, disk: Disk, type_: bytes) -> None:
        disk.free = 1_200_000

        place.refusal(tar_of(*[entry(b"%d" % number, type_=type_) for number in range(100)]))

        assert disk.used <= 200_000 + disk.size // 1000

    def test_is_not_filled_by_many_archives_that_look_at_it_before_any_writes(self, place: Place, disk: Disk) -> None:
        trees = [place.new_tree() for _ in range(100)]
        disk.free = 1_004_096
        for tree in trees:
            tree.take_space(4096)

        disk.free, taken = 1_000_000, 100 * 4096
        for tree in trees:
            with contextlib.suppress(InvalidBundle):
                while True:
                    tree.take_space(4096)
                    taken += 4096

        assert taken <= 1_004_096

    def test_keeps_no_more_than_a_gibibyte_free(self, place: Place, disk: Disk) -> None:
        disk.size, disk.free = 100 * GIB, 3 * GIB

        place.new_tree().take_space(2 * GIB)
        with pytest.raises(InvalidBundle):
            place.new_tree().take_space(2 * GIB + 1)

    def test_is_looked_at_seldom_while_there_is_plenty(self, place: Place, disk: Disk) -> None:
        disk.size, disk.free = 100 * GIB, 50 * GIB

        place.unpack(tar(Site(files={f"{number}": b"page" for number in range(200)})))

        assert disk.reads == 1

    def test_is_not_limited_if_it_reports_no_sizes(self, place: Place, disk: Disk) -> None:
        disk.size = disk.free = 0

        place.unpack(tar(SMALL_SITE))

        assert place.tree() == SMALL_TREE
