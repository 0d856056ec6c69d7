"""The next reading of a job comes soon if its end may be near, otherwise late."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.inputs.settings import WaitSettings
from docs_platform_action.jobs.schedule import Schedule


def pauses_after(
    *readings: tuple[float, float | None] | tuple[float, float | None, str],
    shortest: float = 1.0,
    longest: float = 30.0,
    just_started: bool = False,
) -> list[float]:
    """Return the first pause, and the pause after each reading of seconds, percent and status."""
    job = Followed(shortest=shortest, longest=longest, just_started=just_started)
    return [job.first_pause, *(job.read(*reading) for reading in readings)]


class Followed:
    def __init__(self, *, shortest: float = 1.0, longest: float = 30.0, just_started: bool = True) -> None:
        settings = WaitSettings(timeout_seconds=1e9, shortest_pause_seconds=shortest, longest_pause_seconds=longest)
        self._schedule = Schedule(settings, began=0.0, has_just_started=just_started)
        self.first_pause = self._schedule.first_pause_seconds

    def read(self, elapsed: float, percent: float | None, status: str = "running") -> float:
        return self._schedule.pause_after(elapsed, status, None if status == "queued" else percent)


def last(pauses: Sequence[float]) -> float:
    return pauses[-1]


class TestTheFirstReading:
    def test_a_job_of_unknown_age_is_read_at_once(self) -> None:
        assert pauses_after() == [0]

    @pytest.mark.parametrize(
        ("shortest", "longest", "first"),
        [(1, 30, 3), (0.1, 30, pytest.approx(0.3)), (2, 30, 3), (3600, 3600, 3), (0.5, 0.7, 0.7)],
    )
    def test_a_job_that_has_just_started_is_read_after_a_pause(self, shortest: float, longest: float, first: float) -> None:
        assert pauses_after(shortest=shortest, longest=longest, just_started=True) == [first]


class TestWithoutProgress:
    def test_a_young_job_is_read_rarely(self) -> None:
        assert pauses_after((3, None), (39.9, None), (40, None), just_started=True) == [3, 7.5, 7.5, 4.75]

    def test_below_a_second_a_job_is_young_for_a_shorter_time(self) -> None:
        pauses = pauses_after((0.3, None), (3.99, None), (4, None), shortest=0.1, just_started=True)

        assert pauses == [pytest.approx(pause) for pause in (0.3, 0.75, 0.75, 0.475)]

    def test_above_a_second_it_is_young_for_the_same_time(self) -> None:
        assert pauses_after((3, None), (39.9, None), (40, None), shortest=2, just_started=True) == [3, 7.5, 7.5, 4.75]

    def test_a_job_of_unknown_age_is_not_young(self) -> None:
        assert last(pauses_after((0, None))) == 4.75

    def test_after_twenty_minutes_pauses_grow_up_to_the_longest(self) -> None:
        assert pauses_after((0, None), (1000, None), (2000, None), (9000, None))[1:] == [4.75, 4.75, 8, 30]

    def test_a_new_status_makes_them_short_again(self) -> None:
        assert pauses_after((0, None), (2000, None), (2010, None, "packing"), (4010, None, "packing"))[2:] == [8, 4.75, 8]

    def test_the_progress_of_a_queued_job_is_ignored(self) -> None:
        assert last(pauses_after((0, 0.0, "queued"))) == 4.75

    @pytest.mark.parametrize(("shortest", "pause"), [(0.1, 0.475), (2, 4.75), (10, 10)])
    def test_only_pauses_below_a_second_are_scaled(self, shortest: float, pause: float) -> None:
        assert last(pauses_after((0, None), shortest=shortest)) == pytest.approx(pause)


class TestWithProgress:
    def test_most_of_the_remaining_time_is_waited(self) -> None:
        assert last(pauses_after((0, 0), (20, 50))) == 8  # bound by how long the pace was seen
        assert last(pauses_after((0, 0), (20, 80))) == pytest.approx(3)

    def test_no_pause_is_longer_than_the_longest(self) -> None:
        assert last(pauses_after((0, 0), (1000, 10))) == 30

    def test_near_the_end_two_readings_are_planned(self) -> None:
        assert last(pauses_after((0, 0), (97, 97))) == pytest.approx(2)

    def test_the_last_reading_is_planned_just_after_the_end(self) -> None:
        assert last(pauses_after((0, 0), (98.5, 98.5))) == pytest.approx(1.6)

    def test_no_pause_is_shorter_than_the_shortest(self) -> None:
        assert last(pauses_after((0, 0), (99.5, 99.5))) == 1

    def test_before_the_first_progress_a_pause_is_half_the_observed_time(self) -> None:
        assert pauses_after((0, 0), (3, 0), (8, 0), (60, 0))[1:] == [1, 1.5, 4, 4.75]

    def test_an_overdue_job_is_read_soon_and_then_less_often(self) -> None:
        assert pauses_after((0, 0), (90, 90), (101, 90), (150, 90))[3:] == [pytest.approx(2.75), 4.75]

    def test_a_job_that_stalls_at_100_percent_is_read_less_and_less_often(self) -> None:
        assert pauses_after((0, 0), (100, 100), (101, 100), (108, 100), (200, 100))[2:] == [1, 1, 2, 4.75]

    def test_a_stalled_job_is_read_like_one_without_progress(self) -> None:
        assert last(pauses_after((0, 0), (10, 10), (20, 20), (80, 20))) == 4.75

    def test_progress_after_a_stall_is_used_again(self) -> None:
        assert last(pauses_after((0, 0), (10, 10), (80, 10), (100, 20))) == pytest.approx(8)


class TestUnsteadyProgress:
    @staticmethod
    def readings(percent_at: Callable[[int], float | None]) -> int:
        """Count the readings in 50 minutes of a job whose n-th reading has this progress."""
        job = Followed()
        elapsed, count = job.first_pause, 0
        while elapsed < 3000:
            elapsed += job.read(elapsed, percent_at(count))
            count += 1
        return count

    def test_progress_that_slows_down_is_read_less_and_less_often(self) -> None:
        job = Followed()
        elapsed, count = job.first_pause, 0
        while elapsed < 3000:
            elapsed += job.read(elapsed, 100 - 100 / (1 + elapsed))
            count += 1

        assert count <= 1.15 * self.readings(lambda _: None)

    @pytest.mark.parametrize(
        "percent_at",
        [
            lambda count: (50.0, 44.0)[count % 2],
            lambda count: (50.0, 10.0)[count % 2],
            lambda count: 99.0 - 5.1 * (count % 19),
            lambda count: 20.0 * (count % 5),
            lambda count: (90.0, 10.0, 10.0, 10.0)[count % 4],
        ],
        ids=["a little", "much", "falling", "phases", "up and down"],
    )
    def test_it_is_read_hardly_more_often_than_a_job_without_progress(self, percent_at: Callable[[int], float]) -> None:
        assert self.readings(percent_at) <= 1.15 * self.readings(lambda _: None)


@given(
    st.lists(st.tuples(st.floats(0.001, 1e5), st.none() | st.floats(0, 100), st.sampled_from(["queued", "running"])), min_size=1),
    st.floats(0.001, 100),
    st.floats(0, 100),
    st.booleans(),
)
def test_any_readings_give_pauses_within_the_limits(
    readings: list[tuple[float, float | None, str]], shortest: float, more: float, just_started: bool
) -> None:
    elapsed, timed = 0.0, list[tuple[float, float | None, str]]()
    for pause, percent, status in readings:
        elapsed += pause
        timed.append((elapsed, percent, status))

    _, *pauses = pauses_after(*timed, shortest=shortest, longest=shortest + more, just_started=just_started)

    assert all(shortest <= pause <= shortest + more for pause in pauses)
