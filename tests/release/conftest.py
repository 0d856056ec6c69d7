"""The clone that is released."""

from pathlib import Path

import pytest

from tests.release.clones import GIT_ENVIRONMENT, Clone


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clone:
    for name, value in GIT_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    clone = Clone(tmp_path)
    monkeypatch.chdir(clone.folder)
    return clone
