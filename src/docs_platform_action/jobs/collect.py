"""Mode `collect`: waits for an export that exists already, and delivers it."""

from dataclasses import dataclass
from typing import Final

from ..bundle import link
from ..bundle.deliver import deliver_bundle
from ..bundle.guards import check_reported_pages
from ..context import PlatformContext
from ..inputs.settings import CollectSettings, DeliverySettings, WaitSettings
from ..job import QUEUE, RUN, Job, Kind
from ..models import ExportJob, Reading
from .polling import poll, take_over
from .task import Batch, Task


class Collect(Kind):
    """A static export that exists already."""

    mode = "collect"

    def how_to_collect(self, job: Job, subject: str) -> str:
        if job.is_completed:
            return (
                f"{subject} is completed. A run with `{job.inputs_to_collect}` "
                "makes its bundle link without exporting again."
            )
        return super().how_to_collect(job, subject)

    def phase_of(self, reading: Reading) -> str:
        return QUEUE if reading.is_queued else RUN


@dataclass(frozen=True, kw_only=True)
class SiteWork:
    """What is asked for the site of an export."""

    waiting: WaitSettings
    delivery: DeliverySettings


def wait_until_ended(job: Job, work: SiteWork, context: PlatformContext) -> None:
    """Wait for the export."""
    poll(job, work.waiting, context, context.platform.read_export)


def check_export(job: Job, work: SiteWork, context: PlatformContext) -> None:
    """Check the ended export as far as the API describes it, before anything is downloaded."""
    if job.status == ExportJob.FAILED:
        raise context.platform.export_failure(job)
    check_reported_pages(job.page_count, work.delivery)


def make_link(job: Job, _work: SiteWork, context: PlatformContext) -> None:
    """Make the link to the bundle."""
    link.make_link(job, context)


def deliver(job: Job, work: SiteWork, context: PlatformContext) -> None:
    """Deliver the bundle: the archive, the site and the Helm values."""
    deliver_bundle(job, work.delivery, context)


COLLECT: Final = Collect()
STEPS: Final = (take_over, wait_until_ended, check_export, make_link, deliver)


def batch(settings: CollectSettings) -> Batch:
    """Return the one task of the mode."""
    site = settings.site
    job = Job(
        kind=COLLECT,
        domain=site.domain,
        project_id=site.project_id,
        job_id=settings.job_id,
        masks_bundle_url=site.delivery.mask_bundle_url,
    )
    work = SiteWork(waiting=settings.waiting, delivery=site.delivery)
    return Batch(
        tasks=[Task(job=job, settings=work, steps=STEPS)],
        platform=settings.platform,
    )
