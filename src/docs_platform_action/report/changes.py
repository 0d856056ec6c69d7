"""The section of the job summary about what a publication changes."""

from collections.abc import Iterator, Mapping
from typing import Final

from ..models import Changes
from ..text import pluralize
from .markup import Markup

_MAX_PATH_LENGTH: Final = 200
_COLUMNS: Final = (
    Changes.ADDED,
    Changes.TEXT_CHANGED,
    Changes.CHANGED,
    Changes.REMOVED,
    Changes.UNCHANGED,
)
_LISTS: Final = (Changes.REMOVED, Changes.ADDED, Changes.TEXT_CHANGED, Changes.CHANGED)


def changes_section(changes: Changes, markup: Markup) -> str:
    """Return the section in Markdown: notes, a table of the numbers, and lists of pages."""
    return "\n\n".join(_paragraphs(changes, markup))


def _paragraphs(changes: Changes, markup: Markup) -> Iterator[str]:
    yield "**Changes since the last publication**"
    if not changes.is_any:
        yield "None: every file is as published."
    for note in changes.notes:
        yield markup.prose(note)  # it may name a path
    yield _table(changes)
    for kind in _LISTS:
        if changes.listed[kind]:
            yield _list(changes, kind, markup)


def short_changes(changes: Changes) -> str:
    """Return how many pages were added, removed and changed in their text, for a cell."""
    added = changes.pages[Changes.ADDED]
    changed = changes.pages[Changes.TEXT_CHANGED]
    removed = changes.pages[Changes.REMOVED]
    return f"+{added:,} \\~{changed:,} \N{MINUS SIGN}{removed:,}"


def _table(changes: Changes) -> str:
    header = "| |"
    pages = "| Pages |"
    files = "| Other files |"
    for kind in _COLUMNS:
        header += f" {_name_of(kind)} |"
        pages += f" {_cell(changes.pages, kind)} |"
        files += f" {_cell(changes.files, kind)} |"
    rule = "| :--- |" + " ---: |" * len(_COLUMNS)
    return "\n".join([header, rule, pages, files])


def _cell(counts: Mapping[str, int], kind: str) -> str:
    # the text of other files is not compared
    if kind not in counts:
        return ""
    return f"{counts[kind]:,}"


def _list(changes: Changes, kind: str, markup: Markup) -> str:
    count = changes.pages[kind]
    listed = changes.listed[kind]
    title = f"{_name_of(kind).capitalize()}: {pluralize(count, 'page')}"
    items = [f"- {markup.literal(path, max_length=_MAX_PATH_LENGTH)}" for path in listed]
    if count > len(listed):
        items.append(f"- and {count - len(listed):,} more; `changes-path` lists all")
    return "\n".join([f"<details><summary>{title}</summary>", "", *items, "", "</details>"])


def _name_of(kind: str) -> str:
    return Changes.NAMES.get(kind, kind)
