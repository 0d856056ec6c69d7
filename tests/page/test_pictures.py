"""The pictures of job summaries: each shows today's summary. `tests/pages.py` checks the pages that show them."""

from pathlib import Path

import pytest

from docs.pictures import make
from docs.pictures.runs import SCENES, summary_of

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs/pictures"


@pytest.mark.parametrize("name", SCENES)
def test_the_markdown_beside_a_picture_is_that_of_a_run(name: str) -> None:
    made = summary_of(SCENES[name])

    assert (PICTURES / f"{name}.md").read_text("utf-8") == made, f"{name}.md is not today's job summary: run `make pictures`"


def test_each_summary_has_a_light_and_a_dark_picture_and_there_are_no_others() -> None:
    expected = {f"{name}-{scheme}.png" for name in SCENES for scheme in make.SCHEMES}

    assert {file.name for file in PICTURES.glob("*.png")} == expected, "run `make pictures`"


def test_each_picture_has_its_markdown_and_the_page_lists_it() -> None:
    readme = PICTURES / "README.md"

    assert {file.stem for file in PICTURES.glob("*.md") if file != readme} == {*SCENES}
    assert all(f"[{name}]({name}.md)" in readme.read_text("utf-8") for name in SCENES)


def test_a_picture_is_small_enough_for_a_page() -> None:
    assert max(file.stat().st_size for file in PICTURES.glob("*.png")) <= 150_000


def test_without_chromium_the_program_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(SystemExit, match=r"Chromium is missing.* install the package `chromium`"):
        make.main()


@pytest.mark.parametrize(
    ("script", "seconds", "message"),
    [
        ("echo broken >&2", 60, "chromium could not draw {}-light.png:\nbroken\n"),
        ("exec sleep 60", 0.2, "chromium could not draw {}-light.png within 0.2 s"),
    ],
    ids=["fails", "hangs"],
)
def test_if_the_browser_does_not_draw_the_markdown_is_not_written_either(
    script: str, seconds: float, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, scene = next(iter(SCENES.items()))
    browser = tmp_path / "chromium"
    browser.write_text(f"#!/bin/sh\n{script}\n")
    browser.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(make, "HERE", tmp_path)
    monkeypatch.setattr(make, "SCENES", {name: scene})
    monkeypatch.setattr(make, "MAX_SECONDS", seconds)

    with pytest.raises(SystemExit) as error:
        make.main()

    assert error.value.code == message.format(name)
    assert [*tmp_path.iterdir()] == [browser]
