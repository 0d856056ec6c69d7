"""Files get the owner of the workspace, if the file system supports that."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from docs_platform_action.ownership import Owner, owner_of, set_mode

OWNER = (1001, 127)


class FileSystem:
    """Records each chown, or fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.given: list[str] = []
        self.error: int | None = None
        monkeypatch.setattr(os, "chown", self._chown)

    def _chown(self, path: Path | int, uid: int, gid: int, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> None:
        assert (uid, gid) == OWNER
        assert follow_symlinks == isinstance(path, int)
        assert dir_fd is None
        path = Path(f"/proc/self/fd/{path}").readlink() if isinstance(path, int) else path
        assert os.path.lexists(path)
        if self.error is not None:
            raise OSError(self.error, os.strerror(self.error))
        self.given.append(str(path))


@pytest.fixture
def file_system(monkeypatch: pytest.MonkeyPatch) -> FileSystem:
    return FileSystem(monkeypatch)


class TestOwner:
    def test_a_file_gets_the_owner(self, file_system: FileSystem, tmp_path: Path) -> None:
        owner = Owner(*OWNER)

        owner.chown(tmp_path)

        assert (file_system.given, owner.chown_error) == ([str(tmp_path)], None)

    @pytest.mark.parametrize("refusal", [errno.EPERM, errno.EACCES, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP])
    def test_an_unsupported_chown_is_recorded(self, file_system: FileSystem, tmp_path: Path, refusal: int) -> None:
        owner = Owner(*OWNER)
        file_system.error = refusal

        owner.chown(tmp_path)

        assert owner.chown_error == os.strerror(refusal)

    def test_a_faulty_file_system_is_a_failure(self, file_system: FileSystem, tmp_path: Path) -> None:
        owner = Owner(*OWNER)
        file_system.error = errno.EIO

        with pytest.raises(OSError, match="Input/output error"):
            owner.chown(tmp_path)

        assert owner.chown_error is None


def test_an_open_file_gets_the_owner(tmp_path: Path) -> None:
    owner = Owner(os.getuid(), os.getgid())

    with (tmp_path / "file").open("w") as file:
        owner.chown(file.fileno())

    assert owner.chown_error is None


class Root(type(Path())):  # type: ignore[misc]
    """A folder that seems to belong to another user."""

    uid = 0

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        found = [*super().stat(follow_symlinks=follow_symlinks)]
        return os.stat_result((*found[:4], self.uid, 127, *found[6:]))


class TestOwnerOf:
    def owner(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *, runs_as: int, belongs_to: int) -> Owner | None:
        monkeypatch.setattr(os, "geteuid", lambda: runs_as)
        root = Root(folder)
        root.uid = belongs_to
        return owner_of(root)

    def test_root_uses_the_owner_of_the_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_system: FileSystem
    ) -> None:
        owner = self.owner(tmp_path, monkeypatch, runs_as=0, belongs_to=1001)

        assert owner is not None
        owner.chown(tmp_path)
        assert file_system.given == [str(tmp_path)]

    @pytest.mark.parametrize(("runs_as", "belongs_to"), [(0, 0), (1001, 1001), (1001, 0), (1001, 1002)])
    def test_other_users_and_folders_of_root_have_none(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs_as: int, belongs_to: int
    ) -> None:
        assert self.owner(tmp_path, monkeypatch, runs_as=runs_as, belongs_to=belongs_to) is None


def refusing(number: int) -> Callable[..., None]:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return refuse


class TestSettingAMode:
    def test_an_unsupported_chmod_is_ignored(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "chmod", refusing(errno.EPERM))

        set_mode(tmp_path, 0o700)

        monkeypatch.undo()
        assert stat.S_IMODE(tmp_path.stat().st_mode) != 0

    def test_a_faulty_disk_is_a_failure(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "chmod", refusing(errno.EIO))

        with pytest.raises(OSError, match="Input/output error"):
            set_mode(tmp_path, 0o700)
