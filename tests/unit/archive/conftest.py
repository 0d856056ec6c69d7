"""A new place to unpack into for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.archive.places import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path / "root")
    yield place
    assert place.outside() == place.before
    place.clear()
