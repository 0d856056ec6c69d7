"""Guards: `min-pages` and `max-removed`, which decide what must not be published."""

from dataclasses import dataclass
from typing import Final

from ..errors import TooFewPages, TooManyRemoved
from ..inputs.settings import DeliverySettings, PublicationSettings
from ..models import Changes
from ..text import pluralize

MAX_NAMED: Final = 5  # removed pages in an error


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What was unpacked, and how many pages the API reported, if it did."""

    files: int
    html_files: int
    reported: int | None = None
    only_file: str = ""  # what it looks like, in a sentence


def has_guards(settings: PublicationSettings) -> bool:
    """Return whether a guard may hold back what is published, the archive included."""
    return settings.min_pages is not None or settings.compare_with is not None


def check_reported_pages(reported: int | None, settings: DeliverySettings) -> None:
    """Raise `TooFewPages` if the API reported fewer pages than asked for, before the download.

    If it reported no number, the pages of a site are counted later.
    """
    min_pages = settings.publication.min_pages
    if min_pages is None:
        return
    if reported is None:
        if settings.site_path is None:
            raise _unknown_pages_error()
        return
    if reported < min_pages:
        pages = pluralize(reported, "page")
        raise TooFewPages(
            f"the export has {pages}, fewer than `min-pages` ({min_pages:,})",
            details=("Nothing was downloaded.",),
        )


def _unknown_pages_error() -> TooFewPages:
    fact = "The API reported no valid `pageCount` for the completed job."
    return TooFewPages(
        "`min-pages` is set, but the number of pages is unknown",
        details=(f"{fact} Nothing was downloaded.",),
        remedy="Set `site-path`, so that `.html` files are counted, or remove `min-pages`.",
    )


def check_unpacked_pages(counts: Counts, min_pages: int | None) -> None:
    """Raise `TooFewPages` if a bundle has fewer pages than asked for."""
    if min_pages is None or counts.html_files >= min_pages:
        return
    details: list[str] = []
    if counts.reported is not None:
        fact = f"The API reported {pluralize(counts.reported, 'page')}"
        details.append(f"{fact}, so the bundle may be incomplete, or another site's.")
    if counts.only_file:
        details.append(counts.only_file)
    details.append("Nothing was published.")
    count = pluralize(counts.html_files, "`.html` file")
    raise TooFewPages(
        f"the bundle has {count}, fewer than `min-pages` ({min_pages:,})",
        details=tuple(details),
    )


def lacks_pages(counts: Counts) -> bool:
    """Return whether a bundle has no page, or fewer than half of those that the API reported."""
    if counts.html_files == 0:
        return True
    return counts.reported is not None and 2 * counts.html_files < counts.reported


def describe_lack(counts: Counts) -> list[str]:
    """Return the lines of a warning about a bundle that lacks pages."""
    pages = "no `.html` file"
    if counts.html_files:
        pages = pluralize(counts.html_files, "`.html` file")
    fact = f"the bundle has {pages} ({pluralize(counts.files, 'file')} in all)"
    if counts.reported is not None:
        fact += f"; the API reported {pluralize(counts.reported, 'page')}"
    lines = [f"{fact}."]
    if counts.only_file:
        lines.append(counts.only_file)
    meaning = "The bundle is probably not the whole site"
    if not counts.html_files:
        meaning += ", or its pages have another extension, such as `.htm`"
    upload = "An upload that deletes old files, such as `aws s3 sync --delete`"
    return [
        *lines,
        f"{meaning}.",
        f"{upload}, would delete the published pages that are not in the bundle.",
        "To fail before anything is published, set `min-pages`, which counts `.html` files.",
    ]


def check_removed(changes: Changes, settings: PublicationSettings) -> None:
    """Raise `TooManyRemoved` if more pages are removed than allowed."""
    if settings.max_removed is None:
        return
    removed = changes.pages[Changes.REMOVED]
    if removed <= settings.max_removed.of(changes.published_pages):
        return

    named = [f"'{path}'" for path in changes.listed[Changes.REMOVED][:MAX_NAMED]]
    unnamed = removed - len(named)
    if unnamed:
        source = " (`changes-path` lists all)" if settings.changes_path is not None else ""
        named.append(f"{unnamed:,} more{source}")
    details = [f"Removed: {', '.join(named)}."]
    if changes.look_alikes is not None:
        details.append(changes.look_alikes.note)
    details.append("Nothing was published.")
    limit = settings.max_removed.describe(changes.published_pages)
    raise TooManyRemoved(f"{changes.removal}, but {limit}", details=tuple(details))
