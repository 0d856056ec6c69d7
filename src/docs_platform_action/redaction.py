"""Removes secrets from text, whatever encoding a server or a program wrote them in.

Escapes are undone: percent-encoding, the escapes of JSON, Python and Markdown, and HTML entities, also nested or mixed. Invisible
characters and white space are removed, so a secret that is wrapped over lines is found. Base64 and hex are searched for as they
are: a secret has one form in hex, and three in base64, which encodes groups of three bytes.
"""

import base64
import html
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Final
from urllib.parse import quote

MIN_SECRET_LENGTH: Final = 8
"""Shortest secret that is hidden in responses. A shorter one may be part of ordinary words, such as a status."""

MIN_RUN_LENGTH: Final = 16
"""Consecutive characters of a secret that are hidden by themselves, as in a message that truncates it."""

HIDDEN: Final = "***"

_MIN_BASE64_RUN_LENGTH: Final = MIN_RUN_LENGTH * 8 // 6 - 1
"""Base64 characters that `MIN_RUN_LENGTH` bytes determine alone, wherever they begin in a group of three bytes."""

_MAX_LAYERS: Final = 5
"""Nested encodings that are undone; each costs a pass over the text."""

_MAX_SEED_LENGTH: Final = 8

_ESCAPE: Final = re.compile(
    r"%(?P<percent>[0-9A-Fa-f]{2})"
    r"|\\+(?:u(?P<unit>[0-9A-Fa-f]{4})|x(?P<byte>[0-9A-Fa-f]{2}))?"
    r"|&(?P<entity>\#[0-9]{1,7};|\#[xX][0-9A-Fa-f]{1,6};|[A-Za-z][A-Za-z0-9]{1,31};)"
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
_HEX: Final = re.compile(r"(?:[0-9A-Fa-f]{2}[:,._-]*(?:0[xX])?){8}")
_BETWEEN_HEX_DIGITS: Final = re.compile(r"(?<=[0-9A-Fa-f])[:,._-]+(?:0[xX])?(?=[0-9A-Fa-f])")
_LOWER_CASE: Final = str.maketrans("ABCDEF", "abcdef")  # `str.lower` may change the length of a text

Span = tuple[int, int]


class Redactor:
    """Hides secrets of at least `min_length` characters.

    `names`, such as the project's id, stay visible by themselves, even if they are part of a secret. With `parts=False`, only
    whole secrets are hidden.
    """

    def __init__(self, secrets: Iterable[str], *, min_length: int = 1, names: Iterable[str] = (), parts: bool = True) -> None:
        secrets = [secret for secret in secrets if len(secret) >= min_length]
        forms = [form for secret in secrets for form in _forms(secret)]
        in_hex = [secret.encode("utf-8", "replace").hex() for secret in secrets if len(secret) >= MIN_SECRET_LENGTH]
        self._short = _Runs([form for form in forms if len(form[0]) < MIN_SECRET_LENGTH])
        self._long = _Runs([form for form in forms if len(form[0]) >= MIN_SECRET_LENGTH], names, parts=parts)
        self._hex = _Runs([(digits, 2 * MIN_RUN_LENGTH) for digits in in_hex], parts=parts)

    def hide(self, text: str) -> str:
        """Return the text with asterisks in place of each secret."""
        return replace_spans(text, self._spans(text), HIDDEN)

    def finds_in(self, text: str) -> bool:
        """Return whether the text holds a secret."""
        return bool(self._spans(text))

    def _spans(self, text: str) -> list[Span]:
        # without white space, the ends of two words may look like a short secret
        short = _find_in_layers(text, _INVISIBLE, self._short.find) if self._short.min_length else []
        return short + _find_in_layers(text, _INVISIBLE_OR_WHITE_SPACE, self._find_long)

    def _find_long(self, text: str) -> list[Span]:
        spans = self._long.find(text)
        if _HEX.search(text):
            digits = _BETWEEN_HEX_DIGITS.sub("", text).translate(_LOWER_CASE)
            spans += _original_spans(self._hex.find(digits), text, _BETWEEN_HEX_DIGITS, "")
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


class _Runs:
    """Finds texts, and runs of their characters, in other texts. Each text comes with the length of the shortest run to find.

    The time is linear in a text's length: every run holds a seed, a few characters that are looked up, at one of any `stride`
    consecutive positions.
    """

    def __init__(self, texts: Iterable[tuple[str, int]], names: Iterable[str] = (), *, parts: bool = True) -> None:
        shown = "\n".join(names)
        self._runs: dict[int, set[str]] = {}
        for text, length in texts:
            runs = [text] if len(text) <= length or not parts else [*_substrings(text, length)]
            hidden = [run for run in runs if run not in shown]
            for run in hidden if len(hidden) == len(runs) else [*hidden, text]:
                self._runs.setdefault(len(run), set()).add(run)
        self.min_length = min(self._runs, default=0)
        self._seed_length = min(self.min_length, _MAX_SEED_LENGTH)
        self._stride = self.min_length - self._seed_length + 1
        self._seeds = {seed for runs in self._runs.values() for run in runs for seed in _substrings(run, self._seed_length)}

    def find(self, text: str) -> list[Span]:
        """Return the spans of the runs; overlapping ones are merged."""
        length, seeds = self._seed_length, self._seeds
        if not seeds:
            return []
        candidates = [at for at in range(0, len(text) - length + 1, self._stride) if text[at : at + length] in seeds]
        return _merged(span for run_length in self._runs for span in self._runs_at(candidates, text, run_length))

    def _runs_at(self, candidates: Iterable[int], text: str, length: int) -> Iterator[Span]:
        runs, begin, last = self._runs[length], 0, len(text) - length
        for at in candidates:
            for start in range(max(at + self._seed_length - length, begin), min(at, last) + 1):
                if text[start : start + length] in runs:
                    yield start, start + length
            begin = at + 1


def _original_spans(
    spans: list[Span], text: str, pattern: re.Pattern[str], replacement: str | Callable[[re.Match[str]], str]
) -> list[Span]:
    """Return the spans of a text that became these spans of `pattern.sub(replacement, text)`."""
    if not spans:
        return []
    edits: list[tuple[int, int, Span]] = []  # the start and end of each replacement, and its span in the text
    shift = 0
    for match in pattern.finditer(text):
        start = match.start() + shift
        end = start + len(replacement(match) if callable(replacement) else replacement)
        edits.append((start, end, match.span()))
        shift = end - match.end()

    def original_of(at: int) -> Span:
        number = bisect_right(edits, at, key=itemgetter(0)) - 1
        if number < 0:
            return at, at + 1
        _, end, (original_start, original_end) = edits[number]
        if at < end:
            return original_start, original_end
        return original_end + at - end, original_end + at - end + 1

    return [(original_of(start)[0], original_of(end - 1)[1]) for start, end in spans]


def replace_spans(text: str, spans: Iterable[Span], replacement: str) -> str:
    """Replace each span of a text; overlapping ones are replaced as one."""
    kept: list[str] = []
    covered = 0
    for start, end in _merged(spans):
        kept += [text[covered:start], replacement]
        covered = end
    return "".join([*kept, text[covered:]])


def _substrings(text: str, length: int) -> Iterator[str]:
    return (text[at : at + length] for at in range(len(text) - length + 1))


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Return spans in order, overlapping ones as one."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _forms(secret: str) -> Iterator[tuple[str, int]]:
    """Return what each layer of a text is searched for, with the length of the shortest run to find."""
    # in a text, an escape or white space that belongs to the secret itself is undone or removed, too
    joined = _INVISIBLE_OR_WHITE_SPACE.sub("", secret)
    for form in dict.fromkeys([secret, joined, _unescaped(secret, _INVISIBLE), _unescaped(secret, _INVISIBLE_OR_WHITE_SPACE)]):
        if form:
            yield form, MIN_RUN_LENGTH
    content = secret.encode("utf-8", "replace")
    if not secret.isascii():  # undoing percent-encoding turns each byte of such a character into a character
        encoded = quote(secret, safe="", errors="replace")
        yield encoded, len(encoded)
    if len(content) < MIN_SECRET_LENGTH:
        return  # any word may hold a few characters of base64
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + content).decode()
        # a character holds six bits: those that share bits with neighboring bytes are left out
        whole = encoded[-(-before * 8 // 6) : (before + len(content)) * 8 // 6]
        yield whole, _MIN_BASE64_RUN_LENGTH
        yield whole.translate(str.maketrans("+/", "-_")), _MIN_BASE64_RUN_LENGTH


def _unescaped(text: str, removed: re.Pattern[str]) -> str:
    """Return the text with every layer of escapes undone, and without what is removed."""
    for _ in range(_MAX_LAYERS):
        text = _ESCAPE.sub(_character_of, removed.sub("", text))
    return text


def _character_of(escape: re.Match[str]) -> str:
    """Return the character that an escape stands for; a single backslash stands for none."""
    code = escape["percent"] or escape["unit"] or escape["byte"]
    if code is not None:
        return chr(int(code, 16))
    return html.unescape(f"&{escape['entity']}") if escape["entity"] else ""
