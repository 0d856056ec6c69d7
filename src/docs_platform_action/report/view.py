"""How the summary shows things: foreign text literally in Markdown and HTML, verdicts, and dates with how far off they are."""

import html
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ..job import Job
from ..models import Bundle
from ..text import LONGEST_FOREIGN_TEXT, markdown, roughly

LONGEST_NAME: Final = 260
"""Characters of a name that are shown where it is a label: any domain with its port."""

LONGEST_WORD: Final = 60
"""Characters that are shown of what should be a word or a date."""


@dataclass(frozen=True, kw_only=True)
class View:
    """The moment that a page shows, on both clocks, and the function that removes secrets and commands from a text."""

    safe: Callable[[str], str]
    now: datetime
    monotonic: float

    def show(self, text: str | None, *, longest: int = LONGEST_FOREIGN_TEXT) -> str:
        """Show foreign text literally in Markdown; it is cut when the secrets are out of it, lest a part of one stays."""
        return markdown(_cut(self.safe(text), longest)) if text else ""

    def show_prose(self, text: str, *, longest: int = LONGEST_FOREIGN_TEXT) -> str:
        """Show a sentence of ours, which may hold foreign text, literally but for what it names in backticks: that is code."""
        return _with_code(self.show(text, longest=longest))

    def show_mistake(self, text: str) -> str:
        """Show what is wrong with inputs, their names as code, but literally from where the first value is quoted."""
        named, quote, rest = self.show(text).partition("'")
        return _with_code(named) + quote + rest

    def show_in_html(self, text: str) -> str:
        """Show foreign text literally within an HTML tag, where Markdown's escapes do not work."""
        return html.escape(_cut(self.safe(text), LONGEST_NAME))

    def works_until(self, bundle: Bundle) -> str:
        """Tell until when a link works, as far as it is known: the date, and how long that is."""
        if bundle.expires is None:
            return self.show(bundle.expires_at, longest=LONGEST_WORD)
        left = (bundle.expires - self.now).total_seconds()
        when = minute(bundle.expires)
        return f"{when}, in {roughly(left)}" if left > 0 else f"expired at {when} by this runner's clock"


def _with_code(escaped: str) -> str:
    return re.sub(r"\\`((?:[A-Za-z0-9 .-]|:(?= |\\`)|\\_)+)\\`", _as_code, escaped)


def _as_code(escaped: re.Match[str]) -> str:
    return f"`{escaped[1]}`".replace("\\_", "_")


def _cut(text: str, longest: int) -> str:
    """Cut a text that is too long, between two words if they are many."""
    if len(text) <= longest:
        return text
    words, _, _ = text[:longest].rpartition(" ")
    return (words if len(words) > longest * 0.8 else text[:longest]) + "…"


def minute(when: datetime) -> str:
    """Write a moment in UTC, to the minute."""
    return f"{when:%Y-%m-%d %H:%M} UTC"


def name_of(record: Job) -> str:
    """Tell a job from the others: by its domain, else by its id."""
    return record.domain or record.job_id or record.subject


def link_of(record: Job) -> Bundle | None:
    """Give the bundle's link, where it is one of the outputs."""
    return record.bundle if record.failure is None else None


def size_of(record: Job) -> int | None:
    """Give the bundle's size in bytes: as it was downloaded, else as the API said."""
    if record.downloaded is not None:
        return record.downloaded.size
    return record.bundle.size if record.bundle is not None else None


def seconds_at(record: Job, view: View) -> float | None:
    """Tell how long the step has been at a job, if it has taken it on."""
    return None if record.began is None else record.duration_seconds(view.monotonic)
