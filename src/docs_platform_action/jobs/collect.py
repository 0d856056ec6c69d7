"""Waits for an export that exists already, and delivers its bundle."""

from dataclasses import replace

from ..context import Context
from ..errors import JobFailed, TooFewPages
from ..inputs.settings import DeliverySettings, JobSettings
from ..job import BUNDLE, Job
from ..models import ExportJob
from ..text import pluralize


def collect_site(job: Job, settings: JobSettings, context: Context) -> None:
    """Wait for an export and deliver it; everything known is in the job at once. Raises the `ActionError` that it failed with."""
    # imported here, because mode export must not wait for these modules before its start request
    from ..bundle.deliver import Delivery
    from .polling import poll

    poll(job, settings.waiting, context)
    min_html_files = _check_export(job, settings.delivery, context)
    job.start_phase(BUNDLE, context.clock.monotonic())
    job.bundle = context.api.make_bundle(job)
    context.events.link_made(job)
    Delivery(job, replace(settings.delivery, min_pages=min_html_files), context).deliver()


def _check_export(job: Job, delivery: DeliverySettings, context: Context) -> int | None:
    """Return the minimum number of HTML files of the bundle, if the API has no page count. Raises `JobFailed`, `TooFewPages`."""
    export_job = job.export_job
    assert export_job is not None  # noqa: S101  # for the type checker: the job has been read
    if export_job.status == ExportJob.FAILED:
        raise JobFailed(
            "the export failed at the platform",
            details=context.api.client.quote(export_job.error),
            cause="The site could not be built or rendered." if export_job.error else "The API gave no reason.",
            remedy=f"Check job {job.job_id} in the dashboard, fix the site, and run the workflow again.",
        )
    page_count, min_pages = export_job.page_count, delivery.min_pages
    if min_pages is None or (page_count is None and delivery.site_path is not None):
        return min_pages
    if page_count is None:
        raise TooFewPages(
            "the number of its pages is unknown, and `min-pages` is set",
            details=("The API reported no valid `pageCount` for the completed job.",),
            cause="This platform does not report the number of pages of a completed export. Nothing was published.",
            remedy="Set `site-path`, so that the `.html` files in the bundle are counted, or remove `min-pages`.",
        )
    if page_count < min_pages:
        pages = pluralize(page_count, "page")
        raise TooFewPages(f"the export has {pages}, fewer than the {min_pages:,} that `min-pages` asks for")
    return None
