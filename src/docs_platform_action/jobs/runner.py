"""Runs the jobs of a step side by side, each to its end, whatever becomes of the others."""

import contextlib
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ..context import Context
from ..errors import ActionError, Cancelled, Forbidden, Unauthorized, internal_error
from ..events import Events
from ..inputs.settings import AgentSettings, ExportSettings
from ..job import Job
from ..models import AGENT, EXPORT
from ..signals import ABORT_GRACE_SECONDS
from .agent import wait_for_agent
from .export import export_site

Settings = ExportSettings | AgentSettings

CLEANUP_GRACE_SECONDS: Final = 5.0
"""How long a cancelled delivery gets to remove its parts: the runner sends its last signal 7.5 s after the first, and kills 2.5 s
later (source: actions/runner, ProcessInvoker)."""

START_GRACE_SECONDS: Final = 0.5
"""How long a cancel waits for the response to a start request, without which nobody knows the job."""


class Runner(Events):
    """Runs jobs with their settings, at most `max_parallel` of them at the same time. It is the work that signals interrupt.

    The first one is alone until its job is known, which the runner listens for, or it has failed: where the platform refuses the
    key, it is asked only once. `unfinished` are the jobs that had not ended when a signal came.
    """

    tick_seconds = 1.0

    def __init__(self, jobs: Sequence[tuple[Job, Settings]], context: Context, *, max_parallel: int) -> None:
        self.unfinished = [job for job, _ in jobs]
        self._jobs = [job for job, _ in jobs]
        self._context = replace(context, events=Events(context.events, self))
        self._first = jobs[0][0]
        self._queue = deque(jobs)
        self._max_parallel = max_parallel
        self._helpers: list[threading.Thread] = []
        self._lock = threading.Lock()

    def run(self) -> None:
        """Run all jobs; what becomes of each is in the job. Raises `Cancelled` when they were cut short."""
        try:
            self._run_job(*self._queue.popleft())
            refusal = self._first.failure
            if isinstance(refusal, Unauthorized | Forbidden) and self._first.job_id is None:
                self._refuse_others(refusal)
            self._start_helpers()
            self._work_off()
        finally:
            for helper in self._helpers:  # also when it is cut short: they may have something to clean up
                helper.join()

    def tick(self) -> None:
        """Announce a heartbeat."""
        self._context.events.heartbeat()

    def stop(self) -> float:
        """Ask the jobs to end by themselves; return how long they get, in seconds."""
        self.unfinished = [job for job in self._jobs if job.ended_at is None]  # now: one that ends in its grace was cancelled too
        self._context.cancellation.cancel()
        self._context.client.in_flight.stop()
        return START_GRACE_SECONDS if any(job.is_start_unconfirmed for job in self._jobs) else 0.0

    def abort(self) -> float:
        """End every exchange; return how long the jobs get to clean up, in seconds."""
        self._context.client.in_flight.abort()
        return CLEANUP_GRACE_SECONDS if self._context.cleanups else ABORT_GRACE_SECONDS

    def job_known(self, job: Job) -> None:
        """Start the other jobs once the first one is known."""
        if job is self._first:
            self._start_helpers()

    def _start_helpers(self) -> None:
        with self._lock:
            while len(self._helpers) < min(self._max_parallel - 1, len(self._queue)):
                helper = threading.Thread(target=self._help, daemon=True, name=f"work {len(self._helpers) + 2}")
                try:
                    helper.start()
                except RuntimeError:  # the machine allows no more: those that there are do the rest
                    return
                self._helpers.append(helper)

    def _help(self) -> None:
        with contextlib.suppress(Cancelled):  # whoever cancelled it reports what was not done
            self._work_off()

    def _work_off(self) -> None:
        while (work := self._next()) is not None:
            self._run_job(*work)

    def _next(self) -> tuple[Job, Settings] | None:
        with self._lock:
            return self._queue.popleft() if self._queue else None

    def _refuse_others(self, refusal: ActionError) -> None:
        """Fail the jobs that were not begun with the platform's response to the first."""
        while (work := self._next()) is not None:
            job, _ = work
            job.failure = type(refusal)(
                refusal.summary,
                details=(*refusal.details, f"It was not started: this was the response for {self._first.domain}, the first."),
                cause=refusal.cause,
                remedy=refusal.remedy,
                request_id=refusal.request_id,
            )
            self._end(job)

    def _run_job(self, job: Job, settings: Settings) -> None:
        context = self._context
        job.began_at = context.clock.monotonic()
        context.events.job_begun(job)
        try:
            if isinstance(settings, ExportSettings):
                export_site(job, settings, context)
            else:
                wait_for_agent(job, settings, context)
        except Cancelled:
            raise
        except Exception as error:  # noqa: BLE001  # the last resort: it becomes one `internal-error`, and stops no other job
            job.failure = error if isinstance(error, ActionError) else internal_error(error)
        self._end(job)

    def _end(self, job: Job) -> None:
        job.ended_at = self._context.clock.monotonic()
        job.end_phase(job.ended_at)
        self._context.events.job_ended(job)


def job_of(settings: Settings) -> Job:
    """Return a job as far as its settings know it."""
    if isinstance(settings, ExportSettings):
        return Job(mode=EXPORT, domain=settings.domain, job_id=settings.job_id)
    return Job(mode=AGENT, project_id=settings.project_id, job_id=settings.job_id)
