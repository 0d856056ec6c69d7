"""A new place to unpack into for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.bundle.places import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path / "root") as place:
        yield place
