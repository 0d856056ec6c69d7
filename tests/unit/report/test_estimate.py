"""The estimate of the remaining time that people see, and since when a job makes no progress."""

from collections.abc import Mapping, Sequence

import pytest

from docs_platform_action.report.estimate import MIN_POINTS, MIN_SECONDS, Estimate

Reading = tuple[float, float | None, int | None, str]
QUEUED: Reading = (0, None, None, "queued")


def displayed(*readings: Reading) -> Estimate:
    """Return the estimate after readings: the time, the progress, the page count, and "queued", "running" or "ended"."""
    estimate = Estimate()
    for at, percent, pages, state in readings:
        estimate.update(at, percent, pages, queued=state == "queued", ended=state == "ended")
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
    "time at 0 % counts": ([QUEUED, running(10, 0), running(20, 0), running(30, 0), running(40, 10)], 40, 360),
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

    assert displayed(*readings).remaining_seconds(now) == (None if remaining is None else pytest.approx(remaining))


STALLED_SINCE: Mapping[str, tuple[Sequence[Reading], float | None]] = {
    "progress and pages": ([QUEUED, *(running(at, 57, 231) for at in (10, 20, 30))], 10),
    "progress": ([QUEUED, *(running(at, 57) for at in (10, 20, 30))], 10),
    "pages": ([QUEUED, *(running(at, None, 231) for at in (10, 20, 30))], 10),
    "more progress": ([running(10, 57, 231), running(20, 57, 231), running(30, 57.1, 231)], None),
    "more pages": ([running(10, 57, 231), running(20, 57, 231), running(30, 57, 232)], None),
    "no progress at all": ([QUEUED, running(10, None), running(900, None)], None),
    "after the queue": ([(0, 0, 0, "queued"), running(1000, 0, 0), running(1010, 0, 0)], 1000),
    "ended": ([running(10, 57, 231), running(20, 57, 231), (30, 57, 231, "ended")], None),
}


@pytest.mark.parametrize("case", STALLED_SINCE)
def test_a_standstill_lasts_since_the_last_change(case: str) -> None:
    readings, since = STALLED_SINCE[case]

    assert displayed(*readings).stalled_since == since
