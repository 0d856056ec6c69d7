"""Pages with the same text as many others, or have lost their text, bring warnings."""

from collections.abc import Mapping, Sequence
from typing import Final

import pytest

from docs_platform_action.models import FileDigests
from docs_platform_action.site.alarms import find_alarms
from docs_platform_action.site.page import text_digest

ERROR: Final = b"<h1>Internal Server Error</h1>"
MAY_BE: Final = (
    "Such a page may be an error page or a redirect: check it before the site goes live."
)
FIVE_NAMED: Final = "'page-0.html', 'page-1.html', 'page-2.html', 'page-3.html', 'page-4.html'"
LARGE: Final = None  # its text is unknown


def alarms(
    old: Mapping[str, bytes | None],
    new: Mapping[str, bytes | None],
    links: Sequence[str] = (),
) -> list[Sequence[str]]:
    """Return the warnings about sites with these pages. Only one page is read again."""
    read: list[str] = []

    def read_page(path: bytes) -> bytes:
        read.append(path.decode())
        page = new[path.decode()]
        assert page is not None
        return page

    found = [*find_alarms(digests_of(old), digests_of(new), links, read_page)]
    assert len(read) <= 1
    return found


def digests_of(pages: Mapping[str, bytes | None]) -> dict[bytes, FileDigests]:
    digests = {}
    for path, page in pages.items():
        is_page = path.lower().endswith(".html")
        text = None if page is None or not is_page else text_digest(page)
        digests[path.encode()] = FileDigests(bytes(32), text)
    return digests


def alike(count: int, page: bytes | None = ERROR, name: str = "page") -> dict[str, bytes | None]:
    return {f"{name}-{number}.html": page for number in range(count)}


def different(count: int, name: str = "other") -> dict[str, bytes | None]:
    return {f"{name}-{number}.html": b"<p>%d" % number for number in range(count)}


@pytest.mark.parametrize(
    ("old", "new", "facts"),
    [
        ({}, alike(3), ["3 of 3 `.html` files have the same text."]),
        ({}, alike(2), []),
        ({}, {**alike(2), **different(1)}, []),
        ({}, {**alike(3), **different(3)}, ["3 of 6 `.html` files have the same text."]),
        ({}, {**alike(3), **different(4)}, []),
        ({}, different(40), []),
        (
            different(40, "page"),
            {**alike(40), "b.html": b"b"},
            ["40 of 41 `.html` files have the same text."],
        ),
        (alike(40), alike(40), []),
        (alike(38), alike(40), []),
        (alike(37), alike(40), ["40 of 40 `.html` files have the same text."]),
        (alike(40), alike(40, b"<p>Other"), ["40 of 40 `.html` files have the same text."]),
        (alike(40, LARGE), alike(40), ["40 of 40 `.html` files have the same text."]),
        ({}, alike(40, LARGE), []),
        (
            alike(3, b"a", "old"),
            {**alike(3, b"a", "old"), **alike(3, b"b", "new")},
            ["3 of 6 `.html` files have the same text."],
        ),
        ({}, {f"{number}.js": b"" for number in range(9)}, []),
    ],
    ids=[
        "three",
        "two",
        "two of three",
        "half",
        "fewer than half",
        "all different",
        "all but one",
        "as published",
        "two more",
        "three more",
        "another text",
        "large before",
        "large",
        "the other half is published",
        "no pages",
    ],
)
def test_many_pages_with_the_same_text_bring_a_warning_unless_they_are_published(
    old: Mapping[str, bytes | None], new: Mapping[str, bytes | None], facts: list[str]
) -> None:
    assert [fact for fact, *_ in alarms(old, new)] == facts


def test_the_beginning_of_the_text_and_two_of_the_pages_are_shown() -> None:
    (warning,) = alarms({}, alike(3))

    assert warning == [
        "3 of 3 `.html` files have the same text.",
        'Their text begins with "Internal Server Error".',
        "Two of them are 'page-0.html' and 'page-1.html'.",
        MAY_BE,
    ]


def test_headings_and_paragraphs_are_shown_as_words() -> None:
    (warning,) = alarms({}, alike(3, b"<title>Error</title><H1>50<b>2</b></H1><pre>Bad  gateway"))

    assert warning[1] == 'Their text begins with "Error 502 Bad gateway".'


def test_pages_behind_links_do_not_count() -> None:
    pages = alike(3)

    assert alarms({}, pages, links=["page-0.html"]) == []
    assert alarms({}, {**alike(3), **different(4)}, links=["other-0.html"]) != []


@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        ("Moved to /a", "Moved to /a"),
        ("a\n\t b\u2028\u00a0c", "a b c"),
        ("word " * 16 + "end", "word " * 15 + "word…"),
        ("word " * 15 + "x" * 20, "word " * 14 + "word…"),
        ("x" * 81, "…"),
        ("ページが見つかりません。" * 9, ("ページが見つかりません。" * 9)[:80] + "…"),
        ("\N{HANGUL FILLER}".join("k" * 99), "…"),
        ("\ud83d" * 3, "\N{REPLACEMENT CHARACTER}" * 9),
    ],
    ids=[
        "short",
        "white space",
        "long",
        "a long word at the end",
        "one long word",
        "without white space",
        "invisible letters",
        "not UTF-8",
    ],
)
def test_no_word_is_cut_because_it_may_be_a_secret(text: str, beginning: str) -> None:
    (warning,) = alarms({}, alike(3, text.encode(errors="surrogatepass")))

    assert warning[1] == f'Their text begins with "{beginning}".'


def test_a_text_of_white_space_alone_is_called_so() -> None:
    (warning,) = alarms({}, alike(3, "\u00a0".encode()))

    assert warning[1] == "Their text is only white space."


@pytest.mark.parametrize(
    ("old", "new", "warnings"),
    [
        (
            {},
            alike(3, b""),
            [
                [
                    "3 of 3 `.html` files have no text.",
                    "Two of them are 'page-0.html' and 'page-1.html'.",
                    MAY_BE,
                ]
            ],
        ),
        (
            different(1),
            {**alike(3, b""), **different(1)},
            [
                [
                    "3 of 4 `.html` files are new and have no text.",
                    "Two of them are 'page-0.html' and 'page-1.html'.",
                    MAY_BE,
                ]
            ],
        ),
        ({}, alike(2, b""), []),
        ({}, {**alike(3, b""), **different(4)}, []),
        (
            {**different(1, "page"), **different(6)},
            {**alike(1, b""), **different(6)},
            [["1 published page would lose all text.", "Without text: 'page-0.html'.", MAY_BE]],
        ),
        (
            alike(7, LARGE),
            alike(7, b"<p>"),
            [
                [
                    "7 published pages would lose all text.",
                    f"Without text: {FIVE_NAMED} and 2 more.",
                    MAY_BE,
                ]
            ],
        ),
        (alike(9, b""), alike(9, b"<br>"), []),
    ],
    ids=[
        "nothing to compare with",
        "new",
        "two",
        "fewer than half",
        "one was emptied",
        "seven were",
        "as published",
    ],
)
def test_pages_without_text_bring_a_warning_if_they_had_one_or_are_many(
    old: Mapping[str, bytes | None],
    new: Mapping[str, bytes | None],
    warnings: list[Sequence[str]],
) -> None:
    assert alarms(old, new) == warnings
