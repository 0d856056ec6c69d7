"""The digests of a site's files, whatever an archive does with their names."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from docs_platform_action.errors import InvalidBundle
from docs_platform_action.models import FileDigests, Manifest
from docs_platform_action.site import digests as module
from docs_platform_action.site.digests import Digests
from docs_platform_action.site.page import text_digest
from tests.archives import entry, tar_of
from tests.unpacking import unpacked

HELLO: Final = b"<p>Hello</p>"
CONTENT: Final = hashlib.sha256(HELLO).digest()
TEXT: Final = text_digest(HELLO)


def test_content_passes_through_and_only_pages_have_a_digest_of_their_text() -> None:
    digests = Digests({})

    for path in (b"a.HTML", b"a.txt"):
        chunks = [HELLO[:5], memoryview(HELLO)[5:]]
        assert list(digests.record(path, chunks)) == [HELLO[:5], HELLO[5:]]

    assert digests.files == {
        b"a.HTML": FileDigests(CONTENT, TEXT),
        b"a.txt": FileDigests(CONTENT, None),
    }


def test_the_text_of_a_very_large_page_has_no_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PAGE_BYTES", 10)
    digests = Digests({})

    list(digests.record(b"a.html", [b"x" * 10]))
    list(digests.record(b"b.html", [b"x" * 10, b"x", b"x"]))

    assert digests.files == {
        b"a.html": FileDigests(hashlib.sha256(b"x" * 10).digest(), text_digest(b"x" * 10)),
        b"b.html": FileDigests(hashlib.sha256(b"x" * 12).digest(), None),
    }


@pytest.mark.parametrize(
    ("published", "text"),
    [
        (FileDigests(CONTENT, b"t" * 32), b"t" * 32),
        (FileDigests(bytes(32), b"t" * 32), TEXT),
        (FileDigests(CONTENT, None), TEXT),
    ],
)
def test_only_the_text_of_a_page_that_is_as_published_is_not_extracted_again(
    published: FileDigests, text: bytes
) -> None:
    digests = Digests({b"a.html": published})

    list(digests.record(b"a.html", [HELLO]))
    list(digests.record(b"new.html", [HELLO]))

    assert digests.files == {
        b"a.html": FileDigests(CONTENT, text),
        b"new.html": FileDigests(CONTENT, TEXT),
    }


def test_a_file_that_is_not_written_to_its_end_has_none() -> None:
    digests = Digests({})

    def content() -> Iterator[bytes]:
        yield b"x"
        raise OSError

    with pytest.raises(OSError):  # noqa: PT011  # the one above
        list(digests.record(b"a", content()))

    assert digests.files == {}


def page(name: bytes) -> bytes:
    return entry(name, HELLO)


def link(name: bytes, target: bytes) -> bytes:
    return entry(name, type_=b"2", target=target)


def hard_link(name: bytes, target: bytes) -> bytes:
    return entry(name, type_=b"1", target=target)


@pytest.mark.parametrize(
    ("entries", "has_text"),
    [
        # of two entries with one name, the last counts
        ([page(b"a.html"), entry(b"a.html", b"x")], {b"a.html": True}),
        (
            [page(b"b.txt"), page(b"a.html"), link(b"a.html", b"b.txt")],
            {b"a.html": False, b"b.txt": False},
        ),
        (
            [page(b"b.txt"), link(b"a.html", b"b.txt"), page(b"a.html")],
            {b"a.html": True, b"b.txt": False},
        ),
        # a hard link is a copy, and a symbolic link has the content of its target
        (
            [page(b"b.html"), hard_link(b"a.txt", b"b.html")],
            {b"a.txt": False, b"b.html": True},
        ),
        (
            [page(b"d/b.txt"), link(b"e", b"d"), link(b"a.txt", b"e/b.txt")],
            {b"a.txt": False, b"d/b.txt": False},
        ),
        (
            [page(b"b.html"), link(b"d.html", b"c"), link(b"c", b"b.html")],
            {b"b.html": True, b"c": False, b"d.html": True},
        ),
    ],
)
def test_links_and_repeated_names(entries: list[bytes], has_text: dict[bytes, bool]) -> None:
    found: dict[bytes, bool] = {}

    def look(_folder: Path, manifest: Manifest) -> None:
        for path, known in manifest.files.items():
            found[path] = known.text is not None

    unpacked(tar_of(*entries), look)

    assert found == {**has_text, b"index.html": True}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([page(b"d/a"), link(b"e", b"d")], {b"e": b"d"}),
        ([page(b"d/a"), link(b"e.html", b"./d/")], {b"e.html": b"d"}),
        # links to links, and through them
        ([page(b"d/a/b"), link(b"f", b"e"), link(b"e", b"d")], {b"e": b"d", b"f": b"d"}),
        ([page(b"d/a/b"), link(b"e", b"d"), link(b"f", b"e/a")], {b"e": b"d", b"f": b"d/a"}),
        ([page(b"d/a"), page(b"v/a"), link(b"d/e", b"../v")], {b"d/e": b"v"}),
        ([page(b"d -> e/a"), link(b"f", b"d -> e")], {b"f": b"d -> e"}),
        # of two entries with one name, the last counts
        ([page(b"d/a"), link(b"e", b"d"), page(b"e")], {}),
        ([page(b"d/a"), link(b"e", b"d"), link(b"e", b"d/a")], {}),
        ([page(b"d/a"), page(b"e"), link(b"e", b"d")], {b"e": b"d"}),
        # only the path of a link to a folder is on a line with another one
        ([link(b"a -> b", b"index.html")], {}),
    ],
)
def test_a_link_to_a_folder_is_recorded_with_where_it_leads_in_the_end(
    entries: list[bytes], expected: Mapping[bytes, bytes]
) -> None:
    found: list[Mapping[bytes, bytes]] = []

    unpacked(tar_of(*entries), lambda _folder, manifest: found.append(manifest.folder_links))

    assert found == [expected]


@pytest.mark.parametrize("path", [b"a -> b", b"a ->"])
def test_a_link_to_a_folder_that_no_manifest_can_hold_is_refused(path: bytes) -> None:
    with pytest.raises(InvalidBundle) as caught:
        unpacked(tar_of(page(b"folder/a"), link(path, b"folder")))

    assert path.decode() in caught.value.details[0]
    assert "manifest" in str(caught.value)
