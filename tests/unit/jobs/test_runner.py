"""Jobs run in parallel, after the first one is known."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import pytest

from docs_platform_action.errors import (
    ActionError,
    Cancelled,
    Forbidden,
    InternalError,
    JobFailed,
    NotFound,
    Unauthorized,
    Unavailable,
    UnknownHost,
)
from docs_platform_action.inputs.settings import DeliverySettings, JobSettings, Mode, WaitSettings
from docs_platform_action.job import BUNDLE, DOWNLOAD, RUN, UNPACK, Job, Phase
from docs_platform_action.jobs import runner
from docs_platform_action.jobs.runner import CLEANUP_GRACE_SECONDS, START_GRACE_SECONDS, Runner, job_of
from docs_platform_action.models import Bundle
from docs_platform_action.outputs import Outputs
from docs_platform_action.redaction import Redactor
from docs_platform_action.signals import ABORT_GRACE_SECONDS
from tests.unit.fakes import FakeTransport, RecordedEvents, context, http_client
from tests.virtual_time import BEGINNING, NOON, VirtualClock

SECONDS = 30.0
"""How long a thread waits for another before the test fails."""


SETTINGS = JobSettings(
    mode=Mode.EXPORT,
    waiting=WaitSettings(timeout_seconds=600, poll_interval_seconds=1, max_poll_interval_seconds=1),
)


class RecordedLines(RecordedEvents):
    """Records which jobs begin and end."""

    def __init__(self) -> None:
        super().__init__()
        self.announced: list[str] = []
        self.warnings: list[tuple[str | None, str]] = []

    def job_begun(self, job: Job) -> None:
        self.announced.append(f"{job.domain} begins")

    def heartbeat(self) -> None:
        self.announced.append("heartbeat")

    def warning(self, job: Job, lines: Sequence[str]) -> None:
        self.warnings.append((job.domain, lines[2]))

    def job_ended(self, job: Job) -> None:
        assert job.ended_at is not None
        self.announced.append(f"{job.domain} ends")


class FakeApi:
    """Makes links that are valid for so many seconds, after calling `before`."""

    def __init__(self, before: Callable[[Job], None] = lambda _job: None, *, seconds: float = 3600) -> None:
        self.asked: list[str | None] = []
        self._before, self._seconds = before, seconds

    def make_bundle(self, job: Job) -> Bundle:
        self.asked.append(job.domain)
        self._before(job)
        return link_of(job, fresh=True, seconds=self._seconds)

    def is_start_unconfirmed(self, job: Job) -> bool:
        return job.job_id == "unconfirmed"


Work = Callable[[Job], Iterator[None]]
"""What a job does: it yields once the platform's job is known, and then does the rest."""


class Jobs:
    """Jobs a, b, c … that each do something, in parallel."""

    def __init__(
        self, *works: Work, at_once: int = 10, api: object = None, outputs: Outputs | None = None, wait: bool = True
    ) -> None:
        self.clock = VirtualClock()
        self.events = RecordedLines()
        self.jobs = [Job(mode=Mode.EXPORT, domain=letter) for letter, _ in zip("abcdefghijklm", works, strict=False)]
        self._works = {job: work(job) for job, work in zip(self.jobs, works, strict=True)}
        self._context = context(
            self.clock, self.events, client=http_client(FakeTransport()), api=api or FakeApi(), outputs=outputs
        )
        settings = replace(SETTINGS, wait=wait)
        self.runner = Runner([(job, settings) for job in self.jobs], self._context, max_parallel=at_once)

    def run(self) -> Sequence[str | None]:
        """Run the jobs and return the failure reason of each."""
        with (
            patch.object(runner, "start_site", lambda job, *_: next(self._works[job])),
            patch.dict(runner.FUNCTIONS, {Mode.EXPORT: lambda job, *_: [*self._works[job]]}),
        ):
            self.runner.run()
        return [job.failure.failure_reason if job.failure is not None else None for job in self.jobs]


def succeed(job: Job) -> Iterator[None]:
    job.job_id = f"se_{job.domain}"
    yield


def fails_with(error: Exception, *, job_id: str | None = None) -> Work:
    def fail(job: Job) -> Iterator[None]:
        if job_id is not None:
            job.job_id = job_id
            yield
        raise error

    return fail


def test_there_is_a_function_for_every_mode() -> None:
    assert {*runner.FUNCTIONS} == {*Mode}


@pytest.mark.parametrize("masked", [False, True])
def test_a_job_has_the_names_in_its_settings_and_knows_whether_its_link_is_masked(masked: bool) -> None:
    names = {"mode": Mode.COLLECT, "domain": "docs.example.com", "project_id": "prj_1", "job_id": "se_1"}
    settings = replace(SETTINGS, delivery=DeliverySettings(mask_bundle_url=masked), **names)

    job = job_of(settings)

    assert {name: getattr(job, name) for name in names} == names
    assert job.masks_bundle_url is masked


class TestOne:
    def test_it_runs_in_the_calling_thread(self) -> None:
        threads: list[threading.Thread] = []

        def note(_job: Job) -> Iterator[None]:
            yield threads.append(threading.current_thread())
            threads.append(threading.current_thread())

        assert Jobs(note).run() == [None]
        assert threads == [threading.current_thread()] * 2

    def test_its_time_and_its_last_phase_end(self) -> None:
        def take_a_while(job: Job) -> Iterator[None]:
            yield
            job.start_phase(RUN, jobs.clock.monotonic())
            jobs.clock.advance(7)

        jobs = Jobs(take_a_while)
        jobs.run()

        (job,) = jobs.jobs
        assert job.duration_seconds(jobs.clock.monotonic() + 99) == 7
        assert job.phases == [Phase(name=RUN, began_at=BEGINNING, ended_at=BEGINNING + 7)]

    def test_a_bug_is_recorded_as_an_internal_error(self) -> None:
        jobs = Jobs(fails_with(ZeroDivisionError("by zero")))

        assert jobs.run() == ["internal-error"]
        (failure,) = [job.failure for job in jobs.jobs]
        assert isinstance(failure, InternalError)
        assert isinstance(failure.bug, ZeroDivisionError)

    def test_a_cancel_is_raised(self) -> None:
        jobs = Jobs(fails_with(Cancelled("cancelled")))

        with pytest.raises(Cancelled):
            jobs.run()
        assert (jobs.jobs[0].failure, jobs.jobs[0].ended_at) == (None, None)

    def test_its_id_is_written_and_announced_before_its_first_reading(self, tmp_path: Path) -> None:
        def read(job: Job) -> Iterator[None]:
            yield from succeed(job)
            seen.append((file.read_text().count("se_a"), *jobs.events.names))

        file, seen = tmp_path / "output", list[tuple[object, ...]]()
        jobs = Jobs(read, outputs=Outputs(file, Redactor()))

        assert jobs.run() == [None]
        assert seen == [(1, "job_known")]

    def test_it_fails_before_its_first_reading_if_its_id_cannot_be_written(self, tmp_path: Path) -> None:
        def read(job: Job) -> Iterator[None]:
            yield from succeed(job)
            pytest.fail("it is read")

        jobs = Jobs(read, outputs=Outputs(tmp_path, Redactor()))

        assert jobs.run() == ["internal-error"]
        assert jobs.jobs[0].job_id == "se_a"

    def test_it_is_not_read_if_nothing_waits_for_it(self) -> None:
        def read(job: Job) -> Iterator[None]:
            yield from succeed(job)
            pytest.fail("it is read")

        jobs = Jobs(read, wait=False)

        assert jobs.run() == [None]
        assert jobs.events.names == ["job_known", "not_waiting"]

    def test_a_tick_announces_a_heartbeat(self) -> None:
        jobs = Jobs(succeed)

        jobs.runner.tick()

        assert jobs.events.announced == ["heartbeat"]


class TestSeveral:
    def test_each_ends_independently(self) -> None:
        jobs = Jobs(
            succeed, fails_with(NotFound("unknown")), fails_with(KeyError("x")), succeed, fails_with(JobFailed("f"), job_id="s")
        )

        assert jobs.run() == [None, "not-found", "internal-error", None, "job-failed"]
        assert sorted(jobs.events.announced) == sorted(f"{letter} {what}" for letter in "abcde" for what in ("begins", "ends"))

    @pytest.mark.parametrize(("at_once", "together"), [(1, 1), (3, 3), (10, 6), (100, 6)])
    def test_at_most_max_parallel_run_at_the_same_time(self, at_once: int, together: int) -> None:
        at_work, most, lock, full = 0, 0, threading.Lock(), threading.Barrier(together)

        def work(job: Job) -> Iterator[None]:
            nonlocal at_work, most
            yield from succeed(job)
            with lock:
                at_work += 1
                most = max(most, at_work)
            full.wait(SECONDS)  # waits until as many are running; six is a multiple of each
            with lock:
                at_work -= 1

        assert Jobs(*[work] * 6, at_once=at_once).run() == [None] * 6
        assert most == together

    def test_the_next_begins_when_one_has_ended(self) -> None:
        jobs = Jobs(*[succeed] * 5, at_once=1)
        jobs.run()

        assert jobs.events.announced == [f"{letter} {what}" for letter in "abcde" for what in ("begins", "ends")]

    def test_a_cancel_ends_all_and_begins_none(self) -> None:
        begun = threading.Barrier(3)

        def is_cancelled(job: Job) -> Iterator[None]:
            yield from succeed(job)
            begun.wait(SECONDS)
            raise Cancelled("cancelled")

        jobs = Jobs(*[is_cancelled] * 7, at_once=3)

        with pytest.raises(Cancelled):
            jobs.run()
        assert [job.failure for job in jobs.jobs] == [None] * 7
        assert jobs.events.announced == ["a begins", *sorted(jobs.events.announced[1:])]
        assert len(jobs.events.announced) == 3

    def test_jobs_that_clean_up_after_a_cancel_are_waited_for(self) -> None:
        at_work, cleared = threading.Barrier(2), []

        def first(job: Job) -> Iterator[None]:
            yield from succeed(job)
            at_work.wait(SECONDS)
            raise Cancelled("cancelled")

        def slow_to_leave(job: Job) -> Iterator[None]:
            at_work.wait(SECONDS)
            threading.Event().wait(0.05)
            cleared.append(job.domain)
            raise Cancelled("cancelled")
            yield  # never known

        with pytest.raises(Cancelled):
            Jobs(first, slow_to_leave).run()
        assert cleared == ["b"]

    def test_their_ids_are_not_outputs_of_the_step(self, tmp_path: Path) -> None:
        jobs = Jobs(succeed, succeed, outputs=Outputs(tmp_path / "output", Redactor()))

        assert jobs.run() == [None, None]
        assert [*tmp_path.iterdir()] == []

    @pytest.mark.parametrize("event", ["job_begun", "job_ended"])
    @pytest.mark.parametrize("at_once", [1, 2, 10])
    def test_a_bug_in_the_log_of_one_stops_no_other(self, monkeypatch: pytest.MonkeyPatch, event: str, at_once: int) -> None:
        jobs = Jobs(*[succeed] * 5, at_once=at_once)

        def break_for_b(job: Job) -> None:
            if job.domain == "b":
                raise KeyError("pages")

        monkeypatch.setattr(jobs.events, event, break_for_b)

        assert jobs.run() == [None, "internal-error", None, None, None]
        assert [job.ended_at is None for job in jobs.jobs] == [False] * 5

    def test_if_no_thread_can_be_started_the_existing_ones_run_all_jobs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(_: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(threading.Thread, "start", refuse)

        assert Jobs(*[succeed] * 5).run() == [None] * 5


class TestFirst:
    def test_no_other_job_begins_before_it_is_known(self) -> None:
        others = threading.Event()
        seen: list[bool] = []

        def first(job: Job) -> Iterator[None]:
            seen.append(others.wait(0.05))
            yield from succeed(job)
            seen.append(others.wait(SECONDS))

        def other(job: Job) -> Iterator[None]:
            others.set()
            yield from succeed(job)

        Jobs(first, other, other).run()

        assert seen == [False, True]

    @pytest.mark.parametrize("kind", [Unauthorized, Forbidden, UnknownHost])
    def test_if_the_key_or_the_host_is_wrong_the_others_fail_without_a_request(self, kind: type[ActionError]) -> None:
        asked: list[str | None] = []

        def ask(job: Job) -> Iterator[None]:
            asked.append(job.domain)
            raise kind("refused (4xx)", details=("The API said so.",), cause="Why.", remedy="What to do.", request_id="r-1")
            yield  # never known

        jobs = Jobs(*[ask] * 4)

        assert jobs.run() == [kind.failure_reason] * 4
        assert asked == ["a"]
        failure = jobs.jobs[3].failure
        assert failure is not None
        known = (failure.summary, failure.cause, failure.remedy, failure.request_id)
        assert known == ("refused (4xx)", "Why.", "What to do.", "r-1")
        assert failure.details[:-1] == ("The API said so.",)
        assert [job.duration_seconds(1e9) for job in jobs.jobs[1:]] == [0, 0, 0]
        assert jobs.events.announced == ["a begins", "a ends", "b ends", "c ends", "d ends"]

    @pytest.mark.parametrize(
        "error", [Unauthorized("refused"), Forbidden("refused"), UnknownHost("refused"), NotFound("unknown"), KeyError("x")]
    )
    @pytest.mark.parametrize("first_fails", [True, False])
    def test_any_other_failure_of_a_job_affects_only_this_job(self, error: Exception, first_fails: bool) -> None:
        failing = fails_with(error, job_id="se_1" if isinstance(error, Unauthorized | Forbidden | UnknownHost) else None)
        functions = [failing, succeed, succeed] if first_fails else [succeed, fails_with(error), succeed]

        failures = Jobs(*functions).run()

        assert [failure is None for failure in failures] == [function is succeed for function in functions]


@pytest.mark.parametrize(
    ("phases", "seconds"),
    [
        ([], ABORT_GRACE_SECONDS),
        ([RUN], ABORT_GRACE_SECONDS),
        ([RUN, DOWNLOAD], CLEANUP_GRACE_SECONDS),
        ([DOWNLOAD, UNPACK], CLEANUP_GRACE_SECONDS),
        ([DOWNLOAD, UNPACK, BUNDLE], ABORT_GRACE_SECONDS),
    ],
)
def test_after_an_abort_only_jobs_that_write_files_get_time_to_remove_them(phases: list[str], seconds: float) -> None:
    jobs = Jobs(succeed, succeed)
    for phase in phases:
        jobs.jobs[1].start_phase(phase, 0.0)

    assert jobs.runner.abort() == seconds
    assert jobs.clock.cancellation.is_aborted
    jobs.jobs[1].end_phase(0.0)
    assert jobs.runner.abort() == ABORT_GRACE_SECONDS


@pytest.mark.parametrize(("job_id", "seconds"), [("se_1", 0.0), ("unconfirmed", START_GRACE_SECONDS)])
def test_a_cancel_gives_only_a_start_without_a_response_time_and_ends_the_unfinished_jobs(job_id: str, seconds: float) -> None:
    jobs = Jobs(succeed, succeed)
    done, unfinished = jobs.jobs
    done.ended_at, unfinished.began_at, unfinished.job_id = BEGINNING, BEGINNING, job_id
    jobs.clock.advance(5)

    assert jobs.runner.stop() == seconds
    jobs.runner.cancel_unfinished("SIGTERM")

    assert (done.failure, type(unfinished.failure), unfinished.ended_at) == (None, Cancelled, BEGINNING + 5)
    with pytest.raises(Cancelled):
        jobs.clock.sleep(1)


def link_of(job: Job, *, fresh: bool = False, seconds: float | None) -> Bundle:
    expires = None if seconds is None else NOON + timedelta(seconds=seconds)
    return Bundle(url=f"https://s.example.com/{job.domain}{'?fresh' if fresh else ''}", expires=expires)


def links_for(seconds: float | None) -> Work:
    """Return a job that succeeds with a link that is valid for so long."""

    def succeed_with_link(job: Job) -> Iterator[None]:
        yield from succeed(job)
        job.link = link_of(job, seconds=seconds)

    return succeed_with_link


class TestLinksAtTheEnd:
    """With several jobs, the link of one may expire while others run."""

    def test_those_that_expire_are_renewed_after_the_last_job(self) -> None:
        def fail_late(job: Job) -> Iterator[None]:
            yield from links_for(1)(job)
            jobs.clock.advance(100)
            api.asked.append("the last job ends")
            raise JobFailed("failed")

        api = FakeApi()
        jobs = Jobs(links_for(159), links_for(160), links_for(None), succeed, links_for(30), fail_late, at_once=1, api=api)

        assert jobs.run() == [None, None, None, None, None, "job-failed"]
        assert api.asked == ["the last job ends", "a", "e"]
        urls = [job.link.url for job in jobs.jobs if job.link is not None]
        assert [url.endswith("?fresh") for url in urls] == [True, False, False, True, False]
        assert jobs.events.warnings == []

    def test_a_single_job_has_renewed_its_own(self) -> None:
        api = FakeApi()

        assert Jobs(links_for(1), api=api).run() == [None]
        assert api.asked == []

    @pytest.mark.parametrize("error", [Unavailable("it is down"), Forbidden("it is not allowed"), NotFound("it is gone")])
    def test_after_an_error_of_one_job_the_others_are_renewed(self, error: ActionError) -> None:
        def fail(job: Job) -> None:
            if job.domain == "a":
                raise error

        api = FakeApi(fail)
        jobs = Jobs(*[links_for(1)] * 3, at_once=1, api=api)

        assert jobs.run() == [None] * 3
        assert api.asked == ["a", "b", "c"]
        assert [domain for domain, _ in jobs.events.warnings] == ["a"]

    def test_after_three_that_fail_in_a_row_the_others_are_kept_without_a_request(self) -> None:
        def fail(job: Job) -> None:
            if job.domain != "c":
                raise Unavailable("it is down")

        api = FakeApi(fail)
        jobs = Jobs(*[links_for(1)] * 8, at_once=1, api=api)

        assert jobs.run() == [None] * 8
        assert api.asked == [*"abcdef"]
        assert [domain for domain, _ in jobs.events.warnings] == [*"abdefgh"]

    def test_new_links_that_live_no_longer_are_used_and_not_asked_for_again(self) -> None:
        def has_asked_already(job: Job) -> Iterator[None]:
            yield from links_for(1)(job)
            job.has_short_link = True

        api = FakeApi(seconds=59)
        jobs = Jobs(links_for(1), has_asked_already, links_for(1), at_once=1, api=api)

        assert jobs.run() == [None] * 3
        assert api.asked == ["a", "c"]
        assert [domain for domain, _ in jobs.events.warnings] == ["a", "c"]

    def test_a_link_that_comes_close_to_its_expiry_meanwhile_is_renewed_too(self) -> None:
        def take_a_minute(_job: Job) -> None:
            jobs.clock.advance(60)

        api = FakeApi(take_a_minute)
        jobs = Jobs(links_for(30), links_for(100), links_for(3600), at_once=1, api=api)

        assert jobs.run() == [None] * 3
        assert api.asked == ["a", "b"]

    def test_as_many_as_max_parallel_are_renewed_at_the_same_time(self) -> None:
        def wait_for_two_others(_job: Job) -> None:
            together.wait(SECONDS)

        together = threading.Barrier(3)
        api = FakeApi(wait_for_two_others)

        assert Jobs(*[links_for(1)] * 6, at_once=3, api=api).run() == [None] * 6
        assert sorted(filter(None, api.asked)) == [*"abcdef"]

    def test_after_a_cancel_of_another_job_none_is_renewed(self) -> None:
        def end_while_another_is_cancelled(job: Job) -> Iterator[None]:
            yield from links_for(1)(job)
            assert begun.wait(SECONDS)

        def is_cancelled_in_a_worker(_job: Job) -> Iterator[None]:
            begun.set()
            jobs.runner.stop()
            raise Cancelled("cancelled")
            yield  # never known

        begun, api = threading.Event(), FakeApi()
        jobs = Jobs(end_while_another_is_cancelled, is_cancelled_in_a_worker, api=api)

        with pytest.raises(Cancelled):
            jobs.run()
        assert api.asked == []

    def test_a_cancel_ends_it_and_cancels_the_jobs_without_a_new_link(self) -> None:
        def cancel(job: Job) -> None:
            if job.domain == "b":
                jobs.runner.stop()
                raise Cancelled("cancelled")

        jobs = Jobs(*[links_for(1)] * 3, links_for(3600), at_once=1, api=FakeApi(cancel))

        with pytest.raises(Cancelled):
            jobs.run()
        assert [job.domain for job in jobs.runner.unfinished] == ["b", "c"]
