"""The text of random pages is what the rule says, read in the simplest way."""

import html
import re
from collections.abc import Iterator
from typing import Final

from hypothesis import strategies as st

from docs_platform_action.site.page import text_of
from tests.fuzz import fuzz

WHITE_SPACE: Final = b" \t\n\f\r"
HIDDEN: Final = {b"script", b"style", b"template", b"noscript"}
TEXT_ALONE: Final = {b"title", b"textarea"}
FOREIGN: Final = {b"svg", b"math"}

NAMES: Final = st.sampled_from(
    [*HIDDEN, *TEXT_ALONE, *FOREIGN, b"pre", b"p", b"span", b"PRE", b"Script", b"prefix", b"titles"]
)
PARTS: Final = st.sampled_from(
    [
        *(b"a", b"b", b" ", b"  ", b"\n", b"\t", b"\r\n", b"\v", b"\xff", "ö".encode()),
        *(b"<", b">", b"/", b"/>", b"=", b'"', b"'", b"-", b"!", b"?", b"&", b";"),
        *(
            b"<!--",
            b"-->",
            b"--!>",
            b"<!-->",
            b"<!--->",
            b"</",
            b"</>",
            b"<!doctype html>",
            b"<?x?>",
        ),
        *(
            b"&lt;",
            b"&amp;",
            b"&#65;",
            b"&#x41",
            b"&nbsp;",
            b"&copy",
            b"&#32;",
            b"&nothing;",
            b"&#0;",
        ),
        *(b'x=">"', b"x='<b>'", b'x = "<pre>"', b"it's", b"x=y/"),
    ]
)


@st.composite
def tags(draw: st.DrawFn) -> bytes:
    start = draw(st.sampled_from([b"<", b"<", b"</"]))
    attributes = draw(st.sampled_from([b"", b"", b" x", b' x="a>b"', b" x='</pre>'", b" x=y"]))
    end = draw(st.sampled_from([b">", b">", b" >", b"/>", b" />", b""]))
    return start + draw(NAMES) + attributes + end


PAGES: Final = st.lists(st.one_of(PARTS, tags()), max_size=40).map(b"".join)


@fuzz(1_500, page=PAGES)
def test_the_text_of_a_page_is_what_the_rule_says(page: bytes) -> None:
    assert text_of(page) == simplest_text_of(page)


def simplest_text_of(page: bytes) -> bytes:
    """Return the text of a page, with one look at each character and no regard for time."""
    text = b"".join(
        stretch if in_pre else b" ".join(re.split(rb"[ \t\n\f\r]+", stretch.strip(WHITE_SPACE)))
        for stretch, in_pre in stretches(page)
    )
    return html.unescape(text.decode(errors="surrogateescape")).encode(errors="surrogateescape")


def stretches(page: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yield the texts between tags, and whether each is inside a `pre` element."""
    depth = 0
    in_foreign = False
    text = b""
    position = 0
    while position < len(page):
        if page.startswith(b"<!--", position):
            position = end_of_comment(page, position)
            continue
        if not re.compile(rb"<[a-zA-Z/!?]").match(page, position):
            text += page[position : position + 1]
            position += 1
            continue
        yield text, depth > 0
        text = b""
        slash, name = name_of_tag(page, position)
        position = end_of_tag(page, position)
        is_self_closed = page[:position].endswith(b"/>")
        if name == b"pre":
            depth = max(depth - 1, 0) if slash else depth + 1
        elif name in FOREIGN and (slash or not is_self_closed):
            in_foreign = not slash
        elif name in HIDDEN | TEXT_ALONE and not slash and not (in_foreign and is_self_closed):
            closing = re.compile(rb"</%s(?=[ \t\n\f\r/>])" % name, re.IGNORECASE)
            found = closing.search(page, position)
            end = found.start() if found else len(page)
            if name in TEXT_ALONE:
                yield page[position:end], depth > 0
            position = end
    yield text, depth > 0


def name_of_tag(page: bytes, position: int) -> tuple[bytes, bytes]:
    """Return the slash of a closing tag, and the name in lower case."""
    found = re.compile(rb"<(/?)([a-zA-Z]+)(?=[ \t\n\f\r/>])").match(page, position)
    if found is None:
        return b"", b""
    return found[1], found[2].lower()


def end_of_tag(page: bytes, position: int) -> int:
    """Return where a tag ends. Only a quoted value of an opening tag contains `>`."""
    is_closing = page.startswith(b"</", position)
    while position < len(page):
        character = page[position : position + 1]
        position += 1
        if character == b">":
            return position
        if character == b"=" and not is_closing:
            while page[position : position + 1] in {*map(bytes, zip(WHITE_SPACE))}:
                position += 1
            quote = page[position : position + 1]
            if quote in {b'"', b"'"}:
                closing = page.find(quote, position + 1)
                position = len(page) if closing < 0 else closing + 1
    return position


def end_of_comment(page: bytes, position: int) -> int:
    """Return where a comment ends (source: the HTML standard, "Comment start state" and on)."""
    found = re.compile(rb"<!--(?:-?>|.*?(?:--!?>|\Z))", re.DOTALL).match(page, position)
    assert found
    return found.end()
