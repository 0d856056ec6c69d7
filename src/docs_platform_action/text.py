"""Text for people: durations, dates, sizes, and foreign text made harmless."""

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final
from urllib.parse import quote, urlsplit

MAX_FOREIGN_TEXT_LENGTH: Final = 1000
MAX_WORD_LENGTH: Final = 60  # for what should be a word or a date
MAX_JOINED_ERRORS: Final = 10

_MAX_NAME_LENGTH: Final = 160

# control characters and lone surrogates
UNUSABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")

# Letters and marks without a shape (source: Unicode, Default_Ignorable_Code_Point). A key with one
# inside looks intact, and .NET, in which the runner is written, may ignore them in comparisons.
_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)

_MARKDOWN: Final = re.compile(
    r"([\\`*_{}\[\]<>()#|~$@&!^=+]"
    r"|:(?=//|[\w+-]+:)"  # of an address, or at the start of an emoji's name
    r"|(?<=[wW]{3})\.)"  # of an address without a scheme
)

_ENDS_OF_SENTENCES: Final = (".", "…", "!", "?", '."', '!"', '?"')


def clean(text: str, *, max_length: int = MAX_FOREIGN_TEXT_LENGTH) -> str:
    """Return foreign text as one line without commands, and without characters that are not shown.

    Control, formatting, invisible and surrogate characters are removed or replaced. A workflow
    command begins with `::` at the start of a line, or with `##[` anywhere (source: actions/runner,
    ActionCommand.cs).
    """
    text = shortened(text, max_length)
    # most lines are plain, and a run writes tens of thousands of them
    is_plain = text.isascii() and text.isprintable()
    if not is_plain:
        text = "".join(_visible(character) for character in text)
    text = re.sub(r":(?=:)", ": ", text)
    text = re.sub(r"##(?=\[)", "# #", text)
    return text.rstrip()


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    if category in {"Zl", "Zp"} or character in "\t\n\r\v\f\x85":
        return " "
    if category in {"Cc", "Cf", "Co", "Cn"} or _INVISIBLE.match(character):
        return ""
    if category == "Cs":
        return "\N{REPLACEMENT CHARACTER}"
    return character


def markdown(text: str) -> str:
    """Escape text for a cell or a line of GitHub's Markdown, which shows it literally."""
    escaped = _MARKDOWN.sub(r"\\\1", clean(text).strip())
    # GitHub links email addresses after it has removed the escapes, but not across a comment
    # (source: cmark-gfm, autolink.c)
    escaped = re.sub(r"(?<=[A-Za-z0-9.+_-])\\@", r"\\@<!-- -->", escaped)
    # a list, or a rule
    return re.sub(r"^([0-9]*)([-.])", r"\1\\\2", escaped)


def link_target(url: str) -> str:
    """Return a foreign URL as the target of a Markdown link, which nothing in it can end."""
    target = quote(url, safe=":/?#@!$&*+,;=%")
    # `&copy;` in a query is not a copyright sign
    return target.replace("&", "&amp;")


def netloc_of(url: str) -> str:
    """Return a URL's host, with its port if there is one.

    Raises `ValueError` for a URL that cannot be parsed.
    """
    return urlsplit(url).netloc.rpartition("@")[2]


def without_query(url: str) -> str:
    """Return a link's host and path without its query, which may hold a signature."""
    return netloc_of(url) + urlsplit(url).path


def format_clock(seconds: float) -> str:
    """Return a duration as `m:ss` or `h:mm:ss`."""
    minutes, rest = divmod(int(max(seconds, 0.0)), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02}"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


def format_seconds(seconds: float) -> str:
    """Return a duration in seconds, with one decimal below ten."""
    if seconds < 0.05:
        return "under 0.1 s"
    if seconds >= 9.95:
        return f"{seconds:.0f} s"
    number = f"{seconds:.1f}".removesuffix(".0")
    return f"{number} s"


def format_approx(seconds: float) -> str:
    """Return a duration as one number in the unit that fits: seconds, minutes, hours or days."""
    if seconds < 90:
        return format_seconds(seconds)
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86400:.0f} days"


def format_eta(seconds: float) -> str:
    """Return an estimate as `m:ss` or `h:mm:ss`.

    It is rounded to 5 s below a minute, to 10 s below ten minutes, and else to a minute.
    """
    if seconds < 60:
        unit = 5
    elif seconds < 600:
        unit = 10
    else:
        unit = 60
    # `round` would round some halves down
    units = math.floor(seconds / unit + 0.5)
    return format_clock(max(units, 1) * unit)


def describe_retry(error: str, budget_seconds: float, pause_seconds: float) -> str:
    """Return a temporary error and what happens next."""
    budget = format_clock(round(budget_seconds))
    next_attempt = "now"
    if pause_seconds >= 0.05:
        next_attempt = f"in {format_approx(pause_seconds)}"
    return f"{error}. Retrying for up to {budget}, next attempt {next_attempt}."


def quoted(name: str) -> str:
    """Quote a name from outside for a message. A long one is shortened in the middle."""
    if len(name) <= _MAX_NAME_LENGTH:
        return f"'{name}'"
    half = _MAX_NAME_LENGTH // 2
    return f"'{name[:half]}…{name[-half:]}'"


def shortened(text: str, max_length: int = MAX_WORD_LENGTH) -> str:
    """Shorten a text, at a space if one is near."""
    if len(text) <= max_length:
        return text
    cut = text[:max_length]
    words, _, _ = cut.rpartition(" ")
    is_space_near = len(words) > max_length * 0.8
    return f"{words if is_space_near else cut}…"


def join_errors(errors: Sequence[str]) -> str:
    """Join different errors into one text. Those beyond the limit are counted."""
    different = list(dict.fromkeys(errors))
    parts = different[:MAX_JOINED_ERRORS]
    if len(different) > MAX_JOINED_ERRORS:
        parts.append(f"and {len(different) - MAX_JOINED_ERRORS} more")
    return "; ".join(parts)


def join_names(names: Iterable[str], word: str) -> str:
    """Return one or more names as code, such as "`one`, `two` and `three`"."""
    *others, last = [f"`{name}`" for name in names]
    if not others:
        return last
    return f"{', '.join(others)} {word} {last}"


def list_first(names: Sequence[str], limit: int) -> str:
    """Return names in one text. Those beyond the limit are counted."""
    listed = ", ".join(names[:limit])
    if len(names) > limit:
        return f"{listed} and {len(names) - limit:,} more"
    return listed


def join_nonempty(separator: str, *parts: str) -> str:
    """Join those of the parts that are not empty."""
    return separator.join(part for part in parts if part)


def pluralize(count: int, noun: str) -> str:
    """Return a count with its noun, such as `1,904 files`."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun}s"


def as_sentence(text: str) -> str:
    """Return a text with a full stop, unless it or a quotation at its end has one."""
    if text.endswith(_ENDS_OF_SENTENCES):
        return text
    return f"{text}."


def format_time(time: datetime, today: datetime | None = None) -> str:
    """Return a time in UTC, without its date if it is `today`."""
    is_today = today is not None and time.date() == today.date()
    if is_today:
        return f"{time:%H:%M} UTC"
    return f"{time:%Y-%m-%d %H:%M} UTC"


def format_expiry(expires: datetime, now: datetime, *, always_dated: bool = False) -> str:
    """Return until when a link is valid, and for how long from now."""
    time = format_time(expires, None if always_dated else now)
    remaining_seconds = (expires - now).total_seconds()
    if remaining_seconds <= 0:
        return f"expired at {time} by this runner's clock"
    return f"valid until {time} ({format_approx(remaining_seconds)})"


def format_digest(digest: str) -> str:
    """Return the start and the end of a digest."""
    return f"{digest[:4]}…{digest[-4:]}"


def format_bytes(count: float) -> str:
    """Return a size with a binary unit and one decimal."""
    if round(count) < 1024:
        return pluralize(round(count), "byte")
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if count < 1023.95:
            return f"{count:.1f} {unit}"
    return f"{count / 1024:.1f} TiB"
