"""A result is published complete or removed, and gets the owner of the workspace."""

import errno
import os
import shutil
import stat
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from docs_platform_action.bundle.faults import DISK_FAULTY, DISK_FULL, PATH_SHARED, DiskTooSmall
from docs_platform_action.bundle.staging import Staged
from docs_platform_action.errors import DENIED, Advice, DownloadFailed
from docs_platform_action.models import OutputPath
from docs_platform_action.ownership import Owner
from tests.folders import read_tree

Stage = Callable[..., Staged]


def staged(path: Path, owner: Owner | None = None, *, is_folder: bool) -> Staged:
    target = OutputPath(path=path, root=path.parent, name="name")
    return Staged(target, owner, DownloadFailed, "summary", is_folder=is_folder)


@pytest.fixture(params=[False, True], ids=["file", "folder"])
def stage(request: pytest.FixtureRequest) -> Stage:
    return lambda path, owner=None: staged(path, owner, is_folder=request.param)


def fill(result: Staged) -> None:
    if result.path.is_dir():
        (result.path / "index.html").touch()
    else:
        result.write(b"new")


def test_before_it_is_published_it_has_another_name_and_nobody_else_can_read_it(
    stage: Stage, tmp_path: Path
) -> None:
    target = tmp_path / "result"

    with stage(target) as result:
        fill(result)
        assert result.path.match(".result.*.part")
        assert not target.exists()
        assert stat.S_IMODE(result.path.stat().st_mode) & 0o077 == 0
        result.publish()
        assert result.path == target

    expected_mode = 0o755 if target.is_dir() else 0o644
    assert [path.name for path in tmp_path.iterdir()] == ["result"]
    assert stat.S_IMODE(target.stat().st_mode) == expected_mode


def test_what_is_not_published_is_removed_with_the_folders_that_only_it_used(
    stage: Stage, tmp_path: Path
) -> None:
    with stage(tmp_path / "a" / "result") as result:
        fill(result)
    assert read_tree(tmp_path) == {}

    with stage(tmp_path / "a" / "b" / "result") as result:
        fill(result)
        (tmp_path / "a" / "other").touch()
    assert read_tree(tmp_path) == {"a": None, "a/other": b""}


def test_the_descriptor_is_closed_even_if_the_temporary_file_or_folder_cannot_be_removed(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deny = Mock(side_effect=PermissionError(errno.EACCES, "Permission denied"))
    monkeypatch.setattr(shutil, "rmtree", deny)
    monkeypatch.setattr(Path, "unlink", deny)

    with pytest.raises(KeyError), stage(tmp_path / "result") as result:
        raise KeyError
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(result.descriptor)
    with pytest.raises(DownloadFailed), stage(tmp_path / "other") as result:
        pass
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(result.descriptor)


def test_a_temporary_file_that_is_gone_does_not_keep_the_folders_above_it(
    stage: Stage, tmp_path: Path
) -> None:
    with pytest.raises(DownloadFailed), stage(tmp_path / "a" / "result") as result:
        result.path.rename(tmp_path / "elsewhere")

    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_folder_that_was_filled_meanwhile_stays_as_it_was(
    tmp_path: Path, is_folder: bool
) -> None:
    with staged(tmp_path / "result", is_folder=is_folder) as result:
        (tmp_path / "result").mkdir()
        (tmp_path / "result" / "mine").touch()
        with pytest.raises(DownloadFailed) as caught:
            result.publish()

    assert caught.value.cause == PATH_SHARED["cause"]
    assert read_tree(tmp_path) == {"result": None, "result/mine": b""}


def test_a_folder_above_that_another_job_removes_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_file = os.open

    def open_after_removal(path: Path, flags: int, mode: int) -> int:
        monkeypatch.setattr(os, "open", open_file)
        path.parent.rmdir()
        return open_file(path, flags, mode)

    monkeypatch.setattr(os, "open", open_after_removal)

    with staged(tmp_path / "a" / "result", is_folder=False) as result:
        result.publish()

    assert read_tree(tmp_path) == {"a": None, "a/result": b""}


def test_a_folder_above_that_another_job_makes_meanwhile_is_not_removed(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    monkeypatch.setattr(Path, "exists", lambda _path: False)

    with stage(tmp_path / "a" / "b" / "result"):
        assert (tmp_path / "a" / "b").is_dir()

    assert read_tree(tmp_path) == {"a": None}


def test_what_was_made_before_the_start_failed_is_removed(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        monkeypatch.undo()
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "open", fail)

    with pytest.raises(DownloadFailed), stage(tmp_path / "a" / "result"):
        pass

    assert read_tree(tmp_path) == {}


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, DISK_FULL),
        (errno.EDQUOT, DISK_FULL),
        (errno.EFBIG, DISK_FULL),
        (errno.ENOTEMPTY, PATH_SHARED),
        (errno.ENOENT, PATH_SHARED),
        (errno.EACCES, DENIED),
        (errno.EIO, DISK_FAULTY),
    ],
)
def test_an_error_of_the_system_has_its_own_advice(
    tmp_path: Path, number: int, advice: Advice
) -> None:
    result = staged(tmp_path / "result", is_folder=True)

    with pytest.raises(DownloadFailed) as caught, result.errors_explained():
        raise OSError(number, "reason", b"guide/start.html")

    assert caught.value.cause == advice["cause"]
    assert caught.value.remedy == advice["remedy"]
    assert "reason ('guide/start.html')" in caught.value.details[-1]


def test_the_modes_of_new_folders_do_not_depend_on_the_umask(stage: Stage, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with stage(tmp_path / "a" / "result"):
            assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o755
    finally:
        os.umask(before)


@pytest.mark.parametrize(
    ("total", "free", "fits"),
    [(1000, 50, True), (1000, 49, False), (0, 0, True)],
    ids=["just enough", "too little", "no sizes"],
)
def test_the_disk_needs_enough_free_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, total: int, free: int, fits: bool
) -> None:
    disk = SimpleNamespace(total=total, free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: disk)
    expectation = nullcontext() if fits else pytest.raises(DiskTooSmall)

    with expectation:
        staged(tmp_path / "result", is_folder=False).check_space(50)
