"""A warning about what is delivered, in the job summary."""

from collections.abc import Sequence

from ..text import as_sentence
from .markup import Markup


def warning_paragraph(lines: Sequence[str], markup: Markup) -> str:
    """Return a warning as one paragraph in Markdown: its title and further sentences."""
    return " ".join(markup.prose(as_sentence(line)) for line in lines)
