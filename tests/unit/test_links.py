"""Every link in a Markdown page to a file, a folder or a section of the repository leads to an existing one."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.page.gfm import page_of

ROOT = Path(__file__).parents[2]


def markdown_pages() -> Iterator[Path]:
    """Yield the Markdown pages of the repository, not those of installed packages."""
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name == ".github" or not name.startswith((".", "node_modules"))]
        yield from (Path(folder, name) for name in files if name.endswith(".md"))


def links(markdown: str) -> list[str]:
    """Return the targets of all links and pictures, except those on other sites."""
    elements = page_of(markdown).all("a", "img")
    targets = [element.attributes.get("href") or element.attributes.get("src") or "" for element in elements]
    return [target for target in targets if not urlsplit(target).scheme]


def anchors(markdown: str) -> set[str]:
    """Return the anchors that GitHub creates for the headings."""
    found: list[str] = []
    for heading in page_of(markdown).all("h1", "h2", "h3", "h4", "h5", "h6"):
        anchor = re.sub(r"[^\w\- ]", "", heading.text.strip().lower()).replace(" ", "-")
        same = sum(re.fullmatch(rf"{re.escape(anchor)}(-\d+)?", other) is not None for other in found)
        found.append(f"{anchor}-{same}" if same else anchor)
    return {*found}


def broken_links(page: Path, markdown: str) -> list[str]:
    """Return the links of a page that lead to a missing file, or to a missing section."""
    broken = []
    for link in links(markdown):
        target = urlsplit(link)
        file = page.parent / unquote(target.path) if target.path else page
        if file != page and not (file.exists() and file.resolve().is_relative_to(ROOT)):
            broken.append(f"{link}: no such file")
        elif target.fragment and target.fragment not in anchors(markdown if file == page else file.read_text("utf-8")):
            broken.append(f"{link}: no such section")
    return broken


PAGES = sorted(markdown_pages())


def test_the_pages_are_found() -> None:
    assert {ROOT / "README.md", ROOT / "docs" / "threat-model.md"} <= {*PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    assert broken_links(page, page.read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("markdown", "broken"),
    [
        ("[a](README.md) [b](docs) [c](README.md#inputs) [d](https://example.com/missing)", []),
        ("# Some `code`, and a comma\n[a](#some-code-and-a-comma)", []),
        ("# Twice\n# Twice\n[a](#twice) [b](#twice-1)", []),
        ("`[a](missing.md)`\n\n```\n[b](missing.md)\n```", []),
        ("[a](missing.md)", ["missing.md: no such file"]),
        ("![a](docs/missing.svg)", ["docs/missing.svg: no such file"]),
        ("[a](../outside.md)", ["../outside.md: no such file"]),
        ("[a](#missing)", ["#missing: no such section"]),
        ("[a](README.md#missing)", ["README.md#missing: no such section"]),
    ],
)
def test_broken_links_are_found(markdown: str, broken: list[str]) -> None:
    assert broken_links(ROOT / "page.md", markdown) == broken
