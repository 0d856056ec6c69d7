"""Paths in inputs: later steps find what is written there, or the path is refused before the run.

`tests/wording/inputs.md` has the errors.
"""

import contextlib
import errno
import os
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import pytest

from docs_platform_action.inputs.paths import (
    MIN_FREE_BYTES,
    is_usable,
    overlaps,
    overlaps_with_env_file,
    quoted,
    read_path,
    read_target,
)
from docs_platform_action.inputs.settings import OutputPath


class Runner:
    """A workspace, the runner's temporary folder, and a folder outside of both, with links between them."""

    LINKS: Final = {
        "workspace/build-link": "build",
        "workspace/temporary-link": "../temporary",
        "workspace/away": "../elsewhere",
        "workspace/plain": "two\nlines",
        "workspace/circle": "other",
        "workspace/other": "circle",
        "elsewhere/in": "../workspace",
    }

    def __init__(self, folder: Path) -> None:
        self.workspace, self.temporary, self.elsewhere = folder / "workspace", folder / "temporary", folder / "elsewhere"
        for made in ("workspace/empty", "workspace/full", "workspace/build", "workspace/two\nlines", "temporary", "elsewhere"):
            (folder / made).mkdir(parents=True)
        for link, target in self.LINKS.items():
            (folder / link).symlink_to(target)
        for file in ("notes.txt", "full/.gitkeep"):
            (self.workspace / file).write_text("old")
        os.mkfifo(self.workspace / "pipe")

    @property
    def roots(self) -> list[Path]:
        return [self.workspace, self.temporary]

    def full(self, value: str) -> str:
        return value.format(workspace=self.workspace, temporary=self.temporary, elsewhere=self.elsewhere, domain="{domain}")

    def path(self, value: str) -> OutputPath:
        return read_path(self.full(value), self.roots)

    def target(self, value: str, *, is_folder: bool) -> OutputPath:
        return read_target(self.full(value), self.roots, is_folder=is_folder)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


class TestWhereItLeads:
    @pytest.mark.parametrize(
        ("value", "name"),
        [
            *((value, "out/bundle") for value in ("out/bundle", "./out//bundle", "out/../out/bundle", "../workspace/out/bundle")),
            ("{workspace}/out/bundle", "out/bundle"),
            ("build-link/bundle", "build/bundle"),
            ("{elsewhere}/in/bundle", "bundle"),
            *((value, value) for value in ("über uns/日本語 🙂", "-rf", "a b", "{domain}", "*.zip", "%2e%2e")),
        ],
    )
    def test_one_in_the_workspace_is_named_as_later_steps_know_it(self, runner: Runner, value: str, name: str) -> None:
        assert runner.path(value) == OutputPath(path=runner.workspace / name, root=runner.workspace, name=name)

    @pytest.mark.parametrize("value", ["{temporary}/bundle", "temporary-link/bundle"])
    def test_one_in_the_temporary_folder_keeps_the_containers_name_for_it(self, runner: Runner, value: str) -> None:
        path = runner.temporary / "bundle"

        assert runner.path(value) == OutputPath(path=path, root=runner.temporary, name=str(path))

    def test_a_temporary_folder_inside_the_workspace_has_the_workspaces_names(self, runner: Runner) -> None:
        target = read_path(f"{runner.workspace}/temp/bundle", [runner.workspace, runner.workspace / "temp"])

        assert (target.root, target.name) == (runner.workspace, "temp/bundle")

    def test_a_workspace_behind_a_link_is_the_same_workspace(self, runner: Runner) -> None:
        assert read_path("bundle", [runner.elsewhere / "in"]) == read_path("bundle", [runner.workspace])

    @pytest.mark.parametrize(
        "value",
        [
            *("../elsewhere/bundle", "../bundle", "..", "/", "/etc/passwd", "out/../../elsewhere", "../workspace2/bundle"),
            *("away/bundle", "a\nb", "a\x00b", "a\x1b[31mb", "a\x85b", "a\x7f", "circle", "circle/bundle", "plain/out"),
        ],
    )
    def test_one_that_leads_outside_of_both_or_nowhere_is_refused(self, runner: Runner, value: str) -> None:
        with pytest.raises(ValueError, match=r"."):
            runner.path(value)

    def test_the_temporary_folder_is_outside_where_there_is_none(self, runner: Runner) -> None:
        with pytest.raises(ValueError, match=r"."):
            read_path(f"{runner.temporary}/bundle", [runner.workspace])

    @pytest.mark.parametrize("root", [".", "{elsewhere}/in"])
    @pytest.mark.parametrize(
        ("value", "is_through_a_link"),
        [
            *((value, False) for value in ("../elsewhere/x", "..", "../..", "c/../../x", "/etc/passwd", "{elsewhere}/x")),
            *((value, True) for value in ("away/x", "away/../x", "./c/../away/x")),
        ],
    )
    def test_only_a_link_out_of_a_workspace_is_named_as_one(
        self, runner: Runner, root: str, value: str, is_through_a_link: bool
    ) -> None:
        with contextlib.chdir(runner.workspace), pytest.raises(ValueError, match=r".") as caught:
            read_path(runner.full(value), [Path(runner.full(root))])

        assert ("(" in str(caught.value)) is is_through_a_link

    @pytest.mark.parametrize(("text", "shown"), [("a", "'a'"), ("x" * 80, f"'{'x' * 80}'"), ("x" * 81, f"'{'x' * 80}…'")])
    def test_a_value_is_quoted_up_to_eighty_characters(self, text: str, shown: str) -> None:
        assert quoted(text) == shown


class TestTargets:
    @pytest.mark.parametrize("value", ["new", "a/b/c/new", "notes.txt"])
    def test_a_file_may_be_missing_with_its_folders_or_will_be_replaced(self, runner: Runner, value: str) -> None:
        before = sorted(runner.workspace.rglob("*"))

        assert runner.target(value, is_folder=False).path == runner.workspace / value
        assert sorted(runner.workspace.rglob("*")) == before
        assert (runner.workspace / "notes.txt").read_text() == "old"

    @pytest.mark.parametrize("value", ["new", "new/", "a/b/new", "empty", "empty/"])
    def test_a_folder_may_be_missing_or_empty(self, runner: Runner, value: str) -> None:
        before = sorted(runner.workspace.rglob("*"))

        assert runner.target(value, is_folder=True).path == runner.workspace / value
        assert sorted(runner.workspace.rglob("*")) == before

    @pytest.mark.parametrize(
        ("value", "is_folder"),
        [
            *((value, False) for value in ("empty", "empty/", "new/", ".", "pipe")),
            *((value, True) for value in ("full", "notes.txt", "pipe", ".", "{workspace}", "{temporary}", "x/..")),
            *((value, kind) for value in ("notes.txt/x", "notes.txt/x/y", "long/" * 1000 + "x") for kind in (False, True)),
            *((value.format("x" * 256), kind) for value in ("{}", "{}/bundle") for kind in (False, True)),
        ],
    )
    def test_what_cannot_be_replaced_or_written_is_refused(self, runner: Runner, value: str, is_folder: bool) -> None:
        with pytest.raises(ValueError, match=r"."):
            runner.target(value, is_folder=is_folder)

    def test_so_is_what_is_mounted(self, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Path, "is_mount", lambda _: True)

        with pytest.raises(ValueError, match=r"."):
            runner.target("empty", is_folder=True)

    @pytest.mark.parametrize("is_folder", [False, True], ids=["file", "folder"])
    @pytest.mark.parametrize("missing", ["workspace", "temporary"])
    def test_a_missing_root_is_refused(self, tmp_path: Path, missing: str, is_folder: bool) -> None:
        roots = [tmp_path / "workspace", tmp_path / "temporary"]
        for root in roots:
            if root.name != missing:
                root.mkdir()

        with pytest.raises(ValueError, match=r"."):
            read_target(f"{tmp_path}/{missing}/out", roots, is_folder=is_folder)


@pytest.mark.parametrize("is_folder", [False, True], ids=["file", "folder"])
class TestWritableFolders:
    @pytest.mark.parametrize(("value", "folder"), [("new", "workspace"), ("empty/new", "empty"), ("empty/a/b/new", "empty")])
    @pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EPERM], ids=["EROFS", "EACCES", "EPERM"])
    def test_the_nearest_that_exists_is_tried_and_named(
        self, runner: Runner, monkeypatch: pytest.MonkeyPatch, value: str, folder: str, number: int, is_folder: bool
    ) -> None:
        def read_only(**_: object) -> None:  # root, who runs the container, may write to every folder
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(tempfile, "TemporaryFile", read_only)

        with pytest.raises(ValueError, match=rf" '{folder}' .*\({os.strerror(number)}(; .*SELinux.*)?\)$") as caught:
            runner.target(value, is_folder=is_folder)
        assert ("SELinux" in str(caught.value)) is (number != errno.EROFS)

    def test_a_full_disk_is_refused(self, runner: Runner, monkeypatch: pytest.MonkeyPatch, is_folder: bool) -> None:
        free = SimpleNamespace(f_blocks=1000, f_bavail=MIN_FREE_BYTES // 4096 - 1, f_frsize=4096)
        monkeypatch.setattr(os, "fstatvfs", lambda _: free)

        with pytest.raises(ValueError, match=" 'workspace' "):
            runner.target("new", is_folder=is_folder)

    @pytest.mark.parametrize("sizes", [(1000, MIN_FREE_BYTES // 4096, 4096), (0, 0, 4096), (0, 0, 0)])
    def test_a_disk_with_some_space_or_without_sizes_is_fine(
        self, runner: Runner, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, int, int], is_folder: bool
    ) -> None:
        free = SimpleNamespace(**dict(zip(("f_blocks", "f_bavail", "f_frsize"), sizes, strict=True)))
        monkeypatch.setattr(os, "fstatvfs", lambda _: free)

        assert runner.target("new", is_folder=is_folder).name == "new"


class TestOverlaps:
    @staticmethod
    def found(runner: Runner, targets: dict[str, str]) -> list[tuple[str, str]]:
        """Return the later input and the path of each overlap, for paths separated by spaces: one of each domain."""
        paths = {name: [runner.path(part) for part in value.split()] for name, value in targets.items()}
        return [(name, error.split("'")[1]) for name, error in overlaps(paths)]

    @pytest.mark.parametrize(
        ("targets", "found"),
        [
            ({"a": "out/bundle", "b": "out/site", "c": "out/site.yaml", "d": "out/sit"}, []),
            ({"a": "out"}, []),
            ({"a": "x y z", "b": "x.yaml y.yaml zz/z"}, []),
            ({"a": "out", "b": "out"}, [("b", "out")]),
            ({"a": "out", "b": "out/x"}, [("b", "out/x")]),
            ({"a": "out/x", "b": "out"}, [("b", "out")]),
            ({"a": "out/a/b", "b": "out"}, [("b", "out")]),
            ({"a": "build/x", "b": "build-link/x"}, [("b", "build/x")]),
            ({"a": "out", "b": "out", "c": "out/c", "d": "else"}, [("b", "out"), ("c", "out/c"), ("c", "out/c")]),
            ({"site": "x y z", "values": "x/x y/x z/x"}, [("values", "x/x")]),
            ({"first": "x q/y", "second": "q z"}, [("first", "q/y")]),
            ({"first": "x r q", "second": "y q/1 r/2", "third": "z r/3 q/4"}, [("second", "q/1")]),
            ({"first": "x q r", "second": "q/x y"}, [("second", "q/x")]),
            ({"first": "x q r", "second": "y q"}, [("second", "q")]),
            ({"first": "x q r", "second": "y q/y/z"}, [("second", "q/y/z")]),
        ],
    )
    def test_of_the_first_domain_all_are_found_and_of_others_one(
        self, runner: Runner, targets: dict[str, str], found: list[tuple[str, str]]
    ) -> None:
        assert self.found(runner, targets) == found

    @pytest.mark.parametrize(
        ("file", "names"),
        [
            ("out/v.env", ["values"]),
            ("out-link/v.env", ["values"]),
            ("out/x/../v.env", ["values"]),
            ("out/s/b.env", ["site"]),
            ("out", ["site", "values"]),
            *((file, []) for file in ("outputs.env", "site.env", "out/site/../other.env", "link.env")),
        ],
    )
    def test_the_file_of_outputs_must_not_overlap(self, runner: Runner, file: str, names: list[str]) -> None:
        (runner.workspace / "out").mkdir()
        (runner.workspace / "out-link").symlink_to("out")
        (runner.workspace / "link.env").symlink_to("values.yaml")  # is replaced
        values = {"site": "x out/s", "values": "out/v.env values.yaml", "bundle": "z w"}
        targets = {name: [runner.path(part) for part in value.split()] for name, value in values.items()}

        with contextlib.chdir(runner.workspace):
            found = overlaps_with_env_file(targets, Path(file))

        assert [name for name, _ in found] == names


@pytest.mark.parametrize(("name", "usable"), [("", True), ("missing", False), ("file", False)])
def test_a_folder_that_can_be_written_to_is_usable(tmp_path: Path, name: str, usable: bool) -> None:
    (tmp_path / "file").touch()

    assert is_usable(tmp_path / name) is usable


def test_a_folder_that_cannot_be_written_to_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)

    assert not is_usable(tmp_path)
