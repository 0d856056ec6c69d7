"""Text for people: durations, dates, sizes, links without their secrets, and foreign text made harmless."""

import math
import re
import unicodedata
from datetime import datetime
from typing import Final
from urllib.parse import quote, urlsplit

MAX_FOREIGN_TEXT_LENGTH: Final = 1000
"""Characters of one line that are shown; what a server sends beyond that helps nobody."""

_SHAPELESS: Final = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
"""Letters and marks that nobody sees (source: Unicode, Default_Ignorable_Code_Point): a key with one inside looks whole, and
.NET, in which the runner is written, may not see them either where it compares texts."""


def clean(text: str, *, longest: int = MAX_FOREIGN_TEXT_LENGTH) -> str:
    """Return text that came from outside, made harmless in a line of the log.

    It becomes one line without control, formatting (bidirectional, zero-width), shapeless or surrogate characters, and holds
    neither `::`, which begins a workflow command at a line's start, nor `##[`, which does so anywhere (source: actions/runner,
    ActionCommand.cs).
    """
    if len(text) > longest:
        text = text[:longest] + "…"
    if not (text.isascii() and text.isprintable()):  # such as most lines are, of which there are tens of thousands in the end
        text = "".join(_visible(character) for character in text)
    return re.sub(r"##(?=\[)", "# #", re.sub(r":(?=:)", ": ", text)).rstrip()


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    if category in {"Zl", "Zp"} or character in "\t\n\r\v\f\x85":
        return " "
    if category in {"Cc", "Cf", "Co", "Cn"} or _SHAPELESS.match(character):
        return ""
    return "\N{REPLACEMENT CHARACTER}" if category == "Cs" else character


def markdown(text: str) -> str:
    """Escape text for a cell or a line of GitHub's Markdown: nothing in it formats, links, mentions or ends the cell."""
    escaped = re.sub(r"([\\`*_{}\[\]<>()#|~$@&!^=+]|:(?=//|[\w+-]+:)|(?<=[wW]{3})\.)", r"\\\1", clean(text).strip())
    # GitHub finds addresses of mail once the escapes are gone, but not across what is no text (source: cmark-gfm, autolink.c)
    escaped = re.sub(r"(?<=[A-Za-z0-9.+_-])\\@", r"\\@<!-- -->", escaped)
    return re.sub(r"^([0-9]*)([-.])", r"\1\\\2", escaped)  # what begins a list or draws a line


def link_target(url: str) -> str:
    """Return a foreign web address as the target of a Markdown link: what could end it there is percent-encoded."""
    return quote(url, safe=":/?#@!$&*+,;=%").replace("&", "&amp;")  # `&copy;` in a query is not a copyright sign


def netloc_of(url: str) -> str:
    """Return a URL's host, with its port if there is one. Raises `ValueError` for a URL that cannot be parsed."""
    return urlsplit(url).netloc.rpartition("@")[2]


def without_query(url: str) -> str:
    """Return a link's host and path alone: its query is what opens it."""
    return netloc_of(url) + urlsplit(url).path


def format_clock(seconds: float) -> str:
    """Return a duration as `m:ss` or `h:mm:ss`."""
    whole = int(max(seconds, 0.0))
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def format_approx(seconds: float) -> str:
    """Return a time span as one number with its unit."""
    if seconds < 90:
        return f"{max(seconds, 0):.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.0f} days"


def format_eta(seconds: float) -> str:
    """Return an estimate as `m:ss` or `h:mm:ss`, rounded to 5 s below a minute, to 10 s below ten, else to 1 min."""
    step = 5 if seconds < 60 else 10 if seconds < 600 else 60
    return format_clock(max(math.floor(seconds / step + 0.5), 1) * step)


def format_seconds(seconds: float) -> str:
    """Return a short pause, with a decimal below ten seconds."""
    return f"{seconds:.0f} s" if seconds >= 9.95 else f"{seconds:.1f}".removesuffix(".0") + " s"


def format_duration(lasted: float) -> str:
    """Return a duration in whole seconds, or in milliseconds below one."""
    return f"{lasted:.0f} s" if lasted >= 1 else f"{lasted * 1000:.0f} ms"


def describe_retry(what: str, budget_seconds: float, pause_seconds: float) -> str:
    """Return a temporary error, and what happens next; an infinite budget lasts while other jobs make room for this one."""
    soon = f"next attempt in {format_seconds(pause_seconds)}" if pause_seconds >= 0.05 else "next attempt now"
    how_long = (
        f"for up to {format_clock(round(budget_seconds))}" if math.isfinite(budget_seconds) else "while other jobs are running"
    )
    return f"{what}. Retrying {how_long}, {soon}."


def pluralize(count: int, noun: str) -> str:
    """Return a count with its noun, such as `1,904 files`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def sentence(text: str) -> str:
    """Return a text with a full stop, unless it, or a quotation at its end, has one."""
    return text if text.endswith((".", "…", "!", "?", '."', '!"', '?"')) else f"{text}."


def works_until(expires: datetime, now: datetime) -> str:
    """Return until when a link works, and how long that is."""
    left = (expires - now).total_seconds()
    when = format_time(expires, now)
    return f"valid until {when} ({format_approx(left)})" if left > 0 else f"expired at {when} by this runner's clock"


def format_time(when: datetime, now: datetime) -> str:
    """Return a time of day in UTC, with the date unless it is today."""
    return f"{when:%H:%M} UTC" if when.date() == now.date() else f"{when:%Y-%m-%d %H:%M} UTC"


def format_bytes(count: float) -> str:
    """Return a number of bytes with a binary unit and one decimal."""
    if count < 1024:
        return f"{count:.0f} byte{'' if count == 1 else 's'}"
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if count < 1023.95:
            return f"{count:.1f} {unit}"
    return f"{count / 1024:.1f} TiB"
