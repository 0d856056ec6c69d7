"""Polls a job until it has ended or its `timeout` has passed."""

from ..context import Context
from ..errors import TimedOut, Unavailable
from ..inputs.settings import WaitSettings
from ..job import Job
from ..models import AgentJob, ExportJob
from ..text import format_clock, pluralize
from .progress import DisplayedEstimate
from .schedule import Schedule


def poll(job: Job, settings: WaitSettings, context: Context) -> None:
    """Read a job until it has ended or its time is up. Raises `ActionError`; what was read before is in the job."""
    clock = context.clock
    began = clock.monotonic()
    deadline = began + settings.timeout_seconds
    schedule = Schedule(settings, began=began, has_just_started=job.was_started_here and not job.has_ended)
    job.estimate = estimate = DisplayedEstimate()
    job.last_read_at = began
    context.events.polling(job)
    pause = schedule.first_pause_seconds
    while True:
        clock.sleep(min(pause, deadline - clock.monotonic()))
        is_last = clock.monotonic() >= deadline
        try:
            reading = _read(job, deadline, context)
        except Unavailable as error:
            if clock.monotonic() < deadline:
                raise
            raise timeout_error(job, settings.timeout_seconds, error) from error
        now = clock.monotonic()
        is_queued = reading.status == ExportJob.QUEUED
        percent = None if is_queued else job.progress  # what a queued job reports is not its own progress
        estimate.update(now, percent, job.pages_so_far, queued=is_queued, ended=reading.has_ended)
        context.events.status_read(job)
        if reading.has_ended:
            return
        if is_last:
            raise timeout_error(job, settings.timeout_seconds, None)
        pause = schedule.pause_after(now, reading.status, percent)


def _read(job: Job, deadline: float, context: Context) -> ExportJob | AgentJob:
    if job.is_agent_job:
        agent_job = context.api.read_agent_job(job, deadline=deadline)
        job.update_agent(agent_job)
        return agent_job
    export_job = context.api.read_export(job, deadline=deadline)
    job.update_export(export_job, context.clock.monotonic())
    return export_job


def timeout_error(job: Job, timeout_seconds: float, outage: Unavailable | None) -> TimedOut:
    """Return the error for a job that has not ended in time. `outage` is why the last reading failed, if it did."""
    after = f"after {format_clock(timeout_seconds)}"
    state = f"as '{job.status}'"
    if job.progress is not None:
        progress = f"at {int(job.progress)} %"
        # any other status may be why the job did not end
        state = progress if job.status == ExportJob.RUNNING else f"{state}, {progress}"
    pages = f", {pluralize(job.pages_so_far, 'page')}" if job.pages_so_far is not None else ""
    summary, last_seen = f"still running {after}", f"It was last seen {state}{pages}."
    if job.status is None:
        summary, last_seen = f"its status could not be read {after}", "No status request succeeded."
    remedy = "Allow more time with `timeout`."
    if outage is None:
        return TimedOut(summary, details=(last_seen,), cause="The job takes longer than `timeout` allows.", remedy=remedy)
    details = (last_seen, f"At the end {outage.summary}.", *outage.details)
    if job.status is None:
        remedy = f"{outage.remedy} If the job is only slow, raise `timeout`."
    return TimedOut(summary, details=details, cause=outage.cause, remedy=remedy, request_id=outage.request_id)
