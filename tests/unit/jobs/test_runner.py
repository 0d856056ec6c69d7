"""A job that exists already: it is known before the work, and its end is recorded."""

from typing import Any, cast

import pytest

from docs_platform_action.errors import Cancelled, JobFailed
from docs_platform_action.inputs.table import Mode
from docs_platform_action.job import DOWNLOAD, Job
from docs_platform_action.jobs.collect import Collect
from docs_platform_action.jobs.runner import CLEANUP_GRACE_SECONDS, SingleJobRunner
from docs_platform_action.signals import ABORT_GRACE_SECONDS
from tests.unit.fakes import RecordedEvents, context
from tests.virtual_time import BEGINNING, VirtualClock


class Run:
    """A run of one job, whose work takes a second and raises an error, if there is one."""

    def __init__(self, error: Exception | None = None) -> None:
        self.clock = VirtualClock()
        self.events = RecordedEvents()
        self.job = Job(kind=Collect(), job_id="se_1")
        self._error = error
        parts = context(self.clock, self.events, outputs=cast(Any, self))
        self.runner = SingleJobRunner(self.job, self._work, parts)

    def write_job_id(self, job: Job) -> None:
        self.events.seen.append(("write_job_id", job))

    def _work(self, job: Job) -> None:
        self.events.seen.append(("work", job))
        self.clock.sleep(1)
        if self._error is not None:
            raise self._error


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (None, None),
        (JobFailed("failed"), "job-failed"),
        (ZeroDivisionError("a bug"), "internal-error"),
    ],
)
def test_it_is_known_before_the_work_and_its_end_is_recorded(
    error: Exception | None,
    reason: str | None,
) -> None:
    run = Run(error)

    run.runner.run()

    events = ["job_begun", "write_job_id", "job_known", "work", "job_ended"]
    assert run.events.names == events
    assert run.job.began_at == BEGINNING
    assert run.job.ended_at == BEGINNING + 1
    failure_reason = None if run.job.failure is None else run.job.failure.failure_reason
    assert failure_reason == reason


def test_a_cancel_ends_the_run_and_is_recorded_with_the_signal() -> None:
    run = Run(Cancelled("cancelled"))

    with pytest.raises(Cancelled):
        run.runner.run()

    assert run.runner.stop() == 0.0
    run.runner.cancel_unfinished("SIGTERM")
    assert isinstance(run.job.failure, Cancelled)
    assert "SIGTERM" in run.job.failure.cause
    assert "job_ended" not in run.events.names


def test_a_job_that_has_ended_is_not_cancelled() -> None:
    run = Run()
    run.runner.run()

    run.runner.stop()
    run.runner.cancel_unfinished("SIGTERM")

    assert run.job.failure is None


@pytest.mark.parametrize(
    ("phase", "seconds"),
    [("exported", ABORT_GRACE_SECONDS), (DOWNLOAD, CLEANUP_GRACE_SECONDS)],
)
def test_a_delivery_gets_time_to_clean_up(phase: str, seconds: float) -> None:
    run = Run()
    run.job.start_phase(phase, 0.0)

    assert run.runner.abort() == seconds
    assert run.clock.cancellation.is_aborted
