"""The estimate of the remaining time that people see."""

from collections.abc import Mapping, Sequence

import pytest

from docs_platform_action.report.estimate import MIN_POINTS, MIN_SECONDS, Estimate

# the time, the progress, and "queued", "running" or "ended"
Reading = tuple[float, float | None, str]
QUEUED: Reading = (0, None, "queued")


def estimate_after(readings: Sequence[Reading]) -> Estimate:
    estimate = Estimate()
    for at, percent, state in readings:
        estimate.update(at, percent, queued=state == "queued", ended=state == "ended")
    return estimate


def running(at: float, percent: float | None) -> Reading:
    return (at, percent, "running")


REMAINING: Mapping[str, tuple[Sequence[Reading], float, float | None]] = {
    "nothing was read": ([], 10, None),
    "a job seen in the queue begins at 0 %": ([QUEUED, running(31, 12)], 31, 31 * 88 / 12),
    "time before the last reading without progress": (
        [QUEUED, (600, None, "queued"), running(610, None), running(630, 20)],
        630,
        80,
    ),
    "time at 0 % counts": (
        [QUEUED, running(10, 0), running(20, 0), running(30, 0), running(40, 10)],
        40,
        360,
    ),
    "time before a reading without progress counts, once there was progress": (
        [QUEUED, running(50, 50), running(60, None), running(80, 80)],
        80,
        20,
    ),
    "collected": ([running(500, 60)], 600, None),
    "just enough points and seconds": ([QUEUED, running(MIN_SECONDS, MIN_POINTS)], MIN_SECONDS, 95),
    "too few points": ([QUEUED, running(MIN_SECONDS, MIN_POINTS - 0.1)], MIN_SECONDS, None),
    "too few seconds": ([QUEUED, running(MIN_SECONDS - 0.1, 50)], MIN_SECONDS - 0.1, None),
    "nothing remains": ([QUEUED, running(50, 100)], 50, None),
    "it grows during a stall": ([QUEUED, running(50, 50)], 60, 60),
    "a fall": ([QUEUED, running(100, 50), running(110, 20)], 110, None),
    "after the queue it is measured again": (
        [QUEUED, running(100, 50), (200, None, "queued"), running(210, 10)],
        210,
        90,
    ),
    "ended": ([QUEUED, (100, 57, "ended")], 100, None),
}


@pytest.mark.parametrize("case", REMAINING)
def test_the_rest_is_measured_since_progress_began(case: str) -> None:
    readings, now, remaining = REMAINING[case]

    expected = None if remaining is None else pytest.approx(remaining)
    assert estimate_after(readings).remaining_seconds(now) == expected
