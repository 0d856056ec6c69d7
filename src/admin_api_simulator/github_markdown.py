"""Shows Markdown as GitHub does, in an HTML page: GitHub's own parser, and its alerts."""

import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Final

import cmarkgfm
from cmarkgfm.cmark import Options

STYLESHEET: Final = Path(__file__).with_suffix(".css")
_ALERT: Final = re.compile(
    r"<blockquote>\n<p>\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]\n(.*?)</blockquote>", re.DOTALL
)


def box_html(heading: str, markdown: str) -> str:
    """Return a heading and its Markdown in a box, as HTML."""
    # "unsafe" keeps the summary's `<details>`
    rendered = cmarkgfm.github_flavored_markdown_to_html(markdown, Options.CMARK_OPT_UNSAFE)
    body = _ALERT.sub(_alert, rendered)
    return (
        f'<section class="box">\n<header>{escape(heading)}</header>\n'
        f'<article class="markdown-body">\n{body}</article>\n</section>\n'
    )


def page_html(title: str, sections: Mapping[str, str]) -> str:
    """Return an HTML page with a box for each section, its heading and its Markdown.

    No script of it would run.
    """
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    style = STYLESHEET.read_text(encoding="utf-8")
    boxes = "".join(box_html(heading, markdown) for heading, markdown in sections.items())
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n{boxes}</main>\n</body>\n</html>\n"
    )


def _alert(found: re.Match[str]) -> str:
    kind = found[1].lower()
    title = f'<p class="markdown-alert-title">{kind.title()}</p>'
    return f'<div class="markdown-alert markdown-alert-{kind}">\n{title}\n<p>{found[2]}</div>'
