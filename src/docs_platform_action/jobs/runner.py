"""Runs jobs, and records how each ended."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final

from ..context import Context
from ..errors import ActionError, Cancelled, internal_error
from ..job import DOWNLOAD, UNPACK, Job
from ..signals import ABORT_GRACE_SECONDS

# How long a cancelled delivery may remove its files. The runner sends its last signal after 7.5 s,
# and kills the process 2.5 s later (source: actions/runner, ProcessInvoker).
CLEANUP_GRACE_SECONDS: Final = 5.0


class Runner(ABC):
    """Runs the jobs of a step.

    `unfinished` holds those that had not ended when a signal came.
    """

    tick_seconds = 1.0

    def __init__(self, jobs: Sequence[Job], context: Context) -> None:
        self.unfinished = jobs
        self._jobs = jobs
        self._context = context
        self._ending = threading.Lock()  # held while the end of a job is recorded

    @abstractmethod
    def run(self) -> None:
        """Run all jobs, and record each failure in its job. Raises `Cancelled`."""

    def tick(self) -> None:
        """Announce a heartbeat."""
        self._context.events.heartbeat()

    def stop(self) -> float:
        """Ask the jobs to end. Return how many seconds they get."""
        # a job that ends from now on was cancelled too
        self.unfinished = [job for job in self._jobs if self._is_unfinished(job)]
        self._context.clock.cancellation.cancel()
        return 0.0

    def abort(self) -> float:
        """End all requests. Return how many seconds the jobs get to clean up."""
        self._context.clock.cancellation.is_aborted = True
        for job in self._jobs:
            if job.is_in(DOWNLOAD, UNPACK):
                return CLEANUP_GRACE_SECONDS
        return ABORT_GRACE_SECONDS

    def cancel_unfinished(self, signal_name: str) -> None:
        """Record in each unfinished job that a signal ended it."""
        now = self._context.clock.monotonic()
        with self._ending:
            for job in self.unfinished:
                job.cancel(signal_name, now)

    def _is_unfinished(self, job: Job) -> bool:
        return job.ended_at is None

    def _begin(self, job: Job) -> None:
        """Record and announce that the run begins to work on a job."""
        job.began_at = self._context.clock.monotonic()
        self._context.events.job_begun(job)

    def _end(self, job: Job, failure: ActionError | None) -> None:
        """Record and announce the end of a job, unless a cancel is recorded.

        The thread of a job may outlast the cancel.
        """
        now = self._context.clock.monotonic()
        with self._ending:
            if isinstance(job.failure, Cancelled):
                return
            job.failure = failure
            job.ended_at = now
            job.end_phase(now)
        self._context.events.job_ended(job)


class SingleJobRunner(Runner):
    """Runs one job that exists already. `work` raises its `ActionError`, and `Cancelled`."""

    def __init__(self, job: Job, work: Callable[[Job], None], context: Context) -> None:
        super().__init__([job], context)
        self._job = job
        self._work = work

    def run(self) -> None:
        """Run the job, and record its failure in it. Raises `Cancelled`."""
        job = self._job
        try:
            self._begin(job)
            self._context.outputs.write_job_id(job)
            self._context.events.job_known(job)
            self._work(job)
        except Cancelled:
            raise
        except ActionError as error:
            self._end(job, error)
        except Exception as error:  # noqa: BLE001  # the outputs and the summary are still written
            self._end(job, internal_error(error))
        else:
            self._end(job, None)
