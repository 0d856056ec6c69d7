"""Archives of every kind are read entry by entry, within limits."""

import gzip
from pathlib import Path
from typing import Final
from unittest.mock import patch

import pytest

from docs_platform_action.bundle import archive as module
from docs_platform_action.bundle.archive import describe_content, is_archive
from docs_platform_action.bundle.zip import zip_entries
from docs_platform_action.errors import InvalidBundle
from tests.archives import (
    KINDS,
    SMALL_SITE,
    Site,
    Zipped,
    entry,
    extended_entry,
    tar,
    tar_of,
    zip_end,
    zip_of,
)
from tests.folders import Tree
from tests.unpacking import entries_of, unpacked

SMALL_TREE: Final[Tree] = {
    "assets": None,
    "guide": None,
    **SMALL_SITE.files,
    "guide/home.html": "../index.html",
    "latest": "guide",
}
INDEX: Final[Tree] = {"index.html": b"<h1>Docs</h1>"}
SMALL_TAR: Final = tar(SMALL_SITE)


def link(name: bytes, target: bytes, type_: bytes = b"2") -> bytes:
    return entry(name, type_=type_, target=target)


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_packed_comes_out_whatever_the_kind(kind: str) -> None:
    pack = KINDS[kind]
    large_files = {"a": bytes(range(256)) * (module.CHUNK_BYTES // 256 + 1), "b": b""}

    assert unpacked(pack(SMALL_SITE)) == SMALL_TREE
    with patch("tests.unpacking.LIMITS", {}):
        assert unpacked(pack(Site(files=large_files))) == large_files


@pytest.mark.parametrize(
    ("archive", "tree"),
    [
        (tar_of(entry(b"./a//b/./c", b"x")), {**INDEX, "a": None, "a/b": None, "a/b/c": b"x"}),
        (tar_of(entry(b"a", b"1"), entry(b"a", b"2")), {**INDEX, "a": b"2"}),
        (tar_of(entry(b"a"), link(b"a", b"index.html")), {**INDEX, "a": "index.html"}),
        (tar_of(link(b"a", b"b"), entry(b"a", b"2")), {**INDEX, "a": b"2"}),
        (tar_of(link(b"a", b"index.html", b"1")), {**INDEX, "a": b"<h1>Docs</h1>"}),
        (
            tar_of(link(b"a", b"index.html"), link(b"b", b"a", b"1")),
            {**INDEX, "a": "index.html", "b": "index.html"},
        ),
        (tar_of(entry(b"A", b"1"), entry(b"a", b"2")), {**INDEX, "A": b"1", "a": b"2"}),
        (tar_of(entry(b"__MACOSX/x"), entry(b"._a"), entry(b"b/._c")), INDEX),
        (tar_of(entry(b"./", type_=b"5")), INDEX),
        (tar_of(entry(b"a/")), {**INDEX, "a": None}),
        (tar_of(entry(b"._a", type_=b"5")), {**INDEX, "._a": None}),
        (tar_of(extended_entry(path="é", size="1") + b"1" + bytes(511)), {**INDEX, "é": b"1"}),
        (zip_of(Zipped(), Zipped(name=b"caf\x82", flags=0)), {**INDEX, "café": b"<h1>Docs</h1>"}),
        (
            zip_of(Zipped(), Zipped(name="é".encode(), flags=1 << 11)),
            {**INDEX, "é": b"<h1>Docs</h1>"},
        ),
        (
            zip_of(Zipped(), Zipped(name=b"a/", content=b"", system=0, attributes=0x10)),
            {**INDEX, "a": None},
        ),
        (zip_of(Zipped(), Zipped(name=b"a", content=b"", mode=0o040755)), {**INDEX, "a": None}),
        (zip_of(Zipped(), Zipped(name=b"a", content=b"x", attributes=0x10)), {**INDEX, "a": b"x"}),
        (
            zip_of(Zipped(), Zipped(name=b"a", content=b"x", system=0, mode=0o120777)),
            {**INDEX, "a": b"x"},
        ),
        (gzip.compress(SMALL_TAR[:700]) + gzip.compress(SMALL_TAR[700:]), SMALL_TREE),
        (gzip.compress(SMALL_TAR) + bytes(10_000), SMALL_TREE),
    ],
)
def test_names_links_and_doubles_are_read_as_other_tools_do(archive: bytes, tree: Tree) -> None:
    found = unpacked(archive)

    assert {path: node for path, node in found.items() if node is not None or path in tree} == tree


@pytest.mark.parametrize(
    ("limit", "value", "archive"),
    [
        ("archive.MAX_ENTRIES", 4, tar_of(entry(b"a/b"), entry(b"a/c"))),
        ("archive.MAX_ENTRIES", 4, tar_of(entry(b"a/"), entry(b"a/"), entry(b"._b"))),
        ("decompression.MAX_STREAM_BYTES", len(SMALL_TAR), gzip.compress(SMALL_TAR)),
        ("tar.MAX_HEADER_BYTES", 512 + 1024 + 512, tar_of(extended_entry(comment="x" * 1000))),
        (
            "tree.MAX_UNPACKED_BYTES",
            39,
            tar_of(link(b"a", b"index.html", b"1"), entry(b"b", bytes(13))),
        ),
        (
            "tree.MAX_LINKS",
            3,
            tar_of(*(link(b"%d" % number, b"index.html") for number in range(3))),
        ),
    ],
)
def test_a_limit_is_just_allowed_and_one_more_is_refused(
    limit: str, value: int, archive: bytes
) -> None:
    constant = f"docs_platform_action.bundle.{limit}"

    with patch("tests.unpacking.LIMITS", {}), patch(constant, value):
        assert unpacked(archive)
    with (
        patch("tests.unpacking.LIMITS", {}),
        patch(constant, value - 1),
        pytest.raises(InvalidBundle),
    ):
        unpacked(archive)


def test_a_zip_file_whose_entry_begins_before_the_file_is_refused(tmp_path: Path) -> None:
    archive = zip_of(Zipped())
    directory = archive.index(b"PK\1\2")
    end = archive.index(b"PK\5\6")
    wrong_end = zip_end(1, directory=end - directory, start=directory + 10)
    path = tmp_path / "archive.zip"
    path.write_bytes(archive[:end] + wrong_end)

    with path.open("rb") as file, pytest.raises(InvalidBundle):
        list(zip_entries(file))


def test_an_archive_is_recognized_by_its_first_bytes() -> None:
    for pack in KINDS.values():
        assert is_archive(pack(SMALL_SITE)[: module.START_BYTES])
    for start in (b"", b"<html>", b"PK", b"\0\1\2\3"):
        assert not is_archive(start)


@pytest.mark.parametrize(
    ("start", "description"),
    [
        (b"", "is empty"),
        (b"Rar!\x1a\x07\x01\x00", "looks like a rar archive"),
        (b"\xef\xbb\xbf\n<!DOCTYPE html>", "looks like a web page"),
        (b'[{"error": 1}]', "looks like JSON"),
        (entry(b"index.html"), "looks like a tar archive"),
        (b"\0\1\2\3\4\5\6\7\10", "begins with the bytes 00 01 02 03 04 05 06 07"),
    ],
)
def test_content_is_described_by_its_first_bytes(start: bytes, description: str) -> None:
    assert describe_content(start) == description


def test_memory_is_bounded_by_the_size_of_a_chunk() -> None:
    archive = gzip.compress(tar_of(entry(b"a", bytes(5_000_000))))
    largest = 0

    for found in entries_of(archive):
        for chunk in found.content:
            largest = max(largest, len(chunk))

    assert 0 < largest <= module.CHUNK_BYTES
