"""Archives are read as their writers mean them, or refused with the reason."""

import bz2
import errno
import gzip
import io
import lzma
import os
import struct
import tarfile
import tracemalloc
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from unittest.mock import Mock

import pytest

from docs_platform_action.bundle.archive import CHUNK_BYTES, START_BYTES, is_archive, zip_entries
from docs_platform_action.bundle.faults import damaged, not_an_archive, too_large, unsafe
from tests.archives import (
    EMPTY_END,
    FILE,
    HOSTILE,
    KINDS,
    NOT_ARCHIVES,
    SEVEN_ZIP,
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
    unicode_zipped,
    zip_of,
)
from tests.folders import Tree
from tests.unit.bundle.places import EXACT, INDEX, SMALL_TREE, Exact, Place, limited

PAGE: Final = b"<h1>Docs</h1>"
ABC: Final = b"abc".ljust(512, b"\0")
LONG_NAME: Final = "x" * 120
FOLDERS: Final = [entry(name, type_=b"5") for name in (b"/", b"./", b".", b"//")]
SUMMARIES: Final = {
    kind: error("").summary
    for kind, error in {"damaged": damaged, "unsafe": unsafe, "not an archive": not_an_archive, "too large": too_large}.items()
}


def signed(block: bytes) -> bytes:
    """Return a header with a sum of signed bytes."""
    blank = block[:148] + b" " * 8 + block[156:]
    return blank[:148] + f"{sum(struct.unpack('512b', blank)):06o}\0 ".encode() + blank[156:]


def with_field(name: bytes, start: int, value: bytes, *, size: int = 0) -> bytes:
    """Return a header with a value at this offset."""
    block = header(name, size=size)
    return checksummed(block[:start] + value + block[start + len(value) :])


TARS: Final[Mapping[str, tuple[bytes, Tree]]] = {
    "a label, and the folder itself": (entry(b"Docs", type_=b"V") + tar_of(*FOLDERS), INDEX),
    "a folder with a size": (tar_of(header(b"a/", type_=b"5", size=4096)), {"a": None, **INDEX}),
    "folders without a slash or a type": (
        tar_of(entry(b"a", type_=b"5"), entry(b"b/"), entry(b"c/", type_=b"\0")),
        {"a": None, "b": None, "c": None, **INDEX},
    ),
    "GNU's times where POSIX has a prefix": (
        tar_of(with_field(b"a", 257, b"ustar  \0".ljust(88, b"\0") + b"12345670123\0")),
        {"a": b"", **INDEX},
    ),
    "POSIX's prefix": (
        tar_of(with_field(b"b" * 100, 345, b"a" * 155)),
        {"a" * 155: None, "a" * 155 + "/" + "b" * 100: b"", **INDEX},
    ),
    "a header from before POSIX": (with_field(b"a", 156, bytes(356), size=3) + ABC + EMPTY_END, {"a": b"abc"}),
    "a sum of signed bytes": (tar_of(signed(entry("é".encode()))), {**INDEX, "é": b""}),
    "a size in binary": (tar_of(with_field(b"a", 124, b"\x80" + bytes(10) + b"\3") + ABC), {"a": b"abc", **INDEX}),
    "a size in an extended header": (tar_of(pax(size=b"3", comment=b"="), header(b"a") + ABC), {"a": b"abc", **INDEX}),
    "a header for all entries": (entry(b"pax", pax_record(b"comment", b"abc"), type_=b"g") + tar_of(), INDEX),
    "two names for an entry": (tar_of(pax(path=b"a"), pax(path=b"b"), entry(b"c")), {"a": b"", **INDEX}),
    "a link to a long name": (
        tar(Site(files={LONG_NAME: b"1"}, links={"link": LONG_NAME}), form=tarfile.GNU_FORMAT),
        {"link": LONG_NAME, LONG_NAME: b"1"},
    ),
    "an odd number of blocks": (FILE + bytes(513), INDEX),
    "POSIX.1-1988": (tar(SMALL_SITE, form=tarfile.USTAR_FORMAT), SMALL_TREE),
    "a contiguous file": (tar_of(entry(b"a", b"abc", type_=b"7")), {"a": b"abc", **INDEX}),
}
ZIPS: Final[Mapping[str, tuple[bytes, Tree]]] = {
    "a comment": (zip_of(Zipped(), comment=b"0123abc PK\5 PK\1\2" * 5), INDEX),
    "a name in UTF-8 without the flag": (zip_of(Zipped(name="ü".encode())), {"ü": PAGE}),
    "a name in CP437": (zip_of(Zipped(name=b"\x81")), {"ü": PAGE}),
    "a placeholder, and the name in the Unicode field": (
        zip_of(
            Zipped(name=b"a", extra=bytes(4 * 98) + unicode_zipped("日.html".encode(), b"a").extra),
            unicode_zipped("ü/".encode(), b"\x81/", content=b""),
        ),
        {"ü": None, "日.html": PAGE},
    ),
    "the Unicode field of another name": (zip_of(unicode_zipped(b"b", b"c"), unicode_zipped(b"b", b"b")), {"b": PAGE}),
    "a system without modes": (zip_of(Zipped(system=0, mode=0o104755)), INDEX),
    "a link that DOS made": (zip_of(Zipped(name=b"a", content=b"b", system=0, mode=0o120777)), {"a": b"b"}),
    "a folder without a slash": (zip_of(Zipped(), Zipped(name=b"d", content=b"", mode=0o40755)), {"d": None, **INDEX}),
    "a folder without a type": (zip_of(Zipped(), Zipped(name=b"d/", content=b"", mode=0)), {"d": None, **INDEX}),
    "a folder of DOS": (zip_of(Zipped(), Zipped(name=b"d", content=b"", system=0, attributes=0x10)), {"d": None, **INDEX}),
}


class TestReading:
    @pytest.mark.parametrize("pack", KINDS.values(), ids=KINDS)
    def test_gives_what_was_packed_whatever_the_kind(self, place: Place, pack: Callable[[Site], bytes]) -> None:
        unpacked = place.unpack(pack(SMALL_SITE))

        assert place.tree() == SMALL_TREE
        assert (unpacked.files, unpacked.bytes, unpacked.html_files) == (3, 613, 2)

    @pytest.mark.parametrize("pack", KINDS.values(), ids=KINDS)
    def test_gives_files_of_several_chunks(self, place: Place, pack: Callable[[Site], bytes]) -> None:
        content = os.urandom(CHUNK_BYTES) * 3 + b"!"

        place.unpack(pack(Site(files={"a": content, "b": b""})))

        assert place.tree() == {"a": content, "b": b""}

    @pytest.mark.parametrize(("archive", "tree"), [*TARS.values(), *ZIPS.values()], ids=[*TARS, *ZIPS])
    def test_understands_what_writers_do(self, place: Place, archive: bytes, tree: Tree) -> None:
        place.unpack(archive)

        assert place.tree() == tree

    @pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
    def test_joins_several_compressed_streams(self, place: Place, compress: Callable[[bytes], bytes]) -> None:
        archive = entry(b"a", os.urandom(CHUNK_BYTES)) + FILE + EMPTY_END

        place.unpack(compress(archive[:300]) + compress(b"") + compress(archive[300:]))

        assert place.tree().keys() == {"a", "index.html"}

    @pytest.mark.parametrize(
        "archive",
        [
            FILE + EMPTY_END + bytes(1_000_001),
            gzip.compress(FILE + EMPTY_END) + bytes(200_000),
            lzma.compress(FILE) + bytes(2 * CHUNK_BYTES) + lzma.compress(EMPTY_END) + bytes(4),
            zip_of(Zipped()) + bytes(60_000),
        ],
        ids=["tar", "gzip", "xz", "zip"],
    )
    def test_ignores_zeros_at_the_end(self, place: Place, archive: bytes) -> None:
        place.unpack(archive)

        assert place.tree() == INDEX


class TestRefusals:
    @pytest.mark.parametrize(("archive", "kind"), HOSTILE.values(), ids=HOSTILE)
    def test_say_what_is_wrong(self, place: Place, archive: bytes, kind: str) -> None:
        refusal = place.refusal(archive)

        assert [kind for kind, summary in SUMMARIES.items() if summary == refusal.summary] == [kind] * (kind != "empty")
        assert all(len(fact) < 600 for fact in refusal.details)

    @pytest.mark.parametrize("pack", KINDS.values(), ids=KINDS)
    def test_meet_every_archive_that_is_cut_anywhere(self, tmp_path: Path, pack: Callable[[Site], bytes]) -> None:
        archive = pack(SMALL_SITE)
        end = len(archive.rstrip(b"\0")) if archive.endswith(bytes(1024)) else len(archive)

        for length in (*range(0, end, 37), end - 1):
            with Place(tmp_path / str(length)) as place:
                place.refusal(archive[:length])

    @pytest.mark.parametrize("exact", EXACT.values(), ids=EXACT)
    def test_meet_what_is_beyond_a_limit(self, tmp_path: Path, exact: Exact) -> None:
        with limited(exact.limit, exact.value), Place(tmp_path / "within") as place:
            place.unpack(exact.archive)

        with limited(exact.limit, exact.value - 1), Place(tmp_path / "beyond") as place:
            place.refusal(exact.archive)


def _global_header(key: bytes) -> bytes:
    return entry(b"pax", pax_record(key, bytes(900_000)), type_=b"g")


def gzip_of_zeros(before: bytes, count_of_mebibytes: int) -> bytes:
    """Return gzip data of these bytes and of zeros, made in no time. The checksum is missing."""
    packer = zlib.compressobj(wbits=31)
    start = packer.compress(before) + packer.flush(zlib.Z_FULL_FLUSH)
    one = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return start + one * count_of_mebibytes


@pytest.mark.parametrize(
    "archive",
    [
        gzip_of_zeros(header(b"pax", type_=b"x", size=1 << 30), 1024),
        gzip_of_zeros(header(b"file", size=1 << 30), 1024),
        gzip_of_zeros(tar_of(), 1024),
        bz2.compress(header(b"pax", type_=b"x", size=1 << 24) + bytes(1 << 24)),
        tar_of(*[entry(b"pax", type_=b"g")] * 1001, entry(b"a")),
        zip_of(Zipped(), Zipped(name=b"a", content=bytes(1 << 24), mode=0o120777)),
        zip_of(Zipped(name=b"a", content=bytes(1 << 24), size=10)),
        tar_of(
            *[part for key in range(12) for part in (_global_header(b"%d" % key), entry(b"%d" % key))], entry(b"a", type_=b"6")
        ),
    ],
    ids=["pax", "file", "zeros", "bzip2", "many headers", "zip's link", "zip's file", "global headers"],
)
def test_memory_is_bounded_whatever_an_archive_announces_or_holds(place: Place, archive: bytes) -> None:
    tracemalloc.start()
    try:
        with limited("tree.MAX_UNPACKED_BYTES", 1 << 24), limited("archive.MAX_STREAM_BYTES", 1 << 24):
            place.refusal(archive)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 6 * 1024**2


def test_an_error_of_the_disk_is_not_one_of_the_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.BytesIO(zip_of(Zipped(name=b"folder/", content=b""), Zipped()))
    entries = zip_entries(file)
    next(entries)
    monkeypatch.setattr("docs_platform_action.bundle.archive._ZipSource.read", Mock(side_effect=OSError(errno.EIO, "broken")))

    with pytest.raises(OSError, match="broken"):
        next(entries)


@pytest.mark.parametrize(
    ("content", "is_one"),
    [
        *[(pack(SMALL_SITE), True) for pack in KINDS.values()],
        *[(SEVEN_ZIP, True), (bytes(10240), True)],
        *[(content, False) for content in NOT_ARCHIVES.values()],
    ],
    ids=[*KINDS, "7z", "tar without entries", *NOT_ARCHIVES],
)
def test_an_archive_is_recognized_by_its_first_bytes(content: bytes, *, is_one: bool) -> None:
    assert is_archive(content[:START_BYTES]) is is_one
