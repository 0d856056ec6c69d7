"""When a job is expected to end, for people: only after enough progress.

`test_schedule.py` has the estimate that plans the readings.
"""

from collections.abc import Mapping, Sequence

import pytest

from docs_platform_action.inputs.settings import WaitSettings
from docs_platform_action.jobs.estimate import MAX_RESTARTS, MIN_POINTS, MIN_SECONDS
from docs_platform_action.jobs.schedule import Schedule

Reading = tuple[float, float | None]  # the time and the progress, which is `None` in the queue

SETTINGS = WaitSettings(timeout_seconds=1e9, poll_interval_seconds=1, max_poll_interval_seconds=30)
STALL: Sequence[Reading] = ((0, 0), (10, 10), (20, 20), (60, 20))
FALL: Sequence[Reading] = ((0, 0), (10, 50), (12, 40), (13, 41), (14, 42))
RESTARTS: Sequence[Reading] = ((0, 90), (1, 10), (2, 10), (3, 10))


def expected_end_after(readings: Sequence[Reading], *, has_just_started: bool) -> float | None:
    schedule = Schedule(SETTINGS, began=0.0, has_just_started=has_just_started)
    for at, percent in readings:
        schedule.pause_after(at, "running", percent)
    return schedule.expected_end_at


STARTED: Mapping[str, tuple[Sequence[Reading], float | None]] = {
    "nothing was read": ([], None),
    "a job that was just started begins at 0 %": ([(30, 50)], 60),
    "time before the last reading without progress does not count": (
        [(600, None), (610, None), (630, 20)],
        610 + 100,
    ),
    "nor does time at 0 % count": ([(10, 0), (20, 0), (30, 0), (40, 10)], 130),
    "just enough points and seconds": ([(MIN_SECONDS, MIN_POINTS)], 100),
    "too few points": ([(MIN_SECONDS, MIN_POINTS - 0.1)], None),
    "too few seconds": ([(MIN_SECONDS - 0.1, 50)], None),
    "back in the queue": ([(50, 50), (60, None)], None),
    "nothing remains": ([(50, 100)], 50),
    "without progress the end stays": ([(50, 50), (60, 50), (70, 50)], 100),
    "an overdue job was expected in the past": ([(50, 50), (110, 50)], 100),
    "the recent rate counts if it is faster": ([(80, 20), (85, 30), (90, 40)], 120),
    "after a stall it is measured again": ([*STALL, (70, 30)], 140),
    "after a stall there is too little at first": ([*STALL, (70, 24)], None),
    "a fall that lasts is a restart": (FALL, None),
    "after a restart it is measured again": ([*FALL, (24, 52)], 72),
}


@pytest.mark.parametrize("case", STARTED)
def test_the_end_is_expected_at_the_rate_since_progress_began(case: str) -> None:
    readings, end = STARTED[case]

    expected = None if end is None else pytest.approx(end)
    assert expected_end_after(readings, has_just_started=True) == expected


@pytest.mark.parametrize(
    ("readings", "end"), [([(0, 60)], None), ([(0, 60), (10, 64)], None), ([(0, 60), (10, 70)], 40)]
)
def test_of_a_job_of_unknown_age_only_observed_progress_counts(
    readings: Sequence[Reading], end: float | None
) -> None:
    assert expected_end_after(readings, has_just_started=False) == end


@pytest.mark.parametrize(
    ("restarts", "is_known"), [(MAX_RESTARTS, True), (MAX_RESTARTS + 1, False)]
)
def test_after_many_restarts_no_end_is_expected(restarts: int, *, is_known: bool) -> None:
    readings: list[Reading] = []
    for number in range(restarts):
        readings += [(4 * number + at, percent) for at, percent in RESTARTS]
    readings.append((4 * restarts + 12, 50))

    assert (expected_end_after(readings, has_just_started=False) is not None) == is_known
