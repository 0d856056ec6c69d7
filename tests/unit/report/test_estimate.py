"""The estimate of the remaining time that people see, and since when a job makes no progress."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    "it is nearly done": ([QUEUED, running(50, 99)], 50, 50 / 99),
    "time before the last reading without progress": (
        [QUEUED, (600, None, None, "queued"), running(610, None, 3), running(630, 20, 9)],
        630,
        80,
    ),
    "time at 0 % counts": ([QUEUED, running(10, 0), running(20, 0), running(30, 0), running(40, 10)], 40, 360),
    "queued with progress": ([(0, 0, None, "queued"), (60, 50, None, "queued")], 60, None),
    "no longer queued with progress": ([(0, 0, None, "queued"), (60, 50, None, "queued"), running(70, 10)], 70, 90),
    "collected": ([running(500, 60, 100)], 600, None),
    "collected, with a second reading": ([running(500, 60, 100), running(520, 80, 120)], 520, 20),
    "just enough points and seconds": ([QUEUED, running(MIN_SECONDS, MIN_POINTS)], MIN_SECONDS, 95),
    "too few points": ([QUEUED, running(MIN_SECONDS, MIN_POINTS - 0.1)], MIN_SECONDS, None),
    "too few seconds": ([QUEUED, running(MIN_SECONDS - 0.1, MIN_POINTS)], MIN_SECONDS - 0.1, None),
    "it grows during a stall": ([QUEUED, running(50, 50)], 60, 60),
    "a fall": ([QUEUED, running(100, 50), running(110, 20)], 110, None),
    "after a fall it is measured again": ([QUEUED, running(100, 50), running(110, 20), running(120, 30)], 120, 70),
    "after the queue it is measured again": (
        [QUEUED, running(100, 50), (200, None, None, "queued"), running(210, 10)],
        210,
        90,
    ),
    "no progress": ([QUEUED, running(50, 50), running(60, None)], 60, None),
    "no progress, then the same": ([QUEUED, running(50, 50), running(60, None), running(100, 50)], 100, 100),
    "no progress, then a fall": ([QUEUED, running(50, 50), running(60, None), running(100, 40)], 100, None),
    "100 %": ([QUEUED, running(100, 100)], 100, None),
    "ended": ([QUEUED, (100, 57, None, "ended")], 100, None),
}


class TestRemaining:
    @pytest.mark.parametrize("case", REMAINING)
    def test_it_is_measured_since_progress_began(self, case: str) -> None:
        readings, now, remaining = REMAINING[case]

        assert displayed(*readings).remaining_seconds(now) == (None if remaining is None else pytest.approx(remaining))

    @given(
        st.lists(
            st.tuples(
                st.floats(0, 5000),
                st.one_of(st.none(), st.floats(0, 100)),
                st.one_of(st.none(), st.integers(0, 9)),
                st.booleans(),
                st.booleans(),
            ),
            max_size=8,
        ),
        st.floats(0, 5000),
    )
    def test_it_is_a_time_to_come_or_none(
        self, readings: list[tuple[float, float | None, int | None, bool, bool]], later: float
    ) -> None:
        progress, now = Estimate(), 0.0
        for pause, percent, page_count, queued, ended in readings:
            now += pause
            progress.update(now, percent, page_count, queued=queued, ended=ended)

            remaining = progress.remaining_seconds(now + later)
            most = (100 - MIN_POINTS) / MIN_POINTS * (now + later)  # with the least progress that is enough
            assert remaining is None or 0 < remaining <= most * (1 + 1e-9)
            assert progress.stalled_since is None or progress.stalled_since < now or now - pause == now


STALLED_SINCE: Mapping[str, tuple[Sequence[Reading], float | None]] = {
    "nothing was read": ([], None),
    "progress and pages once": ([QUEUED, running(10, 57, 231)], None),
    "progress and pages": ([QUEUED, *(running(at, 57, 231) for at in (10, 20, 30))], 10),
    "progress": ([QUEUED, *(running(at, 57) for at in (10, 20, 30))], 10),
    "pages": ([QUEUED, *(running(at, None, 231) for at in (10, 20, 30))], 10),
    "more progress": ([running(10, 57, 231), running(20, 57, 231), running(30, 57.1, 231)], None),
    "less progress": ([running(10, 57, 231), running(20, 57, 231), running(30, 56, 231)], None),
    "more pages": ([running(10, 57, 231), running(20, 57, 231), running(30, 57, 232)], None),
    "a reading without them changes nothing": ([running(10, 57, 231), running(20, None), running(30, 57, 231)], 10),
    "no progress at all": ([QUEUED, running(10, None), running(900, None)], None),
    "in the queue": ([(0, 0, 0, "queued"), (900, 0, 0, "queued")], None),
    "just after the queue": ([(0, 0, 0, "queued"), (900, 0, 0, "queued"), running(1000, 0, 0)], None),
    "after the queue": ([(0, 0, 0, "queued"), running(1000, 0, 0), running(1010, 0, 0)], 1000),
    "ended": ([running(10, 57, 231), running(20, 57, 231), (30, 57, 231, "ended")], None),
}


@pytest.mark.parametrize("case", STALLED_SINCE)
def test_a_standstill_lasts_since_the_last_change(case: str) -> None:
    readings, since = STALLED_SINCE[case]

    assert displayed(*readings).stalled_since == since
