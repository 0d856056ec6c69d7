"""Compare a site with the published one, and write down what differs."""

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

from ..models import Changes, FileDigests, FolderFiles, LookAlikes, Manifest
from ..text import list_first
from .folders import describe_lost_folders, describe_scripts, list_files
from .links import reachable_files
from .page import is_page

MAX_LISTED: Final = 50  # pages of a kind in the summary
_MAX_NAMED_LINKS: Final = 5
_NOT_FOUND_PAGE: Final = b"404.html"
_LISTED_FILES: Final = (Changes.ADDED, Changes.CHANGED)  # those removed often change with a build
_UNICODE_FORMS: Final[Sequence[Literal["NFC", "NFD"]]] = ("NFC", "NFD")


def compare(
    published: Manifest,
    new: Manifest,
    reported_pages: int | None = None,
) -> tuple[Changes, Mapping[str, Sequence[bytes]]]:
    """Return what differs from the published site, and the sorted paths of each kind of change.

    The pages behind links to folders are compared, too.
    `reported_pages` is the number of pages that the API reported, if any.
    Raises `InvalidBundle` if links lead in a circle.
    """
    paths_by_kind, unchanged = _by_kind(_compared(published), _compared(new))
    counted = _count(paths_by_kind, unchanged, is_first=not published.files)
    changes = replace(
        counted,
        pages_besides_404=_pages_besides_404(reported_pages, new.files),
        lost_folders=describe_lost_folders(published.files, new.files),
        scripts="" if counted.is_first else describe_scripts(paths_by_kind, _LISTED_FILES),
        folder_links=_describe_links(published.folder_links, new.folder_links),
        look_alikes=_find_look_alikes(paths_by_kind[Changes.REMOVED], paths_by_kind[Changes.ADDED]),
    )
    if published.folder_links or new.folder_links:
        # without the slashes, the order may be another one
        for paths in paths_by_kind.values():
            paths[:] = sorted(path.removesuffix(b"/") for path in paths)
    return changes, paths_by_kind


def _compared(manifest: Manifest) -> Mapping[bytes, FileDigests]:
    """Return what is compared: files, pages behind links to folders, and these links themselves.

    The path of such a link gets a slash at its end, so that it never counts as a page.
    """
    files = reachable_files(manifest)
    if not manifest.folder_links:
        return files
    compared = dict(files)
    for path, target in manifest.folder_links.items():
        compared[path + b"/"] = FileDigests(target, None)  # it changes if its target does
    return compared


def _by_kind(
    published: Mapping[bytes, FileDigests], files: Mapping[bytes, FileDigests]
) -> tuple[dict[str, list[bytes]], list[bytes]]:
    """Return the sorted paths of each kind of change, and those of what is unchanged."""
    text_changed: list[bytes] = []
    otherwise_changed: list[bytes] = []
    unchanged: list[bytes] = []
    for path in sorted(files.keys() & published.keys()):
        old = published[path]
        new = files[path]
        if new.content == old.content:
            unchanged.append(path)
        elif is_page(path) and _has_new_text(old, new):
            text_changed.append(path)
        else:
            otherwise_changed.append(path)
    paths_by_kind = {
        Changes.ADDED: sorted(files.keys() - published.keys()),
        Changes.TEXT_CHANGED: text_changed,
        Changes.CHANGED: otherwise_changed,
        Changes.REMOVED: sorted(published.keys() - files.keys()),
    }
    return paths_by_kind, unchanged


def _describe_links(published: Mapping[bytes, bytes], new: Mapping[bytes, bytes]) -> str:
    """Return which links to folders are added, changed and removed. Empty if none is."""
    found: list[str] = []
    for path in sorted(published.keys() | new.keys()):
        old_target = published.get(path)
        new_target = new.get(path)
        if old_target == new_target:
            continue
        name = f"'{path.decode()}'"
        if new_target is None:
            found.append(f"{name} is removed")
        elif old_target is None:
            found.append(f"{name} is added and leads to '{new_target.decode()}'")
        else:
            change = f"leads to '{new_target.decode()}' instead of '{old_target.decode()}'"
            found.append(f"{name} {change}")
    return list_first(found, _MAX_NAMED_LINKS)


def _find_look_alikes(removed: Iterable[bytes], added: Iterable[bytes]) -> LookAlikes | None:
    """Return the removed paths that are added again in another Unicode form, if there are any."""
    new_names: dict[str, str] = {}  # by their NFC form
    for path in added:
        if not path.isascii():  # ASCII has one form
            name = path.decode()
            new_names[unicodedata.normalize("NFC", name)] = name
    pairs: list[tuple[str, str]] = []
    for path in removed:
        old = path.decode()
        new = new_names.get(unicodedata.normalize("NFC", old))
        if new is not None:
            pairs.append((old, new))
    if not pairs:
        return None
    old, new = pairs[0]
    return LookAlikes(
        count=len(pairs),
        path=new.removesuffix("/"),  # the mark of a link to a folder
        old_form=_unicode_form(old),
        new_form=_unicode_form(new),
    )


def _unicode_form(name: str) -> str:
    """Return the Unicode form of a name, as it is shown to people."""
    for form in _UNICODE_FORMS:
        if unicodedata.is_normalized(form, name):
            return form
    return "neither NFC nor NFD"


def _pages_besides_404(
    reported_pages: int | None, files: Mapping[bytes, FileDigests]
) -> int | None:
    """Return the API's number if it is that of the site's pages without `404.html`."""
    if reported_pages is None or _NOT_FOUND_PAGE not in files:
        return None
    if reported_pages + 1 != sum(1 for path in files if is_page(path)):
        return None
    return reported_pages


def _has_new_text(old: FileDigests, new: FileDigests) -> bool:
    """Return whether a page's text differs.

    The text of a very large page is not known, so it counts as different.
    """
    return new.text is None or new.text != old.text


def _count(
    paths_by_kind: Mapping[str, Sequence[bytes]], unchanged: Sequence[bytes], *, is_first: bool
) -> Changes:
    """Count the pages and the other files of each kind, and list the first that changed."""
    page_counts: dict[str, int] = {}
    file_counts: dict[str, int] = {}
    listed: dict[str, Sequence[str]] = {}
    listed_files: dict[str, Sequence[FolderFiles]] = {}
    for kind, paths in paths_by_kind.items():
        pages = [path for path in paths if is_page(path)]
        page_counts[kind] = len(pages)
        if kind != Changes.TEXT_CHANGED:  # only pages have a text
            file_counts[kind] = len(paths) - len(pages)
        listed[kind] = tuple(page.decode() for page in pages[:MAX_LISTED])
        if kind in _LISTED_FILES:
            listed_files[kind] = list_files(path for path in paths if not is_page(path))
    unchanged_pages = sum(1 for path in unchanged if is_page(path))
    page_counts[Changes.UNCHANGED] = unchanged_pages
    file_counts[Changes.UNCHANGED] = len(unchanged) - unchanged_pages
    return Changes(
        pages=page_counts,
        files=file_counts,
        listed=listed,
        listed_files=listed_files,
        is_first=is_first,
    )


def describe(changes: Changes) -> Iterator[str]:
    """Yield what changes, in lines for the log."""
    pages = _format_counts(changes.pages, Changes.NAMES)
    files = _format_counts(changes.files, {})
    yield f"Changes: pages: {pages}; other files: {files}"
    yield from changes.notes


def _format_counts(counts: Mapping[str, int], names: Mapping[str, str]) -> str:
    """Return the counts that are not zero, such as "1 added, 2 removed"."""
    parts: list[str] = []
    for kind, count in counts.items():
        if count:
            parts.append(f"{count:,} {names.get(kind, kind)}")
    return ", ".join(parts) or "none"


def changes_json(paths_by_kind: Mapping[str, Sequence[bytes]]) -> Iterator[bytes]:
    """Yield all changed paths as JSON, in small parts: there may be 250,000.

    The whole is what `json.dumps` returns with `indent=2`, and a newline.
    """
    yield b"{"
    separator = ""
    for kind, paths in paths_by_kind.items():
        yield f'{separator}\n  "{kind}": ['.encode()
        yield from _json_items(paths)
        separator = ","
    yield b"\n}\n"


def _json_items(paths: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the rest of a JSON array, after its opening bracket."""
    if not paths:
        yield b"]"
        return
    separator = ""
    for path in paths:
        yield f"{separator}\n    {json.dumps(path.decode())}".encode()
        separator = ","
    yield b"\n  ]"
