"""The digests of a site's files, whatever an archive does with their names."""

import hashlib
from collections.abc import Iterator
from typing import Final

import pytest

from docs_platform_action.bundle import plan
from docs_platform_action.bundle.plan import Digests
from docs_platform_action.manifest import text_digest
from tests.archives import entry, tar_of
from tests.unpacking import unpacked

HELLO: Final = b"<p>Hello</p>"


def test_content_passes_through_and_only_pages_have_a_digest_of_their_text() -> None:
    digests = Digests({})

    for path in (b"a.HTML", b"a.txt"):
        assert list(digests.record(path, [HELLO[:5], memoryview(HELLO)[5:]])) == [
            HELLO[:5],
            HELLO[5:],
        ]

    assert digests.files[b"a.HTML"][32:] == text_digest(HELLO)
    assert digests.files[b"a.HTML"][:32] == digests.files[b"a.txt"]


def test_the_text_of_a_very_large_page_has_no_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MAX_PAGE_BYTES", 10)
    digests = Digests({})

    for path, content in ((b"a.html", [b"x" * 10]), (b"b.html", [b"x" * 10, b"x", b"x"])):
        list(digests.record(path, content))

    assert [len(known) for known in digests.files.values()] == [64, 32]


def test_the_text_of_a_page_that_is_as_published_is_not_extracted_again() -> None:
    content = hashlib.sha256(HELLO).digest()
    published = {
        b"same.html": content + b"t" * 32,
        b"differs.html": bytes(64),
        b"no-text.html": content,
    }
    digests = Digests(published)

    for path in (*published, b"new.html"):
        list(digests.record(path, [HELLO]))

    known = {b"same.html": b"t" * 32}
    assert digests.files == {
        path: content + known.get(path, text_digest(HELLO)) for path in digests.files
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


@pytest.mark.parametrize(
    ("entries", "lengths"),
    [
        # of two entries with one name, the last counts
        ([page(b"a.html"), entry(b"a.html", b"x")], {b"a.html": 64}),
        (
            [page(b"b.txt"), page(b"a.html"), link(b"a.html", b"b.txt")],
            {b"a.html": 32, b"b.txt": 32},
        ),
        (
            [page(b"b.txt"), link(b"a.html", b"b.txt"), page(b"a.html")],
            {b"a.html": 64, b"b.txt": 32},
        ),
        # a hard link is a copy, and a symbolic link to a folder is not listed
        (
            [page(b"b.html"), entry(b"a.txt", type_=b"1", target=b"b.html")],
            {b"a.txt": 32, b"b.html": 64},
        ),
        (
            [page(b"d/b.txt"), link(b"e", b"d"), link(b"a.txt", b"e/b.txt")],
            {b"a.txt": 32, b"d/b.txt": 32},
        ),
        (
            [page(b"b.html"), link(b"d.html", b"c"), link(b"c", b"b.html")],
            {b"b.html": 64, b"c": 32, b"d.html": 64},
        ),
    ],
)
def test_links_and_repeated_names(entries: list[bytes], lengths: dict[bytes, int]) -> None:
    found: dict[bytes, int] = {}

    unpacked(
        tar_of(*entries),
        lambda _folder, digests: found.update(
            {path: len(known) for path, known in digests.items()}
        ),
    )

    assert found == {**lengths, b"index.html": 64}
