"""Check the Markdown pages and the issue forms: `python -m tests.pages`, a part of `make lint`.

Links must lead somewhere: those to files and sections of the repository to existing ones, and those to other sites must be valid
https addresses. The README has a maximum length, and each page in docs/ starts with the reader whom it is for.
"""

import itertools
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT: Final = Path(__file__).parents[1]

ADDRESS: Final = "https://github.com/OWNER/docs-platform-action"
"""The repository's address. Issue forms have no relative links."""

MAX_README_WORDS: Final = 1500

SUMMARIES: Final = frozenset((ROOT / "docs" / "pictures").glob("[a-z]*.md"))
"""Job summaries that pictures show."""

_PLACES: Final = r"(/(issues(/new(/choose)?)?|releases(/latest)?|security/advisories/new))?"
"""Pages of the repository on GitHub that are not files."""

_HOST: Final = r"[a-z0-9-]+(\.[a-z0-9-]+)+"
_LOOPBACK: Final = {"localhost", "127.0.0.1", "::1"}
_ENDS_OF_SENTENCES: Final = """.,:;!?'"…"""


@dataclass(frozen=True)
class Table:
    """A table of a page: the heads of its columns, and the cells of each row, both as Markdown."""

    heads: list[str]
    rows: list[list[str]]


class _Html(HTMLParser):
    """The links, anchors, alternative texts and text of a piece of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: list[str] = []
        self.alternatives: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "img":
            self.alternatives.append(dict(attrs).get("alt") or "")
        for name, value in attrs:
            if name in {"href", "src"}:
                self.links.append(value or "")
            elif name == "srcset":
                self.links += [(candidate.split() or [""])[0] for candidate in (value or "").split(",")]
            elif name == "id" or (name == "name" and tag == "a"):
                self.anchors.append(value or "")

    def handle_data(self, data: str) -> None:
        self.text += data


def markdown_pages() -> Iterator[Path]:
    """Yield the Markdown pages of the repository, not those of installed packages."""
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name == ".github" or not name.startswith((".", "node_modules"))]
        yield from (Path(folder, name) for name in files if name.endswith(".md"))


def issue_forms() -> list[Path]:
    """Return the issue forms and their configuration."""
    return sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def tokens(markdown: str) -> list[Token]:
    """Parse a page."""
    return MarkdownIt("commonmark").enable("table").parse(markdown)


def tables(markdown: str, heading: str) -> list[Table]:
    """Return the tables below the headings that contain a word, up to the next heading of any level."""
    found: list[Table] = []
    is_below = False
    for before, token in itertools.pairwise(tokens(markdown)):
        if before.type == "heading_open":
            is_below = heading.lower() in token.content.lower()
        elif is_below and token.type == "table_open":
            found.append(Table([], []))
        elif is_below and token.type == "tr_open" and found[-1].heads:
            found[-1].rows.append([])
        elif is_below and before.type == "th_open":
            found[-1].heads.append(token.content)
        elif is_below and before.type == "td_open":
            found[-1].rows[-1].append(token.content)
    return found


def links(markdown: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the target of each link and picture, in Markdown, in HTML, and of bare addresses."""
    for token in tokens(markdown):
        line = token.map[0] + 1 if token.map else 1
        for part in (token, *(token.children or ())):
            targets = [str(part.attrs[name]) for name in ("href", "src") if name in part.attrs]
            if part.type in {"html_block", "html_inline"}:
                targets = _Html(part.content).links
            elif part.type == "text":
                # GitHub makes them links, without the punctuation that follows
                targets = [address.rstrip("?!.,:*_~'\")") for address in re.findall(r"https?://[^\s<>]+", part.content)]
            yield from ((line, target) for target in targets)


def anchors(markdown: str) -> set[str]:
    """Return the anchors that GitHub creates for the headings, and those in HTML."""
    found: list[str] = []
    parsed = tokens(markdown)
    for opening, heading in itertools.pairwise(parsed):
        if opening.type != "heading_open":
            continue
        text = "".join(child.content for child in heading.children or () if child.type in {"text", "code_inline"})
        anchor = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        same = sum(re.fullmatch(rf"{re.escape(anchor)}(-\d+)?", other) is not None for other in found)
        found.append(f"{anchor}-{same}" if same else anchor)
    parts = [part for token in parsed for part in (token, *(token.children or ()))]
    in_html = [_Html(part.content).anchors for part in parts if part.type in {"html_block", "html_inline"}]
    return {*found, *itertools.chain(*in_html)}


def problem_of_link(page: Path, markdown: str, target: str) -> str | None:
    """Return what is wrong with the target of a link, if anything is."""
    if target.startswith(ADDRESS):
        return _problem_of_place(target.removeprefix(ADDRESS))
    try:
        parts = urlsplit(target)
    except ValueError:
        return "not a valid address"
    if parts.scheme or parts.netloc:
        return problem_of_address(target)
    if not target:
        return "no target"
    file = page.parent / unquote(parts.path) if parts.path else page
    if file != page and not (file.exists() and file.resolve().is_relative_to(ROOT)):
        return "no such file"
    if parts.fragment and parts.fragment not in anchors(markdown if file == page else file.read_text("utf-8")):
        return "no such section"
    return None


def problem_of_address(address: str) -> str | None:
    """Return what is wrong with the syntax of a link to another site, if anything is."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    if re.search(r"\s", address):
        return "contains a space"
    if address[-1] in _ENDS_OF_SENTENCES:
        return "ends with punctuation"
    if parts.scheme != "https" and not (parts.scheme == "http" and host in _LOOPBACK):
        return "not https"
    if host not in _LOOPBACK and not re.fullmatch(_HOST, host):
        return "not a valid host"
    return None


def _problem_of_place(place: str) -> str | None:
    """Return what is wrong with a link to the repository on GitHub, of which `place` follows the repository's address."""
    path = place.partition("?")[0]
    if workflow := re.fullmatch(r"/actions/workflows/([\w-]+\.yml)(/badge\.svg)?", path):
        return None if (ROOT / ".github" / "workflows" / workflow[1]).is_file() else "no such workflow"
    if file := re.fullmatch(r"/(?:blob|tree)/main/(.+)", place):
        return problem_of_link(ROOT / "page.md", "", file[1])
    if place.startswith("#"):
        return problem_of_link(ROOT / "page.md", "", f"README.md{place}")
    return None if re.fullmatch(_PLACES, path) else "no such page of the repository"


def link_findings(page: Path, markdown: str) -> Iterator[str]:
    """Yield a line for each link of a page that does not lead anywhere."""
    for line, target in links(markdown):
        if problem := problem_of_link(page, markdown, target):
            yield f"{page.relative_to(ROOT)}:{line}: {target}: {problem}"
    for token in tokens(markdown):
        text = "".join(child.content for child in token.children or () if child.type == "text")
        for found in re.findall(r"\w*\]\([^)]*\)?|\w*\]\[[^\]]*\]?", text):
            yield f"{page.relative_to(ROOT)}:{token.map[0] + 1 if token.map else 1}: {found}: not a link for Markdown"


def picture_findings(page: Path, markdown: str) -> Iterator[str]:
    """Yield a line for each picture without an alternative text."""
    for token in tokens(markdown):
        texts: list[str] = []
        for part in (token, *(token.children or ())):
            if part.type == "image":
                texts.append(part.content)
            elif part.type in {"html_block", "html_inline"}:
                texts += _Html(part.content).alternatives
        if not all(map(str.strip, texts)):
            yield f"{page.relative_to(ROOT)}:{token.map[0] + 1 if token.map else 1}: a picture without an alternative text"


def form_findings(form: Path, source: str) -> Iterator[str]:
    """Yield a line for each link of an issue form that does not lead to an existing place of the repository."""
    for text in _strings(yaml.safe_load(source)):
        for _, target in links(text):
            problem = _problem_of_place(target.removeprefix(ADDRESS)) if target.startswith(ADDRESS) else f"not in {ADDRESS}"
            if problem:
                yield f"{form.relative_to(ROOT)}: {target}: {problem}"


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


def words(markdown: str) -> int:
    """Count the words of paragraphs, headings, lists and tables. Code blocks, pictures, HTML tags and targets have none."""
    pieces = []
    for token in tokens(markdown):
        if token.type == "html_block":
            pieces.append(_Html(token.content).text)
        children = [child for child in token.children or () if child.type in {"text", "code_inline", "softbreak", "hardbreak"}]
        pieces.append("".join(child.content or " " for child in children))
    return sum(any(map(str.isalnum, word)) for word in " ".join(pieces).split())


def readme_findings(markdown: str) -> Iterator[str]:
    """Yield a line if the README is too long."""
    if (count := words(markdown)) > MAX_README_WORDS:
        yield f"README.md: has {count:,} words, more than {MAX_README_WORDS:,}: move details to a page in docs/"


def opening_findings(page: Path, markdown: str) -> Iterator[str]:
    """Yield a line if a page in docs/ does not start with the reader whom it is for: after the title, "For …"."""
    is_evidence = page.is_relative_to(ROOT / "docs" / "evidence")
    start = "For reviewers: " if is_evidence else "For "
    start_of_page = [token for token in tokens(markdown) if token.type != "html_block"][:5]
    has_paragraph = [token.type for token in start_of_page[:1] + start_of_page[3:4]] == ["heading_open", "paragraph_open"]
    paragraph = start_of_page[4].content if has_paragraph else ""
    if not paragraph.startswith(start) or paragraph.startswith("For example"):
        yield f"{page.relative_to(ROOT)}: must start with the reader whom it is for: “{start}…”"


def all_findings() -> Iterator[str]:
    """Yield a line for each finding in the repository."""
    for page in sorted(markdown_pages()):
        markdown = page.read_text("utf-8")
        yield from link_findings(page, markdown)
        yield from picture_findings(page, markdown)
        if page == ROOT / "README.md":
            yield from readme_findings(markdown)
        if page.is_relative_to(ROOT / "docs") and page not in SUMMARIES:
            yield from opening_findings(page, markdown)
    for form in issue_forms():
        yield from form_findings(form, form.read_text("utf-8"))


if __name__ == "__main__":
    sys.exit("\n".join(all_findings()) or None)
