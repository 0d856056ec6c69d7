"""Symbolic links of archives: each created one leads to something inside for Linux too, and a walk that follows them ends."""

import os
import tempfile
from pathlib import Path
from typing import Final

from hypothesis import strategies as st

from docs_platform_action.archive.unpack import unpack
from docs_platform_action.clock import Cancellation
from docs_platform_action.errors import InvalidBundle
from tests.archives import KINDS, Site, open_archive
from tests.fuzz import fuzz

FOLDERS: Final = ("a", "a/b", "a/b/c", "d")
FILES: Final = ("index.html", "a/page", "a/b/page", "d/page")
PLACES: Final = ("l", "m", "n", "a/l", "a/b/m", "d/n", "a/b/c/l", "0", "z")
parts = st.sampled_from(["..", ".", "", "a", "b", "c", "d", "l", "m", "n", "page", "index.html", "x"])
targets = st.lists(parts, min_size=1, max_size=6).map("/".join).filter(lambda target: target and not target.startswith("/"))


@fuzz(
    "links in archives", links=st.dictionaries(st.sampled_from(PLACES), targets, max_size=6), kind=st.sampled_from(["tar", "zip"])
)
def test_links_are_followed_as_on_linux(links: dict[str, str], kind: str) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        (root / "site").mkdir()
        (root / "bundle").write_bytes(KINDS[kind](Site(files=dict.fromkeys(FILES, b"page"), folders=FOLDERS, links=links)))
        try:
            with open_archive(root / "bundle", Cancellation()) as archive:
                unpack(archive, root / "site", on_progress=lambda *_: None)
        except InvalidBundle:
            is_refused = True
        else:
            is_refused = False
            assert all(leads_inside(root / "site", link) for link in links)
            assert ends(root / "site")

        here = root / "linux"
        make(here, links)
        assert is_refused is not (all(leads_inside(here, link) for link in links) and ends(here))


def make(folder: Path, links: dict[str, str]) -> None:
    for name in FOLDERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name in FILES:
        (folder / name).touch()
    for link, target in links.items():
        (folder / link).symlink_to(target)


def leads_inside(folder: Path, link: str) -> bool:
    try:
        os.stat(folder / link)  # noqa: PTH116  # Linux itself, not Python's own reading of paths
    except OSError:
        return False
    # a path out and back in again leads outside, because the folder may be renamed
    return Path(os.path.realpath(folder / link)).is_relative_to(folder.resolve())


def ends(folder: Path) -> bool:
    """Return whether a walk that follows every link ends: whether no folder contains itself."""
    return not any(is_again(Path(inside), folder) for inside, _, _ in os.walk(folder, followlinks=True))


def is_again(inside: Path, folder: Path) -> bool:
    above = inside.parents[: len(inside.parts) - len(folder.parts)]
    return os.path.realpath(inside) in {os.path.realpath(parent) for parent in above}
