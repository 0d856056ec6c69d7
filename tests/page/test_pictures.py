"""The pictures in the pages: each exists, has an alternative text, and shows today's job summary."""

from html.parser import HTMLParser
from pathlib import Path

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options

from docs.pictures import make
from docs.pictures.runs import SCENES, summary_of

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs/pictures"
PAGES = sorted(
    [*ROOT.glob("*.md"), *(page for folder in ("docs", "examples", "bench") for page in ROOT.glob(f"{folder}/**/*.md"))]
)


class Images(HTMLParser):
    """Collects the images of a page: their addresses and, of those that need one, their alternative texts."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.texts: list[str] = []
        self.feed(cmarkgfm.github_flavored_markdown_to_html(markdown, Options.CMARK_OPT_UNSAFE))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "img":
            self.addresses.append(attributes.get("src", ""))
            self.texts.append(attributes.get("alt", ""))
        elif tag == "source":
            self.addresses.append(attributes.get("srcset", ""))


def shown_files(page: Path) -> list[Path]:
    """Return the repository's files that a page shows."""
    addresses = [address for address in Images(page.read_text("utf-8")).addresses if "://" not in address]
    return [(page.parent / address).resolve() for address in addresses]


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_image_of_a_page_exists_and_has_an_alternative_text(page: Path) -> None:
    missing = [file for file in shown_files(page) if not file.is_file()]

    assert missing == []
    assert all(text.strip() for text in Images(page.read_text("utf-8")).texts)


def test_images_are_found_in_markdown_and_html() -> None:
    picture = '<picture><source media="(prefers-color-scheme: dark)" srcset="b.png"><img alt="two" src="c.png"></picture>'

    images = Images(f"![one](a.png)\n\n{picture}\n\n`![no](d.png)`\n")

    assert (images.addresses, images.texts) == (["a.png", "b.png", "c.png"], ["one", "two"])


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
