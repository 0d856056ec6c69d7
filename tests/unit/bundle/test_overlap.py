"""A bundle is unpacked during its download, or the attempt leaves no trace."""

import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any

import pytest

from docs_platform_action.archive import limits
from docs_platform_action.archive.limits import MAX_RESERVED_BYTES, Space
from docs_platform_action.archive.reading import ArchiveFile
from docs_platform_action.archive.unpack import Unpacked, unpack
from docs_platform_action.bundle import overlap
from docs_platform_action.bundle.overlap import MIN_RECEIVED_BYTES, GrowingFile, OverlappedUnpack
from docs_platform_action.bundle.staging import staged
from docs_platform_action.clock import Cancellation
from docs_platform_action.errors import Cancelled
from docs_platform_action.events import Events
from docs_platform_action.job import Job
from tests.archives import HOSTILE, KINDS, SMALL_SITE, Site, tar
from tests.unit.fakes import RecordedEvents, context
from tests.virtual_time import VirtualClock

ARCHIVE = KINDS["tar.gz"](SMALL_SITE)
PLENTY = 10 * MAX_RESERVED_BYTES
IN_ORDER = [kind for kind in KINDS if not kind.startswith("zip")]


class Download:
    """A bundle that arrives in pieces, and its overlapped unpacking."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.archive, self.site = folder / "bundle", folder / "site"
        self.archive.touch()
        self.descriptor = os.open(self.archive, os.O_RDONLY)
        self.free = PLENTY
        self.fails: OSError | None = None
        self.received = 0
        self.staged = 0
        self.job = Job(mode="export", job_id="se_1")
        self.log = RecordedEvents()
        self.context = context(VirtualClock(), self.log)
        monkeypatch.setattr(limits.Disk, "space", lambda disk: self.space(disk.place))
        monkeypatch.setattr(overlap, "staged", self.stage)
        self.overlap = self.overlap_to(self.site)

    def overlap_to(self, site: Path) -> OverlappedUnpack:
        return OverlappedUnpack(self.descriptor, site, None, self.context)

    def space(self, place: Path) -> Space:
        assert place.exists()
        if self.fails is not None:
            raise self.fails
        return Space(total_bytes=100 * MAX_RESERVED_BYTES, free_bytes=self.free)

    def stage(self, *given: Any, **named: Any) -> Any:
        self.staged += 1
        return staged(*given, **named)

    def receive(self, piece: bytes, size: int | None) -> None:
        with self.archive.open("ab") as file:
            file.write(piece)
        self.received += len(piece)
        Events(self.log, self.overlap).download_progressed(self.job, self.received, size)

    def restart(self) -> None:
        Events(self.log, self.overlap).download_restarted(self.job, "the bundle was replaced by another")

    def receive_all(self, archive: bytes = ARCHIVE, *, pieces: int = 7) -> None:
        length = len(archive) // pieces + 1
        for at in range(0, len(archive), length):
            self.receive(archive[at : at + length], len(archive))

    def publish(self) -> int | None:
        """Publish the site, if there is one; return the number of its files."""
        found = self.overlap.result(self.job)
        if found is None:
            return None
        site, unpacked = found
        site.publish()
        return unpacked.files

    @property
    def parts(self) -> list[Path]:
        return [path for path in self.archive.parent.iterdir() if path.name.endswith(".part")]


@pytest.fixture
def download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Download]:
    monkeypatch.setattr(overlap, "MIN_RECEIVED_BYTES", 100)
    download = Download(tmp_path, monkeypatch)
    yield download
    os.close(download.descriptor)
    assert download.parts == []
    assert not download.context.cleanups
    assert {"overlap", "reader"}.isdisjoint(thread.name for thread in threading.enumerate())


class TestAnOverlap:
    @pytest.mark.parametrize("kind", IN_ORDER)
    def test_unpacks_a_bundle_that_arrives_in_pieces(self, download: Download, kind: str) -> None:
        with download.overlap:
            download.receive_all(KINDS[kind](SMALL_SITE))

            assert download.publish() == 3

        assert (download.site / "index.html").read_bytes() == SMALL_SITE.files["index.html"]
        assert download.log.seen[-1] == ("unpack_progressed", download.job, 3, 613)

    def test_unpacks_before_the_bundle_is_complete(self, download: Download, monkeypatch: pytest.MonkeyPatch) -> None:
        archive = tar(Site(files={"index.html": b"<h1>Docs</h1>", "large": bytes(1024**2)}))
        there = threading.Event()

        def unpack_and_signal(*given: Any, on_progress: Callable[[int, int], None], **named: Any) -> Unpacked:
            def note(files: int, size: int) -> None:
                there.set()
                on_progress(files, size)

            return unpack(*given, on_progress=note, **named)

        monkeypatch.setattr(overlap, "unpack", unpack_and_signal)

        with download.overlap:
            download.receive(archive[:-1024], len(archive))
            assert there.wait(60)
            download.receive(archive[-1024:], len(archive))
            assert download.publish() == 2

    def test_leaves_nothing_unless_the_site_is_published(self, download: Download) -> None:
        with download.overlap:
            download.receive_all()
            assert download.overlap.result(download.job) is not None

        assert not download.site.exists()

    def test_leaves_nothing_after_a_failed_download(self, download: Download) -> None:
        def fail() -> None:
            with download.overlap:
                download.receive(ARCHIVE[:-1], len(ARCHIVE))
                raise OSError(errno.ENOSPC, "No space left on device")

        with pytest.raises(OSError, match="No space left"):
            fail()

        assert not download.site.exists()

    @pytest.mark.parametrize("missing", [0, 1])
    def test_ends_with_a_cancel_of_the_run(self, download: Download, missing: int) -> None:
        with download.overlap:
            download.receive(ARCHIVE[: len(ARCHIVE) - missing], len(ARCHIVE))
            download.context.clock.cancellation.cancel()
            with pytest.raises(Cancelled):
                download.publish()


class TestAGrowingFile:
    """Reads in a thread; `has_read` is set after one has read the file."""

    @pytest.fixture
    def has_read(self, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
        has_read, pread = threading.Event(), os.pread

        def signalling(*given: int) -> bytes:
            block = pread(*given)
            has_read.set()
            return block

        monkeypatch.setattr(os, "pread", signalling)
        return has_read

    @staticmethod
    def complete(path: Path, file: GrowingFile, content: bytes) -> None:
        path.write_bytes(content)
        file.is_complete = True

    @pytest.mark.parametrize(
        ("happens", "read"),
        [
            (lambda path, _file, _run: path.write_bytes(b"12345"), b"45"),
            (lambda path, file, _run: TestAGrowingFile.complete(path, file, b"1234"), b"4"),
            (lambda path, file, _run: TestAGrowingFile.complete(path, file, b"123"), b""),
            (lambda _path, file, _run: file.cancellation.cancel(), Cancelled),
            (lambda _path, _file, run: run.cancel(), Cancelled),
        ],
        ids=["more comes", "the last bytes come", "nothing more comes", "it is discarded", "the run is cancelled"],
    )
    def test_makes_a_read_wait_until(
        self,
        tmp_path: Path,
        has_read: threading.Event,
        happens: Callable[[Path, GrowingFile, Cancellation], None],
        read: bytes | type[Exception],
    ) -> None:
        path = tmp_path / "bundle"
        path.write_bytes(b"123")
        found: list[bytes | type[BaseException]] = []
        run = Cancellation()

        def wait(file: GrowingFile) -> None:
            try:
                found.append(file.read(10, 3))
            except Cancelled as error:
                found.append(type(error))

        with path.open("rb") as opened:
            file = GrowingFile(opened.fileno(), 5, run)
            waiting = threading.Thread(target=wait, args=(file,))
            waiting.start()
            assert has_read.wait(60)
            assert found == []
            happens(path, file, run)
            waiting.join(60)

        assert found == [read]

    def test_returns_available_bytes_at_once(self, tmp_path: Path) -> None:
        path = tmp_path / "bundle"
        path.write_bytes(b"123")

        with path.open("rb") as opened:
            assert GrowingFile(opened.fileno(), 5, Cancellation()).read(10, 1) == b"23"


class TestLargeDecoders:
    def test_are_not_waited_for(self, download: Download, monkeypatch: pytest.MonkeyPatch) -> None:
        """They may be in use for downloads that have stalled; the complete archive is unpacked with others."""
        monkeypatch.setattr(GrowingFile, "LARGE_DECODERS", BoundedSemaphore(1))
        GrowingFile.LARGE_DECODERS.acquire()

        with download.overlap:
            download.receive_all(KINDS["tar.xz"](SMALL_SITE))

            assert download.publish() is None

    def test_are_others_than_those_of_complete_archives(self) -> None:
        assert GrowingFile.LARGE_DECODERS is not ArchiveFile.LARGE_DECODERS


class TestItDoesNotStart:
    def test_for_a_small_bundle(self, download: Download, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(overlap, "MIN_RECEIVED_BYTES", len(ARCHIVE) + 1)

        with download.overlap:
            download.receive_all()
            assert download.publish() is None

        assert download.staged == 0
        assert MIN_RECEIVED_BYTES == 4 * 1024**2

    def test_without_a_known_size(self, download: Download) -> None:
        with download.overlap:
            download.receive(ARCHIVE, None)
            assert download.publish() is None

        assert download.staged == 0

    @pytest.mark.parametrize("archive", [KINDS["zip"](SMALL_SITE), b"<html>" + bytes(1000)], ids=["zip", "no archive"])
    def test_for_a_format_that_is_not_read_in_order(self, download: Download, archive: bytes) -> None:
        with download.overlap:
            download.receive_all(archive)
            assert download.publish() is None

        assert download.staged == 0

    def test_without_plenty_of_disk_space(self, download: Download) -> None:
        download.free = MAX_RESERVED_BYTES + len(ARCHIVE)

        with download.overlap:
            download.receive(ARCHIVE[:200], len(ARCHIVE))
            download.receive(ARCHIVE[200:], len(ARCHIVE))
            assert download.publish() is None

        assert download.staged == 0

    def test_if_the_folder_cannot_be_made(self, download: Download) -> None:
        download.site.parent.joinpath("file").touch()
        download.overlap = download.overlap_to(download.site.parent / "file" / "site")

        with download.overlap:
            download.receive_all()
            assert download.publish() is None

        assert download.staged == 1


class TestItGivesUp:
    @pytest.mark.parametrize("name", HOSTILE)
    def test_an_archive_that_cannot_be_opened_without_an_error(self, download: Download, name: str) -> None:
        with download.overlap:
            download.receive_all(HOSTILE[name][0])
            assert download.publish() is None

        assert not download.site.exists()

    def test_when_the_download_starts_over(self, download: Download) -> None:
        with download.overlap:
            download.receive(ARCHIVE[:-1], len(ARCHIVE))
            download.restart()
            assert download.parts == []
            download.receive_all()
            assert download.publish() is None

        assert download.staged == 1

    def test_when_the_bundle_is_shorter_than_announced(self, download: Download) -> None:
        archive = tar(SMALL_SITE)

        with download.overlap:
            download.receive(archive, len(archive) + 1)
            assert download.publish() is None

    def test_a_site_that_needs_more_space_than_is_free(self, download: Download) -> None:
        archive = KINDS["tar.gz"](Site(files={"zeros": bytes(1_000_000)}))
        download.free = MAX_RESERVED_BYTES + 10 * len(archive)

        with download.overlap:
            download.receive_all(archive)
            assert download.publish() is None


class TestErrorsDuringTheDownload:
    def test_a_complete_site_is_discarded_when_the_download_restarts(self, download: Download) -> None:
        with download.overlap:
            download.receive_all()
            for thread in threading.enumerate():
                if thread.name == "overlap":
                    thread.join()
            download.restart()
            download.archive.write_bytes(b"")
            download.received = 0
            download.receive_all()

            assert download.publish() is None

    @pytest.mark.parametrize("name", ["overlap", "reader"])
    def test_at_the_limit_of_threads_nothing_fails(self, download: Download, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        start = threading.Thread.start

        def start_unless_at_the_limit(thread: threading.Thread) -> None:
            if thread.name == name:
                raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", start_unless_at_the_limit)

        with download.overlap:
            download.receive_all()

            assert download.publish() == (3 if name == "reader" else None)

    def test_scarce_disk_space_is_left_to_the_archive(self, download: Download) -> None:
        with download.overlap:
            download.receive(ARCHIVE[:-50], len(ARCHIVE))
            assert download.parts

            download.free = 49
            download.receive(ARCHIVE[-50:-40], len(ARCHIVE))
            assert download.parts

            download.free = 29
            download.receive(ARCHIVE[-40:-30], len(ARCHIVE))
            assert download.parts == []

            download.receive(ARCHIVE[-30:], len(ARCHIVE))
            assert download.publish() is None

    def test_unknown_disk_space_counts_as_none(self, download: Download) -> None:
        with download.overlap:
            download.receive(ARCHIVE[:-50], len(ARCHIVE))
            download.fails = OSError(errno.ENOENT, "gone")
            download.receive(ARCHIVE[-50:], len(ARCHIVE))

            assert download.publish() is None
