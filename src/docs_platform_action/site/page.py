"""The pages of a site, and what a reader sees of a page."""

import hashlib
import html
import re
from collections.abc import Sequence
from typing import Final

MAX_PAGE_BYTES: Final = 8 * 1024**2  # of a page whose text has a digest

# The parts of the patterns are verbose and ignore case. They never give back what they have read,
# so the time is always linear.
_NAME_END: Final = r"(?=[ \t\n\f\r/>])"
_ATTRIBUTES: Final = r"""  # and the end of the tag
    [^>=]*+
    (?: = (?: "[^"]*+" | [ \t\n\f\r]*+ (?: "[^"]*+"? | '[^']*+'? )?+ )  # may contain `>`
        [^>=]*+
    )*+
    >?+
"""
_SELF_CLOSED: Final = "(?<= /> )"
_NOT_SELF_CLOSED: Final = "(?<! /> )"

_COMMENT: Final = r"<!-- (?: -?> | [^-]*+ (?: -(?!-!?>) [^-]*+ )*+ (?: --!?> )?+ )"
_NOT_A_TAG: Final = rf"(?: {_COMMENT} | <(?![a-z/!?]) ) [^<]*+"
# The first is nearly all text, and is fast.
_TEXT: Final = rf"""
    [^<]++ (?= <[a-z/] | \Z ) | [^<]++ (?: {_NOT_A_TAG} )*+ | (?: {_NOT_A_TAG} )++
"""
_CLOSING_TAG: Final = r"</ [^>]*+ >?+"
_TAG: Final = rf"(?: {_CLOSING_TAG} | < [a-z!?] {_ATTRIBUTES} )"
_PRE_TAG: Final = rf"(?= </?pre{_NAME_END} ) {_TAG}"


_HIDDEN_NAMES: Final = ("script", "style", "template", "noscript")
_RAW_TEXT_NAMES: Final = ("title", "textarea")


def _elements(names: Sequence[str], *, end_of_tag: str, quantifier: str) -> str:
    """Return the pattern of elements that contain no tags, up to their closing tags.

    `quantifier` says how often something inside may look like a tag.
    """
    patterns = []
    for name in names:
        opening_tag = rf"<{name}{_NAME_END} {_ATTRIBUTES} {end_of_tag}"
        looks_like_tag = rf"(?: <(?! /{name}{_NAME_END} ) [^<]*+ ){quantifier}"
        patterns.append(rf"{opening_tag} [^<]*+ {looks_like_tag}")
    return "|".join(patterns)


def _hidden(end_of_tag: str = "") -> str:
    return _elements(_HIDDEN_NAMES, end_of_tag=end_of_tag, quantifier="*+")


def _raw_text(end_of_tag: str = "") -> str:
    """Return the pattern of `title` and `textarea` elements, if their text looks like tags."""
    return _elements(_RAW_TEXT_NAMES, end_of_tag=end_of_tag, quantifier="++")


# Inside `svg` and `math`, any element may be self-closed (source: the HTML standard, "Foreign
# elements"). That matters only for these elements, which otherwise contain what follows.
_NAMES: Final = "|".join([*_HIDDEN_NAMES, *_RAW_TEXT_NAMES])
_SELF_CLOSED_TAG: Final = rf"<(?:{_NAMES}){_NAME_END} {_ATTRIBUTES} {_SELF_CLOSED}"
_FOREIGN_NAME: Final = rf"(?: svg | math ){_NAME_END}"
_FOREIGN_TAG: Final = rf"<{_FOREIGN_NAME} {_ATTRIBUTES} {_NOT_SELF_CLOSED}"
_IN_FOREIGN: Final = rf"""
    (?: {_TEXT}
      | {_hidden(_NOT_SELF_CLOSED)}
      | {_raw_text(_NOT_SELF_CLOSED)}
      | (?! {_SELF_CLOSED_TAG} | {_FOREIGN_TAG} | </{_FOREIGN_NAME} ) {_TAG}
    )*+
"""
_FOREIGN: Final = rf"{_FOREIGN_TAG} {_IN_FOREIGN} (?: {_SELF_CLOSED_TAG} {_IN_FOREIGN} )++"


def _compiled(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode(), re.IGNORECASE | re.VERBOSE)


def _pieces(hidden: str, *kept: str) -> re.Pattern[bytes]:
    """Return the pattern of tags and hidden elements, then a piece, which is the only group."""
    # The first two are fast, and fit nearly all tags: all but those that begin like a special name.
    skipped = rf"""
        </(?! pre{_NAME_END} ) [^>]*+ >?+
      | <(?! pre | s[ctv] | t[ei] | math | noscript | !-- ) [a-z!?] {_ATTRIBUTES}
      | {hidden}
      | (?=<) (?! {"|".join([*kept, _COMMENT])} ) {_TAG}
    """
    return _compiled(rf"(?: {skipped} )*+ ( {'|'.join([_TEXT, *kept])} )?+")


_PIECES: Final = _pieces(_hidden(), _PRE_TAG, _raw_text(), _FOREIGN)
_PIECES_OF_FOREIGN: Final = _pieces(
    _hidden(_NOT_SELF_CLOSED), _PRE_TAG, _raw_text(_NOT_SELF_CLOSED)
)
_FOREIGN_START: Final = _compiled(rf"<{_FOREIGN_NAME}")
_KEPT_TAG: Final = _compiled(rf"(?= <(/?pre|title|textarea){_NAME_END} ) {_TAG}")
_COMMENTS: Final = _compiled(_COMMENT)

_WHITE_SPACE: Final = b" \t\n\f\r"  # source: the HTML standard, "ASCII whitespace"
_TO_SPACES: Final = bytes.maketrans(_WHITE_SPACE, b" " * len(_WHITE_SPACE))
_SPACES: Final = re.compile(rb"  +")

# Python refuses to convert a number with more than 4,300 digits. Any of them is beyond Unicode.
_HUGE_REFERENCE: Final = re.compile(rb"&#[0-9]{4000,}")
_BEYOND_UNICODE: Final = b"&#9999999"


def is_page(path: bytes) -> bool:
    """Return whether a file is a page of the site."""
    return path.lower().endswith(b".html")


def text_digest(page: bytes) -> bytes:
    """Return the digest of what a reader sees of a page."""
    return hashlib.sha256(text_of(page)).digest()


def text_of(page: bytes) -> bytes:
    """Return what a reader sees of a page.

    Comments, tags, and the elements `script`, `style`, `template` and `noscript` are left out.
    White space is kept inside `pre`. Elsewhere a run of it is one space, and none is kept beside a
    tag. Character references are decoded at the end.
    """
    text = _joined(_PIECES.findall(page))
    if b"&" not in text:
        return text
    text = _HUGE_REFERENCE.sub(_BEYOND_UNICODE, text)
    return html.unescape(text.decode(errors="surrogateescape")).encode(errors="surrogateescape")


def _joined(pieces: Sequence[bytes]) -> bytes:
    """Return the text of the pieces of a page."""
    everything = b"".join(pieces)
    if b"<" not in everything:
        return _collapsed(pieces)
    if _FOREIGN_START.search(everything):
        pieces = _with_pieces_of_foreign(pieces)
    texts: list[bytes] = []
    depth = 0  # of `pre` elements
    start = 0  # of the pieces since the last tag
    for number, piece in enumerate(pieces):
        if not piece.startswith(b"<"):
            continue
        tag = _KEPT_TAG.match(piece)
        if tag is None:
            continue
        texts.append(_shown(_without_comments(pieces[start:number]), is_exact=depth > 0))
        start = number + 1
        name = tag[1].lower()
        if name == b"pre":
            depth += 1
        elif name == b"/pre":
            depth = max(depth - 1, 0)
        else:
            texts.append(_shown([piece[tag.end() :]], is_exact=depth > 0))
    texts.append(_shown(_without_comments(pieces[start:]), is_exact=depth > 0))
    return b"".join(texts)


def _with_pieces_of_foreign(pieces: Sequence[bytes]) -> Sequence[bytes]:
    """Return pieces, with each `svg` and `math` element replaced by its own pieces."""
    found: list[bytes] = []
    for piece in pieces:
        if _FOREIGN_START.match(piece):
            found += _PIECES_OF_FOREIGN.findall(piece)
        else:
            found.append(piece)
    return found


def _without_comments(texts: Sequence[bytes]) -> Sequence[bytes]:
    if b"<!--" not in b"".join(texts):
        return texts
    return [_COMMENTS.sub(b"", text) for text in texts]


def _shown(texts: Sequence[bytes], *, is_exact: bool) -> bytes:
    if is_exact:
        return b"".join(texts)
    return _collapsed(texts)


def _collapsed(texts: Sequence[bytes]) -> bytes:
    """Return texts between tags as one text, in which a run of white space is one space."""
    text = b"".join([text.strip(_WHITE_SPACE) for text in texts])
    if b"\n" in text or b"\t" in text or b"\r" in text or b"\f" in text:
        text = text.translate(_TO_SPACES)
    if text.rfind(b"  ") < 0:  # faster than `in`
        return text
    return _SPACES.sub(b" ", text)
