"""The next reading of a job comes soon if its end may be near, otherwise late."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.inputs.settings import WaitSettings
from docs_platform_action.jobs.schedule import Schedule

Reading = tuple[float, float | None] | tuple[float, float | None, str]


def pauses_after(
    *readings: Reading,
    shortest: float = 1.0,
    longest: float = 30.0,
    just_started: bool = False,
) -> list[float]:
    """Return the first pause, and the pause after each reading of seconds, percent and status."""
    job = Followed(shortest=shortest, longest=longest, just_started=just_started)
    return [job.first_pause, *(job.read(*reading) for reading in readings)]


class Followed:
    def __init__(self, *, shortest: float = 1.0, longest: float = 30.0, just_started: bool = True) -> None:
        settings = WaitSettings(timeout_seconds=1e9, poll_interval_seconds=shortest, max_poll_interval_seconds=longest)
        self._schedule = Schedule(settings, began=0.0, has_just_started=just_started)
        self.first_pause = self._schedule.first_pause_seconds

    def read(self, elapsed: float, percent: float | None, status: str = "running") -> float:
        return self._schedule.pause_after(elapsed, status, None if status == "queued" else percent)


FIRST_PAUSE: Mapping[str, tuple[Mapping[str, Any], float]] = {
    "a job of unknown age": ({}, 0),
    "just started": ({"just_started": True}, 3),
    "just started, shortest pause below a second": ({"just_started": True, "shortest": 0.1}, 0.3),
    "just started, shortest pause above a second": ({"just_started": True, "shortest": 2}, 3),
    "just started, shortest pause above the usual one": ({"just_started": True, "shortest": 3600, "longest": 3600}, 3),
    "just started, longest pause below the usual one": ({"just_started": True, "shortest": 0.5, "longest": 0.7}, 0.7),
}


@pytest.mark.parametrize("case", FIRST_PAUSE)
def test_a_job_is_first_read_at_once_unless_it_has_just_started(case: str) -> None:
    settings, pause = FIRST_PAUSE[case]

    assert pauses_after(**settings) == [pytest.approx(pause)]


PAUSES: Mapping[str, tuple[Sequence[Reading], Mapping[str, Any], Sequence[float]]] = {
    "a young job is read rarely": ([(3, None), (39.9, None), (40, None)], {"just_started": True}, [7.5, 7.5, 4.75]),
    "below a second a job is young for a shorter time": (
        [(0.3, None), (3.99, None), (4, None)],
        {"just_started": True, "shortest": 0.1},
        [0.75, 0.75, 0.475],
    ),
    "above a second it is young for the same time": (
        [(3, None), (39.9, None), (40, None)],
        {"just_started": True, "shortest": 2},
        [7.5, 7.5, 4.75],
    ),
    "a job of unknown age is not young": ([(0, None)], {}, [4.75]),
    "pauses grow": ([(0, None), (1000, None), (2000, None), (9000, None)], {}, [4.75, 4.75, 8, 30]),
    "a new status makes them short again": (
        [(0, None), (2000, None), (2010, None, "packing"), (4010, None, "packing")],
        {},
        [4.75, 8, 4.75, 8],
    ),
    "the progress of a queued job is ignored": ([(0, 0.0, "queued")], {}, [4.75]),
    "a shortest pause below a second scales the others": ([(0, None)], {"shortest": 0.1}, [0.475]),
    "one above a second does not": ([(0, None)], {"shortest": 2}, [4.75]),
    "one above the usual pause replaces it": ([(0, None)], {"shortest": 10}, [10]),
    "bound by how long the rate was seen": ([(0, 0), (20, 50)], {}, [1, 8]),
    "most of the remaining time": ([(0, 0), (20, 80)], {}, [1, 3]),
    "none is longer than the longest": ([(0, 0), (1000, 10)], {}, [1, 30]),
    "near the end two readings are planned": ([(0, 0), (97, 97)], {}, [1, 2]),
    "the last reading is planned just after the end": ([(0, 0), (98.5, 98.5)], {}, [1, 1.6]),
    "none is shorter than the shortest": ([(0, 0), (99.5, 99.5)], {}, [1, 1]),
    "half the observed time before the first progress": ([(0, 0), (3, 0), (8, 0), (60, 0)], {}, [1, 1.5, 4, 4.75]),
    "an overdue job is read soon, then less often": ([(0, 0), (90, 90), (101, 90), (150, 90)], {}, [1, 6, 2.75, 4.75]),
    "a stall at 100 %": ([(0, 0), (100, 100), (101, 100), (108, 100), (200, 100)], {}, [1, 1, 1, 2, 4.75]),
    "a stalled job is read like one without progress": ([(0, 0), (10, 10), (20, 20), (80, 20)], {}, [1, 4, 8, 4.75]),
    "progress after a stall is used again": ([(0, 0), (10, 10), (80, 10), (100, 20)], {}, [1, 4, 4.75, 8]),
}


@pytest.mark.parametrize("case", PAUSES)
def test_a_job_is_read_rarely_until_its_end_may_be_near(case: str) -> None:
    readings, settings, pauses = PAUSES[case]

    assert pauses_after(*readings, **settings)[1:] == pytest.approx(pauses)


def count_readings(percent_at: Callable[[int, float], float | None]) -> int:
    """Count the readings in 50 minutes of a job whose progress depends on the number and the time of a reading."""
    job = Followed()
    elapsed, count = job.first_pause, 0
    while elapsed < 3000:
        elapsed += job.read(elapsed, percent_at(count, elapsed))
        count += 1
    return count


@pytest.mark.parametrize(
    "percent_at",
    [
        lambda _, elapsed: 100 - 100 / (1 + elapsed),
        lambda count, _: (50.0, 44.0)[count % 2],
        lambda count, _: (50.0, 10.0)[count % 2],
        lambda count, _: 99.0 - 5.1 * (count % 19),
        lambda count, _: 20.0 * (count % 5),
        lambda count, _: (90.0, 10.0, 10.0, 10.0)[count % 4],
    ],
    ids=["slower and slower", "a little", "much", "falling", "phases", "up and down"],
)
def test_unsteady_progress_is_read_hardly_more_often_than_none(percent_at: Callable[[int, float], float]) -> None:
    assert count_readings(percent_at) <= 1.15 * count_readings(lambda _count, _elapsed: None)


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
