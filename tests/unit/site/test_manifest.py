"""The lines of a site's manifest, and what is not a whole one."""

import hashlib
import re
from typing import Final

import pytest

from docs_platform_action.errors import InvalidBundle
from docs_platform_action.models import FileDigests
from docs_platform_action.site import manifest
from docs_platform_action.site.manifest import manifest_lines, read_manifest, site_sha256

CONTENT: Final = bytes(range(32))
TEXT: Final = bytes(range(32, 64))
TEXT_LINE: Final = b"# text " + TEXT.hex().encode() + b"\n"
FILE: Final = FileDigests(CONTENT, None)
PAGE: Final = FileDigests(CONTENT, TEXT)


def line(path: bytes) -> bytes:
    return CONTENT.hex().encode() + b"  " + path + b"\n"


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
LINES: Final = b"".join(
    [
        b"# 8 files\n",
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
    ]
)


def test_the_lines_are_in_the_order_of_the_paths_and_are_read_back() -> None:
    assert b"".join(manifest_lines(FILES)) == LINES
    assert read_manifest(LINES) == FILES


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


def test_the_digest_of_a_site_is_that_of_the_lines_about_files() -> None:
    lines = [b"# 1 files\n", b"00  a.html\n", b"# text 00\n", b"11  # b\n"]

    assert site_sha256(lines) == hashlib.sha256(b"00  a.html\n11  # b\n").hexdigest()


def test_a_manifest_that_no_run_could_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "MAX_BYTES", 20)

    assert site_sha256([b"x" * 20])
    with pytest.raises(InvalidBundle, match="manifest"):
        site_sha256([b"x" * 20, b"y"])
