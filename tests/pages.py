"""Check the Markdown pages and the issue forms: `python -m tests.pages`, a part of `make lint`.

Links to files and sections of the repository lead to existing ones, pictures have an alternative text, and no page is too long.
"""

import itertools
import os
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT: Final = Path(__file__).parents[1]

ADDRESS: Final = "https://github.com/OWNER/docs-platform-action"
"""The repository's address. Issue forms have no relative links."""

MAX_WORDS: Final = {"README.md": 2200, "docs/evidence/reliability.md": 600, "tests/README.md": 700, "tests/wording/*.md": 5000}
"""The maximum number of words of pages, as `wc -w` counts them."""


class _Html(HTMLParser):
    """The links, anchors and alternative texts of a piece of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: list[str] = []
        self.alternatives: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "img":
            self.alternatives.append(dict(attrs).get("alt") or "")
        for name, value in attrs:
            if name in {"href", "src"}:
                self.links.append(value or "")
            elif name == "srcset":
                self.links += [candidate.split()[0] for candidate in (value or "").split(",")]
            elif name in {"id", "name"}:
                self.anchors.append(value or "")


def markdown_pages() -> Iterator[Path]:
    """Yield the Markdown pages of the repository, not those of installed packages."""
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name == ".github" or not name.startswith((".", "node_modules"))]
        yield from (Path(folder, name) for name in files if name.endswith(".md"))


def parts_of(markdown: str) -> Iterator[tuple[int, Token]]:
    """Yield the parts of a page with their lines."""
    for token in MarkdownIt("commonmark").enable("table").parse(markdown):
        line = token.map[0] + 1 if token.map else 1
        yield from ((line, part) for part in (token, *(token.children or ())))


def anchors(markdown: str) -> set[str]:
    """Return the anchors that GitHub creates for the headings, and those in HTML."""
    found: list[str] = []
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    for opening, heading in itertools.pairwise(tokens):
        if opening.type == "heading_open":
            text = "".join(child.content for child in heading.children or () if child.type in {"text", "code_inline"})
            anchor = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            same = sum(re.fullmatch(rf"{re.escape(anchor)}(-\d+)?", other) is not None for other in found)
            found.append(f"{anchor}-{same}" if same else anchor)
    html = [_Html(part.content).anchors for _, part in parts_of(markdown) if part.type.startswith("html")]
    return {*found, *itertools.chain(*html)}


def findings(page: Path, markdown: str) -> Iterator[str]:
    """Yield a line for each link that leads nowhere, and for each picture without an alternative text."""
    for line, part in parts_of(markdown):
        where = f"{page.relative_to(ROOT)}:{line}"
        html = _Html(part.content) if part.type.startswith("html") else _Html("")
        targets = [str(part.attrs[name]) for name in ("href", "src") if name in part.attrs] + html.links
        yield from (f"{where}: {target}: {problem}" for target in targets if (problem := problem_of(page, markdown, target)))
        if (part.type == "image" and not part.content) or "" in html.alternatives:
            yield f"{where}: a picture without an alternative text"


def problem_of(page: Path, markdown: str, target: str) -> str | None:
    """Return what is wrong with the target of a link, if anything is. Other sites are not requested."""
    if found := re.fullmatch(rf"{ADDRESS}(?:/(?:blob|tree)/main/|(?=#))(.+)", target):
        page, target = ROOT / "README.md", found[1] if found[1][0] != "#" else f"README.md{found[1]}"
    parts = urlsplit(target)
    if parts.scheme:
        is_loopback = parts.hostname in {"localhost", "127.0.0.1", "::1"}
        return None if parts.scheme == "https" or is_loopback else "not https"
    file = page.parent / unquote(parts.path) if parts.path else page
    if not file.exists() or not file.resolve().is_relative_to(ROOT):
        return "no such file"
    if not parts.fragment:
        return None
    return None if parts.fragment in anchors(file.read_text("utf-8") if parts.path else markdown) else "no such section"


def all_findings() -> Iterator[str]:
    """Yield a line for each finding in the repository."""
    for page in sorted(markdown_pages()):
        yield from findings(page, page.read_text("utf-8"))
    for form in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")):
        yield from findings(form, re.sub(rf"({ADDRESS}[^\s)\"]*)", r"<\1>", form.read_text("utf-8")))
    for pattern, limit in MAX_WORDS.items():
        if (words := sum(len(page.read_text("utf-8").split()) for page in ROOT.glob(pattern))) > limit:
            yield f"{pattern}: has {words:,} words, more than {limit:,}"


if __name__ == "__main__":
    sys.exit("\n".join(all_findings()) or None)
