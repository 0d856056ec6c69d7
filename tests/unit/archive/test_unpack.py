"""An archive becomes a tree of plain files in one folder, or is refused with the reason."""

import bz2
import gzip
import os
import sys
import threading
import tracemalloc
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from docs_platform_action.archive.reading import CHUNK_BYTES
from docs_platform_action.archive.unpack import Unpacked, unpack
from docs_platform_action.clock import Cancellation
from docs_platform_action.errors import Cancelled
from docs_platform_action.ownership import Owner
from tests.archive_limits import Limits
from tests.archives import EMPTY_END, FILE, HOSTILE, KINDS, SMALL_SITE, Site, Zipped, entry, header, open_archive, tar_of, zip_of
from tests.unit.archive.places import SMALL_TREE, Place


class TestWhatComesOut:
    @pytest.mark.parametrize("pack", KINDS.values(), ids=KINDS)
    def test_is_what_went_in_whatever_the_kind(self, place: Place, pack: Callable[[Site], bytes]) -> None:
        unpacked = place.unpack(pack(SMALL_SITE))

        assert place.tree() == SMALL_TREE
        assert unpacked == Unpacked(files=3, size=613, html_files=2)

    def test_is_reported_after_each_entry(self, place: Place) -> None:
        place.unpack(tar_of(entry(b"a/", type_=b"5"), entry(b"a/b", b"12345")))

        assert place.progress == [(1, 13), (1, 13), (2, 18)]

    def test_may_hold_more_than_a_chunk(self, place: Place) -> None:
        content = os.urandom(CHUNK_BYTES) * 3 + b"!"

        for kind, pack in KINDS.items():
            place.unpack(pack(Site(files={kind: content})))

        assert set(place.tree().values()) == {content}

    @pytest.mark.parametrize("kind", ["tar", "tar-gnu", "zip"])
    def test_may_have_names_as_long_as_a_key_with_any_letters(self, place: Place, kind: str) -> None:
        files = {"ü" * 127: b"1", "a b/ .c/日本語 — ☃.html": b"2", "/".join(["x" * 204] * 5): b"3", "con/aux. ": b"4", "~": b"5"}

        place.unpack(KINDS[kind](Site(files=files)))

        assert {path: content for path, content in place.tree().items() if content} == files


class CountedCancellation(Cancellation):
    """Counts the checks, and is cancelled at the check with the number `last`."""

    def __init__(self, last: int = sys.maxsize) -> None:
        super().__init__()
        self.checks = 0
        self._last = last
        self._lock = threading.Lock()

    def check(self) -> None:
        with self._lock:
            self.checks += 1
            if self.checks == self._last:
                self.cancel()
        super().check()


class TestCancelling:
    @pytest.mark.parametrize("pack", KINDS.values(), ids=KINDS)
    def test_ends_the_work_wherever_it_is(self, tmp_path: Path, pack: Callable[[Site], bytes]) -> None:
        archive = pack(Site(files={"small": b"x", "large": os.urandom(CHUNK_BYTES + 1)}, links={"link": "small"}))
        counted = CountedCancellation()
        Place(tmp_path / "whole").unpack(archive, cancellation=counted)

        for number in range(1, counted.checks + 1):
            place = Place(tmp_path / str(number))
            with pytest.raises(Cancelled):
                place.unpack(archive, cancellation=CountedCancellation(number))
            place.clear()

    def test_is_checked_within_a_stream_that_holds_nothing(self, place: Place) -> None:
        archive = gzip.compress(FILE + EMPTY_END + bytes(20 * CHUNK_BYTES))
        cancellation = CountedCancellation()

        place.unpack(archive, cancellation=cancellation)

        assert cancellation.checks > 20

    def test_is_checked_by_each_thread(self, place: Place) -> None:
        """The reader and the writer of entries: each may work on one for long."""
        threads: Counter[str] = Counter()

        class Noting(Cancellation):
            def check(self) -> None:
                threads[threading.current_thread().name] += 1

        place.unpack(KINDS["tar.gz"](Site(files={"a": os.urandom(10 * CHUNK_BYTES)})), cancellation=Noting())

        assert threads["reader"] >= 10
        assert threads[threading.current_thread().name] >= 10


class TestRefusals:
    @pytest.mark.parametrize("archive", [archive for archive, _ in HOSTILE.values()], ids=HOSTILE)
    def test_say_what_is_wrong_and_leave_what_is_outside_alone(self, place: Place, archive: bytes) -> None:
        refusal = place.refusal(archive)

        assert refusal.cause
        assert refusal.remedy
        assert all(len(fact) < 600 for fact in refusal.details)

    @pytest.mark.parametrize("pack", KINDS.values(), ids=KINDS)
    def test_meet_every_archive_that_is_cut_anywhere(self, tmp_path: Path, pack: Callable[[Site], bytes]) -> None:
        archive = pack(SMALL_SITE)
        end = len(archive.rstrip(b"\0")) if archive.endswith(bytes(1024)) else len(archive)

        for length in (*range(0, end, 37), end - 1):
            place = Place(tmp_path / str(length))
            place.refusal(archive[:length])
            place.clear()


def gzip_of_zeros(before: bytes, count_of_mebibytes: int) -> bytes:
    """Return gzip data of these bytes and of zeros, made in no time. The checksum is missing."""
    packer = zlib.compressobj(wbits=31)
    start = packer.compress(before) + packer.flush(zlib.Z_FULL_FLUSH)
    one = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return start + one * count_of_mebibytes


class TestMemory:
    @pytest.mark.parametrize(
        "archive",
        [
            gzip_of_zeros(header(b"pax", type_=b"x", size=1 << 30), 1024),
            gzip_of_zeros(header(b"././@LongLink", type_=b"L", size=1 << 30), 1024),
            gzip_of_zeros(header(b"file", size=1 << 30), 1024),
            zip_of(Zipped(content=bytes(1 << 24), method=12, size=10)),
            zip_of(Zipped(content=bytes(1 << 24), mode=0o120777, size=10)),
            zip_of(Zipped(), count=(1 << 63) + 1, zip64=True),
            bz2.compress(header(b"pax", type_=b"x", size=1 << 24) + bytes(1 << 24)),
        ],
        ids=["pax", "long name", "file", "zip's bzip2", "zip's link", "zip's directory", "bzip2"],
    )
    def test_is_bounded_whatever_an_archive_announces_or_holds(self, place: Place, archive: bytes) -> None:
        limits = Limits(unpacked_bytes=1 << 24, entries=1000)
        tracemalloc.start()
        try:
            place.refusal(archive, limits=limits)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

        assert peak < 6 * 1024**2


class TestCost:
    """System calls, which are most of the cost of a small file."""

    CALLS = ("open", "chmod", "chown", "write", "close", "mkdir", "stat", "lstat", "pread", "read")
    FILES = 60

    @pytest.mark.parametrize("kind", ["tar", "tar.gz", "zip"])
    def test_is_one_call_of_each_kind_a_file_and_a_folder(self, place: Place, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        archive = place.root.parent / "archive"
        archive.write_bytes(KINDS[kind](Site(files={f"a/b{number % 2}/{number}": b"x" * 100 for number in range(self.FILES)})))
        calls: Counter[str] = Counter()
        for name in self.CALLS:
            monkeypatch.setattr(os, name, self._counted(name, getattr(os, name), calls))

        with open_archive(archive, Cancellation()) as file:
            unpack(file, place.folder, on_progress=lambda *_: None, owner=Owner(os.geteuid(), os.getegid()))

        folders, itself = 3, 1
        assert calls == {
            "open": self.FILES + itself,
            "close": self.FILES + itself,
            "write": self.FILES,
            "mkdir": folders,
            "chmod": self.FILES + folders,
            "chown": self.FILES + folders,
            "pread": calls["pread"],
        }
        assert calls["pread"] <= (4 if kind != "zip" else 2 * self.FILES + 4)

    @staticmethod
    def _counted(name: str, call: Callable[..., object], calls: Counter[str]) -> Callable[..., object]:
        def counting(*args: object, **options: object) -> object:
            calls[name] += 1
            return call(*args, **options)

        return counting
