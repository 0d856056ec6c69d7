"""What the texts of a new site's pages give away: an error page or redirects in place of a site."""

import re
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Final

from ..models import FileDigests
from ..text import list_first, pluralize
from .page import is_page, text_digest, text_of

MIN_ALIKE: Final = 3  # pages, of which a site has at least half
MAX_NAMED: Final = 5  # pages without their text

_NO_TEXT: Final = text_digest(b"")
# It ends before white space, or before a letter of Chinese or Japanese, which have none: nothing
# else may be cut, because only a whole secret is hidden later.
_BEGINNING: Final = re.compile(r".{0,80}(?=[ \u3041-\u30ff\u4e00-\u9fff]|\Z)")
_WHAT_THEY_MAY_BE: Final = (
    "They may be an error page or redirects: look at them before the site goes live."
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
            f"{len(alike):,} of {pluralize(len(pages), 'page')} read the same.",
            _describe_text(text_of(read(alike[0]))),
            _two_of(alike),
            _WHAT_THEY_MAY_BE,
        ]
    empty = sorted(path for path in pages if files[path].text == _NO_TEXT)
    new = [path for path in empty if path not in published]
    if _are_many(len(new), pages):
        fact = f"{len(new):,} of {pluralize(len(pages), 'page')} are new and have no text."
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
    """Return the sorted paths of the pages that read the same, if they are many.

    None are returned if nearly all of them are published with this text already.
    """
    counts = Counter(files[path].text for path in pages)
    # not all are in the manifest, or shown
    del counts[None], counts[_NO_TEXT]
    for text, count in counts.most_common(2):  # no more groups can each have half of the pages
        if not _are_many(count, pages):
            break
        group = sorted(path for path in pages if files[path].text == text)
        new = [path for path in group if path not in published or published[path].text != text]
        if len(new) >= MIN_ALIKE:
            return group
    return ()


def _are_many(count: int, pages: Sequence[bytes]) -> bool:
    """Return whether so many of the pages can hardly be like each other by intent."""
    return count >= MIN_ALIKE and 2 * count >= len(pages)


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
