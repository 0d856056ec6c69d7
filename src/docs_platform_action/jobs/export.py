"""Export mode: start a static export or attach to one, wait for it, deliver its bundle."""

from dataclasses import replace

from ..context import Context
from ..errors import JobFailed, NotFound, TooFewPages
from ..inputs.settings import DeliverySettings, ExportSettings
from ..job import BUNDLE, Job
from ..models import ExportJob
from ..text import pluralize


def export_site(job: Job, settings: ExportSettings, context: Context) -> None:
    """Carry out one export; what becomes known is in the job at once. Raises the `ActionError` that the export failed with."""
    if settings.job_id is None:
        started = context.api.start_export(job, settings.start_options)
        job.job_id, job.status, job.started_at = started.job_id, started.status, context.clock.monotonic()
    context.events.job_known(job)  # the runner starts the other jobs on this
    if not settings.wait:
        context.events.not_waiting(job)
        return
    # imported after the start request, which must not wait for these modules
    from ..bundle.deliver import deliver
    from .polling import poll

    try:
        poll(job, settings.waiting, context)
        delivery = _check(job, settings.delivery, context)
        job.start_phase(BUNDLE, context.clock.monotonic())
        job.bundle = context.api.make_bundle(job)
    except NotFound as error:
        if not job.was_started_here:
            raise
        raise _explained(error, job) from error
    context.events.link_made(job, masked=settings.delivery.mask_bundle_url)
    deliver(job, delivery, context)


def _check(job: Job, delivery: DeliverySettings, context: Context) -> DeliverySettings:
    """Check the ended job, and its page count against `min-pages`; return what is left to check in the bundle.

    Raises `JobFailed` and `TooFewPages`.
    """
    export_job = job.export_job
    assert export_job is not None  # noqa: S101  # it was polled to its end; this tells the type checker
    if export_job.status == ExportJob.FAILED:
        raise JobFailed(
            "the export failed at the platform",
            details=(f'The API at {context.api.host} said: "{export_job.error}"',) if export_job.error else (),
            cause="The site could not be built or rendered." if export_job.error else "The API gave no reason.",
            remedy=f"Check job {job.job_id} in the dashboard, fix the site, and run the workflow again.",
        )
    if delivery.min_pages is None or (export_job.page_count is None and delivery.site is not None):
        return delivery
    if export_job.page_count is None:
        raise _unknown_page_count(job)
    if export_job.page_count < delivery.min_pages:
        asked = f"fewer than the {delivery.min_pages:,} that `min-pages` asks for"
        raise TooFewPages(f"it has {pluralize(export_job.page_count, 'page')}, {asked}")
    return replace(delivery, min_pages=None)


def _unknown_page_count(job: Job) -> TooFewPages:
    seen = job.page_count
    earlier = f" An earlier count, {seen:,}, does not count: the export was still running." if seen is not None else ""
    return TooFewPages(
        "the number of its pages is unknown, and `min-pages` is set",
        details=(f"The API reported no usable `pageCount` for the completed job.{earlier}",),
        cause="This platform does not report the number of pages of a completed export. Nothing was published.",
        remedy="Set `site-path`, so that the `.html` files in the bundle are counted, or remove `min-pages`.",
    )


def _explained(error: NotFound, job: Job) -> NotFound:
    """Return what a 404 means for a job that this run started."""
    if job.status == ExportJob.COMPLETED:
        return NotFound(
            "the export is completed, but the platform made no bundle link (404)",
            details=error.details,
            cause="The bundle is not there yet, or the platform has removed it.",
            remedy=f"Run the action with `job-id: {job.job_id}` in a few minutes. If it fails again, export again.",
            request_id=error.request_id,
        )
    return NotFound(
        f"the platform no longer knows the job that it started as {job.job_id} (404)",
        details=error.details,
        cause="It was removed, or the platform lost it.",
        remedy="Check the dashboard to see whether the export is running. If it is, collect it with `job-id: "
        f"{job.job_id}`; if it is not, run the workflow again.",
        request_id=error.request_id,
    )
