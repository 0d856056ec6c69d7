"""Waits for an export that exists already, and delivers its bundle."""

from dataclasses import replace

from ..bundle.deliver import Delivery
from ..context import Context
from ..errors import JobFailed, TooFewPages
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
    min_html_files = _check_export(job, settings.delivery, context)
    job.start_phase(BUNDLE, context.clock.monotonic())
    job.link = context.api.make_bundle(job)
    context.events.link_made(job)
    Delivery(job, replace(settings.delivery, min_pages=min_html_files), context).deliver()


def _check_export(job: Job, delivery: DeliverySettings, context: Context) -> int | None:
    """Return the minimum number of HTML files of the bundle, if the API has no page count. Raises `JobFailed`, `TooFewPages`."""
    if job.status == ExportJob.FAILED:
        error = job.reading.error if isinstance(job.reading, ExportJob) else None
        raise JobFailed(
            "the export failed on the platform",
            details=context.api.client.quote(error) or ("The API gave no reason.",),
            remedy=f"Check job {job.job_id} in the dashboard, fix the site, and run the workflow again.",
        )
    page_count, min_pages = job.page_count, delivery.min_pages
    if min_pages is None or (page_count is None and delivery.site_path is not None):
        return min_pages
    if page_count is None:
        raise TooFewPages(
            "`min-pages` is set, but the number of pages is unknown",
            details=("The API reported no valid `pageCount` for the completed job. Nothing was downloaded.",),
            remedy="Set `site-path`, so that `.html` files are counted, or remove `min-pages`.",
        )
    if page_count < min_pages:
        raise TooFewPages(
            f"the export has {pluralize(page_count, 'page')}, fewer than `min-pages` ({min_pages:,})",
            details=("Nothing was downloaded.",),
        )
    return None
