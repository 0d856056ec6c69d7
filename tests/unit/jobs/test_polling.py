"""A job is read until it ends or its time is up."""

from collections.abc import Callable
from typing import Any

import pytest

from docs_platform_action.errors import NotFound, TimedOut, Unavailable
from docs_platform_action.inputs.settings import Mode, WaitSettings
from docs_platform_action.job import Job
from docs_platform_action.jobs.polling import poll
from docs_platform_action.models import ExportJob
from tests.unit.fakes import RecordedEvents, context
from tests.virtual_time import VirtualClock


class Platform:
    """A job whose status is a function of the time since the wait began."""

    def __init__(self, status_at: Callable[[float], str], *, reading_seconds: float = 0.0, **known: Any) -> None:
        self.clock = VirtualClock()
        self.events = RecordedEvents()
        self.job = Job(**{"mode": Mode.EXPORT, "domain": "docs.example.com", "job_id": "se_1", **known})
        self.status_at = status_at
        self.progress_at: Callable[[float], float | None] = lambda _: None
        self.reading_seconds = reading_seconds
        self.asked_at: list[float] = []
        self.deadlines: list[float] = []

    def read_export(self, job: Job, *, deadline: float) -> ExportJob:
        assert job is self.job
        self.asked_at.append(self.clock.elapsed)
        self.deadlines.append(deadline)
        self.clock.advance(self.reading_seconds)
        return ExportJob(status=self.status_at(self.clock.elapsed), progress=self.progress_at(self.clock.elapsed))

    def wait(self, timeout: float = 600.0, *, pause: float = 1.0, longest: float | None = None) -> str | None:
        """Poll the job and return its last status. Pauses have the same length unless `longest` is set."""
        settings = WaitSettings(timeout_seconds=timeout, poll_interval_seconds=pause, max_poll_interval_seconds=longest or pause)
        poll(self.job, settings, context(self.clock, self.events, api=self))
        return self.job.status


def completed_at(seconds: float) -> Callable[[float], str]:
    return lambda now: "completed" if now >= seconds else "running"


class TestPoll:
    def test_an_ended_job_is_read_once_and_at_once(self) -> None:
        platform = Platform(lambda _: "completed")

        assert platform.wait() == "completed"
        assert platform.asked_at == [0]
        assert platform.clock.pauses == []

    @pytest.mark.parametrize(("status", "first"), [("completed", 0), ("failed", 0), ("queued", 3), (None, 3)])
    def test_a_job_that_this_run_started_is_read_after_a_pause_unless_it_has_ended(
        self, status: str | None, first: float
    ) -> None:
        platform = Platform(lambda _: "completed", started_at=0.0, reading=ExportJob(status=status) if status else None)

        platform.wait(pause=30)

        assert platform.asked_at == [first]

    def test_the_first_reading_is_no_later_than_the_deadline(self) -> None:
        platform = Platform(lambda _: "running", started_at=0.0)

        with pytest.raises(TimedOut):
            platform.wait(2, pause=5)

        assert platform.asked_at == [2]

    def test_every_reading_is_announced(self) -> None:
        platform = Platform(completed_at(3))

        platform.wait()

        assert platform.events.names == ["status_read"] * 4
        assert platform.asked_at == [0, 1, 2, 3]

    @pytest.mark.parametrize(("timeout", "reading_seconds", "asked_at"), [(2.5, 0, [0, 1, 2, 2.5]), (10, 7, [0, 8, 15])])
    def test_the_last_reading_is_at_the_deadline_or_right_after_one_that_crosses_it(
        self, timeout: float, reading_seconds: float, asked_at: list[float]
    ) -> None:
        platform = Platform(lambda _: "running", reading_seconds=reading_seconds)

        with pytest.raises(TimedOut):
            platform.wait(timeout)

        assert platform.asked_at == asked_at

    def test_the_last_reading_decides(self) -> None:
        platform = Platform(completed_at(10.5))

        assert platform.wait(10.5) == "completed"

    def test_a_reading_gets_the_deadline(self) -> None:
        platform = Platform(completed_at(2))
        began = platform.clock.monotonic()

        platform.wait(10)

        assert set(platform.deadlines) == {began + 10}

    def test_a_job_with_an_unknown_status_is_running(self) -> None:
        platform = Platform(lambda now: "completed" if now > 20 else "polishing")

        assert platform.wait() == "completed"

    @pytest.mark.parametrize(
        ("error", "after"),
        [
            *((Unavailable("it broke"), after) for after in (0, 3, 9)),
            *((NotFound("it is gone"), after) for after in (0, 3, 10)),
        ],
    )
    def test_a_failed_reading_ends_the_wait_with_its_error(self, error: Exception, after: float) -> None:
        failing = self._failing(Platform(lambda _: "running"), error, after=after)

        with pytest.raises(type(error)) as caught:
            failing.wait(10)

        assert caught.value is error

    @pytest.mark.parametrize(("after", "outage_seconds"), [(3, 7), (3, 50), (10, 0)])
    def test_an_outage_that_lasts_to_the_deadline_is_a_timeout_with_its_request_id(
        self, after: float, outage_seconds: float
    ) -> None:
        outage = Unavailable("it is down", request_id="r-1")

        with pytest.raises(TimedOut) as caught:
            self._failing(Platform(lambda _: "running"), outage, after=after, outage_seconds=outage_seconds).wait(10)

        assert (caught.value.request_id, caught.value.__cause__) == ("r-1", outage)

    @staticmethod
    def _failing(platform: Platform, error: Exception, *, after: float, outage_seconds: float = 0.0) -> Platform:
        well = platform.status_at

        def status_at(now: float) -> str:
            if now >= after:
                platform.clock.advance(outage_seconds)
                raise error
            return well(now)

        platform.status_at = status_at
        return platform


class TestProgress:
    @staticmethod
    def waited(status: str, progress_at: Callable[[float], float | None]) -> Platform:
        """Poll a job that does not end in time."""
        platform = Platform(lambda _: status)
        platform.progress_at = progress_at
        with pytest.raises(TimedOut):
            platform.wait(50, longest=30)
        return platform

    def test_progress_changes_when_it_is_read(self) -> None:
        platform = self.waited("running", lambda now: now)

        assert platform.asked_at != self.waited("running", lambda _: None).asked_at

    def test_what_a_queued_job_reports_is_not_its_progress(self) -> None:
        platform = self.waited("queued", lambda now: now)

        assert platform.asked_at == self.waited("queued", lambda _: None).asked_at
