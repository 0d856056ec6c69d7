"""Parses the job summary with GitHub's own Markdown parser (cmark-gfm, in cmarkgfm).

Raw HTML in it must be balanced.
"""

from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import cmarkgfm
from cmarkgfm.cmark import Options


def page_of(markdown: str) -> Element:
    """Parse Markdown."""
    html = cmarkgfm.github_flavored_markdown_to_html(markdown, Options.CMARK_OPT_UNSAFE)
    return ElementTree.fromstring(f"<page>{html}</page>")  # noqa: S314  # our own page


def text_of(element: Element) -> str:
    return "".join(element.itertext())


def tags(page: Element) -> set[str]:
    return {element.tag for element in page.iter()} - {"page"}


def tables(page: Element) -> list[list[list[str]]]:
    """Return the texts of the cells of each row of each table, with the headings."""
    return [rows_of(table) for table in page.iter("table")]


def rows_of(table: Element) -> list[list[str]]:
    return [cells_of(row) for row in table.iter("tr")]


def cells_of(row: Element) -> list[str]:
    return [text_of(cell) for cell in row]


def alerts(page: Element) -> list[tuple[str, str]]:
    """Return kind and text of each alert.

    An alert is a quotation at the top level, with the kind alone on its first line.
    """
    quotations = page.findall("blockquote")
    assert len([*page.iter("blockquote")]) == len(quotations)
    found = []
    for quotation in quotations:
        kind, _, text = text_of(quotation).strip().partition("\n")
        assert kind in {"[!CAUTION]", "[!WARNING]"}, kind
        found.append((kind.removeprefix("[!").removesuffix("]"), text))
    return found


def diagrams(page: Element) -> list[str]:
    """Return the Mermaid texts that GitHub draws."""
    return [text_of(element) for element in page.iter("pre") if element.get("lang") == "mermaid"]
