"""Removes secrets from texts, in whatever form a server, an encoder or this program has written them there.

Escapes are undone rather than listed: percent-encoding, the escapes of JSON, Python and Markdown, and HTML entities, nested or
mixed, and characters that nobody sees are left out, in the text as in the secret. White space is left out as well, so that a
secret that is wrapped over lines is found. Base64 and hex are searched for as they are: a secret has one form in hex, and three
in base64, depending on where it begins among three bytes.

A run of `MIN_RUN_LENGTH` characters of a secret is hidden like the secret itself.
"""

import base64
import html
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from operator import itemgetter
from typing import Final
from urllib.parse import quote

MIN_SECRET_LENGTH: Final = 8
"""Characters of a secret that are looked for in what comes from outside: a shorter one may be part of ordinary words there, such
as a status, and an output without it would be wrong."""

MIN_RUN_LENGTH: Final = 16
"""Consecutive characters of a secret that are hidden when the rest is missing, as in a message that truncates it."""

HIDDEN: Final = "***"

_MIN_BASE64_RUN_LENGTH: Final = MIN_RUN_LENGTH * 8 // 6 - 1
"""Base64 characters that `MIN_RUN_LENGTH` bytes determine on their own, wherever they begin among three bytes."""

_MIN_HEX_RUN_LENGTH: Final = MIN_RUN_LENGTH * 2

_MAX_LAYERS: Final = 5
"""Encodings around encodings that are undone; each costs a pass over the text."""

_MAX_SEED_LENGTH: Final = 8

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
_UNSEEN_OR_WHITE_SPACE: Final = re.compile(
    # white space also as an escape; a backslash doubles with each encoding, and a text of backslashes needs a bound. A line may
    # begin with a margin, as in mail that is quoted and in the trace of an exception group
    rf"{_UNSEEN.pattern}|\n[^\S\n]*(?:[|>][^\S\n]+)*|[^\S\n]+|(?<!\\)\\{{1,32}}[nrt]"
)
_HEX: Final = re.compile(r"(?:[0-9A-Fa-f]{2}[:,._-]*(?:0[xX])?){8}")
_BETWEEN_HEX_DIGITS: Final = re.compile(r"(?<=[0-9A-Fa-f])[:,._-]+(?:0[xX])?(?=[0-9A-Fa-f])")
_LOWER_CASE: Final = str.maketrans("ABCDEF", "abcdef")

Span = tuple[int, int]


class Redactor:
    """Hides secrets; those of fewer than `shortest` characters are left alone.

    `names` are texts that the run shows on purpose, such as the project's identifier: where one is part of a secret, as in a key
    that begins with it, it is still shown by itself. With `parts=False`, only whole secrets are hidden.
    """

    def __init__(self, secrets: Iterable[str] = (), *, shortest: int = 1, names: Iterable[str] = (), parts: bool = True) -> None:
        recognized = [secret for secret in secrets if len(secret) >= shortest]
        forms = [form for secret in recognized for form in _forms(secret)]
        in_hex = [secret.encode("utf-8", "replace").hex() for secret in recognized if len(secret) >= MIN_SECRET_LENGTH]
        self._short = _Runs([form for form in forms if len(form[0]) < MIN_SECRET_LENGTH])
        self._long = _Runs([form for form in forms if len(form[0]) >= MIN_SECRET_LENGTH], names, parts=parts)
        self._digits = _Runs([(digits, _MIN_HEX_RUN_LENGTH) for digits in in_hex], parts=parts)

    def hide(self, text: str) -> str:
        """Return the text with asterisks in place of each secret."""
        return replace_spans(text, self._spans(text), HIDDEN)

    def finds_in(self, text: str) -> bool:
        """Return whether there is anything to hide."""
        return bool(self._spans(text))

    def _spans(self, text: str) -> list[Span]:
        # across white space, a few characters stand in any two words
        short = _found_in_layers(text, _UNSEEN, self._short.find) if self._short.shortest else []
        if len(text) < self._long.shortest or (self._is_simple(text) and not self._find_long(text.replace(" ", ""))):
            return short
        return _merged([*short, *_found_in_layers(text, _UNSEEN_OR_WHITE_SPACE, self._find_long)])

    def _is_simple(self, text: str) -> bool:
        """Return whether only spaces have to be left out, as in most lines of the log, of which there are tens of thousands."""
        return text.isascii() and text.isprintable() and not _WRITTEN.search(text) and not (" " in text and self._long.find(text))

    def _find_long(self, text: str) -> list[Span]:
        spans = self._long.find(text)
        if _HEX.search(text):
            digits = _Replaced(text, _BETWEEN_HEX_DIGITS)
            spans += map(digits.origin, self._digits.find(digits.text.translate(_LOWER_CASE)))
        return spans


def _found_in_layers(text: str, left_out: re.Pattern[str], find: Callable[[str], list[Span]]) -> list[Span]:
    """Return what is found in a text, and in what it reads as when layers of escapes are undone."""
    found: list[list[Span]] = [find(text)]
    steps: list[_Replaced] = []
    for pattern, replacement in ((left_out, ""), (_WRITTEN, _meaning)) * _MAX_LAYERS:
        step = _Replaced(text, pattern, replacement)
        if step.text != text:
            text = step.text
            steps.append(step)
            found.append(find(text))
        elif pattern is _WRITTEN:
            break
    spans = found.pop()
    while steps:
        spans = _merged([*found.pop(), *map(steps.pop().origin, spans)])
    return spans


class _Runs:
    """Finds texts, and runs of their characters, in other texts.

    The time is linear in the length of a text: of any run that is long enough, one of the first characters at every
    `stride`-th place is the beginning of a seed, a few characters that are looked up.
    """

    def __init__(self, texts: Iterable[tuple[str, int]], names: Iterable[str] = (), *, parts: bool = True) -> None:
        """Each text comes with the length of the shortest run of it that is looked for."""
        shown = "\n".join(names)
        self._runs: dict[int, set[str]] = {}
        for text, length in texts:
            runs = [text] if len(text) <= length or not parts else [*_pieces(text, length)]
            hidden = [run for run in runs if run not in shown]
            for run in hidden if len(hidden) == len(runs) else [*hidden, text]:
                self._runs.setdefault(len(run), set()).add(run)
        self.shortest = min(self._runs, default=0)
        self._seed_length = min(self.shortest, _MAX_SEED_LENGTH)
        self._stride = self.shortest - self._seed_length + 1
        self._seeds = {seed for runs in self._runs.values() for run in runs for seed in _pieces(run, self._seed_length)}

    def find(self, text: str) -> list[Span]:
        """Return where the runs are, those that overlap as one."""
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


class _Replaced:
    """A text in which what matches is replaced, and from where in it each character comes."""

    def __init__(self, text: str, pattern: re.Pattern[str], replacement: Callable[[re.Match[str]], str] | str = "") -> None:
        self._original, self._pattern, self._replacement = text, pattern, replacement
        self.text = pattern.sub(replacement, text)

    def origin(self, span: Span) -> Span:
        """Return what a span of the new text was in the original."""
        return self._place(span[0])[0], self._place(span[1] - 1)[1]

    def _place(self, at: int) -> Span:
        number = bisect_right(self._edits, at, key=itemgetter(0)) - 1
        if number < 0:
            return at, at + 1
        _, end, (original_start, original_end) = self._edits[number]
        if at < end:
            return original_start, original_end
        return original_end + at - end, original_end + at - end + 1

    @cached_property
    def _edits(self) -> list[tuple[int, int, Span]]:
        """Where each replacement begins and ends, and what it stands for; few texts hold a secret and need this."""
        edits, shift = [], 0
        for found in self._pattern.finditer(self._original):
            start = found.start() + shift
            end = start + len(self._replacement(found) if callable(self._replacement) else self._replacement)
            edits.append((start, end, found.span()))
            shift = end - found.end()
        return edits


def replace_spans(text: str, spans: Iterable[Span], replacement: str) -> str:
    """Replace each span of a text, those that overlap as one."""
    kept: list[str] = []
    covered = 0
    for start, end in _merged(spans):
        kept += [text[covered:start], replacement]
        covered = end
    return "".join([*kept, text[covered:]])


def _pieces(text: str, length: int) -> Iterator[str]:
    """Return every run of so many characters."""
    return (text[at : at + length] for at in range(len(text) - length + 1))


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Return spans in order, those that overlap as one."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _forms(secret: str) -> Iterator[tuple[str, int]]:
    """Return what each layer of a text is searched for, with the length of the shortest run that is enough."""
    # what stands for an escape or white space in the secret itself is undone and left out in the text
    joined = _UNSEEN_OR_WHITE_SPACE.sub("", secret)
    for form in dict.fromkeys([secret, joined, _read(secret, _UNSEEN), _read(secret, _UNSEEN_OR_WHITE_SPACE)]):
        if form:
            yield form, MIN_RUN_LENGTH
    content = secret.encode("utf-8", "replace")
    if not secret.isascii():  # a character has several bytes here, and is read as several characters
        encoded = quote(secret, safe="", errors="replace")
        yield encoded, len(encoded)
    if len(content) < MIN_SECRET_LENGTH:
        return  # a few characters of base64 stand in any word
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + content).decode()
        # six bits a character: those that hold a bit of a neighbour differ with it
        whole = encoded[-(-before * 8 // 6) : (before + len(content)) * 8 // 6]
        yield whole, _MIN_BASE64_RUN_LENGTH
        yield whole.translate(str.maketrans("+/", "-_")), _MIN_BASE64_RUN_LENGTH


def _read(text: str, left_out: re.Pattern[str]) -> str:
    """Undo every layer of escapes."""
    for _ in range(_MAX_LAYERS):
        text = _WRITTEN.sub(_meaning, left_out.sub("", text))
    return text


def _meaning(written: re.Match[str]) -> str:
    """Return the character that an escape stands for, if it is one; a backslash by itself stands for none."""
    code = written["percent"] or written["unit"] or written["byte"]
    if code is not None:
        return chr(int(code, 16))
    return html.unescape(f"&{written['entity']}") if written["entity"] else ""
