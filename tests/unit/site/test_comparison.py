"""What differs from the published site, and how it is written down."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import pytest

from docs_platform_action.models import Changes, FileDigests, FolderFiles, LookAlikes, Manifest
from docs_platform_action.site.comparison import MAX_LISTED, changes_json, compare, describe


def digests(content: int, text: int | None = None) -> FileDigests:
    return FileDigests(bytes([content]) * 32, None if text is None else bytes([text]) * 32)


def compared(
    old: Mapping[bytes, FileDigests],
    new: Mapping[bytes, FileDigests],
    reported_pages: int | None = None,
) -> tuple[Changes, Mapping[str, Sequence[bytes]]]:
    return compare(Manifest(files=old), Manifest(files=new), reported_pages)


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
    changes, paths = compared(OLD, NEW)

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
        "added": ("new.html",),
        "textChanged": ("c.html", "large.html"),
        "changed": ("b.HTML",),
        "removed": ("gone.html",),
    }
    assert changes.listed_files == {
        "added": (FolderFiles(folder="", paths=["script-2.js"], more=0),),
        "changed": (FolderFiles(folder="", paths=["style.css"], more=0),),
    }
    assert changes.is_any
    assert not changes.is_first
    assert not changes.has_new_text_everywhere


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (digests(1, 1), digests(2, 1), "changed"),
        (digests(1, 1), digests(2, 2), "textChanged"),
        (digests(1, 1), digests(2), "textChanged"),
        (digests(1), digests(2, 1), "textChanged"),
        (digests(1), digests(2), "textChanged"),
        (digests(1), digests(1), "unchanged"),
    ],
)
def test_a_page_whose_text_is_unknown_counts_as_changed_in_its_text(
    old: FileDigests, new: FileDigests, kind: str
) -> None:
    changes, _ = compared({b"a.html": old}, {b"a.html": new})

    found = [name for name, count in changes.pages.items() if count]
    assert found == [kind]


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
    old: Mapping[bytes, FileDigests], new: Mapping[bytes, FileDigests], known: dict[str, bool]
) -> None:
    changes, _ = compared(old, new)

    assert {name: getattr(changes, name) for name in known} == known
    removes_pages = changes.pages["removed"] > 0
    known_notes = changes.is_first + removes_pages + changes.has_new_text_everywhere
    assert len(changes.notes) == known_notes
    assert [*describe(changes)][1:] == [*changes.notes]


PAGE: Final = digests(1, 1)
VERSIONS: Final = {
    b"v1/a.html": PAGE,
    b"v2/a.html": digests(2, 2),
    b"v2/b.html": PAGE,
    b"v2/c.html": PAGE,
    b"v2/c.css": digests(1),
}


@pytest.mark.parametrize(
    ("old", "new", "expected", "removed_pages"),
    [
        ({b"latest": b"v2"}, {b"latest": b"v2"}, {}, 0),
        (
            {b"latest": b"v2"},
            {b"latest": b"v1"},
            {
                "textChanged": [b"latest/a.html"],
                "changed": [b"latest"],
                "removed": [b"latest/b.html", b"latest/c.html"],
            },
            2,
        ),
        (
            {b"latest": b"v2"},
            {},
            {"removed": [b"latest", b"latest/a.html", b"latest/b.html", b"latest/c.html"]},
            3,
        ),
        ({}, {b"latest": b"v1"}, {"added": [b"latest", b"latest/a.html"]}, 0),
        # whatever the name of a link, it is not a page
        ({b"x.html": b"v1"}, {}, {"removed": [b"x.html", b"x.html/a.html"]}, 1),
        (
            {b"x.html": b"v1"},
            {b"x.html": b"empty"},
            {"changed": [b"x.html"], "removed": [b"x.html/a.html"]},
            1,
        ),
    ],
    ids=["kept", "retargeted", "dropped", "new", "named like a page", "to an empty folder"],
)
def test_links_to_folders_are_files_and_the_pages_behind_them_are_pages(
    old: Mapping[bytes, bytes],
    new: Mapping[bytes, bytes],
    expected: Mapping[str, Sequence[bytes]],
    removed_pages: int,
) -> None:
    changes, paths = compare(
        Manifest(files=VERSIONS, folder_links=old), Manifest(files=VERSIONS, folder_links=new)
    )

    assert {kind: found for kind, found in paths.items() if found} == expected
    assert changes.pages["removed"] == removed_pages
    assert changes.is_any == bool(expected)
    links = old.keys() | new.keys()
    assert sum(changes.files.values()) == len(links) + 1


@pytest.mark.parametrize(
    ("old", "new", "note"),
    [
        ({}, {}, []),
        ({b"a": b"v1"}, {b"a": b"v1"}, []),
        ({b"a": b"v1"}, {b"a": b"v2"}, ["'a' leads to 'v2' instead of 'v1'"]),
        (
            {b"a": b"v1", b"b": b"v1"},
            {b"b": b"v1", b"c": b"v2"},
            ["'a' is removed, 'c' is added and leads to 'v2'"],
        ),
        (
            {b"%d" % number: b"v" for number in range(7)},
            {},
            [f"{', '.join([f'{number!r} is removed' for number in '01234'])} and 2 more"],
        ),
    ],
    ids=["none", "the same", "another target", "another name", "many"],
)
def test_links_to_folders_that_change_are_named(
    old: Mapping[bytes, bytes], new: Mapping[bytes, bytes], note: list[str]
) -> None:
    changes, _ = compare(
        Manifest(files=VERSIONS, folder_links=old), Manifest(files=VERSIONS, folder_links=new)
    )

    notes = [text for text in changes.notes if text.startswith("Links")]
    assert notes == [f"Links to folders: {text}." for text in note]


def test_a_page_that_becomes_a_link_is_removed() -> None:
    old = Manifest(files={b"a/b.css": PAGE, b"x.html": PAGE})
    new = Manifest(files={b"a/b.css": PAGE}, folder_links={b"x.html": b"a"})

    changes, paths = compare(old, new)

    assert changes.pages["removed"] == changes.files["added"] == 1
    assert paths["removed"] == paths["added"] == [b"x.html"]


SITE: Final = {name: digests(1, 1) for name in (b"index.html", b"a.html", b"404.html", b"a.css")}


@pytest.mark.parametrize(
    ("files", "reported", "is_explained"),
    [
        (SITE, 2, True),
        (SITE, 3, False),
        (SITE, 1, False),
        (SITE, None, False),
        ({b"index.html": digests(1, 1), b"a.html": digests(1, 1)}, 1, False),
    ],
    ids=["one fewer", "the same", "two fewer", "unknown", "without 404.html"],
)
def test_a_reported_number_of_pages_without_the_404_page_is_explained(
    files: Mapping[bytes, FileDigests], reported: int | None, is_explained: bool
) -> None:
    changes, _ = compared(files, files, reported)

    note = "The site has 3 `.html` files: the 2 pages that the API reports, and `404.html`."
    assert (note in describe(changes)) == is_explained
    assert (changes.notes == [note]) == is_explained


def test_the_share_of_the_published_pages_that_are_removed_is_named() -> None:
    changes, _ = compare(Manifest(files=OLD), Manifest(files=NEW))

    assert changes.notes[0] == "1 of 5 published pages would be removed."


def test_the_folders_of_lost_pages_and_of_new_scripts_are_named() -> None:
    old = dict.fromkeys((b"index.html", b"api/a.html", b"api/b.html"), PAGE)

    changes, _ = compared(old, {b"index.html": PAGE, b"assets/a.js": PAGE})

    assert changes.notes == [
        "2 of 3 published pages would be removed.",
        "No page is left in 'api/' (2 pages).",
        "Scripts added: 1 in 'assets/'.",
    ]


def test_the_scripts_of_a_first_publication_are_not_counted_by_folder() -> None:
    changes, _ = compared({}, {b"a.js": PAGE})

    assert not any(note.startswith("Scripts") for note in changes.notes)


def test_a_link_to_a_folder_that_is_removed_is_named_once() -> None:
    files = {b"v2/a.html": PAGE, b"v2/b.html": PAGE}

    changes, _ = compare(
        Manifest(files=files, folder_links={b"latest": b"v2"}), Manifest(files=files)
    )

    assert changes.notes == [
        "2 of 4 published pages would be removed.",
        "Links to folders: 'latest' is removed.",
    ]


def test_only_the_first_pages_are_listed_and_all_are_counted() -> None:
    files = {b"%04d.html" % number: digests(1, 1) for number in range(1000)}

    changes, paths = compared({}, files)

    assert changes.pages["added"] == len(paths["added"]) == 1000
    assert changes.listed["added"] == tuple(f"{number:04}.html" for number in range(MAX_LISTED))


def test_links_to_folders_are_listed_without_their_mark_and_count_as_files() -> None:
    new = Manifest(
        files={b"latest.txt": digests(1), b"v2/index.html": digests(1, 1)},
        folder_links={b"latest": b"v2"},
    )

    changes, _ = compare(Manifest(), new)

    assert changes.listed_files["added"] == (
        FolderFiles(folder="", paths=["latest", "latest.txt"], more=0),
    )
    assert changes.files["added"] == 2


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            OLD,
            NEW,
            (
                "Changes: "
                "pages: 1 added, 2 text changed, 1 otherwise changed, 1 removed, 1 unchanged; "
                "other files: 1 added, 1 changed, 1 removed, 1 unchanged"
            ),
        ),
        (TWO, TWO, "Changes: pages: 2 unchanged; other files: none"),
        (
            {b"a.css": digests(1)},
            {b"b.css": digests(1)},
            "Changes: pages: none; other files: 1 added, 1 removed",
        ),
    ],
)
def test_the_counts_of_pages_are_named_apart_from_those_of_files(
    old: Mapping[bytes, FileDigests], new: Mapping[bytes, FileDigests], line: str
) -> None:
    changes, _ = compared(old, new)

    assert next(describe(changes)) == line
    assert Changes.TEXT_CHANGED not in line


@pytest.mark.parametrize(
    "paths", [PATHS, {kind: [] for kind in PATHS}, {"added": ['a "b"/größe'.encode()]}]
)
def test_all_changes_are_one_json_object(paths: Mapping[str, Sequence[bytes]]) -> None:
    text = b"".join(changes_json(paths)).decode()

    expected: dict[str, list[str]] = {}
    for kind, changed in paths.items():
        expected[kind] = [path.decode() for path in changed]
    assert text == json.dumps(expected, indent=2) + "\n"


NFC: Final = "caf\u00e9"
NFD: Final = "cafe\u0301"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ([NFC], [NFD], LookAlikes(count=1, path=NFD, old_form="NFC", new_form="NFD")),
        ([NFD], [NFC], LookAlikes(count=1, path=NFC, old_form="NFD", new_form="NFC")),
        (
            [f"{NFC}/{NFD}", NFD],
            [f"{NFC}/{NFC}", NFC],
            LookAlikes(count=2, path=NFC, old_form="NFD", new_form="NFC"),
        ),
        (
            [f"{NFC}/{NFD}"],
            [f"{NFC}/{NFC}"],
            LookAlikes(
                count=1, path=f"{NFC}/{NFC}", old_form="neither NFC nor NFD", new_form="NFC"
            ),
        ),
        ([NFC, NFD], [NFC], None),
        ([NFC], ["cafe"], None),
        (["a"], ["b"], None),
    ],
    ids=["to NFD", "to NFC", "two", "mixed", "one of both", "another name", "ASCII"],
)
def test_names_that_differ_only_in_their_unicode_form_are_found(
    old: Sequence[str], new: Sequence[str], expected: LookAlikes | None
) -> None:
    changes, paths = compared(
        {name.encode(): PAGE for name in old}, {name.encode(): PAGE for name in new}
    )

    assert changes.look_alikes == expected
    assert changes.notes == ([] if expected is None else [expected.note])
    assert len(paths["removed"]) == len({*old} - {*new})


def test_links_to_folders_may_look_alike_but_not_like_files() -> None:
    link = Manifest(files={b"v1/a.js": PAGE}, folder_links={NFC.encode(): b"v1"})
    alike = Manifest(files={b"v1/a.js": PAGE}, folder_links={NFD.encode(): b"v1"})
    file = Manifest(files={b"v1/a.js": PAGE, NFC.encode(): PAGE})

    changes, _ = compare(link, alike)
    assert changes.look_alikes == LookAlikes(count=1, path=NFD, old_form="NFC", new_form="NFD")
    changes, _ = compare(link, file)
    assert changes.look_alikes is None


def test_a_note_about_look_alikes_says_which_name_is_which() -> None:
    changes, _ = compared({NFC.encode(): PAGE}, {NFD.encode(): PAGE})

    (note,) = changes.notes
    assert note.startswith("1 removed file is added again under a name that looks the same")
    assert note.endswith(f"For example, this name was NFC and is now NFD: '{NFD}'.")


def test_that_every_text_differs_is_not_explained_beside_a_warning() -> None:
    changes, _ = compared(TWO, {b"a.html": digests(2, 2), b"b.html": digests(2, 2)})

    assert changes.has_new_text_everywhere
    assert len(changes.notes) == 1
    assert not replace(changes, has_alarm=True).notes
