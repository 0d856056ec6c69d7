"""Foreign text in GitHub's Markdown: it shows as it is, makes nothing else, and holds no secret."""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ..text import MAX_FOREIGN_TEXT_LENGTH, link_target, markdown, shortened
from .console import Console

MAX_NAME_LENGTH: Final = 260  # any domain with its port

# plain words between backticks, after `markdown` has escaped them
_CODE: Final = re.compile(r"\\`((?:[A-Za-z0-9 .,/-]|:(?= |\\`)|\\_)+)\\`")


@dataclass(frozen=True)
class Markup:
    """Writes foreign text in Markdown. The console knows the secrets that are hidden in it.

    They are hidden before a text is shortened, so that no part of one is left.
    """

    console: Console

    def literal(self, text: str | None, *, max_length: int = MAX_FOREIGN_TEXT_LENGTH) -> str:
        """Return a text that shows literally."""
        if not text:
            return ""
        return markdown(shortened(self.console.safe(text), max_length))

    def prose(self, text: str) -> str:
        """Return sentences that show literally, but with plain words in backticks as code."""
        return _CODE.sub(_as_code, self.literal(text))

    def in_html(self, text: str, *, max_length: int) -> str:
        """Return a text that shows literally inside of an HTML element."""
        return html.escape(shortened(self.console.safe(text), max_length))

    def link(self, url: str) -> str:
        """Return a link that shows its own address. Only the key is hidden in the target."""
        return f"[{self.literal(url)}](<{link_target(self.console.redactor.hide_key(url))}>)"


def _as_code(escaped: re.Match[str]) -> str:
    words = escaped[1].replace("\\_", "_")
    return f"`{words}`"


def alert(paragraphs: Sequence[str], *, is_failure: bool) -> str:
    """Return an alert: red about a failure, else yellow.

    GitHub shows one only at the top level, not in a list or in HTML (source: its documentation).
    """
    kind = "CAUTION" if is_failure else "WARNING"
    text = "\n\n".join(paragraphs)
    lines = [f"> {line}".rstrip() for line in text.split("\n")]
    return "\n".join(["", f"> [!{kind}]", *lines, ""])
