"""A bundle is unpacked behind its download, or it is as if nobody had tried."""

import contextlib
import errno
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from docs_platform_action.archive.limits import MOST_RESERVED_BYTES, Space
from docs_platform_action.bundle import overlap
from docs_platform_action.bundle.overlap import FROM_BYTES, Followed, Follower
from docs_platform_action.bundle.staging import Staged, staged_folder
from docs_platform_action.cleanups import Cleanups
from docs_platform_action.errors import Cancelled
from tests.archives import HOSTILE, KINDS, SMALL_SITE, Site, tar

ARCHIVE = KINDS["tar.gz"](SMALL_SITE)
PLENTY = 10 * MOST_RESERVED_BYTES
IN_ORDER = [kind for kind in KINDS if not kind.startswith("zip")]


class Download:
    """A bundle that comes bit by bit, and a follower behind it."""

    def __init__(self, folder: Path) -> None:
        self.archive, self.site = folder / "bundle", folder / "site"
        self.archive.touch()
        self.cleanups = Cleanups()
        self.free = PLENTY
        self.fails: OSError | None = None
        self.received = 0
        self.staged = 0
        self.check: Callable[[], None] = lambda: None
        self.so_far: list[tuple[int, int]] = []
        self.follower = Follower(self.archive, stage=self.stage, space=self.space, owner=lambda: None, check=lambda: self.check())

    def space(self) -> Space:
        if self.fails is not None:
            raise self.fails
        return Space(total_bytes=100 * MOST_RESERVED_BYTES, free_bytes=self.free)

    def stage(self) -> contextlib.AbstractContextManager[Staged]:
        self.staged += 1
        return staged_folder(self.site, None, self.cleanups)

    def receive(self, piece: bytes, size: int | None) -> None:
        with self.archive.open("ab") as file:
            file.write(piece)
        self.received += len(piece)
        self.follower.progressed(self.received, size)

    def receive_all(self, archive: bytes = ARCHIVE, *, pieces: int = 7) -> None:
        length = len(archive) // pieces + 1
        for at in range(0, len(archive), length):
            self.receive(archive[at : at + length], len(archive))

    def publish(self) -> int | None:
        """Publish the site, as far as there is one; give the number of files in it."""
        found = self.follower.result(lambda *so_far: self.so_far.append(so_far))
        if found is None:
            return None
        staged, unpacked = found
        staged.publish()
        return unpacked.files

    @property
    def parts(self) -> list[Path]:
        return [path for path in self.archive.parent.iterdir() if path.name.endswith(".part")]


@pytest.fixture
def download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Download]:
    monkeypatch.setattr(overlap, "FROM_BYTES", 100)
    download = Download(tmp_path)
    yield download
    assert download.parts == []
    assert not download.cleanups
    assert {"follower", "reader"}.isdisjoint(thread.name for thread in threading.enumerate())


class TestAFollower:
    @pytest.mark.parametrize("kind", IN_ORDER)
    def test_unpacks_what_comes_bit_by_bit(self, download: Download, kind: str) -> None:
        with download.follower:
            download.receive_all(KINDS[kind](SMALL_SITE))

            assert download.publish() == 3

        assert (download.site / "index.html").read_bytes() == SMALL_SITE.files["index.html"]
        assert download.so_far[-1] == (3, 613)

    def test_is_at_work_before_the_bundle_is_there(self, download: Download) -> None:
        archive = tar(Site(files={"index.html": b"<h1>Docs</h1>", "large": bytes(1024**2)}))
        there = threading.Event()
        download.check = lambda: there.set() if any(part.joinpath("index.html").exists() for part in download.parts) else None

        with download.follower:
            download.receive(archive[:-1024], len(archive))
            assert there.wait(60)
            download.receive(archive[-1024:], len(archive))
            assert download.publish() == 2

    def test_leaves_nothing_unless_the_site_is_published(self, download: Download) -> None:
        with download.follower:
            download.receive_all()
            assert download.follower.result(lambda *_: None) is not None

        assert not download.site.exists()

    def test_leaves_nothing_of_a_download_that_fails(self, download: Download) -> None:
        def fail() -> None:
            with download.follower:
                download.receive(ARCHIVE[:-1], len(ARCHIVE))
                raise OSError(errno.ENOSPC, "No space left on device")

        with pytest.raises(OSError, match="No space left"):
            fail()

        assert not download.site.exists()

    def test_hears_a_cancel(self, download: Download) -> None:
        def cancel() -> None:
            raise Cancelled("cancelled")

        with download.follower:
            download.receive(ARCHIVE[:-1], len(ARCHIVE))
            download.check = cancel
            download.receive(ARCHIVE[-1:], len(ARCHIVE))
            with pytest.raises(Cancelled):
                download.publish()


class TestItDoesNotBegin:
    def test_for_what_is_there_at_once(self, download: Download, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(overlap, "FROM_BYTES", len(ARCHIVE) + 1)

        with download.follower:
            download.receive_all()
            assert download.publish() is None

        assert download.staged == 0
        assert FROM_BYTES == 4 * 1024**2

    def test_without_a_size_to_judge_it_by(self, download: Download) -> None:
        with download.follower:
            download.receive(ARCHIVE, None)
            assert download.publish() is None

        assert download.staged == 0

    @pytest.mark.parametrize("archive", [KINDS["zip"](SMALL_SITE), b"<html>" + bytes(1000)], ids=["zip", "no archive"])
    def test_for_what_is_not_read_in_order(self, download: Download, archive: bytes) -> None:
        with download.follower:
            download.receive_all(archive)
            assert download.publish() is None

        assert download.staged == 0

    def test_where_there_is_not_plenty_of_room(self, download: Download) -> None:
        download.free = MOST_RESERVED_BYTES + len(ARCHIVE)

        with download.follower:
            download.receive(ARCHIVE[:200], len(ARCHIVE))
            download.receive(ARCHIVE[200:], len(ARCHIVE))
            assert download.publish() is None

        assert download.staged == 0

    def test_where_the_folder_cannot_be_made(self, download: Download) -> None:
        download.site.parent.joinpath("file").touch()
        download.site = download.site.parent / "file" / "site"

        with download.follower:
            download.receive_all()
            assert download.publish() is None

        assert download.staged == 1


class TestItGivesUp:
    @pytest.mark.parametrize("name", HOSTILE)
    def test_what_cannot_be_opened_and_says_nothing(self, download: Download, name: str) -> None:
        with download.follower:
            download.receive_all(HOSTILE[name][0])
            assert download.publish() is None

        assert not download.site.exists()

    def test_when_the_download_starts_over(self, download: Download) -> None:
        with download.follower:
            download.receive(ARCHIVE[:-1], len(ARCHIVE))
            download.follower.give_up()
            assert download.parts == []
            download.receive_all()
            assert download.publish() is None

        assert download.staged == 1

    def test_when_the_bundle_is_shorter_in_the_end(self, download: Download) -> None:
        archive = tar(SMALL_SITE)

        with download.follower:
            download.receive(archive, len(archive) + 1)
            assert download.publish() is None

    def test_what_takes_more_room_than_is_free(self, download: Download) -> None:
        archive = KINDS["tar.gz"](Site(files={"zeros": bytes(1_000_000)}))
        download.free = MOST_RESERVED_BYTES + 10 * len(archive)

        with download.follower:
            download.receive_all(archive)
            assert download.publish() is None


class TestWhoListens:
    def test_hears_all_and_the_follower_what_concerns_it(self) -> None:
        heard: list[tuple[object, ...]] = []

        class Everything:
            def __init__(self, who: str) -> None:
                self._who = who

            def __getattr__(self, name: str) -> Callable[..., None]:
                return lambda *told, **named: heard.append((self._who, name, *told, *named.values()))

        listener: Any = Everything("log")
        follower: Any = Everything("follower")
        followed = Followed(listener, follower)

        followed.answered("address", 200, None, "id")
        followed.progressed(1, 2)
        followed.trouble("cut off", budget_seconds=3.0, pause_seconds=1.0)
        followed.recovered(2.0)
        followed.link_died("it expired")
        followed.started_over("it is another")

        assert heard == [
            ("log", "answered", "address", 200, None, "id"),
            ("log", "progressed", 1, 2),
            ("follower", "progressed", 1, 2),
            ("log", "trouble", "cut off", 3.0, 1.0),
            ("log", "recovered", 2.0),
            ("log", "link_died", "it expired"),
            ("follower", "give_up"),
            ("log", "started_over", "it is another"),
        ]


class NoThread(threading.Thread):
    """What a system that is at its limit of threads makes of one."""

    def start(self) -> None:
        raise RuntimeError("can't start new thread")


class TestTroubleOnTheWay:
    def test_what_was_unpacked_to_its_end_is_given_up_with_its_download(self, download: Download) -> None:
        with download.follower:
            download.receive_all()
            next(thread for thread in threading.enumerate() if thread.name == "follower").join()
            download.follower.give_up()
            download.archive.write_bytes(b"")
            download.received = 0
            download.receive_all()

            assert download.publish() is None

    @pytest.mark.parametrize("name", ["follower", "reader"])
    def test_where_no_thread_can_be_started_nothing_fails(
        self, download: Download, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        def make(**given: Any) -> threading.Thread:
            return (NoThread if given["name"] == name else threads)(**given)

        threads = threading.Thread
        monkeypatch.setattr(threading, "Thread", make)

        with download.follower:
            download.receive_all()

            assert download.publish() == (3 if name == "reader" else None)

    def test_room_that_goes_is_left_to_the_archive(self, download: Download) -> None:
        with download.follower:
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

    def test_room_that_cannot_be_told_is_none(self, download: Download) -> None:
        with download.follower:
            download.receive(ARCHIVE[:-50], len(ARCHIVE))
            download.fails = OSError(errno.ENOENT, "gone")
            download.receive(ARCHIVE[-50:], len(ARCHIVE))

            assert download.publish() is None
