"""How the summary shows foreign text literally in Markdown and HTML, expiries, sizes and durations."""

import html
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ..job import Job
from ..models import Bundle
from ..text import MAX_FOREIGN_TEXT_LENGTH, MAX_WORD_LENGTH, format_expiry, markdown
from .console import Console

MAX_NAME_LENGTH: Final = 260  # any domain with its port


@dataclass(frozen=True, kw_only=True)
class View:
    """The time that a page shows, on both clocks, the run's address, and the console, which hides secrets and cleans text."""

    console: Console
    now: datetime
    monotonic: float
    run_url: str = ""

    def show(self, text: str | None, *, max_length: int = MAX_FOREIGN_TEXT_LENGTH) -> str:
        """Show foreign text literally in Markdown."""
        return markdown(self._shorten(text, max_length)) if text else ""

    def show_prose(self, text: str, *, about: Job, max_length: int = MAX_FOREIGN_TEXT_LENGTH) -> str:
        """Show our own sentence about a job, with code in backticks, unless it contains the job's id and that has some too."""
        shown = self.show(text, max_length=max_length)
        return shown if "`" in (about.job_id or "") and str(about.job_id) in text else _with_code(shown)

    def show_input_error(self, text: str) -> str:
        """Show names of inputs as code, and everything from the first quoted value on literally."""
        names, quote, rest = self.show(text).partition("'")
        return _with_code(names) + quote + rest

    def show_in_html(self, text: str) -> str:
        """Show foreign text literally within an HTML tag, where Markdown's escapes do not work."""
        return html.escape(self._shorten(text, MAX_NAME_LENGTH))

    def expiry_of(self, bundle: Bundle) -> str:
        """Return until when a link is valid, or "" if that is unknown."""
        if bundle.expires is not None:
            return format_expiry(bundle.expires, self.now, always_dated=True)
        return f"valid until {self.show(bundle.expires_at, max_length=MAX_WORD_LENGTH)}" if bundle.expires_at else ""

    def seconds_of(self, job: Job) -> float | None:
        """Return how long the run has worked on a job, or `None` if it has not begun."""
        return None if job.began_at is None else job.duration_seconds(self.monotonic)

    def _shorten(self, text: str, max_length: int) -> str:
        """Hide secrets in a text, then shorten it, at a space if one is near. The other order could leave part of a secret."""
        text = self.console.safe(text)
        if len(text) <= max_length:
            return text
        words, _, _ = text[:max_length].rpartition(" ")
        return (words if len(words) > max_length * 0.8 else text[:max_length]) + "…"


def _with_code(escaped: str) -> str:
    return re.sub(r"\\`((?:[A-Za-z0-9 .,/-]|:(?= |\\`)|\\_)+)\\`", lambda code: f"`{code[1]}`".replace("\\_", "_"), escaped)
