"""A result is published complete or removed, and gets the owner of the workspace."""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path

import pytest

from docs_platform_action.bundle.faults import DISK_FAULTY, DISK_FULL, PATH_SHARED
from docs_platform_action.bundle.staging import Staged
from docs_platform_action.errors import DENIED, Advice, DownloadFailed
from docs_platform_action.inputs.settings import OutputPath
from docs_platform_action.ownership import MAX_PART_BYTES, Owner
from tests.unit.test_ownership import OWNER, FileSystem

Stage = Callable[..., Staged]


def staged_file(path: Path, owner: Owner | None = None, *, is_folder: bool = False) -> Staged:
    return Staged(OutputPath(path=path, root=path.parent, name="name"), owner, DownloadFailed, "summary", is_folder=is_folder)


def staged_folder(path: Path, owner: Owner | None = None) -> Staged:
    return staged_file(path, owner, is_folder=True)


@pytest.fixture(params=[staged_file, staged_folder], ids=["file", "folder"])
def stage(request: pytest.FixtureRequest) -> Stage:
    made: Stage = request.param
    return made


def tree(folder: Path) -> list[str]:
    """Return everything below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def fill(staged: Staged) -> None:
    """Write what is to be delivered, as a file or as one in the folder."""
    if staged.path.is_dir():
        (staged.path / "index.html").touch()
    else:
        staged.write(b"new")


class TestParts:
    def test_nothing_has_the_final_name_and_others_can_read_nothing_before_it_is_published(
        self, stage: Stage, tmp_path: Path
    ) -> None:
        with stage(tmp_path / "result") as staged:
            fill(staged)
            part = staged.path
            assert part.name.startswith(".result.")
            assert (part.suffix, part.parent, mode(part) & 0o077) == (".part", tmp_path, 0)
            assert not (tmp_path / "result").exists()
            staged.publish()
            assert (staged.path, part.exists()) == (tmp_path / "result", False)

        assert tree(tmp_path) in (["result"], ["result", "result/index.html"])

    @pytest.mark.parametrize("is_published", [False, True])
    @pytest.mark.parametrize("fails", [False, True])
    def test_only_a_published_one_stays(self, stage: Stage, tmp_path: Path, is_published: bool, fails: bool) -> None:
        with pytest.raises(LookupError) if fails else nullcontext(), stage(tmp_path / "a" / "result") as staged:
            fill(staged)
            if is_published:
                staged.publish()
            if fails:
                raise LookupError

        assert tree(tmp_path)[:2] == (["a", "a/result"] if is_published else [])

    def test_two_of_one_target_have_different_names(self, stage: Stage, tmp_path: Path) -> None:
        with stage(tmp_path / "result") as one, stage(tmp_path / "result") as other:
            assert one.path != other.path

    @pytest.mark.parametrize(
        "name",
        ["x" * MAX_PART_BYTES, "x" + "ü" * 127, "ü" * 127 + "x", "日" * 85, "🙂" * 63, "xy" + "🙂" * 63],
        ids=lambda name: f"{name[:2]}-{len(name)}",
    )
    def test_the_longest_names_are_cut_between_two_characters(self, stage: Stage, tmp_path: Path, name: str) -> None:
        with stage(tmp_path / name) as staged:
            part = staged.path.name
            staged.publish()

        assert len(part.encode()) <= MAX_PART_BYTES
        assert name.startswith(part[1:].rpartition(".part")[0].rpartition(".")[0])
        assert tree(tmp_path) == [name]

    def test_what_was_written_can_be_read_before_it_is_published(self, tmp_path: Path) -> None:
        with staged_file(tmp_path / "result") as staged:
            staged.write(b"ab")
            staged.write(b"c")
            with staged.open() as file:
                file.seek(0)
                assert file.read() == b"abc"


class TestFoldersAbove:
    def test_they_are_made_and_removed_again_if_they_are_empty(self, stage: Stage, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir()

        with stage(tmp_path / "a" / "b" / "c" / "result"):
            assert tree(tmp_path)[:3] == ["a", "a/b", "a/b/c"]
        assert tree(tmp_path) == ["a"]

        with stage(tmp_path / "a" / "b" / "c" / "result"):
            (tmp_path / "a" / "b" / "other").touch()
        assert tree(tmp_path) == ["a", "a/b", "a/b/other"]

    def test_another_job_may_remove_one_just_before_it_is_used(
        self, stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        exists = Path.exists
        other = ExitStack()
        other.enter_context(staged_folder(tmp_path / "a" / "other"))

        def exists_until_then(path: Path) -> bool:
            found = exists(path)
            if path.name == "a":
                other.close()
            return found

        monkeypatch.setattr(Path, "exists", exists_until_then)

        with stage(tmp_path / "a" / "result") as staged:
            staged.publish()
        assert tree(tmp_path) == ["a", "a/result"]

    def test_another_job_may_make_one_just_before_it_is_made(
        self, stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        exists = Path.exists

        def make_it(path: Path) -> bool:
            found = exists(path)
            if path.name == "a" and not found:
                path.mkdir()
            return found

        monkeypatch.setattr(Path, "exists", make_it)

        with stage(tmp_path / "a" / "result"):
            pass
        assert tree(tmp_path) == ["a"]

    def test_a_failed_job_keeps_those_of_another(self, stage: Stage, tmp_path: Path) -> None:
        with ExitStack() as first, staged_folder(tmp_path / "a" / "b" / "other") as other:
            first.enter_context(stage(tmp_path / "a" / "one"))
            first.close()
            other.publish()

        assert tree(tmp_path) == ["a", "a/b", "a/b/other"]

    def test_those_above_one_that_cannot_be_made_are_removed(
        self, stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make = Path.mkdir

        def mkdir(path: Path) -> None:
            if path.name == "b":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            make(path)

        monkeypatch.setattr(Path, "mkdir", mkdir)

        with pytest.raises(DownloadFailed), stage(tmp_path / "a" / "b" / "result"):
            pytest.fail("there is no folder to work in")

        assert tree(tmp_path) == []


@pytest.fixture
def _strict_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_strict_umask")
def test_all_can_read_the_result_whatever_the_umask_says(stage: Stage, tmp_path: Path) -> None:
    with stage(tmp_path / "a" / "b" / "result") as staged:
        staged.publish()

    result = 0o755 if stage is staged_folder else 0o644
    assert [mode(tmp_path / made) for made in tree(tmp_path)] == [0o755, 0o755, result]


class TestPublishing:
    @pytest.mark.parametrize("is_published", [True, False])
    def test_it_replaces_a_file_or_an_empty_folder(self, stage: Stage, tmp_path: Path, is_published: bool) -> None:
        target = tmp_path / "result"
        target.touch(0o600) if stage is staged_file else target.mkdir(0o700)

        with stage(target) as staged:
            fill(staged)
            if is_published:
                staged.publish()

        assert (mode(target) & 0o044 == 0o044, len(tree(tmp_path)) > 1) == (is_published, is_published and target.is_dir())

    @pytest.mark.parametrize(("stage", "made"), [(staged_file, Path.mkdir), (staged_folder, Path.touch)])
    def test_a_target_of_the_other_kind_is_left_alone(self, tmp_path: Path, stage: Stage, made: Callable[[Path], None]) -> None:
        made(tmp_path / "result")

        with stage(tmp_path / "result") as staged, pytest.raises(DownloadFailed):
            staged.publish()

        assert tree(tmp_path) == ["result"]

    def test_a_folder_that_was_filled_meanwhile_stays_as_it_was(self, tmp_path: Path) -> None:
        with staged_folder(tmp_path / "result") as staged:
            fill(staged)
            (tmp_path / "result").mkdir()
            (tmp_path / "result" / "other").touch()
            with pytest.raises(DownloadFailed):
                staged.publish()

        assert tree(tmp_path) == ["result", "result/other"]


EXPLAINED: dict[int | None, Advice] = {
    **dict.fromkeys([errno.ENOSPC, errno.EDQUOT, errno.EFBIG], DISK_FULL),
    **dict.fromkeys([errno.EACCES, errno.EPERM], DENIED),
    **dict.fromkeys([errno.ENOTEMPTY, errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENOENT], PATH_SHARED),
    errno.EIO: DISK_FAULTY,
    None: DISK_FAULTY,
}
"""The advice for an error of the file system, by its number."""


def explained(code: int | None, name: bytes | None = None) -> DownloadFailed:
    """Return the failure for an error, which may be about an entry of the archive."""
    error = OSError() if code is None else OSError(code, os.strerror(code), *([name] if name is not None else []))
    with pytest.raises(DownloadFailed) as caught, staged_file(Path("result")).errors_explained():
        raise error
    assert caught.value.__cause__ is error
    return caught.value


@pytest.mark.parametrize(("code", "advice"), EXPLAINED.items())
def test_an_error_of_the_file_system_is_explained_by_its_kind(code: int | None, advice: Advice) -> None:
    error = explained(code)

    assert (error.summary, error.cause, error.remedy) == ("summary", advice["cause"], advice["remedy"])
    assert ["`name`" in detail for detail in error.details] == ([True, False] if advice is PATH_SHARED else [False])


def test_an_error_about_an_entry_names_it() -> None:
    assert "'a/ü.html'" in explained(errno.ENAMETOOLONG, "a/ü.html".encode()).details[0]


class TestErrorsAtTheEnd:
    """A part that cannot be removed."""

    @pytest.fixture(autouse=True)
    def _nothing_can_be_removed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        monkeypatch.setattr(shutil, "rmtree", refuse)
        monkeypatch.setattr(Path, "unlink", refuse)

    def test_one_is_reported_if_nothing_failed_before(self, stage: Stage, tmp_path: Path) -> None:
        with pytest.raises(DownloadFailed), stage(tmp_path / "result"):
            pass

    def test_an_earlier_error_is_reported_instead(self, stage: Stage, tmp_path: Path) -> None:
        with pytest.raises(LookupError), stage(tmp_path / "result"):
            raise LookupError


@pytest.fixture
def file_system(monkeypatch: pytest.MonkeyPatch) -> FileSystem:
    return FileSystem(monkeypatch)


class TestOwner:
    def test_the_part_and_the_folders_made_for_it_get_the_owner(
        self, file_system: FileSystem, stage: Stage, tmp_path: Path
    ) -> None:
        (tmp_path / "a").mkdir()

        with stage(tmp_path / "a" / "b" / "c" / "result", Owner(*OWNER)) as staged:
            assert file_system.given == [f"{tmp_path}/a/b", f"{tmp_path}/a/b/c", str(staged.path)]

    @pytest.mark.parametrize(("code", "is_failure"), [(errno.EPERM, False), (errno.EIO, True)])
    def test_only_a_faulty_file_system_is_a_failure(
        self, file_system: FileSystem, stage: Stage, tmp_path: Path, code: int, is_failure: bool
    ) -> None:
        owner, file_system.error = Owner(*OWNER), code

        with pytest.raises(DownloadFailed) if is_failure else nullcontext(), stage(tmp_path / "a" / "result", owner) as staged:
            staged.publish()

        assert owner.chown_error == (None if is_failure else os.strerror(code))
        assert tree(tmp_path) == ([] if is_failure else ["a", "a/result"])
