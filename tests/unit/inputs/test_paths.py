"""Paths in inputs: later steps find what is written there, or the path is refused before the run."""

import contextlib
import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

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
    """A workspace, the runner's temporary folder, and a folder outside of both."""

    def __init__(self, folder: Path) -> None:
        self.workspace, self.temporary, self.elsewhere = folder / "workspace", folder / "temporary", folder / "elsewhere"
        for made in (self.workspace, self.temporary, self.elsewhere):
            made.mkdir()

    @property
    def roots(self) -> list[Path]:
        return [self.workspace, self.temporary]

    def path(self, value: str) -> OutputPath:
        return read_path(value, self.roots)

    def file(self, value: str) -> OutputPath:
        return read_target(value, self.roots, is_folder=False)

    def folder(self, value: str) -> OutputPath:
        return read_target(value, self.roots, is_folder=True)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


class TestWhereItLeads:
    @pytest.mark.parametrize("value", ["out/bundle", "./out//bundle", "out/../out/bundle", "../workspace/out/bundle"])
    def test_a_relative_path_starts_at_the_workspace(self, runner: Runner, value: str) -> None:
        target = runner.path(value)

        assert target == OutputPath(path=runner.workspace / "out" / "bundle", root=runner.workspace, name="out/bundle")

    def test_an_absolute_one_inside_is_named_as_later_steps_outside_of_the_container_know_it(self, runner: Runner) -> None:
        assert runner.path(f"{runner.workspace}/out/bundle").name == "out/bundle"

    def test_one_in_the_temporary_folder_keeps_the_containers_name_for_it(self, runner: Runner) -> None:
        value = f"{runner.temporary}/bundle"

        assert runner.path(value) == OutputPath(path=runner.temporary / "bundle", root=runner.temporary, name=value)

    def test_a_temporary_folder_inside_the_workspace_has_the_workspaces_names(self, runner: Runner) -> None:
        target = read_path(f"{runner.workspace}/temp/bundle", [runner.workspace, runner.workspace / "temp"])

        assert (target.root, target.name) == (runner.workspace, "temp/bundle")

    @pytest.mark.parametrize("value", ["../elsewhere/bundle", "../bundle", "..", "/", "/etc/passwd", "out/../../elsewhere"])
    def test_one_that_leads_outside_of_both_is_refused(self, runner: Runner, value: str) -> None:
        with pytest.raises(
            ValueError, match="is outside the workspace, so it is not shared with the container; use a path inside the workspace"
        ):
            runner.path(value)

    @pytest.mark.parametrize("value", ["../elsewhere/bundle", "..", "../..", "a/../../x", "/etc/passwd", "{elsewhere}/x"])
    def test_one_outside_of_a_workspace_that_is_the_working_directory_is_outside_by_itself(
        self, runner: Runner, value: str
    ) -> None:
        with (
            contextlib.chdir(runner.workspace),
            pytest.raises(ValueError, match="is outside the workspace, so it is not shared with the container"),
        ):
            read_path(value.format(elsewhere=runner.elsewhere), [Path()])

    @pytest.mark.parametrize("value", ["../x", "a/../../x", "{elsewhere}/x"])
    def test_so_is_one_outside_of_a_workspace_that_is_a_link(self, runner: Runner, value: str) -> None:
        (runner.elsewhere / "link").symlink_to(runner.workspace)

        with pytest.raises(ValueError, match="is outside the workspace, so it is not shared with the container"):
            read_path(value.format(elsewhere=runner.elsewhere), [runner.elsewhere / "link"])

    @pytest.mark.parametrize("value", ["away/x", "away/../x", "./a/../away/x", "{workspace}/away/x"])
    def test_a_link_out_of_a_workspace_that_is_the_working_directory_is_named_as_one(self, runner: Runner, value: str) -> None:
        (runner.workspace / "away").symlink_to(runner.elsewhere)

        with (
            contextlib.chdir(runner.workspace),
            pytest.raises(ValueError, match=r"is outside the workspace \(through a symbolic link\),"),
        ):
            read_path(value.format(workspace=runner.workspace), [Path()])

    def test_a_sibling_with_the_same_name_prefix_is_outside(self, runner: Runner) -> None:
        with pytest.raises(ValueError, match="outside"):
            runner.path("../workspace2/bundle")

    def test_the_temporary_folder_is_outside_where_there_is_none(self, runner: Runner) -> None:
        with pytest.raises(ValueError, match="outside"):
            read_path(f"{runner.temporary}/bundle", [runner.workspace])

    @pytest.mark.parametrize("value", ["a\nb", "a\x00b", "a\x1b[31mb", "a\x85b", "a\x7f"])
    def test_control_characters_are_refused(self, runner: Runner, value: str) -> None:
        with pytest.raises(ValueError, match=r"^contains a control character$"):
            runner.path(value)

    @pytest.mark.parametrize("value", ["über uns/日本語 🙂", "-rf", "a b", "{domain}", "*.zip", "%2e%2e"])
    def test_any_other_name_is_taken_as_it_is(self, runner: Runner, value: str) -> None:
        assert runner.path(value).name == value

    def test_a_long_path_is_shown_shortened(self, runner: Runner) -> None:
        with pytest.raises(ValueError, match="outside") as caught:
            runner.path("../" + "x" * 1000)

        assert str(caught.value).startswith(f"'../{'x' * 77}…' is outside")

    @pytest.mark.parametrize(("text", "shown"), [("a", "'a'"), ("x" * 80, f"'{'x' * 80}'"), ("x" * 81, f"'{'x' * 80}…'")])
    def test_a_value_is_quoted_up_to_eighty_characters(self, text: str, shown: str) -> None:
        assert quoted(text) == shown


class TestLinks:
    def test_one_inside_the_workspace_leads_to_its_target(self, runner: Runner) -> None:
        (runner.workspace / "build").mkdir()
        (runner.workspace / "out").symlink_to("build")

        assert runner.path("out/bundle").name == "build/bundle"

    def test_one_into_the_temporary_folder_leads_there(self, runner: Runner) -> None:
        (runner.workspace / "out").symlink_to(runner.temporary)

        target = runner.path("out/bundle")

        assert (target.root, target.name) == (runner.temporary, f"{runner.temporary}/bundle")

    def test_one_that_leads_out_is_refused(self, runner: Runner) -> None:
        (runner.workspace / "out").symlink_to(runner.elsewhere)

        with pytest.raises(ValueError, match="outside"):
            runner.path("out/bundle")

    def test_one_that_leads_in_from_outside_is_fine(self, runner: Runner) -> None:
        (runner.elsewhere / "in").symlink_to(runner.workspace)

        assert runner.path(f"{runner.elsewhere}/in/bundle").name == "bundle"

    def test_a_workspace_behind_a_link_is_the_same_workspace(self, runner: Runner) -> None:
        link = runner.elsewhere / "link"
        link.symlink_to(runner.workspace)

        assert read_path("bundle", [link]) == read_path("bundle", [runner.workspace])

    @pytest.mark.parametrize("value", ["a", "a/bundle"])
    def test_one_in_a_circle_is_refused(self, runner: Runner, value: str) -> None:
        (runner.workspace / "a").symlink_to("b")
        (runner.workspace / "b").symlink_to("a")

        with pytest.raises(ValueError, match=rf"^'{value}' is a symbolic link that leads to itself$"):
            runner.path(value)


class TestFile:
    @pytest.mark.parametrize("value", ["bundle.tar.gz", "a/b/c/bundle.tar.gz"])
    def test_it_need_not_be_there_nor_its_folders(self, runner: Runner, value: str) -> None:
        assert runner.file(value).path == runner.workspace / value
        assert [*runner.workspace.iterdir()] == []

    def test_one_that_is_there_will_be_replaced(self, runner: Runner) -> None:
        (runner.workspace / "bundle").write_text("old")

        assert runner.file("bundle").name == "bundle"
        assert (runner.workspace / "bundle").read_text() == "old"

    @pytest.mark.parametrize("value", ["out", "out/", "new/", "."])
    def test_a_folder_is_refused(self, runner: Runner, value: str) -> None:
        (runner.workspace / "out").mkdir()

        with pytest.raises(ValueError, match="is a folder; use the path of a file"):
            runner.file(value)

    def test_a_pipe_is_refused(self, runner: Runner) -> None:
        os.mkfifo(runner.workspace / "pipe")

        with pytest.raises(ValueError, match=r"^'pipe' is not a regular file$"):
            runner.file("pipe")

    @pytest.mark.parametrize("value", ["notes.txt/bundle", "notes.txt/deeper/still/bundle"])
    def test_a_file_on_the_way_is_named(self, runner: Runner, value: str) -> None:
        (runner.workspace / "notes.txt").touch()

        with pytest.raises(ValueError, match=r"^'notes.txt' in this path is a file, not a folder$"):
            runner.file(value)

    def test_a_path_that_the_system_does_not_take_is_refused(self, runner: Runner) -> None:
        with pytest.raises(ValueError, match=r"…' cannot be used \(File name too long\)$"):
            runner.file("long/" * 1000 + "bundle")

    @pytest.mark.parametrize("value", ["{}", "{}/bundle"])
    def test_a_name_that_is_too_long_is_refused(self, runner: Runner, value: str) -> None:
        with pytest.raises(ValueError, match=r"contains a name longer than 255 bytes$"):
            runner.file(value.format("x" * 256))


class TestFolder:
    @pytest.mark.parametrize("value", ["site", "site/", "a/b/site"])
    def test_it_may_be_missing(self, runner: Runner, value: str) -> None:
        assert runner.folder(value).path == runner.workspace / value

    def test_it_may_be_empty(self, runner: Runner) -> None:
        (runner.workspace / "site").mkdir()

        assert runner.folder("site").name == "site"

    @pytest.mark.parametrize("hidden", ["index.html", ".gitkeep"])
    def test_one_that_holds_something_is_refused_with_what_that_is(self, runner: Runner, hidden: str) -> None:
        (runner.workspace / "site").mkdir()
        (runner.workspace / "site" / hidden).touch()

        with pytest.raises(ValueError, match="is not empty") as caught:
            runner.folder("site")

        assert (
            str(caught.value)
            == f"'site' is not empty (it contains '{hidden}'); empty it in an earlier step, or use another folder"
        )

    @pytest.mark.parametrize("make", [Path.touch, os.mkfifo], ids=["file", "pipe"])
    def test_a_file_is_refused(self, runner: Runner, make: Callable[[Path], None]) -> None:
        make(runner.workspace / "site")

        with pytest.raises(ValueError, match=r"^'site' is a file; use a folder that is missing or empty$"):
            runner.folder("site")

    @pytest.mark.parametrize("value", [".", "{workspace}", "{temporary}", "x/.."])
    def test_the_workspace_or_the_temporary_folder_itself_is_refused(self, runner: Runner, value: str) -> None:
        with pytest.raises(ValueError, match=r"cannot be replaced; use a folder inside it$"):
            runner.folder(value.format(workspace=runner.workspace, temporary=runner.temporary))

    def test_so_is_what_is_mounted(self, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        (runner.workspace / "site").mkdir()
        monkeypatch.setattr(Path, "is_mount", lambda _: True)

        with pytest.raises(ValueError, match="'site' cannot be replaced"):
            runner.folder("site")

    def test_a_file_on_the_way_is_named(self, runner: Runner) -> None:
        (runner.workspace / "notes.txt").touch()

        with pytest.raises(ValueError, match=r"^'notes.txt' in this path is a file, not a folder$"):
            runner.folder("notes.txt/site")

    def test_a_path_that_the_system_does_not_take_is_refused(self, runner: Runner) -> None:
        with pytest.raises(ValueError, match=r"…' cannot be used \(File name too long\)$"):
            runner.folder("long/" * 1000)

    def test_a_name_that_is_too_long_is_refused(self, runner: Runner) -> None:
        with pytest.raises(ValueError, match=r"…' contains a name longer than 255 bytes$"):
            runner.folder("x" * 256)


class TestWritableFolders:
    """Every test is for a file and for a site."""

    @pytest.fixture(params=[Runner.file, Runner.folder], ids=["file", "folder"])
    def refusal(self, request: pytest.FixtureRequest, runner: Runner) -> Callable[[str], str]:
        def refusal(value: str) -> str:
            with pytest.raises(ValueError, match=r".") as caught:
                request.param(runner, value)
            return str(caught.value)

        return refusal

    @pytest.mark.parametrize(("value", "folder"), [("new", "workspace"), ("out/new", "out"), ("out/a/b/new", "out")])
    def test_a_folder_that_cannot_be_written_to_is_refused(
        self, refusal: Callable[[str], str], runner: Runner, monkeypatch: pytest.MonkeyPatch, value: str, folder: str
    ) -> None:
        def read_only(**_: object) -> None:  # root, who runs the container, may write to every folder
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

        (runner.workspace / "out").mkdir()
        monkeypatch.setattr(tempfile, "TemporaryFile", read_only)

        assert refusal(value) == f"the folder '{folder}' cannot be written to (Read-only file system)"

    @pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM], ids=["EACCES", "EPERM"])
    def test_a_write_that_is_denied_names_what_probably_denies_it(
        self, refusal: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, number: int
    ) -> None:
        def denied(**_: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(tempfile, "TemporaryFile", denied)

        assert refusal("new") == (
            f"the folder 'workspace' cannot be written to ({os.strerror(number)}; likely causes: SELinux on the runner, "
            "or user namespaces (rootless Docker, `userns-remap`))"
        )

    def test_a_full_disk_is_refused(self, refusal: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
        free = SimpleNamespace(f_blocks=1000, f_bavail=MIN_FREE_BYTES // 4096 - 1, f_frsize=4096)
        monkeypatch.setattr(os, "fstatvfs", lambda _: free)

        assert refusal("new") == "the disk of the folder 'workspace' is full"

    @pytest.mark.parametrize(
        "free",
        [
            SimpleNamespace(f_blocks=1000, f_bavail=MIN_FREE_BYTES // 4096, f_frsize=4096),
            SimpleNamespace(f_blocks=0, f_bavail=0, f_frsize=4096),
            SimpleNamespace(f_blocks=0, f_bavail=0, f_frsize=0),
        ],
        ids=["the least", "no sizes", "nothing at all"],
    )
    def test_the_least_that_is_room_is_enough_and_so_is_a_disk_that_reports_no_sizes(
        self, runner: Runner, monkeypatch: pytest.MonkeyPatch, free: SimpleNamespace
    ) -> None:
        monkeypatch.setattr(os, "fstatvfs", lambda _: free)

        assert runner.file("new").name == runner.folder("new").name == "new"

    def test_looking_leaves_nothing_behind(self, runner: Runner) -> None:
        runner.file("out/bundle")
        runner.folder("out/site")

        assert [*runner.workspace.iterdir()] == []


class TestOverlaps:
    def targets(self, runner: Runner, **values: str) -> dict[str, list[OutputPath]]:
        return {name: [runner.path(part) for part in value.split()] for name, value in values.items()}

    def test_separate_paths_are_fine(self, runner: Runner) -> None:
        assert overlaps(self.targets(runner, a="out/bundle", b="out/site", c="out/site.yaml", d="out/sit")) == []

    def test_a_single_path_is_fine(self, runner: Runner) -> None:
        assert overlaps(self.targets(runner, a="out")) == []

    @pytest.mark.parametrize(("first", "second"), [("out", "out"), ("out", "out/x"), ("out/x", "out"), ("out/a/b", "out")])
    def test_one_inside_another_is_an_error_of_the_later_input(self, runner: Runner, first: str, second: str) -> None:
        found = overlaps(self.targets(runner, first=first, second=second))

        assert found == [("second", f"'{second}' overlaps with first, '{first}'; use separate paths")]

    def test_of_different_domains_it_is_an_error_of_the_inner_one(self, runner: Runner) -> None:
        found = overlaps(self.targets(runner, first="x b/y", second="b z"))

        assert found == [("first", "'b/y' overlaps with second, 'b'; use separate paths")]

    def test_every_pair_is_reported(self, runner: Runner) -> None:
        found = overlaps(self.targets(runner, a="out", b="out", c="out/c", d="other"))

        assert [(name, error.partition(";")[0]) for name, error in found] == [
            ("b", "'out' overlaps with a, 'out'"),
            ("c", "'out/c' overlaps with a, 'out'"),
            ("c", "'out/c' overlaps with b, 'out'"),
        ]

    def test_a_pair_is_reported_once_however_many_domains_it_has(self, runner: Runner) -> None:
        found = overlaps(self.targets(runner, site="a b c", values="a/x b/x c/x"))

        assert found == [("values", "'a/x' overlaps with site, 'a'; use separate paths")]

    def test_of_different_domains_one_overlap_is_reported(self, runner: Runner) -> None:
        found = overlaps(self.targets(runner, first="x a b", second="y b/1 a/2", third="z a/3 b/4"))

        assert found == [("second", "'a/2' overlaps with first, 'a'; use separate paths")]

    @pytest.mark.parametrize(
        ("file", "names"),
        [
            ("out/a.env", ["values"]),
            ("link/a.env", ["values"]),
            ("out/x/../a.env", ["values"]),
            ("out/a/b.env", ["site"]),
            ("out", ["site", "values"]),
        ],
    )
    def test_the_file_of_outputs_must_not_overlap(self, runner: Runner, file: str, names: list[str]) -> None:
        (runner.workspace / "out").mkdir()
        (runner.workspace / "link").symlink_to("out")
        targets = self.targets(runner, site="x out/a", values="out/a.env y", bundle="z w")

        with contextlib.chdir(runner.workspace):
            found = overlaps_with_env_file(targets, Path(file))

        overlapping = {"site": "out/a", "values": "out/a.env"}
        error = f"overlaps with OUTPUT_ENV_FILE, '{file}'; use separate paths"
        assert found == [(name, f"'{overlapping[name]}' {error}") for name in names]

    @pytest.mark.parametrize("file", ["outputs.env", "site.env", "out/site/../other.env", "link.env"])
    def test_a_separate_file_of_outputs_is_fine(self, runner: Runner, file: str) -> None:
        (runner.workspace / "link.env").symlink_to("values.yaml")  # is replaced
        targets = self.targets(runner, site="out/site", values="values.yaml")

        assert overlaps_with_env_file(targets, runner.workspace / file) == []

    @pytest.mark.parametrize("second", ["b/x a", "a b", "c b/y/z"])
    def test_paths_of_different_domains_are_compared(self, runner: Runner, second: str) -> None:
        found = overlaps(self.targets(runner, first="x b q", second=second))

        assert len(found) == 1
        assert "overlaps with" in found[0][1]

    def test_separate_paths_of_several_domains_are_fine(self, runner: Runner) -> None:
        assert overlaps(self.targets(runner, first="a b c", second="a.yaml b.yaml bb/c")) == []

    def test_a_link_hides_nothing(self, runner: Runner) -> None:
        (runner.workspace / "link").symlink_to("out")

        assert len(overlaps(self.targets(runner, a="out/x", b="link/x"))) == 1


class TestMissingRoots:
    @pytest.mark.parametrize("is_folder", [False, True], ids=["file", "folder"])
    @pytest.mark.parametrize("missing", ["workspace", "temporary"])
    def test_are_refused_before_anything_starts(self, runner: Runner, missing: str, is_folder: bool) -> None:
        root = getattr(runner, missing)
        root.rmdir()

        with pytest.raises(ValueError, match="which does not exist"):
            read_target(f"{root}/out", runner.roots, is_folder=is_folder)

    def test_a_link_out_of_the_workspace_is_named_as_one(self, runner: Runner) -> None:
        (runner.workspace / "away").symlink_to(runner.elsewhere)

        with pytest.raises(ValueError, match=r"is outside the workspace \(through a symbolic link\),"):
            runner.path("away/out")

    def test_a_link_to_a_name_with_a_control_character_is_refused(self, runner: Runner) -> None:
        (runner.workspace / "two\nlines").mkdir()
        (runner.workspace / "plain").symlink_to("two\nlines")

        with pytest.raises(ValueError, match="leads to a path that contains a control character"):
            runner.path("plain/out")

    def test_the_temporary_folder_itself_cannot_become_a_site(self, runner: Runner) -> None:
        with pytest.raises(ValueError, match="cannot be replaced"):
            runner.folder(str(runner.temporary))


class TestUsable:
    def test_a_folder_that_can_be_written_to_is(self, tmp_path: Path) -> None:
        assert is_usable(tmp_path)

    def test_nothing_else_is(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "file").touch()

        assert not is_usable(tmp_path / "missing")
        assert not is_usable(tmp_path / "file")

        def refuse(**_: object) -> None:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

        monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
        assert not is_usable(tmp_path)
