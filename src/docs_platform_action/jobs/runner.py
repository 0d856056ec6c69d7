"""Runs the tasks of a batch, side by side, and records how each job ended."""

import contextlib
import threading
from collections.abc import Sequence
from typing import Final

from ..bundle.link import Renewals
from ..context import Context
from ..errors import ActionError, Cancelled, NoRoom, internal_error
from ..job import DOWNLOAD, UNPACK, Job
from ..platform.room import StartHeld, room_failure
from ..signals import ABORT_GRACE_SECONDS
from .start_queue import StartQueue
from .task import Batch

# How long after a signal a cancel waits for the response to a start request, which holds the job's
# id, and until when a cancelled delivery may remove its files. Then the outputs are written: the
# runner sends its last signal after 7.5 s, and kills the process 2.5 s later (source:
# actions/runner, ProcessInvoker).
START_GRACE_SECONDS: Final = 3.0
CLEANUP_GRACE_SECONDS: Final = 5.0


class Runner:
    """Runs a batch. If one job fails, the others continue.

    `unfinished` holds the jobs that had not ended when a signal came.
    """

    tick_seconds = 1.0

    def __init__(self, batch: Batch, context: Context, *, renewals: Renewals | None = None) -> None:
        self._jobs = batch.jobs
        self.unfinished = self._jobs
        self._tasks = {task.job: task for task in batch.tasks}
        self._context = context
        self._renewals = renewals
        self._queue = StartQueue(self._jobs, context.room, context.clock)
        self._max_workers = min(batch.max_parallel, len(self._jobs)) - 1  # beside this thread
        self._workers: list[threading.Thread] = []
        self._has_found_busy_site = False  # then the key and the address are right
        self._ending = threading.Lock()  # held while the end of a job is recorded
        self._start_grace_seconds = 0.0  # that a cancel gives to start requests

    def run(self) -> None:
        """Run all jobs, and record each failure in its job. Raises `Cancelled`."""
        try:
            # alone until its start is answered: a wrong key or host would fail the others, too
            first = self._queue.take()
            if first is not None:
                self._run_job(first)
            if not self._queue.is_empty:
                self._start_workers()
            self._run_queued_jobs()
        finally:
            for worker in self._workers:  # also after a cancel: they may be cleaning up
                worker.join()
        if self._renewals is not None:
            self._renewals.run()

    def tick(self) -> None:
        """Announce a heartbeat."""
        self._context.listener.heartbeat()

    def stop(self) -> float:
        """Ask the jobs to end. Return how many seconds they get."""
        # a job that ends from now on was cancelled too
        self.unfinished = [job for job in self._jobs if self._is_unfinished(job)]
        self._context.clock.cancellation.cancel()
        for job in self._jobs:
            if job.is_start_unconfirmed:
                self._start_grace_seconds = START_GRACE_SECONDS
        return self._start_grace_seconds

    def abort(self) -> float:
        """End all requests. Return how many seconds the jobs get to clean up."""
        self._context.clock.cancellation.is_aborted = True
        for job in self._jobs:
            if job.is_in(DOWNLOAD, UNPACK):
                return CLEANUP_GRACE_SECONDS - self._start_grace_seconds
        return ABORT_GRACE_SECONDS

    def cancel_unfinished(self, signal_name: str) -> None:
        """Record in each unfinished job that a signal ended it."""
        now = self._context.clock.monotonic()
        with self._ending:
            for job in self.unfinished:
                job.cancel(signal_name, now)

    def _is_unfinished(self, job: Job) -> bool:
        if job.ended_at is None:
            return True
        return self._renewals is not None and self._renewals.is_due(job)

    def _start_workers(self) -> None:
        # the machine may allow no more threads: then the existing ones run all jobs
        with contextlib.suppress(RuntimeError):
            while len(self._workers) < self._max_workers:
                name = f"work {len(self._workers) + 2}"
                worker = threading.Thread(target=self._work, daemon=True, name=name)
                worker.start()
                self._workers.append(worker)

    def _work(self) -> None:
        with contextlib.suppress(Cancelled):  # the main thread reports it
            self._run_queued_jobs()

    def _run_queued_jobs(self) -> None:
        job = self._queue.take()
        while job is not None:
            self._run_job(job)
            job = self._queue.take()

    def _run_job(self, job: Job) -> None:
        try:
            if job.began_at is None:
                self._begin(job)
            self._run_steps(job)
        except StartHeld:
            self._queue.put_back(job)
        except NoRoom as refusal:
            self._wait_for_room(job, refusal)
        except Cancelled:
            raise
        except ActionError as error:
            self._fail(job, error)
        except Exception as error:  # noqa: BLE001  # a bug in one job must not stop the others
            self._fail(job, internal_error(error))
        else:
            self._end(job, None)

    def _run_steps(self, job: Job) -> None:
        task = self._tasks[job]
        for step in task.steps:
            was_started = job.was_started_here
            step(job, task.settings, self._context)
            is_first_start = job is self._jobs[0] and job.was_started_here and not was_started
            if is_first_start:  # so the key and the address are right
                self._start_workers()

    @property
    def _is_key_accepted(self) -> bool:
        """Whether the key and the address are right, by the platform's answers to starts."""
        return self._has_found_busy_site or any(job.was_started_here for job in self._jobs)

    def _begin(self, job: Job) -> None:
        """Record and announce that the run begins to work on a job."""
        job.began_at = self._context.clock.monotonic()
        self._context.listener.job_begun(job)

    def _wait_for_room(self, job: Job, refusal: NoRoom) -> None:
        """Put a job back whose start was refused, or end it if its time is up."""
        is_limit = refusal.status == NoRoom.LIMIT
        if not is_limit:
            self._has_found_busy_site = True
        if job.room is not None and job.room.is_over:
            over = {job: job.room}
            if is_limit:
                over |= self._queue.take_outlasted(refusal)
            for ended, wait in over.items():
                self._end(ended, room_failure(ended, wait, self._context.clock.monotonic()))
            return
        self._context.listener.waiting_for_room(job, refusal)
        if is_limit:
            self._queue.put_behind(job)
        else:
            self._queue.put_back(job)

    def _fail(self, job: Job, failure: ActionError) -> None:
        """End a job, and those in the queue, too, if they would fail in the same way."""
        others: Sequence[Job] = ()
        if failure.is_about_all_sites and not self._is_key_accepted:
            others = self._queue.take_all()
        self._end(job, failure)
        not_started = f"It was not started because {job.site} failed with this error."
        for other in others:
            self._end(other, failure.with_details(*failure.details, not_started))

    def _end(self, job: Job, failure: ActionError | None) -> None:
        """Record and announce the end of a job, unless a cancel is recorded.

        The thread of a job may outlast the cancel.
        """
        self._context.room.end(job)
        now = self._context.clock.monotonic()
        with self._ending:
            if isinstance(job.failure, Cancelled):
                return
            job.failure = failure
            job.ended_at = now
            job.end_phase(now)
        self._context.listener.job_ended(job)
