"""What people read about starts that wait for room at the platform."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from ..job import Job, RoomWait
from ..text import format_time


def describe_wait(job: Job, *, now: datetime, monotonic: float) -> str:
    """Return why a start waits, when it is tried again, and until when, in sentences.

    `now` and `monotonic` are the same time.
    """
    if job.room is None:
        return ""
    next_at, until = _times(job.room, now, monotonic)
    lack = job.lack_of_room
    return f"{lack[:1].upper()}{lack[1:]}. Trying again at {next_at}, until {until}."


def describe_ended_wait(jobs: Sequence[Job], *, now: datetime, monotonic: float) -> tuple[str, ...]:
    """Return what the starts of some jobs waited for when the run ended, in sentences."""
    waits = [(job.room, job) for job in jobs if job.room is not None and job.job_id is None]
    if not waits:
        return ()
    room, job = min(waits, key=lambda wait: wait[0].next_at)
    next_at, until = _times(room, now, monotonic)
    return (
        f"The starts were waiting for room: {job.lack_of_room}.",
        f"The next attempt would have been at {next_at}, the last one at {until}.",
    )


def _times(room: RoomWait, now: datetime, monotonic: float) -> tuple[str, str]:
    """Return when the next and the last attempt are made."""
    next_at = now + timedelta(seconds=max(room.next_at - monotonic, 0.0))
    until = now + timedelta(seconds=max(room.until - monotonic, 0.0))
    return format_time(next_at, now), format_time(until, now)
