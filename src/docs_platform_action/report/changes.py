"""The section of the job summary about what a publication changes."""

from collections.abc import Callable
from typing import Final

from ..models import Changes
from ..text import pluralize

_MAX_PATH_LENGTH: Final = 200
_COLUMNS: Final = {
    Changes.ADDED: "added",
    Changes.TEXT_CHANGED: "text changed",
    Changes.CHANGED: "otherwise changed",
    Changes.REMOVED: "removed",
    Changes.UNCHANGED: "unchanged",
}
_LISTS: Final = (Changes.REMOVED, Changes.ADDED, Changes.TEXT_CHANGED, Changes.CHANGED)


def changes_section(changes: Changes, show: Callable[..., str]) -> str:
    """Return the section in Markdown. `show` makes a path harmless."""
    heading = "**Changes since the last publication**"
    if changes.is_first:
        heading += "\n\nNothing is published yet (`first-publication`), so every file counts as added."
    elif not changes.is_any:
        heading += "\n\nNone: every file is as published."
    counts = {"Pages": changes.pages, "Other files": changes.files}
    rows = [[name, *(f"{found[kind]:,}" if kind in found else "" for kind in _COLUMNS)] for name, found in counts.items()]
    table = ["| | " + " | ".join(_COLUMNS.values()) + " |", "| :--- |" + " ---: |" * len(_COLUMNS)]
    table += [f"| {' | '.join(row)} |" for row in rows]
    note = [changes.NEW_TEXT_EVERYWHERE] if changes.has_new_text_everywhere else []
    lists = [_list(changes, kind, show) for kind in _LISTS if changes.listed[kind]]
    return "\n\n".join([heading, "\n".join(table), *note, *lists])


def short_changes(changes: Changes) -> str:
    """Return the numbers of pages that are added, changed in their text and removed, for a cell."""
    added, changed, removed = (f"{changes.pages[kind]:,}" for kind in (Changes.ADDED, Changes.TEXT_CHANGED, Changes.REMOVED))
    return f"+{added} \\~{changed} \N{MINUS SIGN}{removed}"


def _list(changes: Changes, kind: str, show: Callable[..., str]) -> str:
    count, listed = changes.pages[kind], changes.listed[kind]
    lines = [f"- {show(path, max_length=_MAX_PATH_LENGTH)}" for path in listed]
    if count > len(listed):
        lines.append(f"- and {count - len(listed):,} more; `changes-path` lists all")
    title = f"{_COLUMNS[kind].capitalize()}: {pluralize(count, 'page')}"
    return "\n".join([f"<details><summary>{title}</summary>", "", *lines, "", "</details>"])
