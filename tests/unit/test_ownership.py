"""Files get the owner of their folder, where the file system supports that."""

import errno
import os
from pathlib import Path
from typing import Any
from unittest.mock import Mock, call

import pytest

from docs_platform_action.ownership import Owner, owner_of, set_mode

UNSUPPORTED = (errno.EPERM, errno.EACCES, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)


def failing(number: int) -> Any:
    def fail(*_given: object, **_named: object) -> None:
        raise OSError(number, "reason")

    return fail


@pytest.mark.parametrize(
    ("process", "folder", "expected"), [(0, 1000, (1000, 7)), (0, 0, None), (1000, 1000, None)]
)
def test_only_root_gives_files_away_and_only_to_others(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    process: int,
    folder: int,
    expected: tuple[int, int] | None,
) -> None:
    status = os.stat_result((0, 0, 0, 0, folder, 7, 0, 0, 0, 0))
    monkeypatch.setattr(os, "geteuid", lambda: process)
    monkeypatch.setattr(Path, "stat", lambda _path: status)

    owner = owner_of(tmp_path)

    assert (owner and (owner.uid, owner.gid)) == expected


def test_a_link_is_not_followed_but_a_descriptor_is_its_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chown = Mock()
    monkeypatch.setattr(os, "chown", chown)

    Owner(5, 6).chown(tmp_path, dir_fd=3)
    Owner(5, 6).chown(9)

    assert chown.mock_calls == [
        call(tmp_path, 5, 6, dir_fd=3, follow_symlinks=False),
        call(9, 5, 6, dir_fd=None, follow_symlinks=True),
    ]


@pytest.mark.parametrize("number", UNSUPPORTED)
def test_a_file_system_without_owners_and_modes_is_fine_and_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int
) -> None:
    monkeypatch.setattr(os, "chown", failing(number))
    monkeypatch.setattr(os, "chmod", failing(number))
    owner = Owner(5, 6)

    owner.chown(tmp_path)
    set_mode(tmp_path, 0o600)

    assert owner.chown_error == "reason"


def test_any_other_error_of_an_owner_or_a_mode_is_raised(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "chown", failing(errno.EIO))
    monkeypatch.setattr(os, "chmod", failing(errno.EIO))

    with pytest.raises(OSError, match="reason"):
        Owner(5, 6).chown(tmp_path)
    with pytest.raises(OSError, match="reason"):
        set_mode(tmp_path, 0o600)
