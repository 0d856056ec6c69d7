"""Export mode: start a static export or attach to one, wait for it, make the bundle link."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ..api.admin_api import AdminApi
from ..clock import Clock
from ..errors import JobFailed, NotFound, TooFewPages
from ..inputs.settings import DeliverySettings, ExportSettings
from ..job import BUNDLE, QUEUE, RUN, Job
from ..models import Bundle, ExportJob
from ..report.job_log import JobLog
from ..text import pluralize

if TYPE_CHECKING:
    from .polling import Reading

KNOWN_STATUSES: Final = (ExportJob.QUEUED, ExportJob.RUNNING, ExportJob.COMPLETED, ExportJob.FAILED)
"""What platforms of this kind are seen to report; any other is logged as news."""


def export_site(
    settings: ExportSettings,
    *,
    api: AdminApi,
    clock: Clock,
    record: Job,
    log: JobLog,
    on_job_known: Callable[[str], None],
    waits_for_room: Callable[[], bool],
    keep_out: Callable[[Bundle], None],
    mask: Callable[[str], None],
    deliver: Callable[[Bundle, Callable[[], Bundle], DeliverySettings], None],
) -> None:
    """Carry out one export; what becomes known goes into the record at once.

    `on_job_known` is called before the job is first read; `waits_for_room` tells whether other exports of the run are under way,
    at whose end the platform may have room for one more. `keep_out` is called with every link, whose secrets are to be in no log,
    `mask` with every link that is to be masked for the whole job, `deliver` with the bundle, with what makes a fresh link to it,
    and with what is to become of it. Raises the `ActionError` that the export failed with.
    """
    started_at = None
    log.title(f"Static export of {settings.domain}" if settings.domain else "Static export")
    if settings.job_id is None:
        job_id = _start(settings, api, record, waits_for_room, clock)
        started_at = record.started_at
        on_job_known(job_id)
        log.note(f"Job {job_id} started. To attach to it later: job-id: {job_id}")
        if not settings.wait:
            log.note("Not waiting for it, as `wait: false` asks.")
            return
    else:
        job_id = settings.job_id
        on_job_known(job_id)
        log.note(f"Attaching to job {job_id}.")

    def make_link() -> Bundle:
        bundle = api.make_bundle(job_id, started_at=started_at)
        keep_out(bundle)
        if settings.delivery.mask_bundle_url:
            mask(bundle.url)
        record.bundle = bundle
        return bundle

    try:
        job = _wait(settings, api, clock, record, log, job_id=job_id, started_at=started_at)
        delivery = _check_pages(job, settings.delivery, seen=record.page_count)
        record.enter(BUNDLE, clock.monotonic())
        bundle = make_link()
    except NotFound as error:
        if not record.started:
            raise
        raise (_without_bundle if record.status == ExportJob.COMPLETED else _lost)(record, error) from error
    log.bundle_ready(bundle)
    if settings.delivery.mask_bundle_url:
        log.link_masked()
    deliver(bundle, make_link, delivery)


def _start(settings: ExportSettings, api: AdminApi, record: Job, waits_for_room: Callable[[], bool], clock: Clock) -> str:
    assert settings.domain is not None  # noqa: S101  # settings hold a domain or a job; this tells the type checker
    started = api.start_export(
        settings.domain, settings.start_options, on_doubt=record.doubt_start, waits_for_room=waits_for_room
    )
    record.job_id, record.status, record.started_at = started.job_id, started.status, clock.monotonic()
    return started.job_id


def _wait(
    settings: ExportSettings,
    api: AdminApi,
    clock: Clock,
    record: Job,
    log: JobLog,
    *,
    job_id: str,
    started_at: float | None,
) -> ExportJob:
    """Wait for the job, and return the reading that says `completed`."""
    from .timeout import wait_within_timeout

    seen_at = clock.monotonic()

    def on_reading(reading: "Reading[ExportJob]") -> None:
        nonlocal seen_at
        now = clock.monotonic()
        record.note_export(reading.job)
        # the phase of the first reading goes back to the start, and one that nobody saw to the last time that it had not begun
        since = seen_at if reading.job.ended or not record.phases else now
        record.enter(QUEUE if reading.job.status == ExportJob.QUEUED else RUN, since)
        seen_at = now
        log.reading()

    log.waiting()
    job = wait_within_timeout(
        lambda deadline: api.read_export(job_id, deadline=deadline, started_at=started_at),
        settings.waiting,
        clock=clock,
        record=record,
        on_reading=on_reading,
    )
    if job.status == ExportJob.FAILED:
        raise JobFailed(
            "the export failed at the platform",
            facts=(f'The API at {api.host} said: "{job.error}"',) if job.error else (),
            cause="The site could not be built or rendered." if job.error else "The API gave no reason.",
            remedy=f"Look at job {job_id} in the dashboard, mend the site, and run the workflow again.",
        )
    return job


def _check_pages(job: ExportJob, delivery: DeliverySettings, *, seen: int | None) -> DeliverySettings:
    """Check a completed job's page count against `min-pages`, and return what is left to check in the bundle.

    `seen` is the last page count that the API reported at all. Raises `TooFewPages`.
    """
    if delivery.min_pages is None:
        return delivery
    if job.page_count is None:
        if delivery.site is None:
            earlier = f" An earlier count, {seen:,}, does not count: the export was still running." if seen is not None else ""
            raise TooFewPages(
                "the number of its pages is unknown, and `min-pages` is set",
                facts=(f"The API reported no usable `pageCount` for the completed job.{earlier}",),
                cause="This platform does not report the number of pages of a completed export. Nothing was published.",
                remedy="Set `site-path`, so that the `.html` files in the bundle are counted, or remove `min-pages`.",
            )
        return delivery
    if job.page_count < delivery.min_pages:
        raise TooFewPages(
            f"it has {pluralize(job.page_count, 'page')}, fewer than the {delivery.min_pages:,} that `min-pages` asks for"
        )
    return replace(delivery, min_pages=None)


def _without_bundle(record: Job, error: NotFound) -> NotFound:
    return NotFound(
        "the export is completed, but the platform made no bundle link (404)",
        facts=error.facts,
        cause="The bundle is not there yet, or the platform has removed it.",
        remedy=f"Run the action with `job-id: {record.job_id}` in a few minutes. If it fails again, export anew.",
        request_id=error.request_id,
    )


def _lost(record: Job, error: NotFound) -> NotFound:
    return NotFound(
        f"the platform no longer knows the job that it started as {record.job_id} (404)",
        facts=error.facts,
        cause="It was removed, or the platform lost it.",
        remedy=f"Look in the dashboard whether the export runs. If it does, collect it with `job-id: {record.job_id}`; "
        "if it does not, run the workflow again.",
        request_id=error.request_id,
    )
