"""Shows Markdown as GitHub does, in an HTML page: GitHub's own parser, its alerts, and no HTML that could do harm."""

import re
from collections.abc import Mapping
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import cmarkgfm
from cmarkgfm.cmark import Options

STYLESHEET: Final = Path(__file__).with_suffix(".css")

_ATTRIBUTES: Final[Mapping[str, frozenset[str]]] = {
    "a": frozenset({"href", "title"}),
    "details": frozenset({"open"}),
    "ol": frozenset({"start"}),
    "pre": frozenset({"lang"}),
    "td": frozenset({"align"}),
    "th": frozenset({"align"}),
}
_PLAIN: Final = {"b", "blockquote", "br", "code", "del", "em", "hr", "li", "p", "strong", "summary", "ul"}
_HEADINGS: Final = {"h1", "h2", "h3", "h4", "h5", "h6"}
_PARTS_OF_TABLES: Final = {"table", "thead", "tbody", "tr"}
_TAGS: Final = _ATTRIBUTES.keys() | _PLAIN | _HEADINGS | _PARTS_OF_TABLES
_VOID: Final = frozenset({"br", "hr"})
_SCHEMES: Final = frozenset({"http", "https", "mailto"})
_ALERT: Final = re.compile(r"\s*\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\][ \t]*\n", re.IGNORECASE)


def body_html(markdown: str) -> str:
    """Return a job summary's Markdown as HTML."""
    cleaner = _Cleaner()
    # "unsafe" keeps the summary's `<details>`; the cleaner removes all other raw HTML
    cleaner.feed(cmarkgfm.github_flavored_markdown_to_html(markdown, Options.CMARK_OPT_UNSAFE))
    cleaner.close()
    return "".join(cleaner.pieces)


def box_html(heading: str, markdown: str) -> str:
    """Return a heading and its Markdown in a box, as HTML."""
    return (
        f'<section class="box">\n<header>{escape(heading)}</header>\n'
        f'<article class="markdown-body">\n{body_html(markdown)}</article>\n</section>\n'
    )


def page_html(title: str, sections: Mapping[str, str]) -> str:
    """Return an HTML page with a box for each section: its heading and its Markdown."""
    boxes = "".join(box_html(heading, markdown) for heading, markdown in sections.items())
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">\n"""
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{STYLESHEET.read_text(encoding='utf-8')}</style>\n</head>\n"
        f"<body>\n<main>\n{boxes}</main>\n</body>\n</html>\n"
    )


class _Cleaner(HTMLParser):
    """Keeps the elements and attributes of a job summary, balances them, and marks alerts."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self._open: list[tuple[str, str]] = []  # tags, and the tags that end them

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _TAGS:
            return
        kept = "".join(f' {name}="{escape(value or "")}"' for name, value in attrs if _is_kept(tag, name, value or ""))
        self.pieces.append(f"<{tag}{kept}>")
        if tag not in _VOID:
            self._open.append((tag, f"</{tag}>"))

    def handle_endtag(self, tag: str) -> None:
        if tag in (name for name, _ in self._open):
            while self._end_last() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if alert := _ALERT.match(data) if self._begins_quote() else None:
            name = alert[1].lower()
            self.pieces[-3:] = [
                f'<div class="markdown-alert markdown-alert-{name}">\n<p class="markdown-alert-title">{name.title()}</p>\n<p>'
            ]
            self._open[0] = ("blockquote", "</div>")
            data = data[alert.end() :]
        self.pieces.append(escape(data, quote=False))

    def close(self) -> None:
        super().close()
        while self._open:
            self._end_last()

    def _begins_quote(self) -> bool:
        """Return whether the last tags began a quotation that is in no other element."""
        return [tag for tag, _ in self._open] == ["blockquote", "p"] and self.pieces[-3:] == ["<blockquote>", "\n", "<p>"]

    def _end_last(self) -> str:
        tag, end = self._open.pop()
        self.pieces.append(end)
        return tag


def _is_kept(tag: str, name: str, value: str) -> bool:
    if name == "href":
        try:
            return tag == "a" and urlsplit(value).scheme in _SCHEMES
        except ValueError:
            return False
    return name in _ATTRIBUTES.get(tag, ())
