"""Exports sites in parallel. If one fails, the others continue."""

import contextlib
import threading
from collections.abc import Sequence
from typing import Final

from ..bundle.deliver import Delivery, warn_of_failed_renewal
from ..context import PlatformContext
from ..errors import ActionError, Cancelled, NoRoom, NotDeployed, Unavailable, internal_error
from ..inputs.settings import ExportSettings
from ..job import MIN_LINK_SECONDS, Job
from ..platform.room import StartHeld, room_failure
from .collect import collect_site
from .export import start_site
from .runner import Runner
from .start_queue import StartQueue

# how long a cancel waits for the response to a start request, which holds the job's id
START_GRACE_SECONDS: Final = 0.5

MAX_FAILED_RENEWALS: Final = 3  # in a row, at the end of a run


class ExportRunner(Runner):
    """Starts a job for each site, and waits for them in parallel."""

    _context: PlatformContext

    def __init__(
        self,
        jobs: Sequence[Job],
        settings: ExportSettings,
        context: PlatformContext,
    ) -> None:
        super().__init__(jobs, context)
        self._settings = settings
        self._deliveries = {
            job: site.delivery for job, site in zip(jobs, settings.sites, strict=True)
        }
        self._queue = StartQueue(jobs, context.platform.room, context.clock)
        self._max_workers = min(settings.max_parallel, len(jobs)) - 1  # beside this thread
        self._workers: list[threading.Thread] = []
        self._unrenewed: set[Job] = set()  # whose link may still be replaced at the end
        self._is_key_accepted = False  # as far as the platform's answers to starts say

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
        if len(self._jobs) > 1:  # a single job has just renewed its link
            self._renew_links()

    def stop(self) -> float:
        """Ask the jobs to end. Return how many seconds they get."""
        super().stop()
        for job in self._jobs:
            if job.is_start_unconfirmed:
                return START_GRACE_SECONDS
        return 0.0

    def _is_unfinished(self, job: Job) -> bool:
        return super()._is_unfinished(job) or self._is_expiring(job)

    def _renew_links(self) -> None:
        """Renew each link once that expired while other jobs ran, or is about to expire.

        Raises `Cancelled`.
        """
        self._unrenewed = {*self._jobs}
        failed = 0
        job = self._next_expiring()
        while job is not None:
            self._context.clock.cancellation.check()
            if failed >= MAX_FAILED_RENEWALS:  # each may take `outage-tolerance`
                reason = f"{MAX_FAILED_RENEWALS} other links in a row could not be replaced"
                error = Unavailable(f"{reason}, so it was not tried")
                warn_of_failed_renewal(job, self._context, error)
            elif Delivery(job, self._deliveries[job], self._context).renew_link():
                failed = 0
            else:
                failed += 1
            self._unrenewed.discard(job)
            job = self._next_expiring()

    def _next_expiring(self) -> Job | None:
        for job in self._jobs:
            if self._is_expiring(job):
                return job
        return None

    def _is_expiring(self, job: Job) -> bool:
        """Return whether a job's link is to be replaced before the run ends."""
        if job.failure is not None or job.has_short_link or job not in self._unrenewed:
            return False
        return job.link_seconds(self._context.clock.now()) < MIN_LINK_SECONDS

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
            self._start(job)
            if job is self._jobs[0]:
                self._start_workers()
            if self._settings.wait:
                collect_site(job, self._settings.waiting, self._deliveries[job], self._context)
            else:
                text = "Not waiting for the job, because `wait` is `false`."
                self._context.events.noted(job, text)
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

    def _start(self, job: Job) -> None:
        """Start a job, and announce it once its id is written: a log may block."""
        api = self._context.platform
        # the first job's wait for the commit counts for all, unless it may be outdated
        may_be_outdated = job.room is not None or api.room.has_been_limited
        job.deployed = None if may_be_outdated else self._jobs[0].deployed
        started = start_site(job, self._settings, self._context)
        self._is_key_accepted = True
        if len(self._jobs) == 1:  # of several, only `results` has the ids
            self._context.outputs.write_job_id(job)
        api.announce(started)
        self._context.events.job_known(job)

    def _wait_for_room(self, job: Job, refusal: NoRoom) -> None:
        """Put a job back whose start was refused, or end it if its time is up."""
        is_limit = refusal.status == NoRoom.LIMIT
        if not is_limit:
            self._is_key_accepted = True
        if job.room is not None and job.room.is_over:
            over = {job: job.room}
            if is_limit:
                over |= self._queue.take_outlasted(refusal)
            for ended, wait in over.items():
                self._end(ended, room_failure(ended, wait, self._context.clock.monotonic()))
            return
        self._context.events.waiting_for_room(job, refusal)
        if is_limit:
            self._queue.put_behind(job)
        else:
            self._queue.put_back(job)

    def _fail(self, job: Job, failure: ActionError) -> None:
        """End a job, and those in the queue, too, if they would fail in the same way."""
        is_about_key = failure.is_about_all_sites and not self._is_key_accepted
        others: Sequence[Job] = ()
        if is_about_key or isinstance(failure, NotDeployed):
            others = self._queue.take_all()
        self._end(job, failure)
        not_started = f"It was not started because {job.site} failed with this error."
        for other in others:
            self._end(other, failure.with_details(*failure.details, not_started))

    def _end(self, job: Job, failure: ActionError | None) -> None:
        self._context.platform.room.end(job)
        super()._end(job, failure)
