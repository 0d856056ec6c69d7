"""The estimate of the remaining time that the next reading is planned with."""

import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.jobs.progress import MAX_RESTARTS, PollingEstimate


def seen(*readings: tuple[float, float | None], began: float | None = None, shortest: float = 1.0) -> PollingEstimate:
    estimate = PollingEstimate(began=began, shortest_pause_seconds=shortest)
    for at, percent in readings:
        estimate.update(at, percent)
    return estimate


POLLING_REMAINING: Mapping[str, tuple[float | None, Sequence[tuple[float, float | None]], float, float | None]] = {
    "no progress": (None, [(0, None), (5, 0), (9, 0)], 9, None),
    "two readings give a rate": (None, [(10, 20), (20, 40)], 20, 30),
    "a job of known age has one from its first reading": (0.0, [(3, 2)], 3, 147),
    "the first reading of a job of unknown age": (None, [(3, 50)], 3, None),
    "progress began after the last reading without it": (0.0, [(0, None), (100, None), (105, 10)], 105, 45),
    "time without progress is subtracted": (None, [(0, 0), (10, 50)], 14, 6),
    "overdue": (None, [(0, 0), (10, 50)], 30, -10),
    "100 %": (None, [(0, 0), (10, 100)], 10, 0),
    "a rate that rose is the recent one": (None, [(0, 0), (100, 20), (110, 30), (120, 40), (130, 60)], 130, 20),
    "a rate that fell is the average": (None, [(0, 0), (10, 50), (60, 60), (110, 70)], 110, 30 * 110 / 70),
    "recent means a quarter of the remaining points": (None, [(0, 0), (60, 20), (70, 39), (71, 40)], 71, 60 * 11 / 20),
    # a whole percent that is just reached says little by itself
    "recent means at least three points": (None, [(0, 0), (96, 96), (98, 98), (98.1, 99)], 98.1, 2.1 / 3),
    "a small fall is ignored": (None, [(0, 0), (10, 50), (12, 45)], 12, 8),
    "a large fall that does not last is ignored": (None, [(0, 0), (10, 50), (12, 40), (13, 41), (14, 70)], 14, 6),
    "a reading without progress changes nothing": (None, [(0, 0), (10, 50), (12, None)], 12, 8),
}


@pytest.mark.parametrize("case", POLLING_REMAINING)
def test_the_estimate_for_the_next_reading(case: str) -> None:
    began, readings, now, remaining = POLLING_REMAINING[case]

    assert seen(*readings, began=began).remaining_seconds(now) == (None if remaining is None else pytest.approx(remaining))


class TestUnevenProgress:
    def test_a_large_fall_that_lasts_is_a_restart(self) -> None:
        estimate = seen((0, 0), (10, 50), (12, 40), (13, 41), (14, 42))
        assert estimate.remaining_seconds(14) is None
        assert estimate.observed_seconds(14) == 0

        estimate.update(24, 52)

        assert estimate.remaining_seconds(24) == pytest.approx(48)

    def test_restarts_are_counted(self) -> None:
        estimate, at = PollingEstimate(began=None, shortest_pause_seconds=1.0), 0.0
        for restarts in range(MAX_RESTARTS + 1):
            assert estimate.restarts == restarts
            for percent in (90, 10, 10, 10):
                at += 10
                estimate.update(at, percent)

    def test_the_rate_is_measured_again_after_a_stall(self) -> None:
        estimate = seen((0, 0), (10, 10), (50, 10), (100, 10), (110, 30))

        assert estimate.remaining_seconds(110) == 35
        assert estimate.observed_seconds(110) == 10

    def test_a_step_as_long_as_an_earlier_one_is_not_a_stall(self) -> None:
        estimate = seen((0, 0), (10, 0), (20, 0), (30, 1), (45, 1), (60, 2))

        assert estimate.observed_seconds(60) == 40
        assert estimate.remaining_seconds(60) == pytest.approx(98 * 20)


class TestPollingStall:
    def test_it_is_twice_as_long_as_the_longest_step(self) -> None:
        estimate = seen((0, 0), (10, 5), (14, 7))

        assert not estimate.is_stalled(34)
        assert estimate.is_stalled(34.1)
        assert estimate.seconds_since_progress(34) == 20

    def test_it_is_twice_the_shortest_pause_at_least(self) -> None:
        estimate = seen((0, 0), (0.1, 5), shortest=1.0)

        assert not estimate.is_stalled(2.1)
        assert estimate.is_stalled(2.2)

    def test_a_job_without_progress_is_not_stalled(self) -> None:
        estimate = seen((0, None), (500, None))

        assert not estimate.is_stalled(500)
        assert (estimate.seconds_since_progress(500), estimate.observed_seconds(500)) == (0, 0)


@given(
    st.lists(st.tuples(st.floats(0.001, 1e5), st.none() | st.floats(0, 100)), min_size=1),
    st.none() | st.just(0.0),
)
def test_any_readings_give_a_number_or_none(readings: list[tuple[float, float | None]], began: float | None) -> None:
    estimate, now = PollingEstimate(began=began, shortest_pause_seconds=0.001), 0.0

    for pause, percent in readings:
        now += pause
        estimate.update(now, percent)

        remaining = estimate.remaining_seconds(now)
        assert remaining is None or not math.isnan(remaining)
        assert 0 <= estimate.seconds_since_progress(now) <= estimate.observed_seconds(now) <= now
