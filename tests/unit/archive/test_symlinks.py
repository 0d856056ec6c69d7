"""Symbolic links are followed by name alone, in limited time; `tests/fuzz` compares the result with Linux."""

from collections.abc import Mapping

import pytest

from docs_platform_action.archive.entries import EntryType
from docs_platform_action.archive.names import PathRegistry
from docs_platform_action.archive.symlinks import MAX_LINK_CHAIN, MAX_LINKS, SymlinkVerifier
from docs_platform_action.clock import Cancellation
from docs_platform_action.errors import Cancelled, InvalidBundle
from tests.archives import entry, pax, tar_of
from tests.unit.archive.places import Place, message_of

FOLDERS = ["a", "a/b", "a/b/c", "d"]
FILES = ["index.html", "a/page", "a/b/page", "d/page"]


def verify(targets: Mapping[str, str], cancellation: Cancellation | None = None) -> None:
    registry = PathRegistry()
    for paths, type_ in ((FOLDERS, EntryType.FOLDER), (FILES, EntryType.FILE), (targets, EntryType.SYMBOLIC_LINK)):
        for path in paths:
            registry.claim(path, type_)
    SymlinkVerifier(targets, registry, cancellation or Cancellation()).verify()


@pytest.mark.parametrize(
    "targets",
    [
        {"latest": "a"},
        {"latest": "a/b/../b/./c//"},
        {"a/b/c/home": "../../../index.html"},
        {"one": "two", "two": "three", "three": "d/page"},
        {"into": "a/b", "d/up": "../into/page"},
        {f"l{number}": "a" for number in range(MAX_LINKS - 1)},
        {f"l{number}": f"l{number + 1}" for number in range(MAX_LINK_CHAIN - 1)} | {f"l{MAX_LINK_CHAIN - 1}": "d/page"},
    ],
)
def test_those_that_lead_somewhere_inside_are_fine(targets: dict[str, str]) -> None:
    verify(targets)


@pytest.mark.parametrize(
    ("targets", "says"),
    [
        ({"l": ".."}, "outside"),
        ({"a/b/up": "../..", "d/out": "../a/b/up/.."}, "outside"),
        ({"l": "nothing"}, "its target does not exist"),
        ({"l": "index.html/"}, "its target does not exist"),
        ({"l": "index.html/.."}, "its target does not exist"),
        ({"l": "index.html/."}, "its target does not exist"),
        ({"l": "l"}, "its target does not exist, or is part of a loop"),
        (
            {f"l{number}": f"l{number + 1}" for number in range(MAX_LINK_CHAIN)} | {f"l{MAX_LINK_CHAIN}": "d/page"},
            "its target does not exist, or is part of a loop",
        ),
        ({"l": "a/m", "a/m": "b", "a/b/c/n": "../../../l"}, "loop: it leads back to 'a/b'"),
        ({"a/b/home": "../../"}, "loop: it leads back to '.'"),
    ],
)
def test_others_are_refused(targets: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidBundle) as caught:
        verify(targets)

    assert says in caught.value.details[0]


def test_a_cancel_ends_the_work() -> None:
    cancellation = Cancellation()
    cancellation.cancel()

    with pytest.raises(Cancelled):
        verify({f"l{number}": "a/../" * 100 + "a" for number in range(100)}, cancellation)


class TestBounds:
    def test_hold_for_the_steps_of_all_links(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("docs_platform_action.archive.symlinks.MAX_STEPS", 10_000)
        links = (pax(linkpath=b"a/../" * 200 + b"a/b") + entry(b"l%d" % number, type_=b"2") for number in range(30))

        assert "too long to follow in a reasonable time" in message_of(place.refusal(tar_of(entry(b"a/b"), *links)))
