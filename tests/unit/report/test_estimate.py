"""The estimate of the remaining time that people see."""

from collections.abc import Mapping, Sequence

import pytest

from docs_platform_action.report.estimate import MIN_POINTS, MIN_SECONDS, Estimate

Reading = tuple[float, float | None, int | None, str]
QUEUED: Reading = (0, None, None, "queued")


def displayed(*readings: Reading) -> Estimate:
    """Return the estimate after readings: the time, the progress, the page count, and "queued", "running" or "ended"."""
    estimate = Estimate()
    for at, percent, _, state in readings:
        estimate.update(at, percent, queued=state == "queued", ended=state == "ended")
    return estimate


def running(at: float, percent: float | None, pages: int | None = None) -> Reading:
    return (at, percent, pages, "running")


REMAINING: Mapping[str, tuple[Sequence[Reading], float, float | None]] = {
    "nothing was read": ([], 10, None),
    "a job seen in the queue begins at 0 %": ([QUEUED, running(31, 12)], 31, 31 * 88 / 12),
    "time before the last reading without progress": (
        [QUEUED, (600, None, None, "queued"), running(610, None, 3), running(630, 20, 9)],
        630,
        80,
    ),
    "time at 0 % counts": (
        [QUEUED, running(10, 0), running(20, 0), running(30, 0), running(40, 10)],
        40,
        360,
    ),
    "collected": ([running(500, 60, 100)], 600, None),
    "just enough points and seconds": ([QUEUED, running(MIN_SECONDS, MIN_POINTS)], MIN_SECONDS, 95),
    "too few points": ([QUEUED, running(MIN_SECONDS, MIN_POINTS - 0.1)], MIN_SECONDS, None),
    "it grows during a stall": ([QUEUED, running(50, 50)], 60, 60),
    "a fall": ([QUEUED, running(100, 50), running(110, 20)], 110, None),
    "after the queue it is measured again": (
        [QUEUED, running(100, 50), (200, None, None, "queued"), running(210, 10)],
        210,
        90,
    ),
    "ended": ([QUEUED, (100, 57, None, "ended")], 100, None),
}


@pytest.mark.parametrize("case", REMAINING)
def test_the_rest_is_measured_since_progress_began(case: str) -> None:
    readings, now, remaining = REMAINING[case]

    assert displayed(*readings).remaining_seconds(now) == (
        None if remaining is None else pytest.approx(remaining)
    )
