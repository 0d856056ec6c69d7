"""A result is published complete or removed, and gets the owner of the workspace."""

import contextlib
import errno
import functools
import os
import stat
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from docs_platform_action.bundle.staging import Staged, staged
from docs_platform_action.cleanups import Cleanups
from docs_platform_action.ownership import MAX_PART_BYTES, Owner
from tests.unit.test_ownership import OWNER, FileSystem

Stage = Callable[[Path, Owner | None, Cleanups], AbstractContextManager[Staged]]

staged_file, staged_folder = staged, functools.partial(staged, is_folder=True)


def tree(folder: Path) -> list[str]:
    """Return everything below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def fill(staged: Staged, text: str = "new") -> None:
    """Write what is to be delivered, as a file or as one in the folder."""
    (staged.path / "index.html" if staged.path.is_dir() else staged.path).write_text(text)


@pytest.fixture(params=[staged_file, staged_folder], ids=["file", "folder"])
def stage(request: pytest.FixtureRequest) -> Stage:
    made: Stage = request.param
    return made


class TestParts:
    def test_nothing_has_the_final_name_before_it_is_published(self, stage: Stage, tmp_path: Path) -> None:
        target = tmp_path / "result"

        with stage(target, None, Cleanups()) as staged:
            fill(staged)
            part = staged.path
            assert not target.exists()
            assert part.parent == tmp_path
            staged.publish()
            assert target.exists()
            assert not part.exists()
            assert staged.path == target

        assert tree(tmp_path) in (["result"], ["result", "result/index.html"])

    def test_a_part_is_hidden_and_named_after_its_target(self, stage: Stage, tmp_path: Path) -> None:
        with stage(tmp_path / "result", None, Cleanups()) as staged:
            assert staged.path.name.startswith(".result.")
            assert staged.path.suffix == ".part"

    def test_others_cannot_read_a_part(self, stage: Stage, tmp_path: Path) -> None:
        with stage(tmp_path / "result", None, Cleanups()) as staged:
            assert mode(staged.path) & 0o077 == 0

    @pytest.mark.parametrize("is_published", [False, True])
    @pytest.mark.parametrize("fails", [False, True])
    def test_only_a_published_one_stays(self, stage: Stage, tmp_path: Path, is_published: bool, fails: bool) -> None:
        error = pytest.raises(LookupError) if fails else contextlib.nullcontext()

        with error, stage(tmp_path / "result", None, Cleanups()) as staged:
            fill(staged)
            if is_published:
                staged.publish()
            if fails:
                raise LookupError

        assert tree(tmp_path)[:1] == (["result"] if is_published else [])

    def test_a_published_part_is_not_removed(self, stage: Stage, tmp_path: Path) -> None:
        parent = tmp_path / "a"
        parent.mkdir()

        with stage(parent / "result", None, Cleanups()) as staged:
            staged.publish()
            parent.rename(tmp_path / "b")
            parent.touch()

        assert tree(tmp_path / "b") == ["result"]

    def test_two_parts_of_one_target_have_different_names(self, stage: Stage, tmp_path: Path) -> None:
        with stage(tmp_path / "result", None, Cleanups()) as one, stage(tmp_path / "result", None, Cleanups()) as other:
            assert one.path != other.path

    @pytest.mark.parametrize(
        "name",
        ["x" * MAX_PART_BYTES, "x" + "ü" * 127, "ü" * 127 + "x", "日" * 85, "🙂" * 63, "xy" + "🙂" * 63],
        ids=lambda name: f"{name[:2]}-{len(name)}",
    )
    def test_the_longest_names_are_cut_between_two_characters(self, stage: Stage, tmp_path: Path, name: str) -> None:
        with stage(tmp_path / name, None, Cleanups()) as staged:
            part = staged.path.name
            staged.publish()

        assert len(part.encode()) <= MAX_PART_BYTES
        assert name.startswith(part[1:].rpartition(".part")[0].rpartition(".")[0])
        assert tree(tmp_path) == [name]


class TestAbandonedParts:
    """What a killed process left, in a workspace that is kept for the next run."""

    LONG_AGO = 2 * 86400.0
    LEFT = ".result.0123456789abcdef.part"

    def leave(self, path: Path, *, folder: bool, seconds_ago: float = LONG_AGO) -> Path:
        if folder:
            path.mkdir()
            (path / "index.html").touch()
        else:
            path.touch()
        moment = path.stat().st_mtime - seconds_ago
        os.utime(path, (moment, moment))
        return path

    @pytest.mark.parametrize("folder", [False, True], ids=["file", "folder"])
    def test_one_older_than_a_day_is_removed(self, stage: Stage, tmp_path: Path, folder: bool) -> None:
        left = self.leave(tmp_path / self.LEFT, folder=folder)

        with stage(tmp_path / "result", None, Cleanups()) as staged:
            assert not left.exists()
            staged.publish()

        assert tree(tmp_path) == ["result"]

    def test_the_target_of_a_link_of_that_name_stays(self, stage: Stage, tmp_path: Path) -> None:
        kept = tmp_path / "kept"
        kept.mkdir()
        (tmp_path / self.LEFT).symlink_to(kept)
        long_ago = kept.stat().st_mtime - self.LONG_AGO
        os.utime(tmp_path / self.LEFT, (long_ago, long_ago), follow_symlinks=False)

        with stage(tmp_path / "result", None, Cleanups()):
            assert tree(tmp_path)[1:] == ["kept"]

    def test_a_recent_one_stays(self, stage: Stage, tmp_path: Path) -> None:
        left = self.leave(tmp_path / self.LEFT, folder=False, seconds_ago=86400 - 600)

        with stage(tmp_path / "result", None, Cleanups()):
            assert left.exists()

    @pytest.mark.parametrize(
        "name",
        [
            ".other.0123456789abcdef.part",
            ".result.gz.0123456789abcdef.part",
            ".result.part",
            ".result.0123456789ABCDEF.part",
            ".result.0123456789abcdef.partial",
            "x.result.0123456789abcdef.part",
        ],
    )
    def test_one_of_another_target_stays(self, stage: Stage, tmp_path: Path, name: str) -> None:
        other = self.leave(tmp_path / name, folder=False)

        with stage(tmp_path / "result", None, Cleanups()):
            assert other.exists()

    def test_one_that_cannot_be_removed_is_ignored(self, stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

        self.leave(tmp_path / self.LEFT, folder=True)
        monkeypatch.setattr("docs_platform_action.bundle.staging.shutil.rmtree", refuse)
        with stage(tmp_path / "result", None, Cleanups()) as staged:
            staged.publish()

        assert {"result", self.LEFT} <= {*tree(tmp_path)}


class TestParentFolders:
    def test_they_are_made(self, stage: Stage, tmp_path: Path) -> None:
        with stage(tmp_path / "a" / "b" / "result", None, Cleanups()) as staged:
            staged.publish()

        assert tree(tmp_path) == ["a", "a/b", "a/b/result"]

    def test_empty_ones_are_removed_again(self, stage: Stage, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir()

        with stage(tmp_path / "a" / "b" / "c" / "result", None, Cleanups()):
            assert tree(tmp_path)[:3] == ["a", "a/b", "a/b/c"]

        assert tree(tmp_path) == ["a"]

    def test_ones_with_files_are_kept(self, stage: Stage, tmp_path: Path) -> None:
        with stage(tmp_path / "a" / "b" / "result", None, Cleanups()):
            (tmp_path / "a" / "other").touch()

        assert tree(tmp_path) == ["a", "a/other"]

    def test_those_above_one_that_cannot_be_made_are_removed(
        self, stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make = Path.mkdir

        def mkdir(path: Path, *, exist_ok: bool = False) -> None:
            if path.name == "b":
                raise OSError(errno.ENOSPC, "No space left on device")
            make(path, exist_ok=exist_ok)

        monkeypatch.setattr(Path, "mkdir", mkdir)

        with pytest.raises(OSError, match="No space left"), stage(tmp_path / "a" / "b" / "result", None, Cleanups()):
            pytest.fail("there is no folder to work in")

        assert tree(tmp_path) == []


@pytest.fixture
def _strict_umask() -> Generator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_strict_umask")
def test_all_can_read_the_result_whatever_the_umask_says(stage: Stage, tmp_path: Path) -> None:
    with stage(tmp_path / "a" / "b" / "result", None, Cleanups()) as staged:
        staged.publish()

    result = 0o755 if (tmp_path / "a" / "b" / "result").is_dir() else 0o644
    assert [mode(tmp_path / made) for made in tree(tmp_path)] == [0o755, 0o755, result]


class TestPublishing:
    @pytest.mark.parametrize("is_published", [True, False])
    def test_a_file_is_replaced_when_it_is_published(self, tmp_path: Path, is_published: bool) -> None:
        target = tmp_path / "result"
        target.write_text("old")

        with staged_file(target, None, Cleanups()) as staged:
            fill(staged)
            assert target.read_text() == "old"
            if is_published:
                staged.publish()

        assert (tree(tmp_path), target.read_text()) == (["result"], "new" if is_published else "old")

    @pytest.mark.parametrize("is_published", [True, False])
    def test_a_folder_replaces_an_empty_one_when_it_is_published(self, tmp_path: Path, is_published: bool) -> None:
        target = tmp_path / "result"
        target.mkdir(0o700)

        with staged_folder(target, None, Cleanups()) as staged:
            fill(staged)
            if is_published:
                staged.publish()

        assert tree(tmp_path) == (["result", "result/index.html"] if is_published else ["result"])
        assert mode(target) == (0o755 if is_published else 0o700)

    def test_a_folder_that_was_filled_meanwhile_stays_as_it_was(self, tmp_path: Path) -> None:
        target = tmp_path / "result"

        with staged_folder(target, None, Cleanups()) as staged:
            fill(staged)
            target.mkdir()
            (target / "other").write_text("mine")
            with pytest.raises(OSError, match="not empty"):
                staged.publish()

        assert tree(tmp_path) == ["result", "result/other"]
        assert (target / "other").read_text() == "mine"

    @pytest.mark.parametrize(("made", "error"), [(Path.mkdir, IsADirectoryError), (Path.touch, NotADirectoryError)])
    def test_a_target_of_the_other_kind_is_left_alone(
        self, tmp_path: Path, made: Callable[[Path], None], error: type[OSError]
    ) -> None:
        target, stage = tmp_path / "result", staged_file if made is Path.mkdir else staged_folder

        with stage(target, None, Cleanups()) as staged:
            made(target)
            with pytest.raises(error):
                staged.publish()

        assert tree(tmp_path) == ["result"]


@pytest.fixture
def file_system(monkeypatch: pytest.MonkeyPatch) -> FileSystem:
    return FileSystem(monkeypatch)


class TestOwner:
    def test_the_part_and_the_folders_made_for_it_get_the_owner(
        self, file_system: FileSystem, stage: Stage, tmp_path: Path
    ) -> None:
        owner = Owner(*OWNER)
        (tmp_path / "a").mkdir()

        with stage(tmp_path / "a" / "b" / "c" / "result", owner, Cleanups()) as staged:
            part = staged.path
            staged.publish()

        assert file_system.given == [f"{tmp_path}/a/b", f"{tmp_path}/a/b/c", str(part)]
        assert owner.chown_error is None

    def test_a_file_system_without_chown_is_not_a_failure(self, file_system: FileSystem, stage: Stage, tmp_path: Path) -> None:
        owner = Owner(*OWNER)
        file_system.error = errno.EPERM

        with stage(tmp_path / "a" / "result", owner, Cleanups()) as staged:
            fill(staged)
            staged.publish()

        assert (tmp_path / "a" / "result").exists()
        assert owner.chown_error == os.strerror(errno.EPERM)

    def test_a_faulty_file_system_is_a_failure(self, file_system: FileSystem, stage: Stage, tmp_path: Path) -> None:
        owner = Owner(*OWNER)
        file_system.error = errno.EIO

        with pytest.raises(OSError, match="Input/output error"), stage(tmp_path / "a" / "result", owner, Cleanups()):
            pytest.fail("there is no part to work on")

        assert owner.chown_error is None
        assert tree(tmp_path) == []


def test_a_part_that_cannot_be_made_leaves_no_folder_behind(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "a" / "result"
    monkeypatch.setattr("docs_platform_action.bundle.staging._part_beside", lambda _: tmp_path / "a")  # there already

    with pytest.raises(FileExistsError), stage(target, None, Cleanups()):
        pytest.fail("there is no part to work on")

    assert tree(tmp_path) == []


class TestCleanups:
    def test_a_part_is_registered_until_it_is_published_or_removed(self, stage: Stage, tmp_path: Path) -> None:
        cleanups = Cleanups()

        with stage(tmp_path / "a" / "result", None, cleanups):
            assert cleanups

        assert not cleanups

    def test_another_thread_can_remove_a_part(self, stage: Stage, tmp_path: Path) -> None:
        cleanups = Cleanups()

        with stage(tmp_path / "a" / "b" / "result", None, cleanups) as staged:
            cleanups.clear()
            assert (staged.path.exists(), tree(tmp_path)) == (False, [])

        assert tree(tmp_path) == []

    def test_a_published_result_is_not_removed(self, stage: Stage, tmp_path: Path) -> None:
        cleanups = Cleanups()

        with stage(tmp_path / "result", None, cleanups) as staged:
            staged.publish()
            cleanups.clear()

        assert tree(tmp_path) == ["result"]


class TestSharedFolders:
    def test_a_failed_job_keeps_the_folders_of_another(self, tmp_path: Path) -> None:
        cleanups = Cleanups()

        with staged_folder(tmp_path / "a" / "other", None, cleanups) as other:
            with pytest.raises(LookupError), staged_file(tmp_path / "a" / "b" / "one", None, cleanups):
                raise LookupError
            assert other.path.is_dir()
            other.publish()
        assert [*tmp_path.rglob("*")] == [tmp_path / "a", tmp_path / "a" / "other"]

    def test_the_last_job_removes_an_empty_folder_that_another_made(self, tmp_path: Path) -> None:
        cleanups = Cleanups()
        first = contextlib.ExitStack()
        first.enter_context(staged_file(tmp_path / "a" / "one", None, cleanups))

        with staged_file(tmp_path / "a" / "other", None, cleanups):
            first.close()
            assert (tmp_path / "a").is_dir()

        assert [*tmp_path.iterdir()] == []

    def test_a_folder_in_use_is_not_made_again(self, tmp_path: Path) -> None:
        cleanups = Cleanups()
        with staged_file(tmp_path / "a" / "one", None, cleanups) as one:
            one.publish()

        with staged_file(tmp_path / "a" / "other", None, cleanups):
            pass

        assert [*tmp_path.rglob("*")] == [tmp_path / "a", tmp_path / "a" / "one"]

    def test_jobs_side_by_side_keep_their_folders(self, tmp_path: Path) -> None:
        cleanups, lost = Cleanups(), list[OSError]()

        def make(number: int) -> None:
            for _ in range(200):
                try:
                    with staged_folder(tmp_path / "sites" / str(number), None, cleanups):
                        pass
                except OSError as error:
                    lost.append(error)

        threads = [threading.Thread(target=make, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert lost == []
        assert [*tmp_path.iterdir()] == []
