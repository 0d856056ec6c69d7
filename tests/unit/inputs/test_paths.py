"""Paths in inputs: later steps find what is written there, or the path is refused before the run.

`tests/wording/inputs.md` has the errors.
"""

import contextlib
import errno
import io
import os
import re
import tempfile
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.inputs.paths import PROBE_BYTES, load_certificates, overlaps, resolve, resolve_targets
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
        return resolve(self.full(value), self.roots)

    def target(self, value: str, *, is_folder: bool) -> OutputPath:
        (target,) = resolve_targets(self.full(value), self.roots, [None], is_folder=is_folder)
        return target


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
        target = resolve(f"{runner.workspace}/temp/bundle", [runner.workspace, runner.workspace / "temp"])

        assert (target.root, target.name) == (runner.workspace, "temp/bundle")

    def test_a_workspace_behind_a_link_is_the_same_workspace(self, runner: Runner) -> None:
        assert resolve("bundle", [runner.elsewhere / "in"]) == resolve("bundle", [runner.workspace])

    @pytest.mark.parametrize("root", [".", "{elsewhere}/in"])
    @pytest.mark.parametrize(
        ("value", "leads_to"),
        [
            ("../elsewhere/x", "{elsewhere}/x"),
            ("..", "{elsewhere}/.."),
            ("c/../../x", "{elsewhere}/../x"),
            ("../workspace2/bundle", "{elsewhere}/../workspace2/bundle"),
            ("/", "/"),
            ("/etc/../etc/passwd", "/etc/passwd"),
            *((value, "{elsewhere}/x") for value in ("{elsewhere}/x", "away/x", "away/../elsewhere/x", "./c/../away/x")),
        ],
    )
    def test_one_that_leads_outside_of_both_is_refused_with_the_place(
        self, runner: Runner, root: str, value: str, leads_to: str
    ) -> None:
        place = os.path.normpath(runner.full(leads_to))

        with contextlib.chdir(runner.workspace), pytest.raises(ValueError, match=r".") as caught:
            resolve(runner.full(value), [Path(runner.full(root)), runner.temporary])

        assert f"'{runner.full(value)}' leads to '{place}'" in str(caught.value)

    def test_the_temporary_folder_is_outside_where_there_is_none(self, runner: Runner) -> None:
        with pytest.raises(ValueError, match=r"."):
            resolve(f"{runner.temporary}/bundle", [runner.workspace])


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
            *(
                (value, kind)
                for value in ("notes.txt/x", "notes.txt/x/y", "long/" * 1000 + "x", "new/" + "x" * 256)
                for kind in (False, True)
            ),
            *((value, kind) for value in ("circle", "circle/x", "empty/../circle/x/y") for kind in (False, True)),
            *((value.format("x" * 256), kind) for value in ("{}", "{}/bundle") for kind in (False, True)),
        ],
    )
    def test_what_cannot_be_replaced_or_written_is_refused(self, runner: Runner, value: str, is_folder: bool) -> None:
        with pytest.raises(ValueError, match=r"."):
            runner.target(value, is_folder=is_folder)

    @pytest.mark.parametrize("is_folder", [False, True])
    def test_so_is_the_root_of_the_file_system(self, is_folder: bool) -> None:
        with pytest.raises(ValueError, match=r"."):
            resolve_targets(".", [Path("/")], [None], is_folder=is_folder)

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
            resolve_targets(f"{tmp_path}/{missing}/out", roots, [None], is_folder=is_folder)

    def test_the_errors_of_all_domains_are_joined(self, runner: Runner) -> None:
        domains = ["full", "new", "notes.txt", "empty", "../elsewhere"]

        with pytest.raises(ValueError, match=r"^'full' .*; 'notes.txt' .*; '../elsewhere' ") as caught:
            resolve_targets("{domain}", runner.roots, domains, is_folder=True)
        assert "'new'" not in str(caught.value)


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

    def test_a_disk_that_takes_no_more_is_refused(self, runner: Runner, monkeypatch: pytest.MonkeyPatch, is_folder: bool) -> None:
        class FullDisk(io.BytesIO):
            def write(self, _: object) -> int:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: FullDisk())

        with pytest.raises(ValueError, match=rf" 'workspace' .*\({os.strerror(errno.ENOSPC)}\)$"):
            runner.target("new", is_folder=is_folder)

    def test_what_is_written_to_try_has_no_name(self, runner: Runner, monkeypatch: pytest.MonkeyPatch, is_folder: bool) -> None:
        sizes: list[int] = []
        seen: list[list[Path]] = []
        temporary_file = tempfile.TemporaryFile

        @contextlib.contextmanager
        def watched(**options: Path) -> Iterator[SimpleNamespace]:
            with temporary_file(dir=options["dir"]) as file:

                def write(content: bytes) -> None:
                    sizes.append(file.write(content))
                    seen.append([*options["dir"].iterdir()])

                yield SimpleNamespace(write=write)

        monkeypatch.setattr(tempfile, "TemporaryFile", watched)

        runner.target("empty/new", is_folder=is_folder)

        assert (sizes, seen) == ([PROBE_BYTES], [[]])


class TestOverlaps:
    @staticmethod
    def found(runner: Runner, targets: dict[str, str]) -> list[tuple[str, str, str, str]]:
        """Return the name and the path of the inner and of the outer one, for paths separated by spaces: one of each domain."""
        paths = {name: [runner.path(part) for part in value.split()] for name, value in targets.items()}
        errors = [(name, re.fullmatch(r"'(.*)' .* ([a-z]+), '(.*)';.*", error)) for name, error in overlaps(paths)]
        return [(name, match[1], match[2], match[3]) for name, match in errors if match is not None]

    @pytest.mark.parametrize(
        ("targets", "found"),
        [
            ({"a": "out/bundle", "b": "out/site", "c": "out/site.yaml", "d": "out/sit"}, []),
            ({"a": "out"}, []),
            ({"a": "x y z", "b": "x.yaml y.yaml zz/z"}, []),
            ({"a": "out", "b": "out"}, [("b", "out", "a", "out")]),
            ({"a": "out", "b": "out/x"}, [("b", "out/x", "a", "out")]),
            ({"a": "out/x", "b": "out"}, [("a", "out/x", "b", "out")]),
            ({"a": "out/a/b", "b": "out"}, [("a", "out/a/b", "b", "out")]),
            ({"a": "build/x", "b": "build-link/x"}, [("b", "build/x", "a", "build/x")]),
            ({"a": "out", "b": "out", "c": "out/c", "d": "else"}, [("b", "out", "a", "out"), ("c", "out/c", "b", "out")]),
            ({"a": "x build", "b": "y build-link/z"}, [("b", "build/z", "a", "build")]),
            ({"a": "x x/y"}, [("a", "x/y", "a", "x")]),
        ],
    )
    def test_one_inside_another_is_reported_with_it(
        self, runner: Runner, targets: dict[str, str], found: list[tuple[str, str, str, str]]
    ) -> None:
        assert self.found(runner, targets) == found

    def test_those_of_many_domains_are_reported_once(self, runner: Runner) -> None:
        ((inner, _, outer, _),) = self.found(runner, {"site": "x y z", "values": "x/x y/x z/x"})

        assert (inner, outer) == ("values", "site")

    @given(st.lists(st.tuples(st.sampled_from("xyz"), st.lists(st.sampled_from("ab"), min_size=1, max_size=4)), max_size=6))
    def test_none_is_missed(self, places: list[tuple[str, list[str]]]) -> None:
        targets: dict[str, list[OutputPath]] = {}
        for name, parts in places:
            path = Path("/w", *parts)
            targets.setdefault(name, []).append(OutputPath(path=path, root=Path("/w"), name=str(path)))

        each = [path.path for paths in targets.values() for path in paths]
        expected = any(one.is_relative_to(other) for one, other in permutations(each, 2))
        assert bool(overlaps(targets)) is expected


class TestCertificates:
    @pytest.fixture
    def runner(self, runner: Runner, authority_pem: bytes) -> Runner:
        for folder in (runner.workspace, runner.temporary, runner.elsewhere):
            (folder / "ca.pem").write_bytes(authority_pem)
        return runner

    @pytest.mark.parametrize(
        "path", ["ca.pem", "x/../ca.pem", "../temporary/ca.pem", "{temporary}/ca.pem", "temporary-link/ca.pem"]
    )
    def test_a_file_inside_the_workspace_or_the_temporary_folder_is_read(self, runner: Runner, path: str) -> None:
        assert load_certificates(runner.full(path), runner.roots)

    def test_certificates_are_read_whatever_stands_between_them(self, runner: Runner, authority_pem: bytes) -> None:
        content = "Zürich\r\n".encode("latin-1") + authority_pem + b"# end\0\n" + authority_pem
        (runner.workspace / "ca.pem").write_bytes(content)

        assert load_certificates("ca.pem", runner.roots).count("BEGIN CERTIFICATE") == 2

    @pytest.mark.parametrize("garbage", [b"", b"garbage", b"\xff\xfe\x00", b"{damaged}", b"{authority}{damaged}"])
    def test_anything_else_than_valid_certificates_is_refused(self, runner: Runner, authority_pem: bytes, garbage: bytes) -> None:
        damaged = authority_pem.replace(b"\nMII", b"\nMII-", 1)
        content = garbage.replace(b"{damaged}", damaged).replace(b"{authority}", authority_pem)
        (runner.workspace / "ca.pem").write_bytes(content)

        with pytest.raises(ValueError, match=r"^'ca.pem' "):
            load_certificates("ca.pem", runner.roots)

    @pytest.mark.timeout(20, method="signal")  # a search for an end behind each of them would take hours
    def test_a_file_of_beginnings_alone_is_refused_at_once(self, runner: Runner) -> None:
        (runner.workspace / "ca.pem").write_bytes(b"-----BEGIN CERTIFICATE-----\n" * 300_000)

        with pytest.raises(ValueError, match=r"^'ca.pem' "):
            load_certificates("ca.pem", runner.roots)

    @pytest.mark.timeout(5, method="signal")  # a pipe blocks whoever opens it
    @pytest.mark.parametrize("path", ["missing.pem", "empty", "circle", "notes.txt/ca.pem", "x" * 256, "away/ca.pem", "pipe"])
    def test_what_is_not_a_file_inside_is_refused(self, runner: Runner, path: str) -> None:
        with pytest.raises(ValueError, match=rf"^'{path[:80]}"):
            load_certificates(path, runner.roots)
