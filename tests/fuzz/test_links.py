"""Trees with symbolic and hard links: each is refused or comes out as a simple model says, and a walk of it ends."""

import itertools
import os
import tempfile
from pathlib import Path
from typing import Final

from hypothesis import example
from hypothesis import strategies as st

from docs_platform_action.errors import InvalidBundle
from tests.archives import Zipped, entry, tar_of, zip_of
from tests.folders import Tree
from tests.fuzz import fuzz
from tests.fuzz.mutation import seldom
from tests.fuzz.tree import MAX_SEEN, unpacked

Entry = tuple[str, str, str]
"""A type as in tar, a name and a target."""

INDEX: Final = b"<h1>Docs</h1>"
FILE, HARD_LINK, LINK, FOLDER = "0", "1", "2", "5"
BASE: Final[list[Entry]] = [
    *((FILE, name, "") for name in ("a/page", "a/b/page", "d/page")),
    (FOLDER, "a/b/c", ""),
]
NAMES: Final = ("a", "a/b", "a/page", "d/page", "a/b/new/page", "l/page", "a/l/page")
PLACES: Final = ("l", "m", "a/l", "a/b/m", "d/n", "a/b/c/l", "0", "z", "new/l")
parts = st.sampled_from(["..", ".", "", "a", "b", "c", "d", "l", "m", "n", "page", "index.html", "x"])
targets = st.lists(parts, min_size=1, max_size=6).map("/".join).filter(lambda target: target and not target.startswith("/"))
SOUND: Final = [
    *((LINK, "l", "a"), (LINK, "m", "l"), (LINK, "a/l", "../d"), (LINK, "a/b/m", "page"), (LINK, "d/n", "../index.html")),
    *((LINK, "a/b/c/l", "../../../d/page"), (LINK, "0", "d/n"), (LINK, "z", "a/l/page"), (LINK, "new/l", ".././/a/b/c")),
    *((LINK, "0", "a/l/../a/b/m"), (LINK, "l", "a/b/c"), (LINK, "d/n", "../a/b")),
]
outside = st.sampled_from(["../outside", "../../outside", "../../site/outside", "a/../../site/index.html", "l/../../../outside"])
random_links = st.tuples(st.just(LINK), st.sampled_from(PLACES), targets | outside)
links = st.integers(0, 4).flatmap(lambda number: st.sampled_from(SOUND) if number else random_links)
others = st.one_of(
    st.tuples(st.sampled_from([FILE, FOLDER, LINK]), st.sampled_from([*NAMES, *PLACES]), st.just("index.html")),
    st.tuples(st.just(HARD_LINK), st.sampled_from(PLACES), st.sampled_from([*NAMES, *PLACES, "index.html", "../outside"])),
)
entries = st.builds(
    lambda some, found, last: [*some, *BASE, *found, *last],
    seldom(st.lists(links | others, max_size=3), times=4),
    st.lists(links, max_size=4),
    seldom(st.lists(others, max_size=2), times=2),
)


def modeled(found: list[Entry]) -> Tree | None:
    """Return the tree that must come out before its symbolic links are checked, or nothing if it must be refused."""
    tree: Tree = {"index.html": INDEX}
    for type_, name, target in found:
        parts = name.split("/")
        for folder in ["/".join(parts[:depth]) for depth in range(1, len(parts) + (type_ == FOLDER))]:
            if tree.setdefault(folder, None) is not None:
                return None
        if type_ == FOLDER:
            continue
        if name in tree and tree[name] is None:
            return None
        node = {FILE: b"page", LINK: target}.get(type_, tree.get(target))
        if node is None or (target == name and isinstance(node, bytes) and type_ == HARD_LINK):
            return None
        tree[name] = node
    return dict(sorted(tree.items()))


def is_sound(folder: Path, links: list[str]) -> bool:
    """Return whether each link leads to something inside that is not around it, and a walk that follows them ends soon."""
    for link in links:
        try:
            os.stat(folder / link)  # noqa: PTH116  # Linux itself, not Python's own reading of paths
        except OSError:
            return False
        real = Path(os.path.realpath(folder / link))
        above = Path(os.path.realpath((folder / link).parent))
        # a path out and back in again leads outside, because the folder may be renamed
        if not real.is_relative_to(folder) or above.is_relative_to(real):
            return False
    walk = itertools.islice(os.walk(folder, followlinks=True), MAX_SEEN + 2)  # so many steps have seen more than that
    return sum(len(folders) + len(files) for _, folders, files in walk) <= MAX_SEEN


def is_accepted(tree: Tree) -> bool:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve() / "beside" / "site"
        folder.mkdir(parents=True)
        (folder.parent / "outside").touch()
        (folder.parent.parent / "outside").touch()
        for path, node in tree.items():  # sorted: folders come first
            if node is None:
                (folder / path).mkdir()
            elif isinstance(node, bytes):
                (folder / path).write_bytes(node)
        links = [path for path, node in tree.items() if isinstance(node, str)]
        for path in links:
            (folder / path).symlink_to(str(tree[path]))
        return is_sound(folder, links)


def packed(found: list[Entry], kind: str) -> bytes:
    contents = {FILE: b"page"}
    if kind == "tar":
        return tar_of(
            *(
                entry(name.encode(), contents.get(type_, b""), type_=type_.encode(), target=target.encode())
                for type_, name, target in found
            )
        )
    modes = {LINK: 0o120777, FOLDER: 0o40755}
    return zip_of(
        Zipped(),
        *(
            Zipped(name=name.encode(), content=contents.get(type_, target.encode()), mode=modes.get(type_, 0o100644))
            for type_, name, target in found
        ),
    )


TWINS: Final = [(LINK, f"{one}/{side}", f"../{other}") for one, other in ("ab", "ba") for side in "lmn"]


@fuzz("links in archives", found=entries, kind=st.sampled_from(["tar", "zip"]))
@example([(FOLDER, "a", ""), (FOLDER, "b", ""), *TWINS], "tar")
@example([(HARD_LINK, "l", "../outside")], "tar")
@example([(LINK, "l", "index.html"), (HARD_LINK, "l", "l")], "tar")
def test_links_lead_inside_and_end(found: list[Entry], kind: str) -> None:
    if kind == "zip":
        found = [item for item in found if item[0] != HARD_LINK]
    tree = modeled(found)
    try:
        result = unpacked(packed(found, kind))
    except InvalidBundle:
        assert tree is None or not is_accepted(tree)
    else:
        assert tree == result
        assert is_accepted(tree)
