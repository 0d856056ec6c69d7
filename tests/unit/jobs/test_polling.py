"""A job is read on a schedule until it ends or its time is up."""

from collections.abc import Callable, Generator

import pytest

from docs_platform_action.clock import DeadlinePassed
from docs_platform_action.errors import NotFound, Unavailable
from docs_platform_action.jobs.polling import Reading, Schedule, wait_for_end
from docs_platform_action.models import ExportJob
from tests.unit.fakes import FakeClock


def evenly(seconds: float, *, first: float = 0.0) -> Schedule[ExportJob]:
    """Read at even pauses."""

    def pauses() -> Generator[float, Reading[ExportJob], None]:
        yield first
        while True:
            yield seconds

    return pauses


class Platform:
    """A job whose status is a function of the time since the wait began; each reading takes a while."""

    def __init__(self, status_at: Callable[[float], str], *, reading_seconds: float = 0.0) -> None:
        self.clock = FakeClock()
        self.status_at = status_at
        self.reading_seconds = reading_seconds
        self.asked_at: list[float] = []
        self.deadlines: list[float] = []
        self.readings: list[Reading[ExportJob]] = []

    def read(self, deadline: float) -> ExportJob:
        self.asked_at.append(self.clock.elapsed)
        self.deadlines.append(deadline)
        self.clock.pass_(self.reading_seconds)
        return ExportJob(status=self.status_at(self.clock.elapsed))

    def wait(self, timeout: float = 600.0, *, schedule: Schedule[ExportJob] | None = None) -> ExportJob:
        return wait_for_end(
            self.read,
            schedule=schedule or evenly(1.0),
            timeout_seconds=timeout,
            clock=self.clock,
            on_reading=self.readings.append,
        )


def completed_at(seconds: float) -> Callable[[float], str]:
    return lambda now: "completed" if now >= seconds else "running"


class TestWaitForEnd:
    def test_a_job_that_has_ended_is_read_once_and_at_once(self) -> None:
        platform = Platform(lambda _: "completed")

        job = platform.wait()

        assert job.status == "completed"
        assert platform.asked_at == [0]
        assert platform.clock.pauses == []

    def test_the_schedule_says_when_the_first_reading_is(self) -> None:
        platform = Platform(lambda _: "completed")

        platform.wait(schedule=evenly(1.0, first=3.0))

        assert platform.asked_at == [3]

    def test_the_first_reading_is_no_later_than_the_deadline(self) -> None:
        platform = Platform(lambda _: "running")

        with pytest.raises(DeadlinePassed):
            platform.wait(2, schedule=evenly(1.0, first=3.0))

        assert platform.asked_at == [2]
        assert [reading.last for reading in platform.readings] == [True]

    def test_the_schedule_sees_each_reading_before_the_next_pause(self) -> None:
        platform, seen = Platform(completed_at(5)), list[float]()

        def pauses() -> Generator[float, Reading[ExportJob], None]:
            pause = 0.0
            while True:
                reading = yield pause
                seen.append(reading.elapsed_seconds)
                pause = reading.elapsed_seconds + 1

        platform.wait(schedule=pauses)

        assert platform.asked_at == [0, 1, 3, 7]
        assert seen == [0, 1, 3]

    def test_every_reading_is_handed_out_with_the_time_it_took(self) -> None:
        platform = Platform(completed_at(3))

        platform.wait()

        assert [(reading.job.status, reading.elapsed_seconds, reading.last) for reading in platform.readings] == [
            ("running", 0, False),
            ("running", 1, False),
            ("running", 2, False),
            ("completed", 3, False),
        ]

    def test_the_last_reading_is_at_the_deadline(self) -> None:
        platform = Platform(lambda _: "running")

        with pytest.raises(DeadlinePassed):
            platform.wait(10.5)

        assert platform.asked_at[-1] == 10.5
        assert [reading.last for reading in platform.readings[-2:]] == [False, True]

    def test_the_last_reading_decides(self) -> None:
        platform = Platform(completed_at(10.5))

        assert platform.wait(10.5).status == "completed"

    def test_a_reading_that_outlasts_the_deadline_is_followed_by_the_last_one_at_once(self) -> None:
        platform = Platform(lambda _: "running", reading_seconds=7)

        with pytest.raises(DeadlinePassed):
            platform.wait(10)

        assert platform.asked_at == [0, 8, 15]

    def test_reading_knows_the_deadline_on_the_clock(self) -> None:
        platform = Platform(completed_at(2))
        began = platform.clock.monotonic()

        platform.wait(10)

        assert set(platform.deadlines) == {began + 10}

    def test_a_status_that_nobody_described_goes_on(self) -> None:
        platform = Platform(lambda now: "completed" if now > 20 else "polishing")

        assert platform.wait().status == "completed"

    def test_a_job_that_was_read_to_the_end_met_no_outage(self) -> None:
        with pytest.raises(DeadlinePassed) as caught:
            Platform(lambda _: "running").wait(10)

        assert caught.value.outage is None

    @pytest.mark.parametrize("after", [0, 3, 10])
    @pytest.mark.parametrize("error", [Unavailable("it broke"), NotFound("it is gone"), DeadlinePassed(Unavailable("it broke"))])
    def test_a_failed_reading_ends_the_wait_as_what_it_is(self, error: Exception, after: float) -> None:
        failing = self._failing(Platform(lambda _: "running"), error, after=after)

        with pytest.raises(type(error)) as caught:
            failing.wait(10)

        assert caught.value is error

    @staticmethod
    def _failing(platform: Platform, error: Exception, *, after: float) -> Platform:
        well = platform.status_at

        def status_at(now: float) -> str:
            if now >= after:
                raise error
            return well(now)

        platform.status_at = status_at
        return platform
