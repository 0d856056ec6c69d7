"""Warnings about pages that may be an error page or redirects, judged by their texts."""

import re
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Final

from ..models import FileDigests
from ..text import list_first, pluralize
from .page import is_page, text_digest, text_of

MIN_ALIKE: Final = 3  # pages with the same text, or without text
MAX_NAMED: Final = 5  # pages that would lose their text

_NO_TEXT: Final = text_digest(b"")
_NO_BREAK_SPACE: Final = "\N{NO-BREAK SPACE}".encode()  # unlike other spaces, it is text
# the usual tags that separate words; others, such as `<b>`, may be inside a word
_SEPARATING_TAG: Final = re.compile(
    rb"<(?=/?(?:h[1-6]|p|div|title|br|li|td|th|section|main|header|pre)\b)", re.IGNORECASE
)
# A cut inside a word could split a secret, and only whole secrets are hidden later. Chinese and
# Japanese have no spaces between words, so a cut before any of their letters is allowed.
_BEGINNING: Final = re.compile(r".{0,80}(?=[ \u3041-\u30ff\u4e00-\u9fff]|\Z)")
_WHAT_THEY_MAY_BE: Final = (
    "Such a page may be an error page or a redirect: check it before the site goes live."
)


def find_alarms(
    published: Mapping[bytes, FileDigests],
    files: Mapping[bytes, FileDigests],
    links: Container[str],
    read: Callable[[bytes], bytes],
) -> Iterator[Sequence[str]]:
    """Yield warnings, each a fact and further sentences. `read` returns the content of a page."""
    pages = [path for path in files if is_page(path) and path.decode() not in links]
    alike = _alike(published, files, pages)
    if alike:
        yield [
            f"{len(alike):,} of {pluralize(len(pages), '`.html` file')} have the same text.",
            _describe_text(_spaced_text_of(read(alike[0]))),
            _two_of(alike),
            _WHAT_THEY_MAY_BE,
        ]
    empty = sorted(path for path in pages if files[path].text == _NO_TEXT)
    new = [path for path in empty if path not in published]
    if _are_many(len(new), pages):
        without_text = "are new and have no text" if published else "have no text"
        fact = f"{len(new):,} of {pluralize(len(pages), '`.html` file')} {without_text}."
        yield [fact, _two_of(new), _WHAT_THEY_MAY_BE]
    emptied = [path for path in empty if path in published and published[path].text != _NO_TEXT]
    if emptied:
        fact = f"{pluralize(len(emptied), 'published page')} would lose all text."
        named = list_first([f"'{path.decode()}'" for path in emptied], MAX_NAMED)
        yield [fact, f"Without text: {named}.", _WHAT_THEY_MAY_BE]


def _alike(
    published: Mapping[bytes, FileDigests],
    files: Mapping[bytes, FileDigests],
    pages: Sequence[bytes],
) -> Sequence[bytes]:
    """Return the sorted paths of the pages with the same text, if they are many.

    Return none if nearly all of them are already published with this text.
    """
    counts = Counter(files[path].text for path in pages)
    del counts[None]  # large pages, whose texts are unknown
    del counts[_NO_TEXT]  # these have a warning of their own
    for text, count in counts.most_common(2):  # at most two texts can each be on half of the pages
        if not _are_many(count, pages):
            break
        group = sorted(path for path in pages if files[path].text == text)
        new = [path for path in group if path not in published or published[path].text != text]
        if len(new) >= MIN_ALIKE:
            return group
    return ()


def _are_many(count: int, pages: Sequence[bytes]) -> bool:
    """Return whether these are so many of the pages that it is probably a mistake."""
    return count >= MIN_ALIKE and 2 * count >= len(pages)


def _spaced_text_of(page: bytes) -> bytes:
    """Return the text of a page with spaces where headings and paragraphs begin and end."""
    return text_of(_SEPARATING_TAG.sub(_NO_BREAK_SPACE + b"<", page))


def _describe_text(text: bytes) -> str:
    """Return how a text begins. White space is one space, as a reader sees it."""
    words = " ".join(text.decode(errors="replace").split())
    if not words:
        return "Their text is only white space."
    found = _BEGINNING.match(words)
    beginning = "" if found is None else found[0].rstrip()
    ellipsis = "" if beginning == words else "…"
    return f'Their text begins with "{beginning}{ellipsis}".'


def _two_of(pages: Sequence[bytes]) -> str:
    return f"Two of them are '{pages[0].decode()}' and '{pages[1].decode()}'."
