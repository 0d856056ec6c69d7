"""Polls a job until it has ended or its `timeout` has passed."""

from collections.abc import Callable
from typing import TypeVar

from ..context import PlatformContext
from ..errors import TimedOut, Unavailable
from ..inputs.settings import WaitSettings
from ..job import Job
from ..models import ExportJob, Reading
from ..text import as_sentence, format_clock, pluralize
from .schedule import Schedule

ReadingT = TypeVar("ReadingT", bound=Reading)


def take_over(job: Job, _work: object, context: PlatformContext) -> None:
    """Write the id of a job that exists already, and announce it: a step."""
    context.outputs.write_job_id(job)
    context.listener.job_known(job)


def poll(
    job: Job,
    settings: WaitSettings,
    context: PlatformContext,
    read: Callable[[Job, float], ReadingT],
) -> ReadingT:
    """Read a job until it has ended or its time is up, and return the last reading.

    `read` gets the deadline. Raises `ActionError`; what was read before is in the job.
    """
    clock = context.clock
    began = clock.monotonic()
    deadline = began + settings.timeout_seconds
    has_just_started = job.was_started_here and not job.has_ended
    schedule = Schedule(settings, began=began, has_just_started=has_just_started)
    pause = schedule.first_pause_seconds
    while True:
        clock.sleep(min(pause, deadline - clock.monotonic()))
        is_last = clock.monotonic() >= deadline
        try:
            reading = read(job, deadline)
        except Unavailable as error:
            if clock.monotonic() < deadline:
                raise
            raise timeout_error(job, settings.timeout_seconds, error) from error
        now = clock.monotonic()
        job.record(reading, polled_at=now)
        if reading.has_ended:
            context.listener.status_read(job)
            return reading
        pause = schedule.pause_after(now, reading.status, job.progress)
        job.expected_end_at = schedule.expected_end_at
        context.listener.status_read(job)
        if is_last:
            raise timeout_error(job, settings.timeout_seconds, None)


def timeout_error(job: Job, timeout_seconds: float, outage: Unavailable | None) -> TimedOut:
    """Return the error for a job that has not ended in time.

    `outage` is why the last reading failed, if it did.
    """
    after = format_clock(timeout_seconds)
    if job.last_read_at is None:
        summary = f"its status could not be read after {after}"
        last_seen = "No status request succeeded."
        remedy = "Allow more time with `timeout`."
        if outage is not None:
            remedy = f"{outage.remedy} For slow jobs, raise `timeout`."
    elif not job.has_known_status:
        summary = f"its status is unknown to the action after {after}"
        last_seen = f"It was last seen {_state_of(job)}. The job may have ended."
        remedy = f"Check job {job.job_id} in the dashboard."
    else:
        state = "queued" if job.is_queued else "running"
        summary = f"still {state} after {after}"
        last_seen = f"It was last seen {_state_of(job)}."
        remedy = "Allow more time with `timeout`."
    details = [last_seen]
    if job.reading is not None and job.reading.error is not None:
        details.append(as_sentence(f'The API said: "{job.reading.error}"'))
    if outage is None:
        return TimedOut(summary, details=tuple(details), remedy=remedy)
    return TimedOut(
        summary,
        details=(*details, f"At the end {outage.summary}.", *outage.details),
        cause=outage.cause,
        remedy=remedy,
        request_id=outage.request_id,
    )


def _state_of(job: Job) -> str:
    """Return the last reading, as the end of a sentence."""
    parts = []
    # any other status may be why the job did not end
    if job.status != ExportJob.RUNNING or job.progress is None:
        parts.append(f"as '{job.status}'")
    if job.progress is not None:
        parts.append(f"at {int(job.progress)} %")
    if job.reported_pages is not None:
        parts.append(pluralize(job.reported_pages, "page"))
    return ", ".join(parts)
