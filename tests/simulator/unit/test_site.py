"""The exported site and its archives."""

import io
import re
import tarfile
import zipfile
from collections.abc import Mapping
from posixpath import dirname, join, normpath
from typing import Literal, get_args

import pytest

from admin_api_simulator.site import LARGE_FILE_BYTES, ArchiveKind, build_archive, site_files

READING: Mapping[ArchiveKind, Literal["r:", "r:gz", "r:bz2", "r:xz"]] = {
    "tar": "r:",
    "tar.gz": "r:gz",
    "tar.bz2": "r:bz2",
    "tar.xz": "r:xz",
}


def test_a_site_has_its_pages_and_all_they_link_to() -> None:
    files = site_files(domain="docs.example.com", pages=5)

    pages = {path: content.decode() for path, content in files.items() if path.endswith(".html")}

    assert len(pages) == 5
    for path, page in pages.items():
        for link in re.findall(r'(?:href|src)="([^"]+)"', page):
            assert normpath(join(dirname(path), link)) in files, f"{path} links to {link}"
    assert files["sitemap.xml"].count(b"<loc>") == 5


def test_a_site_of_one_page_links_nowhere_else() -> None:
    assert b"page-2" not in site_files(domain="docs.example.com", pages=1)["index.html"]


def test_a_domain_is_text_in_the_pages() -> None:
    files = site_files(domain="<script>", pages=1)

    assert b"<script>." not in files["index.html"]
    assert b"&lt;script&gt;" in files["sitemap.xml"]


def test_an_asset_is_as_large_as_asked_for_and_does_not_shrink() -> None:
    files = site_files(domain="docs.example.com", pages=1, asset_bytes=50_000)

    assert len(files["assets/video.bin"]) == 50_000
    assert len(build_archive(files, "tar.gz")) > 50_000


@pytest.mark.parametrize("kind", get_args(ArchiveKind))
def test_an_archive_holds_the_files_and_has_the_same_bytes_each_time(kind: ArchiveKind) -> None:
    files = site_files(domain="docs.example.com", pages=3)

    packed = build_archive(files, kind)

    assert packed == build_archive(files, kind)
    assert unpacked(packed, kind) == files


@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_a_large_asset_is_packed_as_it_is(kind: ArchiveKind) -> None:
    files = site_files(domain="docs.example.com", pages=2, asset_bytes=LARGE_FILE_BYTES)

    packed = build_archive(files, kind)

    assert files["assets/video.bin"][:30_000] in packed
    assert unpacked(packed, kind) == files


def unpacked(content: bytes, kind: ArchiveKind) -> dict[str, bytes]:
    if kind == "zip":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    with tarfile.open(fileobj=io.BytesIO(content), mode=READING[kind]) as tar:
        found = {}
        for entry in tar:
            content_file = tar.extractfile(entry)
            assert content_file is not None
            found[entry.name] = content_file.read()
        return found
