"""A release tests the image that it has published, not one that the tests build."""

from pathlib import Path

import pytest

from tests import engine

PUBLISHED = f"ghcr.io/owner/docs-platform-action@sha256:{'5a' * 32}"


def test_the_published_image_is_tested_and_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ACTION_IMAGE", PUBLISHED)
    monkeypatch.setenv("PATH", str(tmp_path))  # without docker, no image can be built or removed

    with engine.published_or_built_image(tmp_path / "action") as image:
        assert image == PUBLISHED
