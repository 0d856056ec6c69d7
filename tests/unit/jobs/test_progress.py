"""The estimate of the remaining time that the next reading is planned with."""

from collections.abc import Mapping, Sequence

import pytest

from docs_platform_action.jobs.progress import MAX_RESTARTS, PollingEstimate

Readings = Sequence[tuple[float, float | None]]


def estimate_of(readings: Readings, *, began: float | None = None) -> PollingEstimate:
    estimate = PollingEstimate(began=began, shortest_pause_seconds=1.0)
    for at, percent in readings:
        estimate.update(at, percent)
    return estimate


REMAINING: Mapping[str, tuple[float | None, Readings, float, float | None]] = {
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
    "recent means a quarter of the remaining points": (None, [(0, 0), (60, 22), (70, 39), (71, 40)], 71, 60 * 11 / 18),
    "recent means at least three points": (None, [(0, 0), (96, 96), (98, 98), (98.1, 99)], 98.1, 2.1 / 3),
    "a small fall is ignored": (None, [(0, 0), (10, 50), (12, 45), (13, 45), (14, 45)], 14, 6),
    "a large fall that does not last is ignored": (None, [(0, 0), (10, 50), (12, 40), (13, 41), (14, 70)], 14, 6),
    "a large fall that lasts is a restart": (None, [(0, 0), (10, 50), (12, 40), (13, 41), (14, 42)], 14, None),
    "after a restart": (None, [(0, 0), (10, 50), (12, 40), (13, 41), (14, 42), (24, 52)], 24, 48),
    "a reading without progress changes nothing": (None, [(0, 0), (10, 50), (12, None)], 12, 8),
    "after a stall": (None, [(0, 0), (10, 10), (50, 10), (100, 10), (110, 30)], 110, 35),
    "a step as long as an earlier one is no stall": (None, [(0, 0), (10, 0), (20, 0), (30, 1), (45, 1), (60, 2)], 60, 1960),
}


@pytest.mark.parametrize("case", REMAINING)
def test_the_estimate_for_the_next_reading(case: str) -> None:
    began, readings, now, remaining = REMAINING[case]

    assert estimate_of(readings, began=began).remaining_seconds(now) == (remaining and pytest.approx(remaining))


def test_restarts_are_counted() -> None:
    assert estimate_of([*enumerate([90, 10, 10, 10] * MAX_RESTARTS)]).restarts == MAX_RESTARTS


@pytest.mark.parametrize(("readings", "longest"), [([(0, 0), (10, 5), (14, 7)], 20), ([(0, 0), (0.1, 5)], 2)])
def test_a_stall_is_twice_as_long_as_the_longest_step_or_the_shortest_pause(readings: Readings, longest: float) -> None:
    estimate, last = estimate_of(readings), readings[-1][0]

    assert [estimate.is_stalled(last + seconds) for seconds in (longest - 0.1, longest + 0.1)] == [False, True]
    assert estimate.seconds_since_progress(last + longest) == pytest.approx(longest)
