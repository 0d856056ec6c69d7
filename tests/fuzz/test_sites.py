"""Every site is unpacked unchanged; a damaged archive gives the same site or is rejected."""

import contextlib
import posixpath
import random
import unicodedata

import pytest
from hypothesis import strategies as st

from docs_platform_action.errors import InvalidBundle
from tests.archives import HOSTILE, KINDS, SMALL_SITE, Site
from tests.folders import Tree
from tests.fuzz import fuzz
from tests.fuzz.mutation import Edit, byte_pieces, edited, edits, mutated_bytes
from tests.fuzz.tree import ROOMY, unpacked

CHECKED_KINDS = ("tar.gz", "tar.bz2", "tar.xz", *(kind for kind in KINDS if kind.startswith("gzip of")))
"""Formats with a checksum over everything, which detects any damage."""

letters = st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="/\\")
parts = st.one_of(st.text(letters, min_size=1, max_size=20), st.sampled_from(["a", "b", " ", ".a", "a.html", "é" * 120]))
names = parts.filter(lambda part: part not in {".", ".."})
paths = st.lists(names, min_size=1, max_size=6).map("/".join).filter(lambda path: len(path.encode()) <= 1000)
noise = st.builds(lambda seed: random.Random(seed).randbytes(70_000), st.integers(0, 9))  # noqa: S311  # no secret
contents = st.one_of(st.binary(max_size=600), st.binary(max_size=600), noise)


def fold(path: str) -> str:
    """Return a path as on a file system that ignores case and Unicode composition."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def above(path: str) -> set[str]:
    parts = path.split("/")
    return {"/".join(parts[:depth]) for depth in range(1, len(parts))}


@st.composite
def sites(draw: st.DrawFn) -> Site:
    """Draw a valid site: each path has one type, and links lead to files, or from the top level to folders."""
    taken: dict[str, tuple[str, str]] = {}

    def fits(path: str, kind: str) -> bool:
        wanted = {fold(path): (path, kind)} | {fold(folder): (folder, "folder") for folder in above(path)}
        known = taken.get(fold(path))
        if any(taken.get(key, what) != what for key, what in wanted.items()) or (known and kind != "folder"):
            return False
        taken.update(wanted)
        return True

    files = {path: draw(contents) for path in draw(st.lists(paths, min_size=1, max_size=8)) if fits(path, "file")}
    folders = sorted({path for path in draw(st.lists(paths, max_size=3)) if fits(path, "folder")})
    all_folders = sorted({folder for path in files for folder in above(path)} | set(folders))
    links: dict[str, str] = {}
    for place in draw(st.lists(st.sampled_from(["", *all_folders]), max_size=3)):
        path = posixpath.join(place, "~" + draw(st.sampled_from("abc")))
        target = draw(st.sampled_from(sorted(files) if place else [*sorted(files), *all_folders]))
        if fits(path, "link"):
            links[path] = posixpath.relpath(target, place or ".")
    return Site(files=files, folders=folders, links=links)


def expected(site: Site) -> Tree:
    everything = [*site.files, *site.folders, *site.links]
    folders: Tree = dict.fromkeys({*site.folders, *(folder for path in everything for folder in above(path))})
    return {**folders, **site.files, **site.links}


HOSTILE_ONES = [archive for archive, _ in HOSTILE.values() if len(archive) < 20_000]
kinds = st.sampled_from(sorted(KINDS))


@fuzz("sites packed", kind=kinds, site=sites())
def test_any_site_is_unpacked_unchanged(kind: str, site: Site) -> None:
    assert unpacked(KINDS[kind](site), limits=ROOMY) == expected(site)


@fuzz("archives damaged", kind=kinds, todo=edits(byte_pieces))
def test_a_damaged_archive_gives_the_same_site_or_is_rejected(kind: str, todo: list[Edit[bytes]]) -> None:
    try:
        tree = unpacked(bytes(edited(KINDS[kind](SMALL_SITE), todo)))
    except InvalidBundle:
        return

    assert kind not in CHECKED_KINDS or tree == expected(SMALL_SITE)


@fuzz("hostile archives damaged", archive=mutated_bytes(st.sampled_from(HOSTILE_ONES)))
def test_a_damaged_hostile_archive_writes_nothing_outside(archive: bytes) -> None:
    with contextlib.suppress(InvalidBundle):
        unpacked(archive)


@fuzz(
    "noise",
    archive=st.binary(max_size=2000),
    beginning=st.sampled_from([b"", b"\x1f\x8b\x08", b"BZh9", b"\xfd7zXZ\0", b"PK\3\4", b"PK\5\6"]),
)
def test_noise_is_rejected(archive: bytes, beginning: bytes) -> None:
    with pytest.raises(InvalidBundle):
        unpacked(beginning + archive)
