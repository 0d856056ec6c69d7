"""Parses the job summary with GitHub's own Markdown parser (cmark-gfm, in cmarkgfm) into elements with their text."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

import cmarkgfm
from cmarkgfm.cmark import Options

VOID = {"br", "hr", "img", "input"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None] = field(default_factory=dict)
    children: list["Element | str"] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def __iter__(self) -> Iterator["Element"]:
        """Return the descendants in document order."""
        for child in self.children:
            if isinstance(child, Element):
                yield child
                yield from child

    def all(self, *tags: str) -> list["Element"]:
        return [element for element in self if element.tag in tags]

    def tables(self) -> list[list[list[str]]]:
        """Return the texts of the cells of each row of each table, with the headings."""
        return [[[cell.text for cell in row.all("th", "td")] for row in table.all("tr")] for table in self.all("table")]

    def alerts(self) -> list[tuple[str, str]]:
        """Return kind and text of each alert: a quotation at the top level, with the kind alone on its first line."""
        quotations = [child for child in self.children if isinstance(child, Element) and child.tag == "blockquote"]
        found = [quotation.text.strip().partition("\n") for quotation in quotations]
        assert len(self.all("blockquote")) == len(found)
        assert all(kind in {"[!CAUTION]", "[!WARNING]"} for kind, _, _ in found), found
        return [(kind[2:-1], text) for kind, _, text in found]

    def diagrams(self) -> list[str]:
        """Return the Mermaid texts that GitHub draws."""
        return [element.text for element in self.all("pre") if element.attributes.get("lang") == "mermaid"]

    def tags(self) -> set[str]:
        return {element.tag for element in self}


def page_of(markdown: str) -> Element:
    """Parse Markdown. Raw HTML in it must be balanced."""
    parser = _Parser()
    parser.feed(cmarkgfm.github_flavored_markdown_to_html(markdown, Options.CMARK_OPT_UNSAFE))
    parser.close()
    assert len(parser.open) == 1, f"not closed: {[element.tag for element in parser.open[1:]]}"
    return parser.open[0]


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("page")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)

    def handle_comment(self, data: str) -> None:
        assert data == " ", f"unexpected comment: {data!r}"  # ours splits an email address
