"""Room for starts at the platform: when each may be sent."""

import math
import threading
from dataclasses import replace
from typing import Final

from ..clock import Clock
from ..errors import NoRoom, Rejected, Unavailable
from ..job import ROOM, Job
from ..models import RoomWait
from ..text import format_clock
from .advice import IN_FRONT, NO_STARTS

FIRST_PAUSE_SECONDS: Final = 30.0
MAX_PAUSE_SECONDS: Final = 300.0
"""The pauses between two starts double from the first to the longest: refused starts may count
toward the platform's limit, and these are about fifteen in an hour."""


ANSWER_CHECK_SECONDS: Final = 0.25  # how often to look whether another start is answered


class StartHeld(Exception):
    """A start was not sent, because there is no room for now."""


class Room:
    """Says when the start of each job may be sent. Safe to use from several threads.

    A refusal with 409 delays its own site. One with 429 is a limit for all: they wait, and from
    then on one start is under way at a time. Times are on the clock's `monotonic`.

    A start is under way from `begin`, which the queue calls when it gives out the job, and again
    each attempt, to one of the others: `accept`, `refuse`, or `end` for any other outcome.
    """

    def __init__(self, clock: Clock, *, start_timeout_seconds: float) -> None:
        self._has_been_limited = False
        self.held_until = -math.inf  # all starts, after a temporary error that asked for it
        self._clock = clock
        self._start_timeout_seconds = start_timeout_seconds
        self._lock = threading.Lock()
        self._begun_at: dict[Job, float] = {}  # of the starts that are under way
        self._waiting: set[Job] = set()  # the jobs whose start was refused
        self._busy_until: dict[Job, float] = {}  # after a 409
        self._busy_pauses: dict[Job, int] = {}
        self._accepted_at = -math.inf  # the last start of the run that was accepted
        self._limited_since = math.inf  # the first 429 since a start was accepted
        self._limited_at = -math.inf  # the last one
        self._limited_until = -math.inf
        self._limit_pauses = 0  # since a start was accepted

    def next_at(self, job: Job) -> float:
        """Return when a job's start may be sent, if no other one is under way then."""
        with self._lock:
            return self._next_at(job)

    def begin(self, job: Job) -> bool:
        """Return whether a job's start may be sent now. If so, it is under way until its answer."""
        with self._lock:
            now = self._clock.monotonic()
            self._begun_at.pop(job, None)
            must_wait = self._has_been_limited and bool(self._begun_at)
            if must_wait or self._next_at(job) > now:
                return False
            self._begun_at[job] = now
            return True

    def end(self, job: Job) -> None:
        """Record that a job's start is not under way: it has failed, or is not sent for now."""
        with self._lock:
            self._begun_at.pop(job, None)

    def hold(self, until: float) -> None:
        """Hold back all starts until then, as a temporary error of one asks for."""
        with self._lock:
            self.held_until = max(self.held_until, until)

    def accept(self, job: Job) -> None:
        """Record that a job's start was accepted: a limit ends, and `start-timeout` begins anew."""
        with self._lock:
            self._accepted_at = self._clock.monotonic()
            self._waiting.discard(job)
            # a start that was sent before the refusal says nothing about the time after it
            if self._begun_at.pop(job) >= self._limited_at:
                self._limited_since = math.inf
                self._limited_until = -math.inf
                self._limit_pauses = 0
            self._update_waits()

    def refuse(self, job: Job, refusal: NoRoom) -> None:
        """Record in a job that its start was refused, and whether that was its last attempt."""
        with self._lock:
            now = self._clock.monotonic()
            began_at = self._begun_at.pop(job)
            if refusal.status == NoRoom.LIMIT:
                self._limit(refusal, now)
                self._busy_until.pop(job, None)
            else:
                pauses = self._busy_pauses.get(job, 0) + 1
                self._busy_pauses[job] = pauses
                self._busy_until[job] = now + pause_seconds(pauses, refusal.retry_after_seconds)
            wait = self._wait_after(job, refusal, now)
            job.room = wait
            job.start_phase(ROOM, now)
            if began_at >= self._until(job):
                job.room = replace(wait, is_over=True)
                self._waiting.discard(job)
            else:
                self._waiting.add(job)
            self._update_waits()

    def end_outlasted(self, job: Job, refusal: NoRoom) -> RoomWait | None:
        """Return the wait of a job, if a limit that holds it back has outlasted its time.

        In that case the last attempt of another job also ends this wait.
        """
        with self._lock:
            now = self._clock.monotonic()
            if job in self._busy_until or self._until(job) > now:
                return None
            wait = job.room
            if wait is None:
                wait = RoomWait(refusal=refusal, refusals=0, since=self._limited_since)
            wait = replace(wait, is_over=True)
            job.room = wait
            self._waiting.discard(job)
            return wait

    def _limit(self, refusal: NoRoom, now: float) -> None:
        """Hold back all starts. Of refusals that arrive together, one lengthens the pause."""
        if now >= self._limited_until:
            self._limit_pauses += 1
        pause = pause_seconds(self._limit_pauses, refusal.retry_after_seconds)
        self._has_been_limited = True
        self._limited_since = min(self._limited_since, now)
        self._limited_at = now
        self._limited_until = max(self._limited_until, now + pause)

    def _wait_after(self, job: Job, refusal: NoRoom, now: float) -> RoomWait:
        """Return a job's wait with one more refusal."""
        if job.room is not None:
            refusals = job.room.refusals + 1
            return RoomWait(refusal=refusal, refusals=refusals, since=job.room.since)
        since = now
        if refusal.status == NoRoom.LIMIT:
            since = self._limited_since  # it may have been held back since then
        return RoomWait(refusal=refusal, refusals=1, since=since)

    def _update_waits(self) -> None:
        for job in self._waiting:
            if job.room is not None:
                next_at = self._next_at(job)
                job.room = replace(job.room, next_at=next_at, until=self._until(job))

    def _next_at(self, job: Job) -> float:
        next_at = max(self._busy_until.get(job, -math.inf), self._limited_until)
        return min(next_at, self._until(job))

    def _until(self, job: Job) -> float:
        """Return when a job's last attempt is made."""
        since = self._limited_since
        if job.room is not None:
            since = job.room.since
        return max(since, self._accepted_at) + self._start_timeout_seconds


def pause_seconds(refusals: int, asked_seconds: float) -> float:
    """Return the pause after this number of refusals.

    Usual pauses double. A pause that the platform asks for replaces the first one; after further
    refusals, the longer of both counts.
    """
    doublings = refusals - 1
    if asked_seconds > 0:
        doublings -= 1
    if doublings < 0:
        return asked_seconds
    usual = FIRST_PAUSE_SECONDS * 2.0 ** min(doublings, 10)
    return max(min(usual, MAX_PAUSE_SECONDS), asked_seconds)


def room_failure(job: Job, wait: RoomWait, now: float) -> Rejected | Unavailable:
    """Return the failure of a job whose start was still refused at the end of `start-timeout`."""
    refusal = wait.refusal
    waited = f"It had waited for room for {format_clock(now - wait.since)}."
    details = [*refusal.details, waited]
    if refusal.status == NoRoom.LIMIT:
        if refusal.asked_pause:
            details.append(refusal.asked_pause)
        advice = IN_FRONT if refusal.is_web_page else NO_STARTS
        return Unavailable(
            "the platform allows no more starts (429)",
            details=tuple(details),
            request_id=refusal.request_id,
            **advice,
        )
    if refusal.running_job_id is not None:
        details.append(f"Its job is {refusal.running_job_id}.")
    cause = "It was started in the dashboard, or by another run, such as a cancelled one."
    remedy = "Run the workflow again when that export has ended, or raise `start-timeout`."
    if refusal.own_site is not None:
        cause = f"This run exports the same deployment for {refusal.own_site}."
        remedy = "Export each deployment once."
    if job.how_to_collect_other:
        remedy += f" {job.how_to_collect_other}"
    return Rejected(
        "another export of the site is still running (409)",
        details=tuple(details),
        cause=cause,
        remedy=remedy,
        request_id=refusal.request_id,
    )
