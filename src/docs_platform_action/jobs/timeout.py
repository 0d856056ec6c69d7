"""Waits for a job of either mode within `timeout`, and tells how far it has come when that passes."""

from collections.abc import Callable

from ..clock import Clock, DeadlinePassed
from ..errors import TimedOut, Unavailable
from ..inputs.settings import WaitSettings
from ..job import Job
from ..models import ExportJob
from ..text import minutes, pluralize
from .polling import J, Reading, Schedule, wait_for_end
from .schedule import following_progress


def wait_within_timeout(
    read: Callable[[float], J],
    settings: WaitSettings,
    *,
    clock: Clock,
    record: Job,
    on_reading: Callable[[Reading[J]], None],
) -> J:
    """Read a job until it has ended, and give its last reading; `read` gets the deadline on the clock's `monotonic`.

    `on_reading` sees every reading and keeps the record. Raises `TimedOut`, and whatever `read` raises.
    """
    schedule: Schedule[J] = following_progress(
        shortest_seconds=settings.shortest_pause_seconds,
        longest_seconds=settings.longest_pause_seconds,
        has_just_started=record.started and record.status not in {ExportJob.COMPLETED, ExportJob.FAILED},
    )
    try:
        return wait_for_end(read, schedule=schedule, timeout_seconds=settings.timeout_seconds, clock=clock, on_reading=on_reading)
    except DeadlinePassed as error:
        raise still_going(record, settings.timeout_seconds, error.outage) from error


def still_going(record: Job, timeout_seconds: float, outage: Unavailable | None) -> TimedOut:
    """Make the error for a job of either mode that has not ended in time, with how far it has come.

    `outage` is what kept it from being read at the end, if anything did.
    """
    state = f"as '{record.status}'"
    if record.progress is not None:
        progress = f"at {int(record.progress)} %"
        # any other status may be why the job never came to its end
        state = progress if record.status == ExportJob.RUNNING else f"{state}, {progress}"
    counted = f", {pluralize(record.page_count, 'page')}" if record.page_count is not None else ""
    seen = f"It was last seen {state}{counted}." if record.status else "No reading of it succeeded."
    trouble = (f"At the end {outage.happened}.", *outage.facts) if outage is not None else ()
    longer = "Give it longer with `timeout`, or collect it in a later run."
    return TimedOut(
        f"{'still going on' if record.status else 'its state could not be read'} after {minutes(timeout_seconds)}",
        facts=(seen, *trouble),
        cause="The job takes longer than `timeout` allows." if outage is None else outage.because,
        remedy=longer if outage is None or record.status else f"{outage.way_out} If it was only slow, raise `timeout`.",
        request_id=None if outage is None else outage.request_id,
    )
