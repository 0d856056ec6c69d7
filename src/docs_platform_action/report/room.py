"""What people read about starts that wait for room at the platform."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from ..errors import NoRoom
from ..job import Job
from ..models import RoomWait
from ..text import format_approx, format_time, pluralize

_SOON_SECONDS: Final = 90.0  # a minute of the clock would be too coarse


def describe_wait(job: Job, *, now: datetime, monotonic: float) -> str:
    """Return why a start waits, when it is tried again, and until when, in sentences.

    `now` and `monotonic` are the same time.
    """
    if job.room is None:
        return ""
    lack = job.lack_of_room
    return f"{lack[:1].upper()}{lack[1:]}. {_next_attempt(job.room, now, monotonic)}"


def _next_attempt(room: RoomWait, now: datetime, monotonic: float) -> str:
    seconds = room.next_at - monotonic
    if seconds <= 0:
        return "Trying again now."
    until = _time_at(room.until, now, monotonic)
    if room.next_at >= room.until:
        return f"The last attempt is at {until} (`start-timeout`)."
    if seconds < _SOON_SECONDS:
        next_at = f"in {format_approx(seconds)}"
    else:
        next_at = f"at {_time_at(room.next_at, now, monotonic)}"
    return f"Trying again {next_at}, until {until} (`start-timeout`)."


def describe_ended_waits(
    jobs: Sequence[Job],
    *,
    now: datetime,
    monotonic: float,
) -> tuple[str, ...]:
    """Return what the starts of some jobs waited for when the run ended, in sentences."""
    limited: list[RoomWait] = []
    busy: list[Job] = []
    for job in jobs:
        if job.job_id is not None or job.room is None or job.room.next_at <= monotonic:
            continue
        if job.room.refusal.status == NoRoom.LIMIT:
            limited.append(job.room)
        else:
            busy.append(job)

    sentences: list[str] = []
    if limited:
        first = min(limited, key=_next_at)
        next_at = _time_at(first.next_at, now, monotonic)
        until = _time_at(first.until, now, monotonic)
        sentences += [
            "The platform allowed no more starts (429).",
            f"The next attempt would have been at {next_at}, the last one at {until}.",
        ]
    if busy:
        sentences.append(f"{busy[0].site} was waiting for another export to end.")
    if len(busy) > 1:
        sentences.append(f"The same holds for {pluralize(len(busy) - 1, 'more site')}.")
    return tuple(sentences)


def _next_at(room: RoomWait) -> float:
    return room.next_at


def _time_at(at: float, now: datetime, monotonic: float) -> str:
    """Return a time on the monotonic clock in UTC, but none in the past."""
    return format_time(now + timedelta(seconds=max(at - monotonic, 0.0)), now)
