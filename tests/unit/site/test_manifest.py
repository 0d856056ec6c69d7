"""The lines of a site's manifest, and what is not a whole one."""

import hashlib
import re
from typing import Final

import pytest

from docs_platform_action.errors import InvalidBundle
from docs_platform_action.models import FileDigests, Manifest
from docs_platform_action.site import links, manifest
from docs_platform_action.site.manifest import manifest_lines, read_manifest, site_sha256

CONTENT: Final = bytes(range(32))
TEXT: Final = bytes(range(32, 64))
TEXT_LINE: Final = b"# text " + TEXT.hex().encode() + b"\n"
FILE: Final = FileDigests(CONTENT, None)
PAGE: Final = FileDigests(CONTENT, TEXT)


def line(path: bytes) -> bytes:
    return CONTENT.hex().encode() + b"  " + path + b"\n"


def link(path: bytes, target: bytes = b"a") -> bytes:
    return b"# link " + path + b" -> " + target + b"\n"


FILES: Final = {
    b"index.html": PAGE,
    b"-": FILE,
    b".well-known/x": FILE,
    b"a/b.txt": FILE,
    b"a-b.HTML": PAGE,
    b"large.html": FILE,  # too large for a digest of its text
    "größe/a  b.txt ".encode(): FILE,
    b"# text": FILE,
}
FOLDER_LINKS: Final = {b"latest": b"a", b"k -": "größe -> b".encode(), b"a/up": b"b"}
MANIFEST: Final = Manifest(files=FILES, folder_links=FOLDER_LINKS)
LINES: Final = b"".join(
    [
        b"# 11 files\n",
        line(b"# text"),
        line(b"./-"),
        line(b".well-known/x"),
        line(b"a-b.HTML"),
        TEXT_LINE,
        line(b"a/b.txt"),
        line("größe/a  b.txt ".encode()),
        line(b"index.html"),
        TEXT_LINE,
        line(b"large.html"),
        link(b"a/up", b"b"),
        link(b"k -", "größe -> b".encode()),
        link(b"latest"),
    ]
)


def test_the_lines_are_in_the_order_of_the_paths_and_are_read_back() -> None:
    assert b"".join(manifest_lines(MANIFEST)) == LINES
    assert read_manifest(LINES) == MANIFEST


def test_a_link_with_the_name_of_the_standard_input_has_no_other_name() -> None:
    found = Manifest(files={b"a/b": FILE}, folder_links={b"-": b"a"})

    lines = b"".join(manifest_lines(found))

    assert lines == b"# 2 files\n" + line(b"a/b") + b"# link - -> a\n"
    assert read_manifest(lines) == found


def test_it_is_not_whole_wherever_it_is_cut_off() -> None:
    for size in range(1, len(LINES)):
        with pytest.raises(ValueError, match=r"^line [0-9]+ "):
            read_manifest(LINES[:size])


@pytest.mark.parametrize(
    ("lines", "number"),
    [
        (line(b"a"), 1),
        (b"# 0 files\n", 1),
        (b"# 250001 files\n" + line(b"a"), 1),
        (b"# 1 file\n" + line(b"a"), 1),
        (b"\xef\xbb\xbf# 1 files\n" + line(b"a"), 1),
        (b"# 1 files\r\n" + line(b"a"), 1),
        (b"<!doctype html>\n", 1),
        (b"# 1 files\n" + line(b"a\r"), 2),
        (b"# 1 files\n" + line(b"a") + b"\n", 3),
        (b"# 1 files\n" + line(b"a") + line(b"b"), 4),  # the end
        (b"# 2 files\n" + line(b"a") + line(b"a"), 3),
        (b"# 2 files\n" + line(b"b") + line(b"a"), 3),
        (b"# 2 files\n" + line(b"a/b") + line(b"a-b"), 3),
        (b"# 1 files\n" + line(b"a").upper(), 2),
        (b"# 1 files\n" + line(b"a").replace(b"  ", b" *"), 2),
        (b"# 1 files\n\\" + line(b"a"), 2),
        (b"# 1 files\n" + TEXT_LINE + line(b"a.html"), 2),
        (b"# 1 files\n" + line(b"a") + TEXT_LINE, 3),
        (b"# 1 files\n" + line(b"a.html") + TEXT_LINE + TEXT_LINE, 4),
        (b"# 1 files\n" + line(b"a.html") + b"# a remark\n", 3),
        (b"# 1 files\n" + link(b"a", b"b"), 2),
        (b"# 1 files\n" + line(b"a") + link(b"b"), 4),  # the end
        (b"# 2 files\n" + link(b"a", b"b") + line(b"b"), 2),
        (b"# 3 files\n" + line(b"a") + link(b"b") + line(b"c"), 4),
        (b"# 3 files\n" + line(b"a.html") + link(b"b") + TEXT_LINE, 4),
        (b"# 3 files\n" + line(b"a") + link(b"b") + link(b"b"), 4),
        (b"# 3 files\n" + line(b"a") + link(b"c") + link(b"b"), 4),
        (b"# 2 files\n" + line(b"a") + link(b"b")[:-1], 3),
        (b"# 2 files\n" + line(b"a") + link(b"b").replace(b"->", b"="), 3),
        (b"# 2 files\n" + line(b"a") + link(b"b", b""), 3),  # the top of the site
        (b"# 2 files\n" + line(b"a") + link(b""), 3),
        (b"# 2 files\n" + line(b"a") + link(b"a", b"b"), 3),
        (b"# 2 files\n" + line(b"a") + link(b"b", b" -> " + b"c" * 1024), 3),
        (b"# 3 files\n" + line(b"a") + link(b"b/x", b"c") + link(b"c/x", b"b"), 3),
    ],
)
def test_what_no_run_writes_is_refused_with_the_number_of_the_line(
    lines: bytes, number: int
) -> None:
    with pytest.raises(ValueError, match=rf"^line {number} "):
        read_manifest(lines)


@pytest.mark.parametrize(
    "path",
    [
        *(b"../x", b"/x", b"a/../b", b"./x", b"a//b", b"a/", b"a\\b", b"-", b""),
        *(b"\xff", b"a\0b", b"a\x1bb", "a\x85b".encode(), b"a\rb"),
    ],
)
def test_a_path_that_no_archive_unpacks_to_is_refused(path: bytes) -> None:
    with pytest.raises(ValueError, match=r"^line 2 "):
        read_manifest(b"# 1 files\n" + line(path))
    for invalid in (link(path), link(b"b", path)):
        if path != b"-":
            with pytest.raises(ValueError, match=r"^line 3 "):
                read_manifest(b"# 2 files\n" + line(b"a") + invalid)


def test_links_that_lead_to_too_many_files_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = b"# 3 files\n" + line(b"a/x.html") + line(b"a/y.html") + link(b"b")
    assert read_manifest(lines).folder_links == {b"b": b"a"}
    monkeypatch.setattr(links, "MAX_REACHABLE", 3)

    with pytest.raises(ValueError, match=r"^line 4 \('# link b -> a'\) is the first link"):
        read_manifest(lines)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            b"# 2 files\r\n",
            r"line 1 ('# 2 files\r') is not `# N files` with N from 1 to 250,000",
        ),
        (
            b"# 2 files\n" + line(b"a"),
            "line 3 ('') is the end, after 1 files, but line 1 says 2",
        ),
    ],
)
def test_the_error_shows_the_line(lines: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        read_manifest(lines)


def test_the_digest_of_a_site_is_that_of_the_lines_about_files_and_links() -> None:
    lines = [b"# 3 files\n", b"00  a.html\n", b"# text 00\n", b"11  # b\n", b"# link c -> d\n"]

    expected = hashlib.sha256(b"00  a.html\n11  # b\n# link c -> d\n")
    assert site_sha256(lines) == expected.hexdigest()


def test_a_manifest_that_no_run_could_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "MAX_BYTES", 20)

    assert site_sha256([b"x" * 20])
    with pytest.raises(InvalidBundle, match="manifest"):
        site_sha256([b"x" * 20, b"y"])
