"""Waits for an export that exists already, and delivers its bundle."""

from ..bundle.deliver import Delivery
from ..context import PlatformContext
from ..errors import TooFewPages
from ..inputs.settings import DeliverySettings, Mode, WaitSettings
from ..job import BUNDLE, Job
from ..models import ExportJob
from ..text import pluralize
from .commit import note_later_commit
from .export import Export
from .polling import poll_export


class Collect(Export):
    """A static export that exists already."""

    mode = Mode.COLLECT


def collect_site(
    job: Job,
    waiting: WaitSettings,
    delivery: DeliverySettings,
    context: PlatformContext,
) -> None:
    """Wait for an export and deliver it; everything known is in the job at once.

    Raises the `ActionError` that it failed with.
    """
    reading = poll_export(job, waiting, context)
    note_later_commit(job, context)
    _check_export(job, reading, delivery, context)
    job.start_phase(BUNDLE, context.clock.monotonic())
    job.link = reading.link or context.api.make_link(job)
    context.events.link_made(job, job.link)
    Delivery(job, delivery, context).deliver()


def _check_export(
    job: Job,
    reading: ExportJob,
    delivery: DeliverySettings,
    context: PlatformContext,
) -> None:
    """Check the export as far as the API describes it. Raises `JobFailed` and `TooFewPages`."""
    if reading.status == ExportJob.FAILED:
        raise context.api.export_failure(job, reading)
    min_pages = delivery.publication.min_pages
    if min_pages is None:
        return
    page_count = reading.page_count
    if page_count is None:
        if delivery.site_path is None:
            raise _unknown_pages_error()
        return
    if page_count < min_pages:
        pages = pluralize(page_count, "page")
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
