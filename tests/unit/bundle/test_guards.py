"""How many pages there must be, how many may be removed, and how the error names them."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from docs_platform_action.bundle.guards import (
    Counts,
    check_removed,
    check_reported_pages,
    check_unpacked_pages,
    describe_lack,
    has_guards,
    lacks_pages,
)
from docs_platform_action.errors import TooFewPages, TooManyRemoved
from docs_platform_action.inputs.settings import DeliverySettings, PublicationSettings
from docs_platform_action.models import Changes, LookAlikes, Manifest, MaxRemoved, OutputPath
from tests.keys import ADMIN_KEY

NONE_REMOVED: Final = PublicationSettings(max_removed=MaxRemoved(amount=0, is_percentage=False))
CHANGES_PATH: Final = OutputPath(path=Path("/w/c.json"), root=Path("/w"), name="c.json")
ONLY_FILE: Final = "Its only file, 'site.tar.gz', looks like gzip data."
REPORTED: Final = (
    "The API reported 1,204 pages, so the bundle may be incomplete, or another site's."
)


def removal(*removed: str, published: int) -> Changes:
    """Return the changes if these of the published pages are removed and 50 new ones are added."""
    left = published - len(removed)
    text_changed = min(left, 1)
    changed = min(left - text_changed, 1)
    return Changes(
        pages={
            Changes.ADDED: 50,
            Changes.TEXT_CHANGED: text_changed,
            Changes.CHANGED: changed,
            Changes.REMOVED: len(removed),
            Changes.UNCHANGED: left - text_changed - changed,
        },
        files={Changes.ADDED: 1, Changes.CHANGED: 1, Changes.REMOVED: 1, Changes.UNCHANGED: 1},
        listed={Changes.REMOVED: removed},
        listed_files={},
        is_first=False,
    )


def limited_to(amount: int, *, is_percentage: bool) -> PublicationSettings:
    return PublicationSettings(max_removed=MaxRemoved(amount=amount, is_percentage=is_percentage))


def pages(count: int) -> list[str]:
    return [f"{number}.html" for number in range(count)]


@pytest.mark.parametrize(
    ("reported", "min_pages", "has_site", "summary"),
    [
        (9, 10, True, "has 9 pages"),
        (9, 10, False, "has 9 pages"),
        (10, 10, False, None),
        (None, 10, True, None),  # they are counted when they are unpacked
        (None, 10, False, "unknown"),
        (0, None, False, None),
        (None, None, False, None),
    ],
)
def test_fewer_reported_pages_or_none_to_count_are_refused_before_the_download(
    reported: int | None, min_pages: int | None, has_site: bool, summary: str | None
) -> None:
    site = OutputPath(path=Path("/w/s"), root=Path("/w"), name="s") if has_site else None
    publication = PublicationSettings(min_pages=min_pages)
    settings = DeliverySettings(site_path=site, publication=publication)

    with pytest.raises(TooFewPages, match=summary) if summary else nullcontext():
        check_reported_pages(reported, settings)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (PublicationSettings(), False),
        (NONE_REMOVED, False),
        (PublicationSettings(min_pages=1), True),
        (PublicationSettings(compare_with=Manifest()), True),
    ],
    ids=["none", "a limit without a comparison", "pages", "a comparison"],
)
def test_pages_or_a_comparison_guard_what_is_published(
    settings: PublicationSettings, expected: bool
) -> None:
    assert has_guards(settings) == expected


@pytest.mark.parametrize(("html_files", "fails"), [(9, True), (10, False), (11, False)])
def test_fewer_pages_than_asked_for_are_refused(html_files: int, fails: bool) -> None:
    with pytest.raises(TooFewPages) if fails else nullcontext():
        check_unpacked_pages(Counts(files=99, html_files=html_files), min_pages=10)


@pytest.mark.parametrize(
    ("reported", "only_file", "facts"),
    [
        (None, "", []),
        (1204, "", [REPORTED]),
        (None, ONLY_FILE, [ONLY_FILE]),
        (1204, ONLY_FILE, [REPORTED, ONLY_FILE]),
    ],
)
def test_the_error_says_what_was_reported_and_what_the_only_file_is(
    reported: int | None, only_file: str, facts: list[str]
) -> None:
    counts = Counts(files=1, html_files=0, reported=reported, only_file=only_file)

    with pytest.raises(TooFewPages) as caught:
        check_unpacked_pages(counts, min_pages=1)

    assert [*caught.value.details] == [*facts, "Nothing was published."]


@pytest.mark.parametrize(
    ("html_files", "reported", "expected"),
    [
        (0, None, True),
        (0, 0, True),
        (0, 1204, True),
        (1, None, False),
        (1, 0, False),
        (1, 2, False),
        (1, 3, True),
        (601, 1204, True),
        (602, 1204, False),
        (602, 1205, True),
        (1300, 1204, False),
    ],
)
def test_no_page_or_fewer_than_half_of_the_reported_ones_are_a_lack(
    html_files: int, reported: int | None, expected: bool
) -> None:
    assert lacks_pages(Counts(files=2000, html_files=html_files, reported=reported)) == expected


@pytest.mark.parametrize(
    ("counts", "fact"),
    [
        (Counts(files=1, html_files=0), "the bundle has no `.html` file (1 file in all)."),
        (
            Counts(files=1, html_files=0, reported=1204),
            "the bundle has no `.html` file (1 file in all); the API reported 1,204 pages.",
        ),
        (
            Counts(files=2000, html_files=1, reported=3),
            "the bundle has 1 `.html` file (2,000 files in all); the API reported 3 pages.",
        ),
    ],
)
def test_a_lack_is_described_by_its_numbers_and_what_to_do(counts: Counts, fact: str) -> None:
    title, *others = describe_lack(counts)

    assert title == fact
    assert ("`.htm`" in "".join(others)) == (counts.html_files == 0)
    for part in ("delete", "`min-pages`"):
        assert part in "".join(others)


def test_a_lack_names_the_only_file() -> None:
    lines = describe_lack(Counts(files=1, html_files=0, only_file=ONLY_FILE))

    assert lines[1] == ONLY_FILE


@pytest.mark.parametrize(
    ("published", "amount", "is_percentage", "removed", "fails"),
    [
        (25, 10, True, 2, False),
        (25, 10, True, 3, True),
        (9, 10, True, 0, False),
        (9, 10, True, 1, True),
        (100, 0, True, 0, False),
        (100, 0, True, 1, True),
        (100, 0, False, 0, False),
        (100, 0, False, 1, True),
        (25, 100, True, 25, False),
        (25, 3, False, 3, False),
        (25, 3, False, 4, True),
        (0, 0, True, 0, False),
    ],
)
def test_more_removed_pages_than_allowed_are_refused(
    published: int, amount: int, is_percentage: bool, removed: int, fails: bool
) -> None:
    changes = removal(*pages(removed), published=published)

    summary = f"^{removed} of {published} published pages? would be removed, "
    with pytest.raises(TooManyRemoved, match=summary) if fails else nullcontext():
        check_removed(changes, limited_to(amount, is_percentage=is_percentage))


@pytest.mark.parametrize(
    ("is_percentage", "limit"),
    [(False, "`max-removed` allows"), (True, "`max-removed` (0%) allows")],
)
def test_the_limit_is_named_as_it_is_set(is_percentage: bool, limit: str) -> None:
    with pytest.raises(TooManyRemoved) as caught:
        check_removed(removal("a.html", published=2), limited_to(0, is_percentage=is_percentage))

    assert limit in caught.value.summary


@pytest.mark.parametrize(
    ("removed", "changes_path", "detail"),
    [
        (1, None, "Removed: '0.html'."),
        (5, CHANGES_PATH, "Removed: '0.html', '1.html', '2.html', '3.html', '4.html'."),
        (7, None, "Removed: '0.html', '1.html', '2.html', '3.html', '4.html', 2 more."),
        (
            7,
            CHANGES_PATH,
            (
                "Removed: '0.html', '1.html', '2.html', '3.html', '4.html', "
                "2 more (`changes-path` lists all)."
            ),
        ),
    ],
)
def test_the_first_removed_pages_are_named_and_the_others_counted(
    removed: int, changes_path: OutputPath | None, detail: str
) -> None:
    settings = replace(NONE_REMOVED, changes_path=changes_path)

    with pytest.raises(TooManyRemoved) as caught:
        check_removed(removal(*pages(removed), published=10), settings)

    assert caught.value.details == (detail, "Nothing was published.")


def test_removed_pages_that_are_added_under_names_that_look_the_same_are_explained() -> None:
    path = "cafe\u0301.html"
    look_alikes = LookAlikes(count=1, path=path, old_form="NFC", new_form="NFD")
    changes = replace(removal("caf\u00e9.html", published=10), look_alikes=look_alikes)

    with pytest.raises(TooManyRemoved) as caught:
        check_removed(changes, NONE_REMOVED)

    assert caught.value.details == (
        "Removed: 'caf\u00e9.html'.",
        look_alikes.note,
        "Nothing was published.",
    )


def test_names_are_whole_in_an_error_so_that_a_key_in_one_is_hidden() -> None:
    name = "a" * 57 + ADMIN_KEY + "b" * 120 + ".html"

    with pytest.raises(TooManyRemoved) as caught:
        check_removed(removal(name, published=1), NONE_REMOVED)

    assert name in caught.value.details[0]
