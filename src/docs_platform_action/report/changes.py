"""The section of the job summary about what a publication changes."""

from collections.abc import Callable
from typing import Final

from ..models import Changes
from ..text import pluralize

_MAX_PATH_LENGTH: Final = 200
_COLUMNS: Final = (
    Changes.ADDED,
    Changes.TEXT_CHANGED,
    Changes.CHANGED,
    Changes.REMOVED,
    Changes.UNCHANGED,
)
_LISTS: Final = (Changes.REMOVED, Changes.ADDED, Changes.TEXT_CHANGED, Changes.CHANGED)


def changes_section(changes: Changes, show: Callable[..., str]) -> str:
    """Return the section in Markdown. `show` makes a path harmless."""
    none = [] if changes.is_any else ["None: every file is as published."]
    counts = {"Pages": changes.pages, "Other files": changes.files}
    rows = [
        [name, *(f"{found[kind]:,}" if kind in found else "" for kind in _COLUMNS)]
        for name, found in counts.items()
    ]
    table = [
        "| | " + " | ".join(Changes.NAMES.get(kind, kind) for kind in _COLUMNS) + " |",
        "| :--- |" + " ---: |" * len(_COLUMNS),
    ]
    table += [f"| {' | '.join(row)} |" for row in rows]
    lists = [_list(changes, kind, show) for kind in _LISTS if changes.listed[kind]]
    return "\n\n".join(
        ["**Changes since the last publication**", *none, *changes.notes, "\n".join(table), *lists]
    )


def short_changes(changes: Changes) -> str:
    """Return the numbers of pages that are added, changed in their text and removed, for a cell."""
    added, changed, removed = (
        f"{changes.pages[kind]:,}"
        for kind in (Changes.ADDED, Changes.TEXT_CHANGED, Changes.REMOVED)
    )
    return f"+{added} \\~{changed} \N{MINUS SIGN}{removed}"


def _list(changes: Changes, kind: str, show: Callable[..., str]) -> str:
    count, listed = changes.pages[kind], changes.listed[kind]
    lines = [f"- {show(path, max_length=_MAX_PATH_LENGTH)}" for path in listed]
    if count > len(listed):
        lines.append(f"- and {count - len(listed):,} more; `changes-path` lists all")
    title = f"{Changes.NAMES.get(kind, kind).capitalize()}: {pluralize(count, 'page')}"
    return "\n".join([f"<details><summary>{title}</summary>", "", *lines, "", "</details>"])
