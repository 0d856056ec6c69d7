"""Takes a secret out of texts, in whatever form a server, an encoder or this program has written it there.

A form is not listed but read: percent-encoding, the escapes of JSON, Python and Markdown, and HTML's entities, nested or mixed,
are undone, and what nobody sees is left out, in the text as in the secret. Base64 has no form of its own for what stands inside
of something longer; there the secret looks one of three ways, as it begins at the first, second or third byte of three.
"""

import base64
import html
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final
from urllib.parse import quote

SHORTEST_TO_RECOGNISE: Final = 8
"""Characters of a secret that are looked for in what comes from outside: a shorter one may be part of ordinary words there, such
as a status, and an output without it would be wrong."""

HIDDEN: Final = "***"

_MOST_LAYERS: Final = 5
"""Encodings around encodings that are undone; each costs a pass over the text."""

_WRITTEN: Final = re.compile(
    r"%(?P<percent>[0-9A-Fa-f]{2})"
    r"|\\+(?:u(?P<unit>[0-9A-Fa-f]{4})|x(?P<byte>[0-9A-Fa-f]{2}))?"
    r"|&(?P<entity>\#[0-9]{1,7};|\#[xX][0-9A-Fa-f]{1,6};|[A-Za-z][A-Za-z0-9]{1,31};)"
)
_UNSEEN: Final = re.compile(
    # control characters but those that end a word, such as the zeros of UTF-16 that was read as something else, and what has no
    # shape (source: Unicode, Default_Ignorable_Code_Point)
    r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)


class Redactor:
    """Hides secrets; those of fewer than `shortest` characters are left alone."""

    def __init__(self, secrets: Iterable[str] = (), *, shortest: int = 1) -> None:
        longest_first = sorted({secret for secret in secrets if len(secret) >= shortest}, key=len, reverse=True)
        self._forms = tuple(dict.fromkeys(form for secret in longest_first for form in _forms(secret)))

    def hide(self, text: str) -> str:
        """Put asterisks in place of each secret."""
        for form in self._forms:
            text = text.replace(form, HIDDEN)
        read = text
        for layers in range(1, _MOST_LAYERS + 1):
            before, read = read, _read(read)
            if read == before:
                break
            if any(form in read for form in self._forms):
                text = _without(text, self._forms, layers)
                read = _read(text, layers=layers)
        return text

    def finds_in(self, text: str) -> bool:
        """Tell whether there is anything to hide."""
        return self.hide(text) != text


def _forms(secret: str) -> Iterator[str]:
    """Give what a text is searched for, layer by layer: the secret, as it looks without what stands for an escape in it too."""
    yield secret
    yield quote(secret, safe="", errors="replace")  # what is not ASCII has several bytes here, and is read as several characters
    yield from filter(None, [_read(secret, layers=_MOST_LAYERS)])
    content = secret.encode("utf-8", "replace")
    if len(content) < SHORTEST_TO_RECOGNISE:
        return  # a few characters of base64 stand in any word
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + content).decode()
        # six bits a character: those that hold a bit of a neighbour differ with it
        whole = encoded[-(-before * 8 // 6) : (before + len(content)) * 8 // 6]
        yield whole
        yield whole.translate(str.maketrans("+/", "-_"))


def _read(text: str, *, layers: int = 1) -> str:
    """Undo so many layers of escapes, and leave out what nobody sees."""
    for _ in range(layers):
        text = _WRITTEN.sub(_meaning, _UNSEEN.sub("", text))
    return text


def _meaning(written: re.Match[str]) -> str:
    """Tell the character that an escape stands for, if it is one; a backslash by itself is no character."""
    code = written["percent"] or written["unit"] or written["byte"]
    if code is not None:
        return chr(int(code, 16))
    return html.unescape(f"&{written['entity']}") if written["entity"] else ""


def _without(text: str, forms: Iterable[str], layers: int) -> str:
    """Hide what a text holds when so many layers of escapes are undone, at the places where it is written."""
    read, places = text, [(at, at + 1) for at in range(len(text))]
    for _ in range(layers):
        read, places = _replaced(_UNSEEN, lambda _: "", read, places)
        read, places = _replaced(_WRITTEN, _meaning, read, places)
    kept, covered = [], 0
    for found in re.finditer("|".join(map(re.escape, forms)), read):
        kept += [text[covered : places[found.start()][0]], HIDDEN]
        covered = places[found.end() - 1][1]
    return "".join([*kept, text[covered:]])


def _replaced(
    pattern: re.Pattern[str], meaning: Callable[[re.Match[str]], str], text: str, places: list[tuple[int, int]]
) -> tuple[str, list[tuple[int, int]]]:
    """Replace what matches, and tell of each character from where to where it was written."""
    pieces: list[str] = []
    kept: list[tuple[int, int]] = []
    done = 0
    for written in pattern.finditer(text):
        new = meaning(written)
        pieces += [text[done : written.start()], new]
        kept += places[done : written.start()]
        kept += [(places[written.start()][0], places[written.end() - 1][1])] * len(new)
        done = written.end()
    return "".join([*pieces, text[done:]]), [*kept, *places[done:]]
