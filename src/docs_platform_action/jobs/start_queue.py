"""The queue of jobs that have not started, some of which wait for room at the platform.

A job that waits is in the queue, so it takes no place of `max-parallel`.
"""

import threading
from collections.abc import Mapping, Sequence
from typing import Final

from ..clock import Clock
from ..errors import NoRoom
from ..job import Job
from ..models import RoomWait
from ..platform.room import ANSWER_CHECK_SECONDS, Room

CHECK_SECONDS: Final = 10.0  # how often to look for jobs that were put back in the meantime


class StartQueue:
    """Gives out the jobs in the order of the input, each once there may be room for its start.

    Safe to use from several threads.
    """

    def __init__(self, jobs: Sequence[Job], room: Room, clock: Clock) -> None:
        self._order = {job: number for number, job in enumerate(jobs)}
        self._room = room
        self._clock = clock
        self._lock = threading.Lock()
        self._jobs = [*jobs]
        self._limited: set[Job] = set()  # those that got a 429 in this round

    @property
    def is_empty(self) -> bool:
        """Whether no job is in the queue."""
        return not self._jobs

    def take(self) -> Job | None:
        """Wait until a job may start, and remove it from the queue. Its start is under way then.

        Returns `None` if the queue is empty. Raises `Cancelled`.
        """
        while True:
            with self._lock:
                if not self._jobs:
                    return None
                for job in self._due_jobs():
                    if self._room.begin(job):
                        self._jobs.remove(job)
                        return job
                next_at = min(self._room.next_at(job) for job in self._jobs)
            pause = max(next_at - self._clock.monotonic(), ANSWER_CHECK_SECONDS)
            self._clock.sleep(min(pause, CHECK_SECONDS))

    def put_back(self, job: Job) -> None:
        """Put a job back whose start was not sent, or was refused."""
        with self._lock:
            self._jobs.append(job)
            self._jobs.sort(key=self._order.__getitem__)

    def put_behind(self, job: Job) -> None:
        """Put a job back that got a 429: the others come first, as it may be about some sites."""
        with self._lock:
            if self._limited.issuperset(self._jobs):
                self._limited.clear()
            self._limited.add(job)
        self.put_back(job)

    def take_outlasted(self, refusal: NoRoom) -> Mapping[Job, RoomWait]:
        """Remove the jobs whose time is up with the last attempt of another one.

        Return them with their waits, which are over.
        """
        with self._lock:
            taken = {}
            for job in self._jobs:
                wait = self._room.end_outlasted(job, refusal)
                if wait is not None:
                    taken[job] = wait
            self._jobs = [job for job in self._jobs if job not in taken]
            return taken

    def take_all(self) -> Sequence[Job]:
        """Remove all jobs."""
        with self._lock:
            taken = self._jobs
            self._jobs = []
            return taken

    def _due_jobs(self) -> Sequence[Job]:
        """Return the jobs that may start, in the order in which they should."""
        now = self._clock.monotonic()
        due = [job for job in self._jobs if self._room.next_at(job) <= now]
        return sorted(due, key=self._limited.__contains__)
