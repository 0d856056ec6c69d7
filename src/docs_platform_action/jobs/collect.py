"""Waits for an export that exists already, and delivers its bundle."""

from ..bundle.deliver import Delivery
from ..bundle.guards import check_reported_pages
from ..context import PlatformContext
from ..inputs.settings import DeliverySettings, WaitSettings
from ..job import BUNDLE, Job
from ..models import ExportJob
from .commit import note_later_commit
from .polling import poll_export


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
    if reading.status == ExportJob.FAILED:
        raise context.platform.export_failure(job, reading)
    check_reported_pages(reading.page_count, delivery)
    job.start_phase(BUNDLE, context.clock.monotonic())
    job.link = reading.link or context.platform.make_link(job)
    context.events.link_made(job, job.link)
    Delivery(job, delivery, context).deliver()
