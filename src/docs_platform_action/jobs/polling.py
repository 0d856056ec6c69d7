"""Polls a job until it has ended or its `timeout` has passed."""

from ..context import Context
from ..errors import TimedOut, Unavailable
from ..inputs.settings import WaitSettings
from ..job import Job
from ..models import AgentJob, ExportJob
from ..text import format_clock, pluralize
from .schedule import Schedule


def poll(job: Job, settings: WaitSettings, context: Context) -> None:
    """Read a job until it has ended or its time is up. Raises `ActionError`; what was read before is in the job."""
    clock = context.clock
    began = clock.monotonic()
    deadline = began + settings.timeout_seconds
    schedule = Schedule(
        settings, began=began, has_just_started=job.was_started_here and not job.has_ended
    )
    read = context.api.read_agent_job if job.is_agent_job else context.api.read_export
    pause = schedule.first_pause_seconds
    while True:
        clock.sleep(min(pause, deadline - clock.monotonic()))
        is_last = clock.monotonic() >= deadline
        try:
            reading: ExportJob | AgentJob = read(job, deadline=deadline)
        except Unavailable as error:
            if clock.monotonic() < deadline:
                raise
            raise timeout_error(job, settings.timeout_seconds, error) from error
        now = clock.monotonic()
        job.record(reading, now)
        context.events.status_read(job)
        if reading.has_ended:
            return
        if is_last:
            raise timeout_error(job, settings.timeout_seconds, None)
        pause = schedule.pause_after(now, reading.status, job.progress)


def timeout_error(job: Job, timeout_seconds: float, outage: Unavailable | None) -> TimedOut:
    """Return the error for a job that has not ended in time. `outage` is why the last reading failed, if it did."""
    after, remedy = f"after {format_clock(timeout_seconds)}", "Allow more time with `timeout`."
    state = "queued" if job.status == ExportJob.QUEUED else "running"
    summary, last_seen = f"still {state} {after}", f"It was last seen {_state_of(job)}."
    if job.last_read_at is None:
        summary, last_seen = f"its status could not be read {after}", "No status request succeeded."
    elif not job.has_known_status:
        summary, last_seen = (
            f"its status is unknown to the action {after}",
            f"{last_seen} The job may have ended.",
        )
        remedy = f"Check job {job.job_id} in the dashboard."
    if outage is None:
        return TimedOut(summary, details=(last_seen,), remedy=remedy)
    details = (last_seen, f"At the end {outage.summary}.", *outage.details)
    if job.last_read_at is None:
        remedy = f"{outage.remedy} For slow jobs, raise `timeout`."
    return TimedOut(
        summary, details=details, cause=outage.cause, remedy=remedy, request_id=outage.request_id
    )


def _state_of(job: Job) -> str:
    progress = f"at {int(job.progress)} %" if job.progress is not None else ""
    # any other status may be why the job did not end
    state = (
        progress
        if progress and job.status == ExportJob.RUNNING
        else f"as '{job.status}'{progress and ', '}{progress}"
    )
    return f"{state}, {pluralize(job.pages, 'page')}" if job.pages is not None else state
