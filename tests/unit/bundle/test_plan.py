"""What changes from the published site to a new one, and how many pages may be removed."""

import hashlib
import json
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, Final

import pytest

from docs_platform_action.bundle import plan
from docs_platform_action.bundle.plan import (
    MAX_LISTED,
    changes_json,
    check_removed,
    compare,
    describe,
    site_sha256,
)
from docs_platform_action.errors import InvalidBundle, TooManyRemoved
from docs_platform_action.inputs.settings import MaxRemoved
from docs_platform_action.models import Changes
from tests.keys import ADMIN_KEY


def digests(content: int, text: int | None = None) -> bytes:
    return bytes([content]) * 32 + (b"" if text is None else bytes([text]) * 32)


OLD: Final = {
    b"a.html": digests(1, 1),
    b"b.HTML": digests(1, 1),
    b"c.html": digests(1, 1),
    b"gone.html": digests(1, 1),
    b"large.html": digests(1),
    b"script-1.js": digests(1),
    b"style.css": digests(1),
    b"x.txt": digests(1),
}
NEW: Final = {
    b"a.html": digests(1, 1),
    b"b.HTML": digests(2, 1),  # another build id
    b"c.html": digests(2, 2),
    b"large.html": digests(2),  # its text is unknown
    b"new.html": digests(1, 1),
    b"script-2.js": digests(1),
    b"style.css": digests(2),
    b"x.txt": digests(1),
}
TWO: Final = {b"a.html": digests(1, 1), b"b.html": digests(1, 1)}
PATHS: Final = {
    "added": [b"new.html", b"script-2.js"],
    "textChanged": [b"c.html", b"large.html"],
    "changed": [b"b.HTML", b"style.css"],
    "removed": [b"gone.html", b"script-1.js"],
}


def test_pages_whose_text_changed_are_told_from_those_that_differ_in_markup_alone() -> None:
    changes, paths = compare(OLD, NEW)

    assert paths == PATHS
    assert changes.pages == {
        "added": 1,
        "textChanged": 2,
        "changed": 1,
        "removed": 1,
        "unchanged": 1,
    }
    assert changes.files == {"added": 1, "changed": 1, "removed": 1, "unchanged": 1}
    assert changes.listed == {
        "added": ("new.html",), "textChanged": ("c.html", "large.html"), "changed": ("b.HTML",), "removed": ("gone.html",)
    }  # fmt: skip
    assert (changes.is_any, changes.is_first, changes.has_new_text_everywhere) == (
        True,
        False,
        False,
    )


@pytest.mark.parametrize(
    ("old", "new", "known"),
    [
        (OLD, OLD, {"is_any": False}),
        ({}, OLD, {"is_any": True, "is_first": True}),
        ({b"a": digests(1)}, {b"a": digests(2)}, {"is_any": True}),
        (
            TWO,
            {b"a.html": digests(2, 2), b"b.html": digests(2, 2)},
            {"has_new_text_everywhere": True},
        ),
        (
            TWO,
            {b"a.html": digests(2, 2), b"b.html": digests(2, 1)},
            {"has_new_text_everywhere": False},
        ),
        (
            TWO,
            {b"a.html": digests(2, 2), b"c.html": digests(2, 2)},
            {"has_new_text_everywhere": False},
        ),
        (
            {b"a.html": digests(1, 1)},
            {b"a.html": digests(2, 2)},
            {"has_new_text_everywhere": False},
        ),
    ],
)
def test_what_is_known_of_all_changes(
    old: Mapping[bytes, bytes], new: Mapping[bytes, bytes], known: dict[str, bool]
) -> None:
    changes, _ = compare(old, new)

    assert {name: getattr(changes, name) for name in known} == known
    assert len(changes.notes) == changes.is_first + changes.has_new_text_everywhere
    assert [*describe(changes)][1:] == [*changes.notes]


def test_only_the_first_pages_are_listed_and_all_are_counted() -> None:
    changes, paths = compare({}, {b"%04d.html" % number: digests(1, 1) for number in range(1000)})

    assert changes.pages["added"] == len(paths["added"]) == 1000
    assert changes.listed["added"] == tuple(f"{number:04}.html" for number in range(MAX_LISTED))


@pytest.mark.parametrize(
    ("published", "amount", "is_percentage", "removed", "fails"),
    [
        *((25, 10, True, removed, fails) for removed, fails in ((2, False), (3, True))),
        *((9, 10, True, removed, fails) for removed, fails in ((0, False), (1, True))),
        *(
            (100, 0, is_percentage, removed, removed > 0)
            for is_percentage in (True, False)
            for removed in (0, 1)
        ),
        (25, 100, True, 25, False),
        (25, 3, False, 3, False),
        (25, 3, False, 4, True),
        (0, 0, True, 0, False),
    ],
)
def test_more_removed_pages_than_allowed_are_refused(
    published: int, amount: int, is_percentage: bool, removed: int, fails: bool
) -> None:
    old = {b"%04d.html" % number: digests(1, 1) for number in range(published)} | {
        b"old.js": digests(1)
    }
    new = dict([*old.items()][removed:-1]) | {
        b"new-%d.html" % number: digests(1, 1) for number in range(50)
    }
    changes, _ = compare(old, new)

    summary = f"^{removed} of {published} published pages? would be removed, "
    with pytest.raises(TooManyRemoved, match=summary) if fails else nullcontext():
        check_removed(changes, MaxRemoved(amount=amount, is_percentage=is_percentage))


def test_names_are_whole_in_an_error_so_that_a_key_in_one_is_hidden() -> None:
    name = "a" * 57 + ADMIN_KEY + "b" * 120 + ".html"
    changes, _ = compare({name.encode(): digests(1, 1)}, {b"index.html": digests(1, 1)})

    with pytest.raises(TooManyRemoved) as caught:
        check_removed(changes, MaxRemoved(amount=0, is_percentage=False))

    assert name in caught.value.details[0]


@pytest.mark.parametrize(
    "paths", [PATHS, {kind: [] for kind in PATHS}, {"added": ['a "b"/größe'.encode()]}]
)
def test_all_changes_are_one_json_object(paths: dict[str, Any]) -> None:
    text = b"".join(changes_json(paths)).decode()

    expected = {kind: [path.decode() for path in changed] for kind, changed in paths.items()}
    assert text == json.dumps(expected, indent=2) + "\n"


def test_the_digest_of_a_site_is_that_of_the_lines_about_files() -> None:
    lines = [b"# 1 files\n", b"00  a.html\n", b"# text 00\n", b"11  # b\n"]

    assert site_sha256(lines) == hashlib.sha256(b"00  a.html\n11  # b\n").hexdigest()


def test_a_manifest_that_no_run_could_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MAX_BYTES", 20)

    assert site_sha256([b"x" * 20])
    with pytest.raises(InvalidBundle, match="manifest"):
        site_sha256([b"x" * 20, b"y"])


def test_the_counts_of_pages_are_named_apart_from_those_of_files() -> None:
    (line,) = describe(compare(OLD, NEW)[0])

    assert line.count("text changed") == 1
    assert Changes.TEXT_CHANGED not in line
