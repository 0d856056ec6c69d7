"""Paths in inputs.

Later steps find what is written there, or the path is refused before the run.
"""

import errno
import os
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final
from unittest.mock import MagicMock

import pytest
import trustme

from docs_platform_action.inputs.paths import (
    for_each_site,
    load_certificates,
    load_manifest,
    overlaps,
    resolve,
    writable,
)
from docs_platform_action.models import FileDigests, Manifest, OutputPath

AUTHORITY: Final = trustme.CA().cert_pem.bytes()
ROOTS: Final = [Path(), Path("../temporary")]  # relative to the workspace
LINKS: Final = {
    "build-link": "build",
    "temporary-link": "../temporary",
    "away": "../elsewhere",
    "circle": "circle",
    "../elsewhere/in": "../workspace",
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a workspace, which the test runs in, a temporary folder, and one outside of both.

    There are links between them.
    """
    for made in ("workspace/empty", "workspace/full", "workspace/build", "temporary", "elsewhere"):
        (tmp_path / made).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "workspace")
    for link, target in LINKS.items():
        Path(link).symlink_to(target)
    for file in ("notes.txt", "full/.gitkeep"):
        Path(file).write_text("old")
    os.mkfifo("pipe")
    return tmp_path


@pytest.mark.parametrize("root", [".", "../elsewhere/in"])
@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("out/x", "out/x"),
        ("./out//x", "out/x"),
        ("a/../out/x", "out/x"),
        ("../workspace/out/x", "out/x"),
        ("{home}/workspace/out/x", "out/x"),
        ("build-link/x", "build/x"),
        ("../elsewhere/in/x", "x"),
        ("über uns/日本語 🙂", "über uns/日本語 🙂"),
        ("-rf", "-rf"),
        ("a b", "a b"),
        ("*.zip", "*.zip"),
        ("%2e%2e", "%2e%2e"),
    ],
)
def test_a_path_in_the_workspace_has_the_name_that_later_steps_know(
    home: Path, root: str, value: str, name: str
) -> None:
    workspace = home / "workspace"

    found = resolve(value.replace("{home}", str(home)), [Path(root), *ROOTS[1:]])

    assert found == OutputPath(path=workspace / name, root=workspace, name=name)


@pytest.mark.parametrize("value", ["../temporary/x", "temporary-link/x", "{home}/temporary/x"])
def test_one_in_the_temporary_folder_keeps_the_containers_name_for_it(
    home: Path, value: str
) -> None:
    path = home / "temporary" / "x"

    found = resolve(value.replace("{home}", str(home)), ROOTS)

    assert found == OutputPath(path=path, root=path.parent, name=str(path))


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ("c/../../x", "{home}/x"),
        ("../workspace2/x", "{home}/workspace2/x"),
        ("/etc/../etc/passwd", "/etc/passwd"),
        ("../elsewhere/x", "{home}/elsewhere/x"),
        ("away/x", "{home}/elsewhere/x"),
        ("./c/../away/x", "{home}/elsewhere/x"),
    ],
)
def test_one_outside_of_both_is_refused_with_the_place(home: Path, value: str, place: str) -> None:
    found = place.replace("{home}", str(home))

    with pytest.raises(ValueError, match=f"'{value}' leads to '{found}'"):
        resolve(value, ROOTS)


def targets(value: str, domains: Sequence[str | None], *, is_folder: bool) -> list[OutputPath]:
    return for_each_site(value, domains, partial(writable, roots=ROOTS, is_folder=is_folder))


def target(value: str, *, is_folder: bool) -> OutputPath:
    (only,) = targets(value, [None], is_folder=is_folder)
    return only


@pytest.mark.parametrize(
    ("value", "is_folder"),
    [
        ("new", False),
        ("a/b/c/new", False),
        ("notes.txt", False),
        ("../temporary/x", False),
        ("new", True),
        ("new/", True),
        ("a/b/new", True),
        ("empty", True),
        ("empty/", True),
        ("../temporary/x", True),
    ],
)
def test_a_new_path_a_file_and_an_empty_folder_stay_as_they_are_until_they_are_replaced(
    home: Path, value: str, is_folder: bool
) -> None:
    before = sorted(home.rglob("*"))

    assert target(value, is_folder=is_folder) == resolve(value, ROOTS)
    assert sorted(home.rglob("*")) == before
    assert Path("notes.txt").read_text() == "old"


@pytest.mark.parametrize(
    ("value", "is_folder"),
    [
        ("empty", False),
        ("new/", False),
        (".", False),
        ("pipe", False),
        ("full", True),
        ("notes.txt", True),
        ("pipe", True),
        (".", True),
        ("../temporary", True),
        ("x/..", True),
    ],
)
def test_what_cannot_be_replaced_is_refused(value: str, is_folder: bool) -> None:
    with pytest.raises(ValueError, match=r"."):
        target(value, is_folder=is_folder)


@pytest.mark.parametrize("is_folder", [False, True])
@pytest.mark.parametrize(
    "value",
    [
        "notes.txt/x/y",
        "long/" * 1000 + "x",
        "circle/x",
        "new/" + "x" * 256,
        "x" * 256 + "/new",
    ],
)
def test_what_cannot_be_written_is_refused(value: str, is_folder: bool) -> None:
    with pytest.raises(ValueError, match=r"."):
        target(value, is_folder=is_folder)


@pytest.mark.parametrize(("value", "folder"), [("new", "workspace"), ("empty/a/b/new", "empty")])
@pytest.mark.parametrize(
    "step",
    ["side_effect", "return_value.__enter__.return_value.write.side_effect"],
    ids=["open", "write"],
)
def test_so_is_one_whose_nearest_folder_cannot_be_written_to(
    monkeypatch: pytest.MonkeyPatch, value: str, folder: str, step: str
) -> None:
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    # no permission stops root, as in the container
    monkeypatch.setattr(tempfile, "TemporaryFile", MagicMock(**{step: error}))

    with pytest.raises(ValueError, match=f"'{folder}'.*{error.strerror}"):
        target(value, is_folder=False)


def test_each_domain_has_its_own_path_and_the_errors_are_joined() -> None:
    names = [path.name for path in targets("{domain}/x-{domain}", ["a", "b"], is_folder=True)]
    assert names == ["a/x-a", "b/x-b"]

    with pytest.raises(ValueError, match=r"^'full' .*; 'notes.txt' .*; '../elsewhere' ") as caught:
        targets("{domain}", ["full", "new", "notes.txt", "../elsewhere"], is_folder=True)
    assert "'new'" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"a": "out/bundle", "b": "out/site", "c": "out/site.yaml", "d": "out/sit"}, []),
        ({"a": "out", "b": "out"}, [("b", "a")]),
        ({"a": "out/a/b", "b": "out"}, [("a", "b")]),
        ({"a": "out", "b": "out/b", "c": "out/c"}, [("b", "a"), ("c", "a")]),
        (
            {"a": "out", "b": "out/b", "c": "out/b/c", "d": "out/d"},
            [("b", "a"), ("c", "b"), ("d", "a")],
        ),
        ({"a": "build/x", "b": "build-link/x"}, [("b", "a")]),
        ({"a": "out", "b": "out", "c": "out/c", "d": "else"}, [("b", "a"), ("c", "b")]),
        ({"a": "x y z", "b": "x/1 y/2"}, [("b", "a")]),
        ({"a": "x x/y"}, [("a", "a")]),
    ],
)
def test_paths_that_overlap_are_reported_once_for_two_inputs(
    given: dict[str, str], found: list[tuple[str, str]]
) -> None:
    paths = {}
    for name, value in given.items():
        paths[name] = [resolve(part, ROOTS) for part in value.split()]

    errors = overlaps(paths)

    reported = []
    for inner, error in errors:
        reported += [(inner, outer) for outer in given if f" {outer}, " in error]
    assert reported == found


def test_certificates_are_read_whatever_stands_between_them() -> None:
    before = "Zürich\r\n".encode("latin-1")
    Path("ca.pem").write_bytes(before + AUTHORITY + b"# end\0\n" + AUTHORITY.rstrip())

    assert load_certificates("ca.pem", ROOTS).count("BEGIN CERTIFICATE") == 2


@pytest.mark.parametrize(
    "content",
    [b"", b"garbage", b"\xff\xfe\x00", AUTHORITY + AUTHORITY.replace(b"\nMII", b"\nMII-")],
)
def test_what_is_not_all_valid_certificates_is_refused(content: bytes) -> None:
    Path("ca.pem").write_bytes(content)

    with pytest.raises(ValueError, match=r"^'ca\.pem'"):
        load_certificates("ca.pem", ROOTS)


@pytest.mark.timeout(5, method="signal")  # a pipe blocks whoever opens it
@pytest.mark.parametrize(
    "path", ["missing.pem", "empty", "circle", "notes.txt/ca.pem", "x" * 256, "away/ca.pem", "pipe"]
)
def test_certificates_are_read_only_from_a_file_inside(path: str) -> None:
    with pytest.raises(ValueError, match=f"^'{path[:80]}"):
        load_certificates(path, ROOTS)


MANIFEST: Final = b"# 2 files\n" + b"ab" * 32 + b"  index.html\n# link latest -> v2\n"


@pytest.mark.parametrize("is_first", [False, True])
def test_a_manifest_is_read(is_first: bool) -> None:
    Path("published").write_bytes(MANIFEST)

    assert load_manifest("published", ROOTS, is_first=is_first) == Manifest(
        files={b"index.html": FileDigests(b"\xab" * 32, None)}, folder_links={b"latest": b"v2"}
    )


@pytest.mark.parametrize(
    ("path", "state"), [("missing", "does not exist"), ("empty-file", "is empty")]
)
def test_one_that_is_missing_or_empty_is_refused_unless_nothing_is_published_yet(
    path: str, state: str
) -> None:
    Path("empty-file").touch()

    assert load_manifest(path, ROOTS, is_first=True) == Manifest()
    with pytest.raises(ValueError, match=f"^'{path}' {state}; .* `first-publication: true`"):
        load_manifest(path, ROOTS, is_first=False)


@pytest.mark.timeout(5, method="signal")  # a pipe blocks whoever opens it
@pytest.mark.parametrize("path", ["empty", "pipe", "huge", "damaged"])
def test_what_is_not_a_whole_manifest_is_refused_even_then(path: str) -> None:
    Path("damaged").write_bytes(MANIFEST[:-1])
    with Path("huge").open("wb") as file:
        file.truncate(128 * 1024**2 + 1)

    with pytest.raises(ValueError, match=f"^'{path}' is not a "):
        load_manifest(path, ROOTS, is_first=True)
