"""Whatever is packed comes out as it went in, and whatever is damaged comes out as that or not at all."""

import contextlib
import os
import posixpath
import random
import stat
import tempfile
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.delivery.unpack import Limits, unpack
from docs_platform_action.errors import InvalidBundle
from tests.archives import HOSTILE, KINDS, SMALL_SITE, Site

CHECKED_KINDS = ("tar.gz", "tar.bz2", "tar.xz")
"""Kinds with a checksum over everything, so that no damage to what they hold goes unseen."""

Tree = dict[str, bytes | str | None]

letters = st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="/\\")
parts = st.one_of(st.text(letters, min_size=1, max_size=20), st.sampled_from(["a", "b", " ", ".a", "a.html", "é" * 120]))
names = parts.filter(lambda part: part not in {".", ".."})
paths = st.lists(names, min_size=1, max_size=6).map("/".join).filter(lambda path: len(path.encode()) <= 1000)
noise = st.builds(lambda seed: random.Random(seed).randbytes(70_000), st.integers(0, 9))  # noqa: S311  # no secret
contents = st.one_of(st.binary(max_size=600), st.binary(max_size=600), noise)


def fold(path: str) -> str:
    """Spell a path as a file system might that folds case and composition."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def above(path: str) -> set[str]:
    parts = path.split("/")
    return {"/".join(parts[:depth]) for depth in range(1, len(parts))}


@st.composite
def sites(draw: st.DrawFn) -> Site:
    """Draw a site that can be: no path is two things, and links lead to files, or from the top to folders."""
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


def unpacked(archive: bytes) -> Tree:
    """Unpack into a folder, see that nothing is beside it and that modes are right, and give what is in it."""
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        folder = root / "beside" / "site"
        folder.mkdir(parents=True)
        (root / "bundle").write_bytes(archive)
        try:
            unpack(
                root / "bundle", folder, check=lambda: None, on_progress=lambda *_: None, limits=Limits(unpacked_bytes=1 << 24)
            )
        finally:
            assert {str(path.relative_to(root)) for path in (*root.iterdir(), *folder.parent.iterdir())} == WHAT_IS_THERE
        return tree_of(folder)


def tree_of(folder: Path) -> Tree:
    tree: Tree = {}
    for inside, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(inside, name)
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                tree[str(path.relative_to(folder))] = str(path.readlink())
            else:
                assert stat.filemode(status.st_mode) in {"-rw-r--r--", "drwxr-xr-x"}
                tree[str(path.relative_to(folder))] = path.read_bytes() if stat.S_ISREG(status.st_mode) else None
    return tree


WHAT_IS_THERE = {"beside", "beside/site", "bundle"}

Edit = tuple[str, float, bytes]
edits = st.lists(
    st.tuples(st.sampled_from(["flip", "insert", "delete", "cut"]), st.floats(0, 1), st.binary(min_size=1, max_size=4)),
    min_size=1,
    max_size=3,
)


def damaged(archive: bytes, edits: list[Edit]) -> bytes:
    data = bytearray(archive)
    for what, where, some in edits:
        at = int(where * len(data))
        if what == "flip":
            data[at : at + len(some)] = bytes(old ^ new for old, new in zip(data[at : at + len(some)], some, strict=False))
        elif what == "insert":
            data[at:at] = some
        else:
            del data[at : at + len(some) if what == "delete" else None]
    return bytes(data)


@pytest.mark.parametrize("kind", KINDS)
class TestAnySite:
    @given(site=sites())
    def test_comes_out_as_it_went_in(self, kind: str, site: Site) -> None:
        assert unpacked(KINDS[kind](site)) == expected(site)

    @given(edits=edits)
    def test_comes_out_as_it_went_in_or_not_at_all_when_damaged(self, kind: str, edits: list[Edit]) -> None:
        try:
            tree = unpacked(damaged(KINDS[kind](SMALL_SITE), edits))
        except InvalidBundle:
            return

        assert kind not in CHECKED_KINDS or tree == expected(SMALL_SITE)


@given(archive=st.sampled_from([archive for archive, _ in HOSTILE.values() if len(archive) < 20_000]), edits=edits)
def test_a_hostile_archive_stays_inside_or_is_refused_when_damaged(archive: bytes, edits: list[Edit]) -> None:
    with contextlib.suppress(InvalidBundle):
        unpacked(damaged(archive, edits))


@given(
    archive=st.binary(max_size=2000),
    beginning=st.sampled_from([b"", b"\x1f\x8b\x08", b"BZh9", b"\xfd7zXZ\0", b"PK\3\4", b"PK\5\6"]),
)
def test_noise_is_refused(archive: bytes, beginning: bytes) -> None:
    with pytest.raises(InvalidBundle):
        unpacked(beginning + archive)
