"""Jobs run side by side, after the first one's start is answered. In virtual time."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from itertools import accumulate
from string import ascii_lowercase
from threading import Thread
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import Mock, patch

import pytest

from docs_platform_action.bundle.link import Renewals
from docs_platform_action.context import Context
from docs_platform_action.errors import (
    ActionError,
    Cancelled,
    Forbidden,
    JobFailed,
    NoRoom,
    Unauthorized,
    UnknownHost,
)
from docs_platform_action.events import Listener
from docs_platform_action.inputs.settings import DeliverySettings
from docs_platform_action.job import BUNDLE, DOWNLOAD, QUEUE, UNPACK, Job
from docs_platform_action.jobs import runner as module
from docs_platform_action.jobs.collect import Collect
from docs_platform_action.jobs.export import Export
from docs_platform_action.jobs.runner import CLEANUP_GRACE_SECONDS, START_GRACE_SECONDS, Runner
from docs_platform_action.jobs.task import Batch, Task
from docs_platform_action.main import CANCELLED_OUTPUTS_SECONDS
from docs_platform_action.models import BundleLink
from docs_platform_action.platform.room import Room, StartHeld
from docs_platform_action.signals import ABORT_GRACE_SECONDS, FORCE_EXIT_SECONDS
from tests.unit.fakes import context
from tests.virtual_time import BEGINNING, VirtualClock

NONE: Final[Mapping[str, Any]] = {}
OTHER_STARTS_REFUSED: Final = [Unauthorized, Forbidden, UnknownHost]


class Run:
    """A run of jobs of the sites a, b, c …, each of which is started, and then worked on.

    Whatever happens, such as `work a`, takes `seconds` and raises `errors`, an error once if it is
    in a list. A job has a link when its work ends; it and a new one are valid for `links` seconds.
    """

    def __init__(
        self,
        count: int,
        max_parallel: int = 10,
        *,
        is_started: bool = True,
        seconds: Mapping[str, float] = NONE,
        errors: Mapping[str, Any] = NONE,
        links: Mapping[str, float] = NONE,
    ) -> None:
        self.clock = VirtualClock()
        self.seconds = seconds
        self.errors = errors
        self.links = links
        self.happened: list[str] = []
        self.jobs = []
        for letter in ascii_lowercase[:count]:
            job = Job(kind=Export(), domain=letter)
            if not is_started:
                job = Job(kind=Collect(), domain=letter, job_id="se_1")
            self.jobs.append(job)
        self.room = Room(self.clock, start_timeout_seconds=60.0)
        self.parts = context(self.clock, self, platform=self, room=self.room)
        steps = [self.start, self.work] if is_started else [self.work]
        tasks = [Task(job=job, settings=None, steps=steps) for job in self.jobs]
        renewals = Renewals({job: DeliverySettings() for job in self.jobs}, self.parts)
        batch = Batch(tasks=tasks, max_parallel=max_parallel)
        self.runner = Runner(batch, self.parts, renewals=renewals if links else None)

    def run(self, *, signal_at: float = 1e9) -> list[str | None]:
        """Run the jobs until they end or a signal comes, and return their failure reasons."""

        def interrupt() -> None:
            self.clock.sleep(signal_at)
            self.runner.stop()
            self.clock.cancel()

        with patch.object(module, "threading", SimpleNamespace(Thread=self.clock.Thread)):
            self.clock.run(self.runner.run, interrupt)
        return [_reason_of(job) for job in self.jobs]

    def trace(self, *events: str) -> list[str]:
        return [each for each in self.happened if each.split()[0] in events]

    def start(self, job: Job, _settings: None, _context: Context) -> None:
        try:
            self._happen("start", job)
        except NoRoom as refusal:
            self.room.refuse(job, refusal)
            raise
        self.room.accept(job)
        job.record_start(f"se_{job.domain}", "queued", self.clock.monotonic())
        self._happen("started", job)

    def work(self, job: Job, _settings: None, _context: Context) -> None:
        job.start_phase(QUEUE, self.clock.monotonic())
        job.link = self._link(self._happen("work", job))

    def make_link(self, job: Job) -> BundleLink:
        return self._link(self._happen("renew", job))

    def _link(self, name: str) -> BundleLink:
        expires = self.clock.now() + timedelta(seconds=self.links.get(name, 3600))
        return BundleLink(url=name, expires=expires)

    def __getattr__(self, event: str) -> Callable[..., str]:
        if event not in vars(Listener):
            raise AttributeError(event)
        return lambda job, *_: self._happen(event, job)

    def _happen(self, what: str, job: Job) -> str:
        name = f"{what} {job.domain}"
        self.happened.append(name)
        self.clock.sleep(self.seconds.get(name, 0))
        error = self.errors.get(name)
        if isinstance(error, list):
            error = error.pop() if error else None
        if error is not None:
            raise error
        return name


def _reason_of(job: Job) -> str | None:
    return None if job.failure is None else job.failure.failure_reason


@pytest.mark.parametrize(
    ("errors", "reason", "events"),
    [
        ({}, None, ["start", "started", "work"]),
        ({"start a": JobFailed("failed")}, "job-failed", ["start"]),
        ({"work a": JobFailed("failed")}, "job-failed", ["start", "started", "work"]),
        ({"work a": ZeroDivisionError("a bug")}, "internal-error", ["start", "started", "work"]),
    ],
)
def test_the_steps_are_done_in_order_up_to_the_first_error_and_the_end_is_recorded(
    errors: Mapping[str, Exception],
    reason: str | None,
    events: list[str],
) -> None:
    run = Run(1, seconds={"start a": 1, "work a": 2}, errors=errors)

    assert run.run() == [reason]
    assert run.happened == [f"{event} a" for event in ("job_begun", *events, "job_ended")]
    (job,) = run.jobs
    assert job.began_at == BEGINNING
    assert job.ended_at == BEGINNING + (3 if "work" in events else 1)
    assert {phase.ended_at for phase in job.phases} <= {job.ended_at}


@pytest.mark.parametrize(("max_parallel", "together"), [(1, 1), (3, 3), (6, 6), (100, 6)])
def test_the_first_is_alone_until_it_is_started_then_max_parallel_run(
    max_parallel: int, together: int
) -> None:
    run = Run(6, max_parallel, seconds={"start a": 5})

    assert run.run() == [None] * 6
    assert run.trace("job_begun", "started")[:3] == ["job_begun a", "started a", "job_begun b"]
    changes = [1 if "begun" in each else -1 for each in run.trace("job_begun", "job_ended")]
    assert max(accumulate(changes)) == together


@pytest.mark.parametrize("kind", OTHER_STARTS_REFUSED)
def test_if_the_start_of_the_first_shows_that_all_would_fail_no_other_one_is_sent(
    kind: type[ActionError],
) -> None:
    error = kind(
        "refused", details=("It said so.",), cause="Why.", remedy="What to do.", request_id="r-1"
    )
    run = Run(3, errors={"start a": error})

    assert run.run() == [kind.failure_reason] * 3
    assert run.happened == ["job_begun a", "start a", "job_ended a", "job_ended b", "job_ended c"]
    failure = vars(run.jobs[2].failure)
    assert {**failure, "details": failure["details"][:-1]} == vars(error)
    assert [job.duration_seconds(1e9) for job in run.jobs] == [0, 0, 0]


@pytest.mark.parametrize(
    ("name", "error", "reasons"),
    [
        ("start a", JobFailed("failed"), ["job-failed", None, None]),
        ("work a", Unauthorized("refused"), ["unauthorized", None, None]),
        ("work b", ZeroDivisionError("a bug"), [None, "internal-error", None]),
    ],
)
def test_any_other_failure_leaves_the_others_alone(
    name: str, error: Exception, reasons: list[str | None]
) -> None:
    assert Run(3, 1, errors={name: error}).run() == reasons


def test_a_site_that_is_busy_shows_that_the_key_is_accepted() -> None:
    errors = {"start a": [NoRoom(status=NoRoom.BUSY)], "start b": Unauthorized("refused")}
    run = Run(3, errors=errors)

    assert run.run() == [None, "unauthorized", None]
    assert run.trace("start") == ["start a", "start b", "start c", "start a"]


def test_a_job_that_waits_for_room_begins_once_and_fails_when_its_time_is_up() -> None:
    run = Run(1, errors={"start a": NoRoom(status=NoRoom.BUSY)})

    assert run.run() == ["rejected"]
    assert run.trace("job_begun") == ["job_begun a"]
    assert run.trace("start") == ["start a"] * 3
    assert run.trace("waiting_for_room") == ["waiting_for_room a"] * 2
    assert run.jobs[0].ended_at == BEGINNING + 60


def test_while_the_first_waits_for_room_the_others_run_side_by_side() -> None:
    errors = {"start a": [NoRoom(status=NoRoom.BUSY)]}
    run = Run(3, seconds={"work b": 9, "work c": 9}, errors=errors)

    assert run.run() == [None] * 3
    assert run.trace("work", "job_ended")[:2] == ["work b", "work c"]


def test_after_a_limit_the_other_sites_are_tried_first() -> None:
    limit = NoRoom(status=NoRoom.LIMIT)
    run = Run(3, errors={"start a": [limit], "start b": [limit]})

    assert run.run() == [None] * 3
    assert run.trace("start") == ["start a", "start b", "start c", "start a", "start b"]


def test_one_last_attempt_of_a_limit_ends_all_that_it_has_held_back() -> None:
    errors = {f"start {site}": NoRoom(status=NoRoom.LIMIT) for site in "abc"}
    run = Run(3, errors=errors)

    assert run.run() == ["unavailable"] * 3
    assert run.trace("start") == ["start a", "start b", "start c"]
    assert run.trace("job_begun") == ["job_begun a", "job_begun b", "job_begun c"]


def test_after_a_limit_a_start_that_fails_does_not_keep_back_the_others() -> None:
    errors = {"start a": [NoRoom(status=NoRoom.LIMIT)], "start b": JobFailed("failed")}

    assert Run(3, errors=errors).run() == [None, "job-failed", None]


def test_a_start_that_was_held_back_is_sent_later() -> None:
    run = Run(2, errors={"start b": [StartHeld()]})

    assert run.run() == [None, None]
    assert run.trace("start") == ["start a", "start b", "start b"]
    assert run.trace("job_begun") == ["job_begun a", "job_begun b"]


def test_if_no_thread_can_be_started_the_existing_ones_run_all_jobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run(3)
    monkeypatch.setattr(Thread, "start", Mock(side_effect=RuntimeError("can't start new thread")))

    run.runner.run()

    assert run.trace("job_ended") == ["job_ended a", "job_ended b", "job_ended c"]


class TestSignal:
    @pytest.mark.parametrize(
        ("was_sent", "phase", "seconds"),
        [
            (None, BUNDLE, (0.0, ABORT_GRACE_SECONDS)),
            (False, BUNDLE, (0.0, ABORT_GRACE_SECONDS)),
            (True, BUNDLE, (START_GRACE_SECONDS, ABORT_GRACE_SECONDS)),
            (None, DOWNLOAD, (0.0, CLEANUP_GRACE_SECONDS)),
            (True, UNPACK, (START_GRACE_SECONDS, CLEANUP_GRACE_SECONDS - START_GRACE_SECONDS)),
        ],
    )
    def test_a_start_gets_time_for_its_response_and_a_delivery_to_clean_up(
        self, was_sent: bool | None, phase: str, seconds: tuple[float, float]
    ) -> None:
        run = Run(2)
        if was_sent is not None:
            run.jobs[1].start_attempt = SimpleNamespace(was_sent=was_sent)
        run.jobs[1].start_phase(phase, 0.0)

        assert (run.runner.stop(), run.runner.abort()) == seconds
        assert run.clock.cancellation.is_aborted
        with pytest.raises(Cancelled):
            run.clock.sleep(0)

    @pytest.mark.parametrize("phase", [BUNDLE, DOWNLOAD, UNPACK])
    @pytest.mark.parametrize("was_sent", [False, True])
    def test_the_outputs_are_written_before_the_runner_sends_its_last_signal(
        self, phase: str, was_sent: bool
    ) -> None:
        run = Run(2)
        run.jobs[0].start_attempt = SimpleNamespace(was_sent=was_sent)
        run.jobs[1].start_phase(phase, 0.0)
        seconds = ABORT_GRACE_SECONDS  # of a tick that is blocked

        seconds += run.runner.stop() + run.runner.abort() + CANCELLED_OUTPUTS_SECONDS

        assert seconds < 7.5
        assert FORCE_EXIT_SECONDS < 7.5

    def test_before_the_run_it_finds_all_jobs_unfinished(self) -> None:
        run = Run(2)

        run.runner.cancel_unfinished("SIGTERM")

        assert [_reason_of(job) for job in run.jobs] == ["cancelled", "cancelled"]

    @pytest.mark.parametrize("is_started", [True, False])
    def test_it_ends_the_run_and_is_recorded_in_the_unfinished_jobs(self, is_started: bool) -> None:
        run = Run(3, 2, is_started=is_started, seconds={"work a": 5, "work b": 20, "work c": 20})

        with pytest.raises(Cancelled):
            run.run(signal_at=10)
        run.runner.cancel_unfinished("SIGTERM")

        assert [job.domain for job in run.runner.unfinished] == ["b", "c"]
        assert [_reason_of(job) for job in run.jobs] == [None, "cancelled", "cancelled"]
        failure = run.jobs[1].failure
        assert failure is not None
        assert "SIGTERM" in failure.cause
        assert run.trace("job_ended") == ["job_ended a"]

    @pytest.mark.parametrize("error", [None, JobFailed("failed")])
    def test_the_end_of_a_job_does_not_replace_a_recorded_cancel(
        self, error: Exception | None
    ) -> None:
        ends = []

        class Outlasting(Run):
            def work(self, job: Job, _settings: None, _context: Context) -> None:
                self.runner.stop()
                self.runner.cancel_unfinished("SIGTERM")
                ends.append((job.failure, job.ended_at))
                self.clock.advance(5)  # the job's thread outlasts the cancel
                if error is not None:
                    raise error

        run = Outlasting(1)

        run.runner.run()

        (job,) = run.jobs
        assert isinstance(job.failure, Cancelled)
        assert ends == [(job.failure, job.ended_at)]
        assert run.trace("job_ended") == []


class TestRenewals:
    """Links that must be renewed before the run ends, which the last job does at second 100."""

    def run(self, *, seconds: Mapping[str, float] = NONE) -> Run:
        links = {"work a": 100.0, "work b": 100.0, "work c": 100.0}
        return Run(4, links=links, seconds={"work d": 100, **seconds})

    def test_they_are_made_after_the_last_job(self) -> None:
        run = self.run()

        assert run.run() == [None] * 4
        assert run.trace("job_ended", "renew")[3:] == ["job_ended d", *run.trace("renew")]
        assert run.trace("renew") == ["renew a", "renew b", "renew c"]

    def test_a_signal_leaves_the_jobs_without_a_new_link_unfinished(self) -> None:
        run = self.run(seconds={"renew b": 10, "renew c": 20})

        with pytest.raises(Cancelled):
            run.run(signal_at=105)

        assert [job.domain for job in run.runner.unfinished] == ["b", "c"]
        assert run.trace("renew") == ["renew a", "renew b"]
