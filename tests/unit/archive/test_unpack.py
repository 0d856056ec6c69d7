"""Whatever an archive holds becomes a tree of plain files in one folder, or is refused for what is wrong with it."""

import bz2
import contextlib
import errno
import gzip
import io
import lzma
import os
import stat
import struct
import sys
import tarfile
import tempfile
import threading
import time
import tracemalloc
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from docs_platform_action.archive import codecs, reading
from docs_platform_action.archive import tree as trees
from docs_platform_action.archive.limits import Disk, Limits, Meter, Space, space_at
from docs_platform_action.archive.reading import CHUNK_BYTES, ArchiveFile, open_archive
from docs_platform_action.archive.unpack import Unpacked, unpack
from docs_platform_action.clock import Cancellation
from docs_platform_action.errors import Cancelled, InvalidBundle
from docs_platform_action.ownership import Owner
from tests.archives import (
    EMPTY_END,
    FILE,
    HOSTILE,
    KINDS,
    SMALL_SITE,
    Site,
    Zipped,
    checksummed,
    entry,
    header,
    pax,
    pax_record,
    tar,
    tar_of,
    zip_of,
    zipped,
)


def tree_of(folder: Path) -> dict[str, bytes | str | None]:
    """Tell what is in a folder: contents of files, targets of links, nothing for folders."""
    tree: dict[str, bytes | str | None] = {}
    for inside, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(inside, name)
            what = str(path.readlink()) if path.is_symlink() else None if name in folders else path.read_bytes()
            tree[str(path.relative_to(folder))] = what
    return dict(sorted(tree.items()))


def told(error: InvalidBundle) -> str:
    return f"{error.happened}. {' '.join(error.facts)}"


class Place:
    """A folder to unpack into, with something beside it that must stay as it is."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "beside" / "site"
        self.folder.mkdir(parents=True)
        (root / "outside").write_text("precious")
        (root / "beside" / "outside").write_text("precious too")
        self.progress: list[tuple[int, int]] = []
        self.before = self.outside()

    def outside(self) -> dict[str, bytes | str | None]:
        return {path: what for path, what in tree_of(self.root).items() if not path.startswith("beside/site/")}

    def unpack(
        self,
        archive: bytes,
        *,
        limits: Limits | None = None,
        disk: Disk | None = None,
        cancellation: Cancellation | None = None,
    ) -> Unpacked:
        path = self.root.parent / f"{self.root.name}.bundle"
        path.write_bytes(archive)
        with open_archive(path, cancellation or Cancellation()) as file:
            return unpack(
                file,
                self.folder,
                on_progress=lambda *sofar: self.progress.append(sofar),
                limits=limits or Limits(),
                disk=disk,
            )

    def refusal(self, archive: bytes, *, limits: Limits | None = None, disk: Disk | None = None) -> InvalidBundle:
        with pytest.raises(InvalidBundle) as caught:
            self.unpack(archive, limits=limits, disk=disk)
        return caught.value

    def tree(self) -> dict[str, bytes | str | None]:
        return tree_of(self.folder)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path / "root")
    yield place
    assert place.outside() == place.before


SMALL_TREE = {
    "assets": None,
    "guide": None,
    "guide/empty.txt": b"",
    "guide/home.html": "../index.html",
    "guide/start.html": b"<p>Start</p>" * 50,
    "index.html": b"<h1>Docs</h1>",
    "latest": "guide",
}


class TestWhatComesOut:
    @pytest.mark.parametrize("pack", KINDS.values(), ids=KINDS)
    def test_is_what_went_in_whatever_the_kind(self, place: Place, pack: Callable[[Site], bytes]) -> None:
        unpacked = place.unpack(pack(SMALL_SITE))

        assert place.tree() == SMALL_TREE
        assert unpacked == Unpacked(files=3, size=613, html_files=2)

    def test_may_begin_with_a_label_and_the_folder_itself_whatever_that_is_called(self, place: Place) -> None:
        folders = (entry(name, type_=b"5") for name in (b"/", b"./", b".", b"//"))
        sized = header(b"a/", type_=b"5", size=4096)

        place.unpack(tar_of(entry(b"Docs", type_=b"V"), *folders, sized))

        assert [*place.tree()] == ["a", "index.html"]

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

    def test_is_told_entry_by_entry(self, place: Place) -> None:
        place.unpack(tar_of(entry(b"a/", type_=b"5"), entry(b"a/b", b"12345")))

        assert place.progress == [(1, 13), (1, 13), (2, 18)]

    def test_may_hold_more_than_a_chunk(self, place: Place) -> None:
        content = os.urandom(CHUNK_BYTES) * 3 + b"!"

        for kind, pack in KINDS.items():
            place.unpack(pack(Site(files={kind: content})))

        assert set(place.tree().values()) == {content}

    def test_does_not_end_when_the_disk_takes_less_than_it_is_given(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
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

        assert "the runner's disk refuses (no)" in told(place.refusal(tar(SMALL_SITE)))

    @staticmethod
    def _refuse(monkeypatch: pytest.MonkeyPatch, call: str, number: int) -> None:
        """Let a call fail when it is about something in the folder."""
        real = getattr(os, call)

        def refusing(*args: object, **options: object) -> object:
            if "dir_fd" in options:
                raise OSError(number, "no")
            return real(*args, **options)

        monkeypatch.setattr(os, call, refusing)


class CountedCancellation(Cancellation):
    """Counts how often it is asked, and is cancelled as it is asked for the `last` time."""

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
        archive = pack(Site(files={"small": b"x", "large": os.urandom(3 * CHUNK_BYTES)}, links={"link": "small"}))
        counted = CountedCancellation()
        Place(tmp_path / "whole").unpack(archive, cancellation=counted)

        for number in range(1, counted.checks + 1):
            with pytest.raises(Cancelled):
                Place(tmp_path / str(number)).unpack(archive, cancellation=CountedCancellation(number))

    def test_is_asked_for_within_a_stream_that_holds_nothing(self, place: Place) -> None:
        archive = gzip.compress(FILE + EMPTY_END + bytes(20 * CHUNK_BYTES))
        cancellation = CountedCancellation()

        place.unpack(archive, cancellation=cancellation)

        assert cancellation.checks > 20

    def test_is_asked_for_by_each_thread(self, place: Place) -> None:
        """Which reads entries, and which writes them: either may be at work on one for long."""
        threads: Counter[str] = Counter()

        class Noting(Cancellation):
            def check(self) -> None:
                threads[threading.current_thread().name] += 1

        place.unpack(KINDS["tar.gz"](Site(files={"a": os.urandom(10 * CHUNK_BYTES)})), cancellation=Noting())

        assert threads["reader"] >= 10
        assert threads[threading.current_thread().name] >= 10


class TestRefusals:
    @pytest.mark.parametrize(("archive", "words"), HOSTILE.values(), ids=HOSTILE)
    def test_say_what_is_wrong_and_leave_what_is_outside_alone(self, place: Place, archive: bytes, words: str) -> None:
        assert words in told(place.refusal(archive))

    @pytest.mark.parametrize("archive", [archive for archive, _ in HOSTILE.values()], ids=HOSTILE)
    def test_have_a_cause_a_way_out_and_no_more_than_a_few_lines(self, place: Place, archive: bytes) -> None:
        refusal = place.refusal(archive)

        assert refusal.because
        assert refusal.way_out
        assert all(len(fact) < 600 for fact in refusal.facts)

    def test_show_both_ends_of_a_long_name(self, place: Place) -> None:
        name = b"../beginning" + b"-" * 10_000 + b"end"

        refusal = told(place.refusal(tar_of(pax(path=name), entry(b"a"))))

        assert "'../beginning--" in refusal
        assert "--end'" in refusal
        assert len(refusal) < 300

    def test_show_both_ends_of_a_name_that_is_long_in_characters_alone(self, place: Place) -> None:
        assert "…" in told(place.refusal(tar_of(pax(path=b"../" + b"x" * 200), entry(b"a"))))

    @pytest.mark.parametrize("pack", KINDS.values(), ids=KINDS)
    def test_meet_every_archive_that_is_cut_anywhere(self, tmp_path: Path, pack: Callable[[Site], bytes]) -> None:
        archive = pack(SMALL_SITE)
        end = len(archive.rstrip(b"\0")) if archive.endswith(bytes(1024)) else len(archive)

        for length in range(0, end, 37):
            Place(tmp_path / str(length)).refusal(archive[:length])
        Place(tmp_path / "last").refusal(archive[: end - 1])


class TestNames:
    def test_may_begin_with_a_dot_and_double_their_slashes(self, place: Place) -> None:
        place.unpack(entry(b"./", type_=b"5") + entry(b"./a//b/./c.html", b"c") + EMPTY_END)

        assert place.tree() == {"a": None, "a/b": None, "a/b/c.html": b"c"}

    @pytest.mark.parametrize("kind", ["tar", "tar-gnu", "zip"])
    def test_may_be_as_long_as_a_key_and_hold_any_letters(self, place: Place, kind: str) -> None:
        files = {"ü" * 127: b"1", "a b/ .c/日本語 — ☃.html": b"2", "/".join(["x" * 204] * 5): b"3", "con/aux. ": b"4", "~": b"5"}

        place.unpack(KINDS[kind](Site(files=files)))

        assert {path: content for path, content in place.tree().items() if content} == files

    def test_of_folders_may_come_again(self, place: Place) -> None:
        place.unpack(tar_of(entry(b"a/b"), entry(b"a/", type_=b"5"), entry(b"a/", type_=b"5"), entry(b"c"), entry(b"a/d")))

        assert place.tree().keys() == {"a", "a/b", "a/d", "c", "index.html"}

    def test_of_folders_may_lack_their_slash_or_stand_for_their_type(self, place: Place) -> None:
        place.unpack(tar_of(entry(b"a", type_=b"5"), entry(b"b/"), entry(b"c/", type_=b"\0")))
        place.unpack(zip_of(Zipped(name=b"x"), Zipped(name=b"d", content=b"", mode=0o40755)))
        place.unpack(zip_of(Zipped(name=b"y"), Zipped(name=b"e/", content=b"", mode=0)))
        place.unpack(zip_of(Zipped(name=b"z"), Zipped(name=b"f", content=b"", system=0, attributes=0x10)))
        place.unpack(zip_of(Zipped(name=b"maven"), Zipped(name=b"g/", content=b"", mode=0xFFFF, attributes=0x10)))

        assert [path for path, content in place.tree().items() if content is None] == ["a", "b", "c", "d", "e", "f", "g"]


class TestTar:
    def test_of_gnu_may_hold_times_where_posix_has_a_prefix(self, place: Place) -> None:
        block = header(b"a")

        place.unpack(tar_of(checksummed(block[:257] + b"ustar  \0" + block[265:345] + b"12345670123\0" + block[357:])))

        assert place.tree().keys() == {"a", "index.html"}

    def test_of_posix_may_split_a_name(self, place: Place) -> None:
        block = header(b"b" * 100)

        place.unpack(tar_of(checksummed(block[:345] + b"a" * 155 + block[500:])))

        assert "a" * 155 + "/" + "b" * 100 in place.tree()

    def test_from_before_posix_is_told_by_its_checksum(self, place: Place) -> None:
        block = header(b"BZh91AY&SY", size=3)

        place.unpack(checksummed(block[:156] + bytes(356)) + b"old".ljust(512, b"\0") + EMPTY_END)

        assert place.tree() == {"BZh91AY&SY": b"old"}

    def test_may_have_summed_signed_bytes(self, place: Place) -> None:
        block = entry("é".encode())
        blank = block[:148] + b" " * 8 + block[156:]
        signed = sum(struct.unpack("512b", blank))

        place.unpack(tar_of(blank[:148] + f"{signed:06o}\0 ".encode() + blank[156:]))

        assert place.tree().keys() == {"index.html", "é"}

    def test_may_write_a_size_in_binary(self, place: Place) -> None:
        block = header(b"a")

        place.unpack(tar_of(checksummed(block[:124] + b"\x80" + bytes(10) + b"\3" + block[136:]) + b"abc".ljust(512, b"\0")))

        assert place.tree()["a"] == b"abc"

    def test_may_write_a_size_in_an_extended_header(self, place: Place) -> None:
        place.unpack(tar_of(pax(size=b"3", comment=b"="), header(b"a") + b"abc".ljust(512, b"\0")))

        assert place.tree()["a"] == b"abc"

    def test_may_hold_headers_for_all_that_name_nothing(self, place: Place) -> None:
        place.unpack(entry(b"pax_global_header", pax_record(b"comment", b"0123abc"), type_=b"g") + FILE + EMPTY_END)

        assert place.tree().keys() == {"index.html"}

    def test_may_link_to_long_names(self, place: Place) -> None:
        name = "x" * 120

        place.unpack(KINDS["tar-gnu"](Site(files={name: b"1"}, links={"link": name})))

        assert place.tree() == {name: b"1", "link": name}

    def test_may_be_padded_with_zeros_but_nothing_else(self, place: Place) -> None:
        place.unpack(FILE + EMPTY_END + bytes(1_000_001))

        assert place.tree().keys() == {"index.html"}

    def test_need_not_be_an_even_number_of_blocks(self, place: Place) -> None:
        place.unpack(FILE + bytes(513))

        assert place.tree().keys() == {"index.html"}

    def test_with_more_symbolic_links_than_are_kept_is_refused(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(trees, "MOST_LINKS", 1)

        refusal = place.refusal(tar_of(*(entry(name, type_=b"2", target=b"index.html") for name in (b"a", b"b"))))

        assert "more than 1 symbolic links" in told(refusal)


class TestLinks:
    def test_may_lead_to_links_to_folders_and_into_each_others_targets(self, place: Place) -> None:
        links = {"latest": "v2", "stable": "./latest", "v1/assets": "../assets", "v2/assets": "../assets", "old": "v2/../v1/a"}

        place.unpack(tar(Site(files={"v1/a": b"1", "v2/a": b"2", "assets/logo": b"3"}, links=links)))

        assert (place.folder / "stable" / "assets" / "logo").read_bytes() == b"3"
        assert (place.folder / "old").read_bytes() == b"1"

    def test_may_come_before_what_they_lead_to(self, place: Place) -> None:
        place.unpack(tar_of(entry(b"link", type_=b"2", target=b"later/file"), entry(b"later/file", b"here")))

        assert (place.folder / "link").read_bytes() == b"here"

    def test_to_pages_are_no_pages_but_copies_of_them_are(self, place: Place) -> None:
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

    def test_that_are_hard_count_as_what_they_are_copies_of(self, place: Place) -> None:
        links = [entry(b"%d" % number, type_=b"1", target=b"index.html") for number in range(9)]

        assert "more than 100 bytes" in told(place.refusal(tar_of(*links), limits=Limits(unpacked_bytes=100)))


class TestZip:
    def test_may_carry_a_comment(self, place: Place) -> None:
        place.unpack(zip_of(Zipped(), comment=b"0123abc PK\5 PK\1\2" * 5))

        assert place.tree().keys() == {"index.html"}

    def test_with_a_second_end_in_its_comment_is_refused_because_readers_differ_in_which_they_believe(self, place: Place) -> None:
        hidden = zip_of(Zipped(name=b"evil.html"))

        refusal = place.refusal(zip_of(Zipped(), comment=hidden + b"longer than it says"))

        assert "The end of the zip archive is missing" in told(refusal)

    @pytest.mark.parametrize("padding", [1, 22, 9_000, 65_535, 65_600, 1024**2])
    @pytest.mark.parametrize("comment", [b"", b"a comment", b"a comment that ends with zeros" + bytes(30), bytes(0xFFFF)])
    def test_may_be_padded_with_zeros(self, place: Place, comment: bytes, padding: int) -> None:
        """As bsdtar pads what it writes into a pipe, to a multiple of its block size."""
        place.unpack(zip_of(Zipped(), Zipped(name=b"a"), zip64=True, comment=comment) + bytes(padding))

        assert place.tree().keys() == {"a", "index.html"}

    def test_may_be_in_gzip_and_leaves_no_trace_of_that(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        """As a storage keeps it that stores with `Content-Encoding: gzip`; a zip archive's directory is at its end."""
        monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
        descriptors = len([*Path("/proc/self/fd").iterdir()])

        place.unpack(gzip.compress(zip_of(Zipped(content=os.urandom(5 * CHUNK_BYTES)))))

        assert place.tree().keys() == {"index.html"}
        assert len([*Path("/proc/self/fd").iterdir()]) == descriptors

    def test_in_gzip_that_is_refused_is_closed(self, place: Place) -> None:
        descriptors = len([*Path("/proc/self/fd").iterdir()])

        place.refusal(gzip.compress(zip_of(Zipped(), Zipped(name=b"../outside"))))

        assert len([*Path("/proc/self/fd").iterdir()]) == descriptors

    def test_may_say_what_is_large_in_fields_of_their_own(self, place: Place) -> None:
        place.unpack(zip_of(Zipped(zip64=True, extra=b"\2\0\1\0!"), Zipped(name=b"a"), zip64=True))

        assert place.tree().keys() == {"a", "index.html"}

    def test_may_be_written_without_seeking(self, place: Place) -> None:
        class Forward(io.BytesIO):
            def seekable(self) -> bool:
                return False

            def tell(self) -> int:
                raise io.UnsupportedOperation

        packed = Forward()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a", b"streamed")

        place.unpack(packed.getvalue())

        assert place.tree() == {"a": b"streamed"}

    def test_may_come_from_a_system_without_modes(self, place: Place) -> None:
        place.unpack(zip_of(Zipped(system=0, mode=0o120777)))

        assert place.tree() == {"index.html": b"<h1>Docs</h1>"}


class TestStreams:
    def test_may_be_several_in_a_row(self, place: Place) -> None:
        for number, compress in enumerate((gzip.compress, bz2.compress, lzma.compress)):
            archive = entry(b"%d" % number) + EMPTY_END

            place.unpack(compress(archive[:300]) + compress(b"") + compress(archive[300:]))

        assert place.tree().keys() == {"0", "1", "2"}

    def test_may_begin_at_the_last_byte_of_what_is_read_at_once(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        archive = FILE + EMPTY_END
        whole = b"".join(gzip.compress(archive[at : at + 100]) for at in range(0, len(archive), 100))
        monkeypatch.setattr(reading, "CHUNK_BYTES", 1)

        place.unpack(whole)

        assert place.tree().keys() == {"index.html"}

    @pytest.mark.parametrize("layers", [1, 2])
    def test_may_be_no_more_in_a_row_than_take_seconds(self, place: Place, monkeypatch: pytest.MonkeyPatch, layers: int) -> None:
        monkeypatch.setattr(codecs, "MOST_STREAMS", 3)
        whole = gzip.compress(FILE + EMPTY_END)
        few, many = (gzip.compress(b"") * count + whole for count in (2, 3))
        if layers == 2:
            few, many = gzip.compress(few), gzip.compress(many)

        place.unpack(few)

        assert "more than 3 streams" in told(place.refusal(many))

    @pytest.mark.parametrize("padding", [1, 511, 200_000])
    def test_may_be_padded_with_zeros(self, place: Place, padding: int) -> None:
        place.unpack(gzip.compress(FILE + EMPTY_END) + bytes(padding))

        assert place.tree().keys() == {"index.html"}

    def test_end_early_where_their_file_does(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reading, "CHUNK_BYTES", 3)
        with tempfile.TemporaryFile() as file:
            file.write(b"12345")
            file.flush()

            assert list(ArchiveFile(file.fileno(), 10, Cancellation()).blocks(1, 10)) == [b"234", b"5"]


class TestBounds:
    @pytest.mark.parametrize("kind", ["tar.gz", "zip"])
    def test_on_entries_count_folders_that_names_imply(self, place: Place, kind: str) -> None:
        archive = KINDS[kind](Site(files={"a/b/c": b"1", "a/b/d": b"2"}))

        assert "more than 3 files and folders" in told(place.refusal(archive, limits=Limits(entries=3)))

    @pytest.mark.parametrize("kind", KINDS)
    def test_are_no_bounds_for_what_is_just_within(self, place: Place, kind: str) -> None:
        archive = KINDS[kind](Site(files={"a/b": b"x" * 5000}))

        assert place.unpack(archive, limits=Limits(entries=2, unpacked_bytes=5000)).size == 5000

    @pytest.mark.parametrize("kind", KINDS)
    def test_on_bytes_hold_for_all_files_together(self, place: Place, kind: str) -> None:
        archive = KINDS[kind](Site(files={"a": b"x" * 2500, "b": b"x" * 2500}))

        assert "more than 4.0 KiB" in told(place.refusal(archive, limits=Limits(unpacked_bytes=4096)))

    def test_are_told_in_the_unit_that_fits(self, place: Place) -> None:
        refusal = place.refusal(tar_of(pax(size=b"21474836480"), header(b"a")))

        assert "more than 20.0 GiB" in told(refusal)
        assert "`bundle-path`" in refusal.way_out

    def test_hold_for_copies_too(self, place: Place) -> None:
        links = [entry(b"%d" % number, type_=b"1", target=b"a") for number in range(20)]

        refusal = place.refusal(tar_of(entry(b"a", bytes(50_000)), *links), limits=Limits(unpacked_bytes=1_000_000))

        assert "more than 976.6 KiB" in told(refusal)

    def test_do_not_include_the_ratio_which_real_sites_push_to_thousands(self, place: Place) -> None:
        page = b"<nav>" + b"<a href='/guide'>Guide</a>" * 40_000
        links = b"".join(entry(b"%d" % number, type_=b"1", target=b"page") for number in range(256 * 2**20 // len(page)))
        archive = gzip.compress(tar_of(entry(b"page", page), links), compresslevel=1)

        unpacked = place.unpack(archive)

        assert unpacked.size > max(256 * 2**20, 1000 * len(archive))
        for file in place.folder.iterdir():  # all that is left when a test ends is searched for the key
            file.unlink()

    def test_hold_for_the_steps_of_all_links(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("docs_platform_action.archive.symlinks.MOST_STEPS", 10_000)
        links = (pax(linkpath=b"a/../" * 200 + b"a/b") + entry(b"l%d" % number, type_=b"2") for number in range(30))

        assert "takes too much time" in told(place.refusal(tar_of(entry(b"a/b"), *links)))

    def test_hold_for_what_is_no_file(self, place: Place) -> None:
        header_of_nothing = entry(b"pax", pax_record(b"comment", b"x" * 1_000_000), type_=b"x")
        archive = gzip.compress(header_of_nothing * 30 + tar_of())

        assert "more than 10 bytes" in told(place.refusal(archive, limits=Limits(unpacked_bytes=10, entries=5)))

    @pytest.mark.parametrize("layers", [1, 2])
    def test_hold_for_zeros_at_the_end(self, place: Place, layers: int) -> None:
        archive = tar_of() + bytes(17 * 2**20)
        for _ in range(layers):
            archive = gzip.compress(archive)

        assert "more than 10.0 KiB" in told(place.refusal(archive, limits=Limits(unpacked_bytes=10 * 1024, entries=5)))

    def test_hold_for_each_of_two_layers_of_gzip(self, place: Place) -> None:
        padded = gzip.compress(tar_of()) + bytes(17 * 2**20)

        assert "more than 10.0 KiB" in told(
            place.refusal(gzip.compress(padded), limits=Limits(unpacked_bytes=10 * 1024, entries=5))
        )


class FakeDisk(Disk):
    """A disk with so many bytes free at first, on which only the site takes more."""

    def __init__(self, place: Place, *, total: int, free: int, inodes: int = 0, free_inodes: int = 0) -> None:
        super().__init__(place.folder)
        self.place = place
        self.total, self.free = total, free
        self.inodes, self.free_inodes = inodes, free_inodes
        self.looks = 0
        self.before: Callable[[], None] = lambda: None

    @property
    def used(self) -> int:
        return self.unnamed + sum(4096 + path.lstat().st_size * path.is_file() for path in self.place.folder.rglob("*"))

    @property
    def unnamed(self) -> int:
        """Count the bytes of open files that are in the folder under no name."""
        found = 0
        for descriptor in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed since, such as that of the listing itself
                status = descriptor.stat()
                is_here = descriptor.readlink().is_relative_to(self.place.folder)
                found += status.st_size if is_here and stat.S_ISREG(status.st_mode) and not status.st_nlink else 0
        return found

    @property
    def made(self) -> int:
        return sum(1 for _ in self.place.folder.rglob("*"))

    def space(self) -> Space:
        self.looks += 1
        self.before()
        return Space(
            total_bytes=self.total,
            free_bytes=self.free - self.used,
            total_inodes=self.inodes,
            free_inodes=self.free_inodes - self.made if self.inodes else sys.maxsize,
        )


class TestDisk:
    """A part of the disk stays free, whatever an archive holds."""

    @pytest.mark.parametrize("kind", KINDS)
    def test_stops_a_bomb_while_the_reserve_is_free(self, place: Place, kind: str) -> None:
        archive = KINDS[kind](Site(files={f"{number}": bytes(300_000) for number in range(20)}))
        disk = FakeDisk(place, total=10_000_000, free=4_000_000)

        refusal = place.refusal(archive, disk=disk)

        assert 2_500_000 < disk.used <= 3_000_000
        assert refusal.happened == "the bundle is too large for the runner's disk"
        assert refusal.facts[1].endswith("of the disk's 9.5 MiB are free; the action leaves 976.6 KiB free.")
        assert "`bundle-path`" in refusal.way_out
        assert "larger disk" in refusal.way_out

    @pytest.mark.parametrize("kind", KINDS)
    def test_takes_what_fits_beside_the_reserve(self, place: Place, kind: str) -> None:
        archive = KINDS[kind](Site(files={f"{number}": bytes(300_000) for number in range(20)}))
        disk = FakeDisk(place, total=10_000_000, free=7_500_000)

        assert place.unpack(archive, disk=disk).size == 6_000_000

    def test_stops_before_a_file_that_only_announces_to_be_too_large(self, place: Place) -> None:
        disk = FakeDisk(place, total=100 * 2**30, free=3 * 2**30)

        refusal = place.refusal(tar_of(pax(size=b"%d" % (5 * 2**30)), header(b"a")), disk=disk)

        assert place.tree().keys() == {"index.html"}
        assert refusal.facts == (
            "Unpacking stopped after 13 bytes; the next file is 5.0 GiB.",
            "3.0 GiB of the disk's 100.0 GiB are free; the action leaves 1.0 GiB free.",
        )

    @pytest.mark.parametrize("type_", [b"0", b"5", b"2"], ids=["files", "folders", "links"])
    def test_counts_a_block_for_each_entry_however_little_is_in_it(self, place: Place, type_: bytes) -> None:
        entries = [entry(b"%d" % number, type_=type_, target=b"index.html" * (type_ == b"2")) for number in range(100)]
        disk = FakeDisk(place, total=2_000_000, free=400_000)

        assert "too large for the runner's disk" in told(place.refusal(tar_of(*entries), disk=disk))
        assert disk.used <= 200_000

    def test_has_enough_inodes_left_too(self, place: Place) -> None:
        entries = [entry(b"a/%d" % number) for number in range(100)]
        disk = FakeDisk(place, total=10**12, free=10**12, inodes=65_536, free_inodes=6_600)

        refusal = place.refusal(tar_of(*entries), disk=disk)

        assert disk.made == 6_600 - 6_553
        assert refusal.facts == (
            "Unpacking stopped after 13 bytes.",
            "6,553 of the disk's 65,536 inodes are free; the action leaves 6,553 free. Each file, folder and link takes one.",
        )

    def test_is_looked_at_again_as_others_fill_it_too(self, place: Place) -> None:
        disk = FakeDisk(place, total=10**12, free=10**12)
        filling = iter([10**12, 10**12, 0])

        def fill() -> None:
            disk.free = next(filling)

        disk.before = fill

        refusal = place.refusal(KINDS["tar.gz"](Site(files={"a": bytes(40 * 2**20), "b": b""})), disk=disk)

        assert "too large for the runner's disk" in told(refusal)
        assert disk.used <= 33 * 2**20

    def test_keeps_its_reserve_when_many_archives_are_unpacked_side_by_side(self) -> None:
        free = 150 * 2**20
        written = 0

        class SharedDisk(Disk):
            def space(self) -> Space:
                return Space(total_bytes=200 * 2**20, free_bytes=free - written, total_inodes=1000, free_inodes=1000)

        disk = SharedDisk(-1)
        meters = [Meter(Limits(), disk) for _ in range(10)]
        while meters:
            for meter in [*meters]:
                try:
                    meter.count_bytes(64 * 1024)
                except InvalidBundle:
                    meters.remove(meter)
                else:
                    written += 64 * 1024

        assert free - written >= 0.9 * disk.space().reserved_bytes

    def test_is_looked_at_seldom_while_there_is_plenty(self, place: Place) -> None:
        disk = FakeDisk(place, total=10**12, free=10**12)

        place.unpack(KINDS["tar.gz"](Site(files={f"{number}": b"page" for number in range(1000)})), disk=disk)

        assert disk.looks == 1

    def test_holds_a_zip_archive_that_comes_out_of_gzip_as_well(self, place: Place) -> None:
        archive = gzip.compress(zip_of(Zipped(content=bytes(2_000_000), method=0)))
        seen: list[int] = []
        disk = FakeDisk(place, total=10_000_000, free=2_900_000)
        disk.before = lambda: seen.append(disk.unnamed)

        refusal = place.refusal(archive, disk=disk)

        assert 1_800_000 < max(seen) <= 1_900_000
        assert refusal.facts[0] == "Unpacking stopped after 0 bytes."
        assert place.tree() == {}
        assert disk.unnamed == 0

    def test_keeps_a_tenth_of_itself_but_no_more_than_a_gibibyte(self) -> None:
        assert Space(total_bytes=5 * 2**30, free_bytes=0).reserved_bytes == 2**29
        assert Space(total_bytes=500 * 2**30, free_bytes=0).reserved_bytes == 2**30
        assert Space(total_bytes=1, free_bytes=0, total_inodes=10**7, free_inodes=10**6).usable_inodes == 990_000

    def test_tells_what_it_has(self, tmp_path: Path) -> None:
        found = os.statvfs(tmp_path)

        space = space_at(tmp_path)

        assert space.total_bytes == found.f_blocks * found.f_frsize
        assert 0 < space.free_bytes < space.total_bytes

    def test_that_tells_nothing_is_no_bound(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        nothing = SimpleNamespace(f_blocks=0, f_bavail=0, f_frsize=4096, f_files=0, f_favail=0)
        monkeypatch.setattr(os, "statvfs", lambda _: nothing)

        place.unpack(tar(SMALL_SITE))

        assert place.tree() == SMALL_TREE


def gzip_of_zeros(before: bytes, count_of_mebibytes: int) -> bytes:
    """Compress something, and so many MiB of zeros, without the time that it takes. The checksum is missing."""
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

    def test_may_fail_in_a_decompressor(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        class Exhausted:
            eof, needs_input, unused_data = False, True, b""

            def decompress(self, _data: bytes, _max_length: int) -> bytes:
                raise MemoryError

        monkeypatch.setattr(zlib, "decompressobj", lambda _wbits: None)
        monkeypatch.setattr("docs_platform_action.archive.codecs._Inflater", lambda _wbits: Exhausted())

        assert "cannot be decompressed" in told(place.refusal(gzip.compress(tar(SMALL_SITE))))


class TestCost:
    """System calls, which are most of what a small file costs."""

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


class TestOtherPackers:
    """What other readers take for the same must be the same here."""

    @pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
    def test_of_every_form_of_tar_are_read(self, place: Place, form: int) -> None:
        place.unpack(tar(SMALL_SITE, form=form))

        assert place.tree() == SMALL_TREE

    @pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
    def test_of_every_method_of_zip_are_read(self, place: Place, method: int) -> None:
        place.unpack(zipped(SMALL_SITE, method=method))

        assert place.tree() == SMALL_TREE
