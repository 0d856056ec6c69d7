"""The queue of jobs that have not started, some of which wait for room at the platform.

A job that waits is in the queue, so it takes no place of `max-parallel`.
"""

import math
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ..clock import Clock
from ..errors import IN_FRONT, NO_STARTS, NoRoom, Rejected, Unavailable
from ..job import DEPLOYMENT, ROOM, Job, RoomWait
from ..text import format_clock

FIRST_PAUSE_SECONDS: Final = 30.0
MAX_PAUSE_SECONDS: Final = 300.0
"""The pauses between two starts of a site double from the first to the longest: refused starts may
count toward the platform's limit, and there are about fifteen of them in an hour."""

CHECK_SECONDS: Final = 10.0  # how often to look for jobs that were put back in the meantime
BUSY_CHECK_SECONDS: Final = 0.25  # the same while another job's start is under way


class StartQueue:
    """Says which job starts next, and when. Safe to use from several threads.

    A refusal with 409 delays its own site. One with 429 delays all, and from then on one start is
    sent at a time. `jobs` are in the order in which they start.
    """

    def __init__(self, jobs: Sequence[Job], clock: Clock, *, start_timeout_seconds: float) -> None:
        self._order = {job: number for number, job in enumerate(jobs)}
        self._clock = clock
        self._start_timeout_seconds = start_timeout_seconds
        self._lock = threading.Lock()
        self._waiting = [*jobs]
        self._starting: set[Job] = set()
        self._due_at: dict[Job, float] = {}  # after a 409
        self._accepted_at = -math.inf  # the last start of the run that was accepted
        # the limit for starts, after a 429
        self._is_one_at_a_time = False
        self._limited_since = math.inf  # the first 429 since a start was accepted
        self._limited_at = -math.inf  # the last one
        self._limited_until = -math.inf
        self._pauses = 0  # since a start was accepted
        self._tried: set[Job] = set()  # the jobs that got a 429 in this round

    @property
    def has_been_limited(self) -> bool:
        """Whether the platform has refused a start with 429, so that the other jobs waited, too."""
        return self._is_one_at_a_time

    @property
    def is_empty(self) -> bool:
        """Whether no job waits."""
        return not self._waiting

    def take(self) -> Job | None:
        """Wait until a job may start, and remove it from the queue.

        Returns `None` if the queue is empty. Raises `Cancelled`.
        """
        while True:
            with self._lock:
                if not self._waiting:
                    return None
                now = self._clock.monotonic()
                job = self._next_job(now)
                if job is not None:
                    self._waiting.remove(job)
                    self._starting.add(job)
                    job.start_sent_at = now
                    return job
                pause = self._pause_seconds(now)
            self._clock.sleep(pause)

    def accept(self, job: Job) -> None:
        """Record that the platform accepted a job's start."""
        with self._lock:
            self._starting.discard(job)
            self._accepted_at = self._clock.monotonic()
            # a start that was sent before the refusal says nothing about the time after it
            if _sent_at(job) >= self._limited_at:
                self._limited_since = math.inf
                self._limited_until = -math.inf
                self._pauses = 0
                self._tried.clear()
            self._update_waits()

    def drop(self, job: Job) -> None:
        """Record that a job has ended, whether its start was accepted or not."""
        with self._lock:
            self._starting.discard(job)

    def take_all(self) -> Sequence[Job]:
        """Remove all jobs from the queue."""
        with self._lock:
            taken = self._waiting
            self._waiting = []
            return taken

    def put_back(self, job: Job, refusal: NoRoom) -> Sequence[Job]:
        """Put a job back whose start was refused.

        Returns the jobs that no longer wait because their time is up, which after a 429 may be all.
        """
        with self._lock:
            now = self._clock.monotonic()
            self._starting.discard(job)
            is_last = _sent_at(job) >= self._until(job)
            if job.room is None and refusal.status != NoRoom.LIMIT:
                is_last = False  # it has only waited for the limit so far
            self._record(job, refusal, now)
            over = [job] if is_last else []
            if not is_last:
                self._waiting.append(job)
                self._waiting.sort(key=self._order.__getitem__)
                job.start_phase(ROOM, now)
            elif refusal.status == NoRoom.LIMIT:
                over += self._remove_limited(refusal, now)
            self._update_waits()
            return over

    def _record(self, job: Job, refusal: NoRoom, now: float) -> None:
        refusals = 1 if job.room is None else job.room.refusals + 1
        since = now if job.room is None else job.room.since
        if job.room is None and refusal.status == NoRoom.LIMIT:
            since = min(now, self._limited_since)
        job.room = self._wait(refusal, refusals=refusals, since=since)
        if refusal.status == NoRoom.LIMIT:
            self._limit(job, refusal, refusals, now)
        else:
            self._due_at[job] = now + pause_seconds(refusals, refusal.retry_after_seconds)

    def _next_job(self, now: float) -> Job | None:
        if self._is_start_under_way:
            return None
        due = [job for job in self._waiting if self._next_at(job) <= now]
        # in turn: a limit may be about some sites alone
        return next((job for job in due if job not in self._tried), due[0] if due else None)

    @property
    def _is_start_under_way(self) -> bool:
        """Whether the answer to a start has to be awaited before the next one is sent."""
        return self._is_one_at_a_time and any(map(_is_being_sent, self._starting))

    def _pause_seconds(self, now: float) -> float:
        if self._is_start_under_way:
            return BUSY_CHECK_SECONDS
        return min(min(map(self._next_at, self._waiting)) - now, CHECK_SECONDS)

    def _limit(self, job: Job, refusal: NoRoom, refusals: int, now: float) -> None:
        """Hold back all starts. Of refusals that arrive together, one counts."""
        if now >= self._limited_until:
            self._pauses += 1
        pause = pause_seconds(max(self._pauses, refusals), refusal.retry_after_seconds)
        self._is_one_at_a_time = True
        self._limited_since = min(self._limited_since, now)
        self._limited_at = now
        self._limited_until = max(self._limited_until, now + pause)
        if self._tried.issuperset(self._waiting):
            self._tried.clear()
        self._tried.add(job)
        self._due_at.pop(job, None)

    def _remove_limited(self, refusal: NoRoom, now: float) -> Sequence[Job]:
        """Remove the jobs whose time is up, too: the last attempt of one is enough for all."""
        over = [job for job in self._waiting if job not in self._due_at and self._until(job) <= now]
        for job in over:
            self._waiting.remove(job)
            if job.room is None:
                job.room = self._wait(refusal, refusals=0, since=self._limited_since)
        return over

    def _wait(self, refusal: NoRoom, *, refusals: int, since: float) -> RoomWait:
        own = None
        if refusal.running_job_id is not None:
            own = next((job for job in self._order if job.job_id == refusal.running_job_id), None)
        return RoomWait(
            refusal=refusal,
            refusals=refusals,
            since=since,
            next_at=since,  # until `_update_waits` sets both
            until=since,
            own_site=own.site if own is not None else None,
        )

    def _update_waits(self) -> None:
        for job in self._waiting:
            if job.room is not None:
                job.room = replace(job.room, next_at=self._next_at(job), until=self._until(job))

    def _next_at(self, job: Job) -> float:
        """Return when a job may start."""
        return min(max(self._due_at.get(job, -math.inf), self._limited_until), self._until(job))

    def _until(self, job: Job) -> float:
        """Return when a job's last attempt is made."""
        since = self._limited_since if job.room is None else job.room.since
        return max(since, self._accepted_at) + self._start_timeout_seconds


def _is_being_sent(job: Job) -> bool:
    return not job.is_start_paused and not job.is_in(DEPLOYMENT)


def _sent_at(job: Job) -> float:
    return -math.inf if job.start_sent_at is None else job.start_sent_at


def pause_seconds(refusals: int, asked_seconds: float) -> float:
    """Return the pause after so many refusals of a start.

    The platform's own pause counts. If it was too short, the next one is not shorter than usual.
    """
    doublings = refusals - 1 if asked_seconds <= 0 else refusals - 2
    usual = FIRST_PAUSE_SECONDS * 2.0 ** min(doublings, 10)
    if doublings < 0:
        usual = 0.0
    return max(min(usual, MAX_PAUSE_SECONDS), asked_seconds)


def room_failure(job: Job, now: float) -> Rejected | Unavailable:
    """Return the failure of a job whose start was still refused at the end of `start-timeout`."""
    room = job.room
    assert room is not None  # noqa: S101  # for the type checker: its start was refused
    refusal = room.refusal
    waited = format_clock(now - room.since)
    if refusal.status == NoRoom.LIMIT:
        return _limit_failure(refusal, waited)
    cause = "It was started in the dashboard, or by another run, such as a cancelled one."
    remedy = "Run the workflow again when it has ended, or raise `start-timeout`."
    if room.own_site is not None:
        cause = f"This run exports the same deployment for {room.own_site}."
        remedy = "Export each deployment once."
    running = refusal.running_job_id
    return Rejected(
        f"another export of the site is running (409), after a wait for room of {waited}",
        details=(*refusal.details, *([f"Its job is {running}."] if running is not None else [])),
        cause=cause,
        remedy=" ".join(filter(None, (remedy, job.how_to_collect_other))),
        request_id=refusal.request_id,
    )


def _limit_failure(refusal: NoRoom, waited: str) -> Unavailable:
    advice = IN_FRONT if refusal.is_web_page else NO_STARTS
    return Unavailable(
        f"the platform allows no more starts (429), after a wait for room of {waited}",
        details=tuple(filter(None, (*refusal.details, refusal.asked_pause))),
        request_id=refusal.request_id,
        **advice,
    )
