"""How the summary shows foreign text literally in Markdown and HTML, names, sizes, and dates with how far off they are."""

import html
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ..job import Job
from ..models import Bundle
from ..text import MAX_FOREIGN_TEXT_LENGTH, format_approx, markdown
from .console import Console

MAX_NAME_LENGTH: Final = 260
"""Characters of a name that are shown where it is a label: any domain with its port."""

MAX_WORD_LENGTH: Final = 60
"""Characters that are shown of what should be a word or a date."""


@dataclass(frozen=True, kw_only=True)
class View:
    """The moment that a page shows, on both clocks, and the console, which removes secrets and commands from a text."""

    console: Console
    now: datetime
    monotonic: float

    def show(self, text: str | None, *, longest: int = MAX_FOREIGN_TEXT_LENGTH) -> str:
        """Show foreign text literally in Markdown."""
        return markdown(self._cut(text, longest)) if text else ""

    def show_prose(self, text: str, *, longest: int = MAX_FOREIGN_TEXT_LENGTH) -> str:
        """Show our own sentence, which may hold foreign text, literally; what it names in backticks is shown as code."""
        return _with_code(self.show(text, longest=longest))

    def show_mistake(self, text: str) -> str:
        """Show what is wrong with inputs: their names as code, and everything from the first quoted value on literally."""
        named, quote, rest = self.show(text).partition("'")
        return _with_code(named) + quote + rest

    def show_in_html(self, text: str) -> str:
        """Show foreign text literally within an HTML tag, where Markdown's escapes do not work."""
        return html.escape(self._cut(text, MAX_NAME_LENGTH))

    def works_until(self, bundle: Bundle) -> str:
        """Return the date until which a link works, and how long that is, as far as it is known."""
        if bundle.expires is None:
            return self.show(bundle.expires_at, longest=MAX_WORD_LENGTH)
        left = (bundle.expires - self.now).total_seconds()
        when = minute(bundle.expires)
        return f"{when}, in {format_approx(left)}" if left > 0 else f"expired at {when} by this runner's clock"

    def _cut(self, text: str, longest: int) -> str:
        """Shorten a text, between two words if there are many, once the secrets are out of it, or a part of one could stay."""
        text = self.console.safe(text)
        if len(text) <= longest:
            return text
        words, _, _ = text[:longest].rpartition(" ")
        return (words if len(words) > longest * 0.8 else text[:longest]) + "…"


def _with_code(escaped: str) -> str:
    return re.sub(r"\\`((?:[A-Za-z0-9 .-]|:(?= |\\`)|\\_)+)\\`", lambda code: f"`{code[1]}`".replace("\\_", "_"), escaped)


def minute(when: datetime) -> str:
    """Return a time in UTC, to the minute."""
    return f"{when:%Y-%m-%d %H:%M} UTC"


def name_of(job: Job) -> str:
    """Return what distinguishes a job from the others: its domain, else its id."""
    return job.domain or job.job_id or job.subject


def size_of(job: Job) -> int | None:
    """Return the bundle's size in bytes: as it was downloaded, else as the API said."""
    if job.downloaded is not None:
        return job.downloaded.size
    return job.bundle.size if job.bundle is not None else None


def seconds_at(job: Job, view: View) -> float | None:
    """Return how long the step has worked on a job, `None` before it began."""
    return None if job.began_at is None else job.duration_seconds(view.monotonic)
