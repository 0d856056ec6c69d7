"""Which image the container tests use."""

from pathlib import Path

import pytest

from tests import engine

PUBLISHED = f"ghcr.io/owner/docs-platform-action@sha256:{'5a' * 32}"


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace the engine, and return the commands that it gets."""
    commands: list[str] = []

    def docker(*arguments: str, **_: object) -> str:
        commands.append(arguments[0] if arguments[0] == "build" else " ".join(arguments[:2]))
        return "an image"

    monkeypatch.setattr(engine, "docker", docker)
    return commands


def test_a_release_tests_the_image_that_it_has_published_and_keeps_it(
    commands: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ACTION_IMAGE", PUBLISHED)

    with engine.published_or_built_image(tmp_path / "action") as image:
        assert image == PUBLISHED

    assert commands == []


@pytest.mark.parametrize("given", [None, ""])
def test_otherwise_an_image_is_built_and_removed(
    commands: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: str | None
) -> None:
    monkeypatch.delenv("ACTION_IMAGE", raising=False)
    if given is not None:
        monkeypatch.setenv("ACTION_IMAGE", given)

    with engine.published_or_built_image(tmp_path / "action") as image:
        assert image.startswith("docs-platform-action:test-")
        assert commands == ["build"]

    assert commands == ["build", "image ls", "image rm"]
