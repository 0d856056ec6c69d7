"""A job is read until it ends or its time is up, at pauses that fit how long it takes."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.clock import DeadlinePassed
from docs_platform_action.errors import NotFound, Unavailable
from docs_platform_action.model import ExportJob
from docs_platform_action.waiting import PATIENCE, Reading, growing_pauses, wait_for_end
from tests.unit.fakes import FakeClock


def schedule_of(*readings: tuple[str, float], shortest: float = 1.0, longest: float = 30.0) -> list[float]:
    """Give the pauses after readings of a status at an elapsed time."""
    pauses = growing_pauses(shortest_seconds=shortest, longest_seconds=longest)()
    next(pauses)
    return [
        pauses.send(Reading(job=ExportJob(status=status), elapsed_seconds=elapsed, last=False)) for status, elapsed in readings
    ]


class TestGrowingPauses:
    def test_the_pause_is_a_twentieth_of_the_time_in_a_state_within_the_bounds(self) -> None:
        pauses = schedule_of(("running", 0), ("running", 10), ("running", 100), ("running", 600), ("running", 3000))

        assert pauses == pytest.approx([1, 1, 5, 30, 30])

    def test_it_shrinks_when_the_state_changes(self) -> None:
        pauses = schedule_of(("queued", 200), ("running", 210), ("running", 310), ("completed", 320))

        assert pauses == pytest.approx([10, 1, 5, 1])

    @given(
        st.lists(st.tuples(st.sampled_from(["queued", "running"]), st.floats(0, 1e6)), min_size=1),
        st.floats(0.001, 100),
        st.floats(0, 100),
    )
    def test_it_stays_within_the_bounds_whatever_is_read(
        self, readings: list[tuple[str, float]], shortest: float, more: float
    ) -> None:
        pauses = schedule_of(*readings, shortest=shortest, longest=shortest + more)

        assert all(shortest <= pause <= shortest + more for pause in pauses)


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

    def wait(self, timeout: float = 600.0, *, shortest: float = 1.0, longest: float = 30.0) -> ExportJob:
        return wait_for_end(
            self.read,
            schedule=growing_pauses(shortest_seconds=shortest, longest_seconds=longest),
            timeout_seconds=timeout,
            clock=self.clock,
            on_reading=self.readings.append,
        )


def completed_at(seconds: float, *, queued_until: float = 0.0) -> Callable[[float], str]:
    return lambda now: "completed" if now >= seconds else "queued" if now < queued_until else "running"


class TestWaitForEnd:
    def test_a_job_that_has_ended_is_read_once_and_at_once(self) -> None:
        platform = Platform(lambda _: "completed")

        job = platform.wait()

        assert job.status == "completed"
        assert platform.asked_at == [0]
        assert platform.clock.pauses == []

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


class TestWholeJobsInVirtualTime:
    @given(
        takes=st.floats(0, 5000),
        queued=st.floats(0, 1),
        timeout=st.floats(0.01, 4000),
        shortest=st.floats(0.5, 20),
        more=st.floats(0, 60),
        reading=st.floats(0, 5),
    )
    def test_pauses_stay_within_the_bounds_and_the_end_is_seen_in_time(
        self, *, takes: float, queued: float, timeout: float, shortest: float, more: float, reading: float
    ) -> None:
        platform = Platform(completed_at(takes, queued_until=takes * queued), reading_seconds=reading)
        longest = shortest + more

        try:
            ended = platform.wait(timeout, shortest=shortest, longest=longest).ended
        except DeadlinePassed:
            ended = False

        *pauses, last_pause = [pause for pause in platform.clock.pauses if pause > 1e-6] or [longest]
        assert all(shortest - 1e-6 <= pause <= longest + 1e-6 for pause in pauses)
        assert last_pause <= longest + 1e-6
        assert all(later > earlier for earlier, later in pairwise(platform.asked_at))
        assert platform.asked_at[-1] <= timeout + reading + 1e-6
        if takes < timeout - 1e-6:
            assert ended
        if ended:
            late = platform.clock.elapsed - takes
            assert late <= max(shortest, platform.clock.elapsed * PATIENCE) + 2 * reading + 1e-6
        else:
            assert platform.asked_at[-1] >= timeout - 1e-6

    def test_an_hour_costs_few_readings_and_little_delay(self) -> None:
        platform = Platform(completed_at(3600))

        platform.wait(7200)

        assert len(platform.asked_at) < 200
        assert platform.clock.elapsed - 3600 <= 30
