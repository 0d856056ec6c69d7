"""Guards: what must not be published."""

from typing import Final

from ..errors import TooFewPages, TooManyRemoved
from ..models import Changes, MaxRemoved
from ..text import pluralize

MAX_NAMED: Final = 5  # removed pages in an error


def check_pages(html_files: int, min_pages: int, reported: int | None) -> None:
    """Raise `TooFewPages` if a bundle has fewer pages than asked for.

    `reported` is the number of pages that the API reported, if any.
    """
    if html_files >= min_pages:
        return
    details = ["Nothing was published."]
    if reported is not None:
        fact = f"The API reported {pluralize(reported, 'page')}"
        details.insert(0, f"{fact}, so the bundle may be incomplete, or another site's.")
    count = pluralize(html_files, "`.html` file")
    raise TooFewPages(
        f"the bundle has {count}, fewer than `min-pages` ({min_pages:,})",
        details=tuple(details),
    )


def check_removed(changes: Changes, max_removed: MaxRemoved) -> None:
    """Raise `TooManyRemoved` if more pages are removed than allowed."""
    removed = changes.pages[Changes.REMOVED]
    published = sum(changes.pages.values()) - changes.pages[Changes.ADDED]
    allowed = max_removed.of(published)
    if removed <= allowed:
        return

    limit = "`max-removed`"
    if max_removed.is_percentage:
        limit = f"`max-removed` ({max_removed.amount}%)"
    named = [f"'{path}'" for path in changes.listed[Changes.REMOVED][:MAX_NAMED]]
    unnamed = removed - len(named)
    if unnamed:
        named.append(f"{unnamed:,} more (`changes-path` lists all)")
    published_pages = pluralize(published, "published page")
    raise TooManyRemoved(
        f"{removed:,} of {published_pages} would be removed, but {limit} allows {allowed:,}",
        details=(f"Removed: {', '.join(named)}.", "Nothing was published."),
    )
