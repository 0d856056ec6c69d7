"""Removes keys and the secrets of links from text, whatever encoding a server or a program wrote them in.

Escapes are undone: percent-encoding, the escapes of JSON, Python and Markdown, and HTML entities, also nested or mixed. Invisible
characters and white space are removed, so a secret that is wrapped over lines is found. Upper and lower case are the same. Base64
and hex are searched for as they are: a secret has one form in hex, and three in base64, which encodes groups of three bytes.
"""

import base64
import html
import re
import threading
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from operator import itemgetter
from typing import Final
from urllib.parse import quote, unquote

MIN_SECRET_LENGTH: Final = 8
"""Shortest secret that is hidden in responses. A shorter one may be part of ordinary words, such as a status."""

MIN_RUN_LENGTH: Final = 16
"""Consecutive characters of a key that are hidden by themselves, as in a message that truncates it."""

HIDDEN: Final = "***"

_KEY, _LINK = HIDDEN, "…"  # what is written in place of a secret of either kind
_KEYS, _KEYS_AND_LINKS = (_KEY,), (_KEY, _LINK)

_MAX_LAYERS: Final = 5
"""Nested encodings that are undone; each costs a pass over the text."""

_ESCAPE: Final = re.compile(
    r"%(?:(?P<percent>[0-9A-Fa-f]{2})|[uU](?P<percent_unit>[0-9A-Fa-f]{4}))"
    r"|\\+(?:[uU](?P<unit>[0-9A-Fa-f]{4})|[uU]\\*\{0{0,5}(?P<braced>[0-9A-Fa-f]{1,5})\\*\}|[xX](?P<byte>[0-9A-Fa-f]{2}))?"
    r"|&(?P<entity>\#0{0,99}[0-9]{1,7};?|\#[xX]0{0,99}[0-9A-Fa-f]{1,6};?|[A-Za-z][A-Za-z0-9]{1,31};)"
)
_INVISIBLE: Final = re.compile(
    # control characters but white space, such as the zeros of misread UTF-16, and characters without a shape
    # (source: Unicode, Default_Ignorable_Code_Point)
    r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
_INVISIBLE_OR_WHITE_SPACE: Final = re.compile(
    # also a line's margin, as in quoted mail or the trace of an exception group, and escaped white space. Each encoding doubles
    # a backslash; the bound keeps a text of backslashes cheap
    rf"{_INVISIBLE.pattern}|\n[^\S\n]*(?:[|>][^\S\n]+)*|[^\S\n]+|(?<!\\)\\{{1,32}}[nrt]"
)
_HEX: Final = re.compile(r"(?:[0-9A-Fa-f]{2}[:,;._/|-]*(?:0[xX])?){8}")
_BETWEEN_HEX_DIGITS: Final = re.compile(r"(?<=[0-9A-Fa-f])[:,;._/|-]+(?:0[xX])?(?=[0-9A-Fa-f])")
_LOWER_CASE: Final = str.maketrans({chr(code): chr(code + 32) for code in range(65, 91)})  # `lower` may change the length
_PARAMETER: Final = re.compile(r"(?<![\w.~-])([\w.~-]{1,64})(?=([^\w.~-]{1,6}))")
"""The name of a parameter, and what is between it and its value, in a URL, in XML or in JSON."""

Span = tuple[int, int, str]
"""The start and the end of a secret in a text, and what to write in its place."""


class Redactor:
    """Hides keys and the secrets of links. Safe to use from several threads.

    Names, such as the project's id, stay visible by themselves, even if they are part of a secret. A key of fewer than
    `MIN_SECRET_LENGTH` characters is only hidden in what people read.
    """

    # reading takes no lock: while another thread adds something, what is read is only added to, or replaced

    def __init__(self, keys: Iterable[str] = (), *, names: Iterable[str] = ()) -> None:
        self._characters, self._digits = _Index(MIN_RUN_LENGTH), _Index(2 * MIN_RUN_LENGTH)
        self._short: list[str] = []
        self._short_keys: list[str] = []
        self._short_link_secrets: defaultdict[str, set[str]] = defaultdict(set)  # by the name of the parameter
        self._shown: set[str] = set()
        self._names = ""  # those shown, one a line
        self._lock = threading.Lock()
        for key in filter(None, keys):
            if len(key) < MIN_SECRET_LENGTH:
                self._short_keys += _forms(key)
                continue
            for form in _forms(key):
                if len(form) < MIN_SECRET_LENGTH:
                    self._short.append(form)
                else:
                    self._characters.add_key(form)
            self._add_encoded(key, _Index.add_key)
        self.show(names)

    def add_link_secrets(self, secrets: Iterable[tuple[str, str]]) -> None:
        """Hide these secrets from now on. Each comes with its parameter's name: a short one is only hidden after it."""
        with self._lock:
            for name, secret in secrets:
                for form in _forms(secret):
                    if len(form) < MIN_SECRET_LENGTH:
                        last_word = re.split(r"[^\w.~-]+", unquote(name).rstrip("[]"))[-1]
                        self._short_link_secrets[last_word.translate(_LOWER_CASE)].add(form)
                    else:
                        self._characters.add_link_secret(form)
                self._add_encoded(secret, _Index.add_link_secret, before_short=f"{name}=")

    def show(self, names: Iterable[str]) -> None:
        """Show these names and every part of them from now on, but never a whole key."""
        with self._lock:
            new = {form for name in names for form in _forms(name)} - self._shown
            self._names = "\n".join((self._names, *new))
            self._shown |= new

    def hide(self, text: str) -> str:
        """Return a text for people without keys, parts of keys, and the secrets of links."""
        return _replaced(text, self._spans(text, _KEYS_AND_LINKS, short_keys=True))

    def hide_keys(self, text: str) -> str:
        """Return a response's text without keys of at least `MIN_SECRET_LENGTH` characters, and parts of them."""
        return _replaced(text, self._spans(text, _KEYS))

    def hide_whole_keys(self, text: str, *, short_keys: bool = False) -> str:
        """Return a text that is used, and not only shown, without whole keys. What it shares with a key may be its own."""
        return _replaced(text, self._spans(text, short_keys=short_keys))

    def has_whole_key(self, text: str) -> bool:
        """Return whether a text contains a whole key of at least `MIN_SECRET_LENGTH` characters."""
        return bool(self._spans(text))

    def _add_encoded(self, secret: str, add: "Callable[[_Index, str], None]", *, before_short: str = "") -> None:
        """Add a secret in base64 and in hex: as it is, and with its own percent-encoding undone or made."""
        decoded = unquote(secret)
        for text in dict.fromkeys((secret, decoded, quote(decoded, safe="", errors="replace"))):
            content = (text if len(text) >= MIN_SECRET_LENGTH else before_short + text).encode("utf-8", "replace")
            add(self._digits, content.hex())
            for form in _base64_forms(content):
                if len(form) >= MIN_SECRET_LENGTH:
                    add(self._characters, form.translate(_LOWER_CASE))

    def _spans(self, text: str, marks: Collection[str] = (), *, short_keys: bool = False) -> list[Span]:
        """Return the spans of whole keys, and of parts with these marks."""
        keys = (self._short if marks else []) + (self._short_keys if short_keys else [])
        spans = _find_in_layers(text, _INVISIBLE_OR_WHITE_SPACE, lambda layer: self._find(layer, marks))
        if keys or self._short_link_secrets:  # without white space, the ends of two words may look like a short secret
            spans += _find_in_layers(text, _INVISIBLE, lambda layer: self._find_short(layer, keys, marks))
        return spans

    def _find(self, text: str, marks: Collection[str]) -> list[Span]:
        text = text.translate(_LOWER_CASE)
        spans = self._characters.find(text, marks, self._names) + self._find_after_names(text, marks)
        if _HEX.search(text):
            digits = _BETWEEN_HEX_DIGITS.sub("", text)
            spans += _original_spans(self._digits.find(digits, marks, self._names), text, _BETWEEN_HEX_DIGITS, "")
        return spans

    def _find_short(self, text: str, keys: Iterable[str], marks: Collection[str]) -> list[Span]:
        text = text.translate(_LOWER_CASE)
        spans = [(start, start + len(key), _KEY) for key in keys for start in _occurrences(text, key)]
        return spans + self._find_after_names(text, marks)

    def _find_after_names(self, text: str, marks: Collection[str]) -> list[Span]:
        """Return the spans of short secrets of links, each after the name of its parameter."""
        spans: list[Span] = []
        for name in _PARAMETER.finditer(text) if self._short_link_secrets and _LINK in marks else ():
            secrets = self._short_link_secrets.get(name[1], set()) - self._shown
            for start in range(name.end() + 1, name.end(2) + 1) if secrets else ():
                ends = range(start + 1, start + MIN_SECRET_LENGTH)
                spans += [(start, end, _LINK) for end in ends if text[start:end] in secrets]
        return spans


class _Index:
    """Finds keys, and pieces of keys and of links' secrets. A piece has `length` characters; a shorter secret is one piece.

    The pieces of a key are all its runs of that length. Those of a link's secret overlap by one character only, because a run may
    have thousands of links: of a secret that a text truncates, fewer than `length` characters are left at either end.
    """

    def __init__(self, length: int) -> None:
        self._length = length
        self._keys: list[str] = []
        self._pieces: dict[int, dict[str, str]] = {}  # by length, each with its mark

    def add_key(self, form: str) -> None:
        self._keys.append(form)
        if len(form) > self._length:
            self._add_pieces(form, 1, _KEY)

    def add_link_secret(self, form: str) -> None:
        self._add_pieces(form, self._length - 1, _LINK)

    def _add_pieces(self, form: str, step: int, mark: str) -> None:
        last = max(len(form) - self._length, 0)
        for start in (*range(0, last, step), last):
            piece = form[start : start + self._length]
            self._pieces.setdefault(len(piece), {}).setdefault(piece, mark)

    def find(self, text: str, marks: Collection[str], names: str) -> list[Span]:
        """Return the spans of keys, and of pieces with these marks that are not part of a name."""
        spans = [(start, start + len(key), _KEY) for key in self._keys for start in _occurrences(text, key)]
        for length, pieces in [*self._pieces.items()] if marks else ():
            starts = [start for start in range(len(text) - length + 1) if text[start : start + length] in pieces]
            shown = {piece for piece in {text[start : start + length] for start in starts} if piece in names}
            for start in starts:
                piece = text[start : start + length]
                if pieces[piece] in marks and piece not in shown:
                    spans.append((start, start + length, pieces[piece]))
        return spans


def _find_in_layers(
    text: str, removed: re.Pattern[str], find: Callable[[str], list[Span]], layers: int = _MAX_LAYERS
) -> list[Span]:
    """Return what is found in a text, and in the text with one layer of escapes after another undone."""
    spans = find(text)
    if layers == 0:
        return spans
    joined = removed.sub("", text)
    inner_spans = find(joined) if joined != text else []
    unescaped = _ESCAPE.sub(_character_of, joined)
    if unescaped != joined:
        deeper_spans = _find_in_layers(unescaped, removed, find, layers - 1)
        inner_spans += _original_spans(deeper_spans, joined, _ESCAPE, _character_of)
    return _merged([*spans, *_original_spans(inner_spans, text, removed, "")])


def _original_spans(
    spans: list[Span], text: str, pattern: re.Pattern[str], replacement: str | Callable[[re.Match[str]], str]
) -> list[Span]:
    """Return the spans of a text that became these spans of `pattern.sub(replacement, text)`."""
    if not spans:
        return []
    edits: list[tuple[int, int, tuple[int, int]]] = []  # the start and end of each replacement, and its span in the text
    shift = 0
    for match in pattern.finditer(text):
        start = match.start() + shift
        end = start + len(replacement(match) if callable(replacement) else replacement)
        edits.append((start, end, match.span()))
        shift = end - match.end()

    def original_of(at: int) -> tuple[int, int]:
        number = bisect_right(edits, at, key=itemgetter(0)) - 1
        if number < 0:
            return at, at + 1
        _, end, (original_start, original_end) = edits[number]
        if at < end:
            return original_start, original_end
        return original_end + at - end, original_end + at - end + 1

    return [(original_of(start)[0], original_of(end - 1)[1], mark) for start, end, mark in spans]


def _replaced(text: str, spans: Iterable[Span]) -> str:
    """Return a text with each span's mark in its place; overlapping ones are replaced as one."""
    kept: list[str] = []
    covered = 0
    for start, end, mark in _merged(spans):
        kept += [text[covered:start], mark]
        covered = end
    return "".join([*kept, text[covered:]])


def _occurrences(text: str, searched: str) -> Iterator[int]:
    start = text.find(searched)
    while start >= 0:
        yield start
        start = text.find(searched, start + 1)


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Return spans in order, overlapping ones as one, with a key's mark if one of them has it."""
    merged: list[Span] = []
    for start, end, mark in sorted(spans):
        if merged and start < merged[-1][1]:
            last_start, last_end, last_mark = merged[-1]
            merged[-1] = (last_start, max(end, last_end), _KEY if _KEY in {mark, last_mark} else mark)
        else:
            merged.append((start, end, mark))
    return merged


def _forms(secret: str) -> set[str]:
    """Return what each layer of a text is searched for."""
    # undoing percent-encoding turns each byte of a character beyond ASCII into a character
    forms = {secret, secret.encode("utf-8", "replace").decode("latin-1")}
    # in a text, an escape or white space that belongs to the secret itself is undone or removed, too
    forms |= {_INVISIBLE_OR_WHITE_SPACE.sub("", form) for form in forms}
    forms |= {_unescaped(form, removed) for form in forms for removed in (_INVISIBLE, _INVISIBLE_OR_WHITE_SPACE)}
    if "+" in secret:  # a server reads it as a space in a form
        spaced = secret.replace("+", " ")
        joined = _unescaped(spaced, _INVISIBLE_OR_WHITE_SPACE)
        forms |= {spaced, joined if len(joined) >= MIN_SECRET_LENGTH else spaced}
    return {form.translate(_LOWER_CASE) for form in forms if form}


def _base64_forms(content: bytes) -> Iterator[str]:
    """Return the base64 of a secret within a longer text, in both alphabets, without what depends on the neighboring bytes."""
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + content).decode()
        # a character holds six bits: those that share bits with neighboring bytes are left out
        whole = encoded[-(-before * 8 // 6) : (before + len(content)) * 8 // 6]
        yield from {whole, whole.translate(str.maketrans("+/", "-_"))}


def _unescaped(text: str, removed: re.Pattern[str]) -> str:
    """Return the text with every layer of escapes undone, and without what is removed."""
    for _ in range(_MAX_LAYERS):
        escaped, text = text, _ESCAPE.sub(_character_of, removed.sub("", text))
        if text == escaped:
            break
    return text


def _character_of(escape: re.Match[str]) -> str:
    """Return the character that an escape stands for; a single backslash stands for none."""
    if escape.lastgroup is None:
        return ""
    code = escape[escape.lastgroup]
    return html.unescape(f"&{code}") if escape.lastgroup == "entity" else chr(int(code, 16))
