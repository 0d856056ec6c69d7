"""The Markdown pages: their code, and a check of them and the issue forms.

The check is `python -m docs.pages`, a part of `make lint`: links to files and sections of the
repository lead to existing ones, and pictures have an alternative text. It prints the number of
words of each page and of all pages, as `wc -w` counts them.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import cmarkgfm
import yaml
from cmarkgfm.cmark import Options

ROOT: Final = Path(__file__).parents[1]

ADDRESS: Final = "https://github.com/OWNER/docs-platform-action"
"""The repository's address. Issue forms have no relative links."""

README_MAX_WORDS: Final = 1600
"""A first page. No other page has a maximum."""


class Page(HTMLParser):
    """The links, anchors and alternative texts of a page, read with GitHub's Markdown parser."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: list[str] = []
        self.alternatives: list[str] = []
        self._heading: str | None = None
        html = cmarkgfm.markdown_to_html_with_extensions(
            markdown, Options.CMARK_OPT_UNSAFE, extensions=["table"]
        )
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the attributes, and begin a heading."""
        found = {name: text or "" for name, text in attrs}
        if re.fullmatch("h[1-6]", tag):
            self._heading = ""
        if tag == "img":
            self.alternatives.append(found.get("alt", ""))
        self.links += [found[name] for name in ("href", "src") if name in found]
        if "srcset" in found:
            self.links += [image.split()[0] for image in found["srcset"].split(",") if image]
        self.anchors += [found[name] for name in ("id", "name") if name in found]

    def handle_data(self, data: str) -> None:
        """Collect the text of a heading."""
        if self._heading is not None:
            self._heading += data

    def handle_endtag(self, tag: str) -> None:
        """End a heading, with the anchor that GitHub gives it."""
        if self._heading is None or not re.fullmatch("h[1-6]", tag):
            return
        anchor = re.sub(r"[^\w\- ]", "", self._heading.lower()).replace(" ", "-")
        numbered = re.compile(rf"{re.escape(anchor)}(-\d+)?")
        same = [other for other in self.anchors if numbered.fullmatch(other)]
        if same:
            anchor = f"{anchor}-{len(same)}"
        self.anchors.append(anchor)
        self._heading = None


def markdown_pages() -> Iterator[Path]:
    """Yield the Markdown pages of the repository, not those of installed packages."""
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if has_own_pages(name)]
        for name in files:
            if name.endswith(".md"):
                yield Path(folder, name)


def has_own_pages(folder_name: str) -> bool:
    """Return whether pages in a folder are the repository's, and not those of packages or tools."""
    return folder_name == ".github" or not folder_name.startswith((".", "node_modules"))


def readme_workflows() -> dict[str, str]:
    """Return the README's complete workflows, by names of files.

    A variable is in place of the API's address.
    """
    readme = (ROOT / "README.md").read_text("utf-8")
    workflows = {}
    for block in re.findall(r"```yaml\n(.*?)```", readme, flags=re.DOTALL):
        if "\njobs:" in block:
            workflow = block.replace("https://api.example.com", "${{ vars.DOCS_API_URL }}")
            first_job = next(iter(yaml.safe_load(workflow)["jobs"]))
            workflows[f"readme-{first_job}.yml"] = workflow
    return workflows


def blocks_of(page: str, heading: str, language: str) -> list[str]:
    """Return the code blocks of a language between a heading and the next one, of any level."""
    following = page.partition(f"\n{heading}\n")[2]
    section = re.split(r"\n##+ ", following)[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, flags=re.DOTALL | re.MULTILINE)


def block_outside(heading: str, language: str) -> str:
    """Return the first code block of a language below a heading of a page.

    The page is the one about other systems than GitHub Actions.
    """
    page = (ROOT / "docs" / "outside-github-actions.md").read_text("utf-8")
    return blocks_of(page, f"## {heading}", language)[0]


def findings(file: Path, markdown: str) -> Iterator[str]:
    """Yield a line for each link that leads nowhere, and for a picture without alternative text."""
    page = Page(markdown)
    name = file.relative_to(ROOT)
    for target in page.links:
        problem = problem_of(file, page, target)
        if problem is not None:
            yield f"{name}: {target}: {problem}"
    if "" in page.alternatives:
        yield f"{name}: a picture without an alternative text"


def problem_of(file: Path, page: Page, target: str) -> str | None:
    """Return what is wrong with the target of a link, if anything is.

    Other sites are not requested.
    """
    in_repository = re.fullmatch(rf"{ADDRESS}(?:/(?:blob|tree)/main/|(?=#))(.+)", target)
    if in_repository is not None:
        file = ROOT / "README.md"
        target = in_repository[1]
        if target.startswith("#"):
            target = f"README.md{target}"
    parts = urlsplit(target)
    if parts.scheme:
        is_loopback = parts.hostname in {"localhost", "127.0.0.1", "::1"}
        return None if parts.scheme == "https" or is_loopback else "not https"
    if parts.path:
        file = file.parent / unquote(parts.path)
    if not file.exists() or not file.resolve().is_relative_to(ROOT):
        return "no such file"
    if not parts.fragment:
        return None
    if parts.path:
        page = Page(file.read_text("utf-8"))
    return None if parts.fragment in page.anchors else "no such section"


def all_findings() -> Iterator[str]:
    """Yield a line for each finding in the repository."""
    for page in sorted(markdown_pages()):
        yield from findings(page, page.read_text("utf-8"))
    for form in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")):
        # in Markdown, an address in angle brackets is a link
        linked = re.sub(rf"({ADDRESS}[^\s)\"]*)", r"<\1>", form.read_text("utf-8"))
        yield from findings(form, linked)
    count = word_counts()["README.md"]
    if count > README_MAX_WORDS:
        yield f"README.md: has {count:,} words; the maximum is {README_MAX_WORDS:,}"


def word_counts() -> dict[str, int]:
    """Return the number of words of each page."""
    pages = sorted(markdown_pages())
    return {str(page.relative_to(ROOT)): len(page.read_text("utf-8").split()) for page in pages}


def word_table(counts: Mapping[str, int]) -> str:
    """Return the lines that show the number of words of each page, and of all together."""
    rows = {**counts, "all pages together": sum(counts.values())}
    return "".join(f"{count:>7,}  {page}\n" for page, count in rows.items())


if __name__ == "__main__":
    sys.stdout.write(f"Words:\n{word_table(word_counts())}")
    sys.exit("\n".join(all_findings()) or None)
