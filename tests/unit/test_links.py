"""In Markdown pages and issue forms, every link to a file, a folder or a section of the repository leads to an existing one."""

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]


def markdown_pages() -> Iterator[Path]:
    """Yield the Markdown pages of the repository, not those of installed packages."""
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name == ".github" or not name.startswith((".", "node_modules"))]
        yield from (Path(folder, name) for name in files if name.endswith(".md"))


def tokens(markdown: str) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(markdown)


def links(markdown: str) -> list[str]:
    """Return the targets of all links and pictures, except those on other sites."""
    inline = [child for token in tokens(markdown) for child in token.children or ()]
    targets = [str(token.attrs[name]) for token in inline for name in ("href", "src") if name in token.attrs]
    return [target for target in targets if not urlsplit(target).scheme]


def anchors(markdown: str) -> set[str]:
    """Return the anchors that GitHub creates for the headings."""
    found: list[str] = []
    for opening, heading in itertools.pairwise(tokens(markdown)):
        if opening.type != "heading_open":
            continue
        text = "".join(child.content for child in heading.children or () if child.type in {"text", "code_inline"})
        anchor = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
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
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
ADDRESS = "https://github.com/OWNER/docs-platform-action"
"""The repository's address. Issue forms have no relative links."""


def test_the_pages_are_found() -> None:
    assert {ROOT / "README.md", ROOT / "docs" / "threat-model.md"} <= {*PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    assert broken_links(page, page.read_text("utf-8")) == []


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_every_link_of_an_issue_form_to_the_repository_leads_somewhere(form: Path) -> None:
    addresses = [address.removesuffix(".") for address in re.findall(r"https://[^\s\")]+", form.read_text("utf-8"))]
    ours = [re.sub(rf"^{ADDRESS}(/blob/main/|(?=#))", "", address) for address in addresses]
    reporting = f"{ADDRESS}/security/advisories/new"

    assert all(address.startswith(ADDRESS) for address in addresses)
    targets = [f"README.md{target}" if target.startswith("#") else target for target in ours if target != reporting]
    assert broken_links(ROOT / "page.md", " ".join(f"[a]({target})" for target in targets)) == []


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
