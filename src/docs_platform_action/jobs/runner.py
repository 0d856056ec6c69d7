"""Runs the jobs of a step in parallel. If one fails, the others continue."""

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ..api.admin_api import Unannounced
from ..api.room import StartHeld
from ..bundle.deliver import Delivery, warn_of_link
from ..context import Context
from ..errors import (
    ActionError,
    Cancelled,
    NoRoom,
    NotDeployed,
    Unavailable,
    internal_error,
)
from ..inputs.settings import JobSettings, Mode
from ..job import DOWNLOAD, MIN_LINK_SECONDS, UNPACK, Job
from ..signals import ABORT_GRACE_SECONDS
from .agent import wait_for_agent
from .collect import collect_site
from .export import start_site
from .start_queue import StartQueue, room_failure

# what to do with a job; each raises the job's `ActionError`
FUNCTIONS: Final[Mapping[Mode, Callable[[Job, JobSettings, Context], None]]] = {
    Mode.EXPORT: collect_site,
    Mode.COLLECT: collect_site,
    Mode.UNPACK: lambda job, settings, context: Delivery(job, settings.delivery, context).deliver(),
    Mode.AGENT: wait_for_agent,
}

CLEANUP_GRACE_SECONDS: Final = 5.0
"""How long a cancelled delivery may remove its files. The runner sends its last signal after 7.5 s, and kills the process 2.5 s
later (source: actions/runner, ProcessInvoker)."""

START_GRACE_SECONDS: Final = (
    0.5  # how long a cancel waits for the response to a start request, which holds the job's id
)
MAX_FAILED_RENEWALS: Final = 3  # in a row, at the end of a run


class Runner:
    """Runs jobs. `unfinished` holds those that had not ended when a signal came."""

    tick_seconds = 1.0

    def __init__(
        self, jobs: Sequence[tuple[Job, JobSettings]], context: Context, *, max_parallel: int
    ) -> None:
        self._jobs = self.unfinished = [job for job, _ in jobs]
        self._settings = dict(jobs)
        self._unrenewed: set[Job] = set()
        self._context = context
        self._queue = StartQueue(self._jobs, context.api.room, context.clock)
        self._max_workers = min(max_parallel, len(jobs)) - 1
        self._workers: list[threading.Thread] = []
        self._ending = threading.Lock()  # held while the end of a job is recorded
        self._has_accepted_key = False  # as far as the platform's answers to starts say

    def run(self) -> None:
        """Run all jobs, and record each failure in its job. Raises `Cancelled`."""
        first = self._queue.take()
        assert first is not None  # noqa: S101  # for the type checker: there is always a job
        try:
            # alone until its start is answered: a wrong key or host would fail the others, too
            self._run_job(first)
            if not self._queue.is_empty:
                self._start_workers()
            self._run_queued_jobs()
        finally:
            for worker in self._workers:  # also after a cancel: they may be cleaning up
                worker.join()
        if len(self._jobs) > 1:  # a single job has just renewed its link
            self._renew_links()

    def _renew_links(self) -> None:
        """Renew each link once that expired while other jobs ran, or is about to expire. Raises `Cancelled`."""
        self._unrenewed, failed = {*self._jobs}, 0
        while job := next(filter(self._is_expiring, self._jobs), None):
            self._context.clock.cancellation.check()
            if failed >= MAX_FAILED_RENEWALS:  # each may take `outage-tolerance`
                error = Unavailable(
                    f"{MAX_FAILED_RENEWALS} other links in a row could not be replaced, so it was not tried"
                )
                warn_of_link(job, self._context, error)
            else:
                failed = (
                    0
                    if Delivery(job, self._settings[job].delivery, self._context).renew_link()
                    else failed + 1
                )
            self._unrenewed.discard(job)

    def _is_expiring(self, job: Job) -> bool:
        is_kept = job.failure is not None or job.has_short_link or job not in self._unrenewed
        return not is_kept and job.link_seconds(self._context.clock.now()) < MIN_LINK_SECONDS

    def tick(self) -> None:
        """Announce a heartbeat."""
        self._context.events.heartbeat()

    def stop(self) -> float:
        """Ask the jobs to end. Return how many seconds they get."""
        # a job that ends from now on was cancelled too
        self.unfinished = [
            job for job in self._jobs if job.ended_at is None or self._is_expiring(job)
        ]
        self._context.clock.cancellation.cancel()
        return (
            START_GRACE_SECONDS
            if any(map(self._context.api.is_start_unconfirmed, self._jobs))
            else 0.0
        )

    def abort(self) -> float:
        """End all requests. Return how many seconds the jobs get to clean up."""
        self._context.clock.cancellation.is_aborted = True
        return (
            CLEANUP_GRACE_SECONDS
            if any(job.is_in(DOWNLOAD, UNPACK) for job in self._jobs)
            else ABORT_GRACE_SECONDS
        )

    def cancel_unfinished(self, signal_name: str) -> None:
        """Record in each unfinished job that a signal ended it."""
        now = self._context.clock.monotonic()
        with self._ending:
            for job in self.unfinished:
                # in this order: a start records the id before it clears the mark
                is_start_unconfirmed = self._context.api.is_start_unconfirmed(job)
                job.cancel(signal_name, now, is_start_unconfirmed=is_start_unconfirmed)

    def _start_workers(self) -> None:
        with contextlib.suppress(
            RuntimeError
        ):  # the machine allows no more threads: the existing ones run all jobs
            while len(self._workers) < self._max_workers:
                worker = threading.Thread(
                    target=self._work, daemon=True, name=f"work {len(self._workers) + 2}"
                )
                worker.start()
                self._workers.append(worker)

    def _work(self) -> None:
        with contextlib.suppress(Cancelled):  # the main thread reports it
            self._run_queued_jobs()

    def _run_queued_jobs(self) -> None:
        while (job := self._queue.take()) is not None:
            self._run_job(job)

    def _run_job(self, job: Job) -> None:
        context = self._context
        settings = self._settings[job]
        try:
            if job.began_at is None:
                job.began_at = context.clock.monotonic()
                context.events.job_begun(job)
            started = self._start(job) if settings.mode is Mode.EXPORT else None
            if len(self._jobs) == 1:  # of several, only `results` has the ids
                context.outputs.write_job_id(job)
            if started is not None:  # only now: a log may block
                context.api.announce(started)
            context.events.job_known(job)
            if job is self._jobs[0]:
                self._start_workers()
            if settings.wait:
                FUNCTIONS[settings.mode](job, settings, context)
            else:
                context.events.noted(job, "Not waiting for the job, because `wait` is `false`.")
        except (NoRoom, StartHeld) as reason:
            self._wait_for_room(job, reason)
        except Cancelled:
            raise
        except Exception as error:  # noqa: BLE001  # a bug in one job must not stop the others
            self._fail(job, error if isinstance(error, ActionError) else internal_error(error))
        else:
            self._end(job, None)

    def _start(self, job: Job) -> Unannounced[None]:
        has_waited = job.room is not None or self._context.api.room.has_been_limited
        # of several, only the first one waits for the commit, but after a wait each reads again
        job.deployed = None if has_waited else self._jobs[0].deployed
        started = start_site(job, self._settings[job], self._context)
        self._has_accepted_key = True
        return started

    def _wait_for_room(self, job: Job, reason: NoRoom | StartHeld) -> None:
        """Put a job back whose start was not accepted, or end it if its time is up."""
        if isinstance(reason, StartHeld):
            self._queue.put_back(job)
            return
        is_limit = reason.status == NoRoom.LIMIT
        self._has_accepted_key = self._has_accepted_key or not is_limit
        if job.room is not None and job.room.is_over:
            over = [job, *(self._queue.take_outlasted(reason) if is_limit else [])]
            for ended in over:
                self._end(ended, room_failure(ended, self._context.clock.monotonic()))
            return
        self._context.events.waiting_for_room(job, reason)
        if is_limit:
            self._queue.put_behind(job)
        else:
            self._queue.put_back(job)

    def _fail(self, job: Job, failure: ActionError) -> None:
        """End a job, and those in the queue, too, if they would fail in the same way."""
        is_about_key = failure.is_about_all_sites and not self._has_accepted_key
        others: Sequence[Job] = ()
        if is_about_key or isinstance(failure, NotDeployed):
            others = self._queue.take_all()
        self._end(job, failure)
        not_started = f"It was not started because {job.site} failed with this error."
        for other in others:
            self._end(other, failure.with_details(*failure.details, not_started))

    def _end(self, job: Job, failure: ActionError | None) -> None:
        """Record and announce the end of a job, unless a cancel is recorded.

        The thread of a job may outlast the cancel.
        """
        now = self._context.clock.monotonic()
        self._context.api.room.end(job)
        with self._ending:
            if isinstance(job.failure, Cancelled):
                return
            job.failure = failure
            job.ended_at = now
            job.end_phase(now)
        self._context.events.job_ended(job)


def job_of(settings: JobSettings) -> Job:
    """Return a new job for its settings."""
    return Job(
        mode=settings.mode,
        domain=settings.domain,
        project_id=settings.project_id,
        job_id=settings.job_id,
        masks_bundle_url=settings.delivery.mask_bundle_url,
    )
