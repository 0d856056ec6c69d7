"""Waits for an export that exists already, and delivers its bundle."""

from ..bundle.deliver import Delivery
from ..context import Context
from ..errors import TooFewPages
from ..inputs.settings import DeliverySettings, JobSettings
from ..job import BUNDLE, Job
from ..models import ExportJob
from ..text import pluralize
from .commit import note_later_commit
from .polling import poll


def collect_site(job: Job, settings: JobSettings, context: Context) -> None:
    """Wait for an export and deliver it; everything known is in the job at once. Raises the `ActionError` that it failed with."""
    poll(job, settings.waiting, context)
    note_later_commit(job, context)
    reading = job.reading
    assert isinstance(reading, ExportJob)  # noqa: S101  # for the type checker: an export was read
    _check_export(job, reading, settings.delivery, context)
    job.start_phase(BUNDLE, context.clock.monotonic())
    job.link = reading.link or context.api.make_link(job)
    context.events.link_made(job, job.link)
    Delivery(job, settings.delivery, context).deliver()


def _check_export(
    job: Job,
    reading: ExportJob,
    delivery: DeliverySettings,
    context: Context,
) -> None:
    """Check the export as far as the API describes it. Raises `JobFailed` and `TooFewPages`."""
    if reading.status == ExportJob.FAILED:
        raise context.api.export_failure(job, reading)
    page_count = reading.page_count
    min_pages = delivery.min_pages
    if min_pages is None:
        return
    if page_count is None and delivery.site_path is None:
        raise TooFewPages(
            "`min-pages` is set, but the number of pages is unknown",
            details=(
                "The API reported no valid `pageCount` for the completed job. Nothing was downloaded.",
            ),
            remedy="Set `site-path`, so that `.html` files are counted, or remove `min-pages`.",
        )
    if page_count is not None and page_count < min_pages:
        raise TooFewPages(
            f"the export has {pluralize(page_count, 'page')}, fewer than `min-pages` ({min_pages:,})",
            details=("Nothing was downloaded.",),
        )
