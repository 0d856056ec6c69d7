"""Files, folders and links are created correctly, and errors of the disk are reported."""

import errno
import os
import stat
import time

import pytest

from docs_platform_action.archive.unpack import Unpacked
from tests.archive_limits import Limits
from tests.archives import KINDS, SMALL_SITE, Site, entry, tar, tar_of
from tests.unit.archive.places import SMALL_TREE, Place


class TestWhatComesOut:
    @pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
    @pytest.mark.parametrize("kind", ["tar", "zip"])
    def test_has_the_same_modes_whatever_the_archive_and_the_umask_say(self, place: Place, kind: str, umask: int) -> None:
        before = os.umask(umask)
        try:
            place.unpack(KINDS[kind](SMALL_SITE))
        finally:
            os.umask(before)

        modes = {path.is_dir(): stat.S_IMODE(path.lstat().st_mode) for path in place.folder.rglob("*") if not path.is_symlink()}
        assert modes == {True: 0o755, False: 0o644}

    def test_has_the_time_of_unpacking(self, place: Place) -> None:
        began = time.time() - 1

        place.unpack(tar(SMALL_SITE))

        assert all(path.stat().st_mtime >= began for path in place.folder.rglob("*"))

    def test_is_complete_when_the_disk_writes_less_than_it_is_given(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        write = os.write
        monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:7]))

        place.unpack(tar(SMALL_SITE))

        assert place.tree() == SMALL_TREE

    def test_is_an_error_of_the_disk_when_the_disk_is_full(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        def write(_descriptor: int, _data: bytes) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "write", write)

        with pytest.raises(OSError, match="No space left"):
            place.unpack(tar(SMALL_SITE))

    @pytest.mark.parametrize("call", ["open", "mkdir", "symlink"])
    def test_is_an_error_of_the_disk_whatever_the_disk_refuses(
        self, place: Place, monkeypatch: pytest.MonkeyPatch, call: str
    ) -> None:
        self._refuse(monkeypatch, call, errno.EIO)

        with pytest.raises(OSError, match="no") as caught:
            place.unpack(tar(SMALL_SITE))

        assert caught.value.errno == errno.EIO

    @pytest.mark.parametrize("call", ["open", "mkdir", "symlink"])
    @pytest.mark.parametrize("number", [errno.EEXIST, errno.EILSEQ, errno.EINVAL, errno.ENAMETOOLONG])
    def test_is_an_invalid_bundle_when_the_disk_refuses_a_name(
        self, place: Place, monkeypatch: pytest.MonkeyPatch, call: str, number: int
    ) -> None:
        self._refuse(monkeypatch, call, number)

        assert place.refusal(tar(SMALL_SITE)).failure_reason == "invalid-bundle"

    @staticmethod
    def _refuse(monkeypatch: pytest.MonkeyPatch, call: str, number: int) -> None:
        """Let a system call fail for paths in the folder."""
        real = getattr(os, call)

        def refusing(*args: object, **options: object) -> object:
            if "dir_fd" in options:
                raise OSError(number, "no")
            return real(*args, **options)

        monkeypatch.setattr(os, call, refusing)


class TestLinks:
    def test_may_lead_to_links_to_folders_and_into_each_others_targets(self, place: Place) -> None:
        links = {"latest": "v2", "stable": "./latest", "v1/assets": "../assets", "v2/assets": "../assets", "old": "v2/../v1/a"}

        place.unpack(tar(Site(files={"v1/a": b"1", "v2/a": b"2", "assets/logo": b"3"}, links=links)))

        assert (place.folder / "stable" / "assets" / "logo").read_bytes() == b"3"
        assert (place.folder / "old").read_bytes() == b"1"

    def test_may_come_before_what_they_lead_to(self, place: Place) -> None:
        place.unpack(tar_of(entry(b"link", type_=b"2", target=b"later/file"), entry(b"later/file", b"here")))

        assert (place.folder / "link").read_bytes() == b"here"

    def test_to_pages_do_not_count_as_pages_but_copies_do(self, place: Place) -> None:
        links = entry(b"copy.html", type_=b"1", target=b"a.HTML"), entry(b"latest.html", type_=b"2", target=b"a.HTML")

        unpacked = place.unpack(tar_of(entry(b"a.HTML", b"page"), *links, entry(b"a.html.txt"), entry(b"html")))

        assert unpacked.html_files == 3  # with the `index.html` that each of these archives has

    def test_that_are_hard_become_copies(self, place: Place) -> None:
        link = entry(b"b/copy", type_=b"1", target=b"./a")

        unpacked = place.unpack(tar_of(entry(b"a", b"content"), link))

        assert unpacked == Unpacked(files=3, size=13 + 7 + 7, html_files=1)
        assert place.tree()["b/copy"] == b"content"
        assert (place.folder / "a").stat().st_nlink == 1

    def test_that_are_hard_links_to_symbolic_ones_become_symbolic_ones(self, place: Place) -> None:
        """As `cp -al` makes them, and GNU tar packs and unpacks them."""
        symbolic = [entry(b"v1/latest", type_=b"2", target=b"guide"), entry(b"v1/home", type_=b"2", target=b"guide/../guide/a")]
        hard = [
            entry(b"v2/latest", type_=b"1", target=b"./v1/latest"),
            entry(b"v2/guide/a", type_=b"1", target=b"v1/guide/a"),
            entry(b"v2/home", type_=b"1", target=b"v1/home"),
            entry(b"v1/again", type_=b"1", target=b"v2/latest"),
        ]

        unpacked = place.unpack(tar_of(entry(b"v1/guide/a", b"content"), *symbolic, *hard))

        links = {path: what for path, what in place.tree().items() if isinstance(what, str)}
        assert links == {
            "v1/again": "guide",
            "v1/home": "guide/../guide/a",
            "v1/latest": "guide",
            "v2/home": "guide/../guide/a",
            "v2/latest": "guide",
        }
        assert (place.folder / "v2" / "latest" / "a").read_bytes() == b"content"
        assert unpacked == Unpacked(files=3, size=13 + 7 + 7, html_files=1)

    def test_that_are_hard_count_with_the_size_of_their_target(self, place: Place) -> None:
        links = [entry(b"%d" % number, type_=b"1", target=b"index.html") for number in range(9)]

        place.refusal(tar_of(*links), limits=Limits(unpacked_bytes=13 * 10 - 1))
