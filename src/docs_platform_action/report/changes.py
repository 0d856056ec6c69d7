"""What people read about the changes of a publication, and where there are none to compare."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from ..job import Job
from ..models import Changes, Delivered
from ..text import list_first, pluralize
from .markup import Markup

MAX_LISTED_SITES: Final = 10  # before the rest is counted

_MAX_PATH_LENGTH: Final = 200
_COLUMNS: Final = (
    Changes.ADDED,
    Changes.TEXT_CHANGED,
    Changes.CHANGED,
    Changes.REMOVED,
    Changes.UNCHANGED,
)
_LISTS: Final = (Changes.REMOVED, Changes.ADDED, Changes.TEXT_CHANGED, Changes.CHANGED)
_FILE_LISTS: Final = (Changes.ADDED, Changes.CHANGED)


def changes_section(delivered: Delivered, markup: Markup) -> str:
    """Return the section in Markdown: notes, a table of the numbers, and lists of files.

    Empty if nothing was compared.
    """
    if delivered.changes is None:
        return ""
    source = "; `changes-path` lists all" if delivered.changes_path is not None else ""
    return "\n\n".join(_paragraphs(delivered.changes, source, markup))


def _paragraphs(changes: Changes, source: str, markup: Markup) -> Iterator[str]:
    """Yield the paragraphs. `source` says where all is that a list leaves out."""
    yield "**Changes since the last publication**"
    if not changes.is_any:
        yield "None: every file is as published."
    for note in changes.notes:
        yield markup.prose(note)  # it may name a path
    yield _table(changes)
    for kind in _LISTS:
        if changes.listed[kind]:
            yield _page_list(changes, kind, source, markup)
    for kind in _FILE_LISTS:
        if changes.listed_files[kind]:
            yield _file_list(changes, kind, source, markup)


def short_changes(changes: Changes) -> str:
    """Return how many pages were added, removed and changed in their text, for a cell."""
    added = changes.pages[Changes.ADDED]
    changed = changes.pages[Changes.TEXT_CHANGED]
    removed = changes.pages[Changes.REMOVED]
    return f"+{added:,} \\~{changed:,} \N{MINUS SIGN}{removed:,}"


def describe_first_publications(jobs: Sequence[Job], name_of: Callable[[Job], str]) -> str:
    """Return which of several sites are new, in sentences. Empty if none is.

    They are named because a published site whose manifest could not be fetched is among them.
    """
    names = [name_of(job) for job in jobs if job.is_first_publication]
    if not names:
        return ""
    listed = list_first(names, MAX_LISTED_SITES)
    compared = pluralize(len(jobs) - len(names), "site")
    return f"First publication (no manifest yet): {listed}. Compared with a manifest: {compared}."


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


def _page_list(changes: Changes, kind: str, source: str, markup: Markup) -> str:
    count = changes.pages[kind]
    listed = changes.listed[kind]
    title = f"{_name_of(kind).capitalize()}: {pluralize(count, 'page')}"
    if kind == Changes.CHANGED:
        title += " (text as before)"
    items = [_path(path, markup) for path in listed]
    if count > len(listed):
        items.append(f"and {count - len(listed):,} more{source}")
    return _details(title, items)


def _file_list(changes: Changes, kind: str, source: str, markup: Markup) -> str:
    count = changes.files[kind]
    title = f"{kind.capitalize()}: {pluralize(count, 'other file')}"
    items: list[str] = []
    for files in changes.listed_files[kind]:
        items += [_path(path, markup) for path in files.paths]
        if files.more:
            folder = _path(files.folder, markup) if files.folder else "the site's top folder"
            items.append(f"and {files.more:,} more in {folder}")
        count -= len(files.paths) + files.more
    if count:
        items.append(f"and {count:,} more{source}")
    return _details(title, items)


def _path(path: str, markup: Markup) -> str:
    return markup.literal(path, max_length=_MAX_PATH_LENGTH)


def _details(title: str, items: Iterable[str]) -> str:
    """Return a list that opens on a click."""
    lines = [f"- {item}" for item in items]
    return "\n".join([f"<details><summary>{title}</summary>", "", *lines, "", "</details>"])


def _name_of(kind: str) -> str:
    return Changes.NAMES.get(kind, kind)
