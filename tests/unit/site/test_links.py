"""Which pages are behind links to folders, and links that never end."""

from collections.abc import Iterable, Mapping
from typing import Final

import pytest

from docs_platform_action.errors import InvalidBundle
from docs_platform_action.models import FileDigests, Manifest
from docs_platform_action.site import links as module
from docs_platform_action.site.links import reachable_files

PAGE: Final = FileDigests(bytes(32), bytes(32))
LISTED: Final = [
    b"index.html",
    b"v/.html",
    b"v/a.html",
    b"v/b/c.HTML",
    b"v/style.css",
    b"v-1/a.html",
    b"v0/a.html",
    b"w/w.html",
]


def manifest(files: Iterable[bytes], folder_links: Mapping[bytes, bytes]) -> Manifest:
    return Manifest(files=dict.fromkeys(files, PAGE), folder_links=folder_links)


@pytest.mark.parametrize(
    ("folder_links", "behind"),
    [
        ({}, []),
        ({b"x": b"v"}, [b"x/.html", b"x/a.html", b"x/b/c.HTML"]),
        ({b"x/y": b"v/b"}, [b"x/y/c.HTML"]),
        ({b"x": b"empty"}, []),
        ({b"x": b"w", b"y": b"w"}, [b"x/w.html", b"y/w.html"]),
        # a link inside of the folder that a link leads to
        ({b"x": b"w", b"w/y": b"v/b"}, [b"x/w.html", b"w/y/c.HTML", b"x/y/c.HTML"]),
        ({b"x": b"w/z", b"w/z/y": b"v/b"}, [b"w/z/y/c.HTML", b"x/y/c.HTML"]),
        (
            {b"x": b"w", b"w/y": b"d", b"d/z": b"v/b"},
            [b"x/w.html", b"d/z/c.HTML", b"w/y/z/c.HTML", b"x/y/z/c.HTML"],
        ),
    ],
)
def test_pages_behind_links_have_paths_below_the_link(
    folder_links: Mapping[bytes, bytes], behind: list[bytes]
) -> None:
    found = reachable_files(manifest(LISTED, folder_links))

    assert found == dict.fromkeys([*LISTED, *behind], PAGE)


def test_a_page_behind_a_link_has_the_digests_of_the_page() -> None:
    other = FileDigests(b"x" * 32, None)

    found = reachable_files(Manifest(files={b"v/a.html": other}, folder_links={b"x": b"v"}))

    assert found[b"x/a.html"] is other


CIRCLE: Final = {b"a/x": b"b", b"b/y": b"a"}
TREE: Final = {b"%d/%s" % (n, name): b"%d" % (n + 1) for n in range(40) for name in (b"a", b"b")}


@pytest.mark.parametrize(
    ("files", "folder_links"),
    [
        ([b"index.html"], CIRCLE),
        ([b"a/index.html", b"b/index.html"], CIRCLE),
        ([b"a/index.html"], {b"a/x": b"a"}),
        ([b"index.html"], {b"a/" + b"x" * 250: b"b", b"b/" + b"y" * 250: b"a"}),
        ([b"index.html"], TREE),
        ([b"40/index.html"], TREE),
    ],
    ids=["circle", "circle of pages", "in itself", "long names", "tree", "tree with a page"],
)
@pytest.mark.timeout(20)
def test_links_that_never_end_or_lead_to_too_many_files_are_refused(
    files: list[bytes], folder_links: Mapping[bytes, bytes]
) -> None:
    with pytest.raises(InvalidBundle, match="links") as caught:
        reachable_files(manifest(files, folder_links))

    assert "250,000" in caught.value.details[0]


@pytest.mark.parametrize(("limit", "is_accepted"), [(4, True), (3, False)])
def test_exactly_as_many_files_as_a_manifest_can_list_may_be_reachable(
    monkeypatch: pytest.MonkeyPatch, limit: int, is_accepted: bool
) -> None:
    monkeypatch.setattr(module, "MAX_REACHABLE", limit)
    site = manifest([b"a/x.html", b"a/y.html"], {b"b": b"a"})

    if is_accepted:
        assert len(reachable_files(site)) == limit
    else:
        with pytest.raises(InvalidBundle):
            reachable_files(site)
