"""The unpacked tree: what it counts, its owner, its only folder, and the space that it takes."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from docs_platform_action.bundle import tree as module
from docs_platform_action.bundle.archive import FILE, FOLDER, HARD_LINK, SYMBOLIC_LINK, Entry
from docs_platform_action.bundle.faults import DiskTooSmall
from docs_platform_action.bundle.tree import Tree
from docs_platform_action.clock import Cancellation
from docs_platform_action.errors import Cancelled


def file(name: str, content: bytes = b"x") -> Entry:
    return Entry(name=name, type=FILE, content=[content])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "site").mkdir()
    return tmp_path / "site"


@pytest.fixture
def root(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


@pytest.fixture
def tree(folder: Path, root: int) -> Tree:
    return Tree(folder, root, Cancellation(), None)


def test_copies_of_pages_are_pages_but_links_are_not_and_a_replaced_page_counts_once(
    tree: Tree,
) -> None:
    tree.add(file("a.html", b"12"))
    tree.add(file("b.HTML"))
    tree.add(file("b.HTML"))
    tree.add(file("c.txt"))
    tree.add(Entry(name="copy.html", type=HARD_LINK, target="a.html"))
    tree.add(Entry(name="link.html", type=SYMBOLIC_LINK, target="a.html"))
    tree.finish()

    assert tree.files == 4
    assert tree.html_files == 3
    assert tree.bytes == 2 + 1 + 1 + 1 + 2


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["site/index.html", "site/a/b.html"], "site"),
        (["site/index.html", "index.html"], None),
        (["site/a.html"], None),
        (["site/index.html", "other/index.html"], None),
    ],
)
def test_a_site_in_its_only_folder_is_recognized(
    tree: Tree, names: list[str], expected: str | None
) -> None:
    for name in names:
        tree.add(file(name))

    assert tree.only_folder() == expected


def test_the_modes_do_not_depend_on_the_umask(tree: Tree, folder: Path) -> None:
    before = os.umask(0o077)
    try:
        tree.add(file("a/b.html"))
    finally:
        os.umask(before)

    assert stat.S_IMODE((folder / "a").stat().st_mode) == 0o755
    assert stat.S_IMODE((folder / "a/b.html").stat().st_mode) == 0o644


@pytest.mark.parametrize(
    "work",
    [lambda tree: tree.add(Entry(name="d", type=FOLDER)), Tree.finish],
    ids=["add", "finish"],
)
def test_a_cancel_ends_the_work(folder: Path, root: int, work: Callable[[Tree], None]) -> None:
    cancellation = Cancellation()
    tree = Tree(folder, root, cancellation, None)
    tree.add(file("a/b.html"))
    tree.add(Entry(name="c", type=SYMBOLIC_LINK, target="a"))
    cancellation.cancel()

    with pytest.raises(Cancelled):
        work(tree)


def test_a_cancel_ends_the_work_on_a_large_file(folder: Path, root: int) -> None:
    cancellation = Cancellation()
    tree = Tree(folder, root, cancellation, None)

    def content() -> Iterator[bytes]:
        yield b"1"
        cancellation.cancel()
        yield b"2"

    with pytest.raises(Cancelled):
        tree.add(Entry(name="a", type=FILE, content=content()))


@pytest.mark.parametrize(
    ("total", "free", "size", "fits"),
    [
        (10**6, 200_000, 50_000, True),
        (10**6, 100_000, 1, False),
        (10**13, module.MAX_RESERVED_BYTES + 10**6, 5000, True),
        (10**13, module.MAX_RESERVED_BYTES - 1, 1, False),
        (0, 0, 5000, True),
    ],
    ids=["room", "a tenth is free", "a large disk", "a gibibyte is free", "no sizes"],
)
def test_some_of_the_disk_stays_free(
    monkeypatch: pytest.MonkeyPatch, tree: Tree, total: int, free: int, size: int, fits: bool
) -> None:
    disk = SimpleNamespace(f_frsize=1, f_blocks=total, f_bavail=free)
    monkeypatch.setattr(os, "statvfs", lambda _root: disk)
    expectation = nullcontext() if fits else pytest.raises(DiskTooSmall)

    with expectation:
        tree.add(file("a", b"x" * size))
