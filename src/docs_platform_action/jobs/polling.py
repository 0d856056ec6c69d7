"""Polls a job until it has ended, or its `timeout` has passed. The pauses between two readings are in `schedule`."""

from ..clock import DeadlineExceeded
from ..context import Context
from ..errors import TimedOut, Unavailable
from ..inputs.settings import WaitSettings
from ..job import Job
from ..models import AGENT, AgentJob, ExportJob
from ..text import format_clock, pluralize
from .progress import EagerEstimate, SteadyEstimate
from .schedule import Schedule


def poll(job: Job, settings: WaitSettings, context: Context) -> None:
    """Read a job until it has ended; each reading is in the job. The last reading is made when the time is up.

    Raises `TimedOut`, `Cancelled`, and what a reading fails with.
    """
    clock = context.clock
    began = clock.monotonic()
    deadline = began + settings.timeout_seconds
    has_just_started = job.was_started_here and job.status not in {ExportJob.COMPLETED, ExportJob.FAILED}
    schedule = Schedule(settings, began=began, has_just_started=has_just_started)
    eager = EagerEstimate(began=began if has_just_started else None, finest_seconds=settings.shortest_pause_seconds)
    job.estimate = steady = SteadyEstimate()
    job.last_read_at = began
    context.events.polling(job)
    pause = schedule.first_pause_seconds
    while True:
        clock.sleep(min(pause, deadline - clock.monotonic()))
        is_last = clock.monotonic() >= deadline
        try:
            reading = _read(job, deadline, context)
        except DeadlineExceeded as error:
            raise timed_out(job, settings.timeout_seconds, error.outage) from error
        now = clock.monotonic()
        is_queued = job.status == ExportJob.QUEUED
        percent = None if is_queued else job.progress  # what a job in the queue reports is not its own progress
        eager.update(now, percent)
        steady.update(now, percent, job.page_count, queued=is_queued, ended=reading.has_ended)
        context.events.status_read(job)
        if reading.has_ended:
            return
        if is_last:
            raise timed_out(job, settings.timeout_seconds, None)
        pause = schedule.pause_after(now, reading.status, eager if percent is not None and eager.is_reliable else None)


def _read(job: Job, deadline: float, context: Context) -> ExportJob | AgentJob:
    if job.mode == AGENT:
        agent_job = context.api.read_agent_job(job, deadline=deadline)
        job.update_agent(agent_job)
        return agent_job
    export_job = context.api.read_export(job, deadline=deadline)
    job.update_export(export_job, context.clock.monotonic())
    return export_job


def timed_out(job: Job, timeout_seconds: float, outage: Unavailable | None) -> TimedOut:
    """Return the error for a job that has not ended in time; `outage` is what kept it from being read at the end, if anything."""
    state = f"as '{job.status}'"
    if job.progress is not None:
        progress = f"at {int(job.progress)} %"
        # any other status may be why the job never came to its end
        state = progress if job.status == ExportJob.RUNNING else f"{state}, {progress}"
    counted = f", {pluralize(job.page_count, 'page')}" if job.page_count is not None else ""
    seen = f"It was last seen {state}{counted}." if job.status else "No read of it succeeded."
    trouble = (f"At the end {outage.summary}.", *outage.details) if outage is not None else ()
    longer = "Allow more time with `timeout`, or collect it in a later run."
    return TimedOut(
        f"{'still running' if job.status else 'its state could not be read'} after {format_clock(timeout_seconds)}",
        details=(seen, *trouble),
        cause="The job takes longer than `timeout` allows." if outage is None else outage.cause,
        remedy=longer if outage is None or job.status else f"{outage.remedy} If it was just slow, raise `timeout`.",
        request_id=None if outage is None else outage.request_id,
    )
