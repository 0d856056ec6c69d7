"""Symbolic links are followed by name alone, in limited time; `tests/fuzz` compares the result with Linux."""

from collections.abc import Mapping

import pytest

from docs_platform_action.archive.entries import EntryType
from docs_platform_action.archive.names import PathRegistry
from docs_platform_action.archive.symlinks import MAX_LINK_CHAIN, MAX_LINKS, SymlinkVerifier
from docs_platform_action.clock import Cancellation
from docs_platform_action.errors import Cancelled, InvalidBundle

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
    "targets",
    [
        {"l": ".."},
        {"a/b/up": "../..", "d/out": "../a/b/up/.."},
        {"l": "nothing"},
        {"l": "index.html/"},
        {"l": "index.html/.."},
        {"l": "index.html/."},
        {"l": "l"},
        {f"l{number}": f"l{number + 1}" for number in range(MAX_LINK_CHAIN)} | {f"l{MAX_LINK_CHAIN}": "d/page"},
        {"l": "a/m", "a/m": "b", "a/b/c/n": "../../../l"},
        {"a/b/home": "../../"},
    ],
)
def test_others_are_refused(targets: dict[str, str]) -> None:
    with pytest.raises(InvalidBundle):
        verify(targets)


def test_a_cancel_ends_the_work() -> None:
    cancellation = Cancellation()
    cancellation.cancel()

    with pytest.raises(Cancelled):
        verify({f"l{number}": "a/../" * 100 + "a" for number in range(100)}, cancellation)
