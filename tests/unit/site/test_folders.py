"""In which folders pages are lost and scripts are new, and which files are listed."""

from collections.abc import Sequence
from typing import Final

import pytest

from docs_platform_action.models import FolderFiles
from docs_platform_action.site.folders import describe_lost_folders, describe_scripts, list_files

CHUNKS: Final = [f"_next/static/chunks/{number:03}.js" for number in range(300)]


def encoded(names: Sequence[str]) -> list[bytes]:
    return [name.encode() for name in names]


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        (["api/a.html", "api/b.html"], ["api/c.css"], "'api/' (2 pages)"),
        (["api/a.html", "api/v1/b.html", "api/v1/c.html"], [], "'api/' (3 pages)"),
        (
            ["api/a.html", "api/v1/b.html", "api/v1/c.html", "x/1.html", "x/2.html"],
            ["api/a.html"],
            "'api/v1/' (2 pages), 'x/' (2 pages)",
        ),
        (["api/a.html", "api/b.html"], ["api/b.html"], ""),
        (["api/a.html", "api/b.html"], ["api/v2/c.html"], ""),
        (["guide/index.html"], ["guide.html"], ""),
        (["api/a.css", "api/b.css", "c.html", "d.html"], ["c.html"], ""),
        (["a.html"], ["a.html", "b/c.html"], ""),
    ],
)
def test_a_folder_that_loses_all_of_its_pages_is_named(
    old: Sequence[str], new: Sequence[str], lost: str
) -> None:
    assert describe_lost_folders(encoded(old), encoded(new)) == lost


def test_of_many_lost_folders_those_with_the_most_pages_are_named() -> None:
    sizes = {"a/": 2, "b/": 2, "c/": 3, "d/": 2, "e/": 2, "reference/": 40}
    old = [f"{folder}{number}.html" for folder, size in sizes.items() for number in range(size)]

    lost = describe_lost_folders(encoded(old), [])

    assert lost == (
        "'reference/' (40 pages), 'c/' (3 pages), 'a/' (2 pages), 'b/' (2 pages), "
        "'d/' (2 pages) and 1 more"
    )


@pytest.mark.parametrize(
    ("added", "changed", "scripts"),
    [
        ([], [], ""),
        (["a.html", "b.css"], ["c.css"], ""),
        (
            [*CHUNKS, "assets/loader.MJS", "b.wasm"],
            [],
            "added: 1 in the site's top folder, 1 in 'assets/', 300 in '_next/static/'",
        ),
        (["a.js"], ["b/c.cjs"], "added: 1 in the site's top folder; changed: 1 in 'b/'"),
        (
            [*[f"docs/{name}" for name in CHUNKS], "docs/assets/loader.js"],
            [],
            "added: 1 in 'docs/assets/', 300 in 'docs/_next/'",
        ),
        (
            [f"{number}/a.js" for number in range(7)],
            [],
            "added: 1 in '0/', 1 in '1/', 1 in '2/', 1 in '3/', 1 in '4/' and 2 more",
        ),
        # the mark of a link to a folder
        (["lib.js/"], [], ""),
    ],
)
def test_the_folders_of_new_and_changed_scripts_are_named(
    added: Sequence[str], changed: Sequence[str], scripts: str
) -> None:
    paths_by_kind = {"added": encoded(added), "changed": encoded(changed), "removed": [b"x/y.js"]}

    assert describe_scripts(paths_by_kind, ["added", "changed"]) == scripts


@pytest.mark.parametrize(
    ("names", "listed"),
    [
        ([], []),
        (
            ["a.txt", "b/d.WASM", "b/c.Mjs", "b.js", "e.cjs", "f.json", "a/z.css", "lib.js/"],
            [
                ("", ["b.js", "e.cjs"], 0),
                ("b/", ["b/c.Mjs", "b/d.WASM"], 0),
                ("", ["a.txt", "f.json", "lib.js"], 0),
                ("a/", ["a/z.css"], 0),
            ],
        ),
        (
            [*CHUNKS, "zz/loader.js", "_next/static/chunks/deep/a.js", "_next/static/a.css"],
            [
                ("zz/", ["zz/loader.js"], 0),
                ("_next/static/chunks/", CHUNKS[:5], 295),
                ("_next/static/chunks/deep/", ["_next/static/chunks/deep/a.js"], 0),
                ("_next/static/", ["_next/static/a.css"], 0),
            ],
        ),
        (
            [f"{n}.js" for n in range(7)],
            [("", [f"{n}.js" for n in range(5)], 2)],
        ),
        (
            [f"{n:02}/{name}.js" for n in range(30) for name in "abc"],
            [
                *[(f"{n:02}/", [f"{n:02}/{name}.js" for name in "abc"], 0) for n in range(16)],
                ("16/", ["16/a.js", "16/b.js"], 1),
            ],
        ),
    ],
    ids=["none", "kinds of files", "many in one folder", "at the top", "many folders"],
)
def test_scripts_are_listed_first_and_at_most_five_of_a_folder(
    names: Sequence[str], listed: Sequence[tuple[str, list[str], int]]
) -> None:
    expected = []
    for folder, paths, more in listed:
        expected.append(FolderFiles(folder=folder, paths=paths, more=more))

    assert [*list_files(encoded(names))] == expected
