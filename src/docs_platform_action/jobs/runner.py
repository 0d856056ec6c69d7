"""Runs a step's jobs: as many at the same time as are wanted, each its whole way, none stopped by another's failure."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..clock import Clock
from ..errors import ActionError, Cancelled, Forbidden, Unauthorized
from ..job import Job


@dataclass(frozen=True, kw_only=True)
class Work:
    """One job to be done. `carry_out` gets what to call once the platform's job is known, and raises what it failed with."""

    record: Job
    carry_out: Callable[[Callable[[], None]], None]


class Watcher(Protocol):
    """Who wants to know how the jobs go."""

    def at_work(self, record: Job) -> None:
        """Hear that a job is taken on."""
        ...

    def ended(self, record: Job) -> None:
        """Hear that a job has come to its end, well or with the failure in its record, or that it will not be begun."""
        ...


class SideBySide:
    """Several jobs, `at_once` of them at the same time.

    The first one is alone until its job is known or it has failed: where the platform refuses the key, it is asked once, and
    not again for each job. `failure_of` makes a failure of a fault of the action's own.
    """

    def __init__(
        self,
        works: Sequence[Work],
        *,
        at_once: int,
        clock: Clock,
        watcher: Watcher,
        failure_of: Callable[[Exception], ActionError],
    ) -> None:
        self._first, *others = works
        self._waiting = deque(others)
        self._at_once = at_once
        self._clock = clock
        self._watcher = watcher
        self._failure_of = failure_of
        self._helpers: list[threading.Thread] = []
        self._lock = threading.Lock()

    def run(self) -> None:
        """Do all jobs; what becomes of each is in its record. Raises `Cancelled` when they were cut short."""
        try:
            self._do(self._first, on_job_known=self._get_help)
            refusal = self._first.record.failure
            if isinstance(refusal, Unauthorized | Forbidden) and self._first.record.job_id is None:
                self._refuse_others(refusal)
            self._get_help()
            self._work_off()
        finally:
            for helper in self._helpers:  # also when it is cut short: they may have something to clear away
                helper.join()

    def _get_help(self) -> None:
        with self._lock:
            while len(self._helpers) < min(self._at_once - 1, len(self._waiting)):
                helper = threading.Thread(target=self._help, daemon=True, name=f"work {len(self._helpers) + 2}")
                try:
                    helper.start()
                except RuntimeError:  # the machine allows no more: those that there are do the rest
                    return
                self._helpers.append(helper)

    def _help(self) -> None:
        try:
            self._work_off()
        except Cancelled:
            return  # whoever cancelled it reports what was not done

    def _work_off(self) -> None:
        while (work := self._next()) is not None:
            self._do(work, on_job_known=lambda: None)

    def _next(self) -> Work | None:
        with self._lock:
            return self._waiting.popleft() if self._waiting else None

    def _do(self, work: Work, *, on_job_known: Callable[[], None]) -> None:
        record = work.record
        record.began = self._clock.monotonic()
        self._watcher.at_work(record)
        try:
            work.carry_out(on_job_known)
        except Cancelled:
            raise
        except ActionError as error:
            record.failure = error
        except Exception as error:  # noqa: BLE001  # the last resort: it becomes one `internal-error`, and stops no other job
            record.failure = self._failure_of(error)
        self._end(record)

    def _refuse_others(self, refusal: ActionError) -> None:
        """Fail the jobs that were not begun with the platform's answer to the first."""
        while (work := self._next()) is not None:
            work.record.failure = type(refusal)(
                refusal.happened,
                facts=(*refusal.facts, f"It was not started: this was the answer for {self._first.record.domain}, the first."),
                cause=refusal.because,
                remedy=refusal.way_out,
                request_id=refusal.request_id,
            )
            self._end(work.record)

    def _end(self, record: Job) -> None:
        record.ended = self._clock.monotonic()
        record.leave(record.ended)
        self._watcher.ended(record)
