"""The next reading of a job comes soon if its end may be near, otherwise late."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from docs_platform_action.inputs.settings import WaitSettings
from docs_platform_action.jobs.estimate import MAX_RESTARTS
from docs_platform_action.jobs.schedule import Schedule

Reading = tuple[float, float | None] | tuple[float, float | None, str]
NEW = {"just_started": True}


def pauses_after(
    *readings: Reading, shortest: float = 1.0, longest: float = 30.0, just_started: bool = False
) -> list[float]:
    """Return the first pause, and the pause after each reading.

    A reading has seconds, percent and, if it is not `running`, a status.
    """
    settings = WaitSettings(
        timeout_seconds=1e9, poll_interval_seconds=shortest, max_poll_interval_seconds=longest
    )
    schedule = Schedule(settings, began=0.0, has_just_started=just_started)

    def read(at: float, percent: float | None, status: str = "running") -> float:
        return schedule.pause_after(at, status, percent)

    return [schedule.first_pause_seconds, *(read(*reading) for reading in readings)]


@pytest.mark.parametrize(
    ("settings", "pause"),
    [
        ({}, 0),
        (NEW, 3),
        ({**NEW, "shortest": 0.1}, 0.3),
        ({**NEW, "shortest": 3600, "longest": 3600}, 3),
        ({**NEW, "shortest": 0.5, "longest": 0.7}, 0.7),
    ],
)
def test_a_job_is_first_read_at_once_unless_it_has_just_started(
    settings: dict[str, Any], pause: float
) -> None:
    assert pauses_after(**settings) == [pytest.approx(pause)]


PAUSES: Mapping[str, tuple[Sequence[Reading], Mapping[str, Any], Sequence[float]]] = {
    "a young job is read rarely": ([(3, None), (39.9, None), (40, None)], NEW, [7.5, 7.5, 4.75]),
    "a job of unknown age is not young": ([(0, None)], {}, [4.75]),
    "pauses grow": ([(1000, None), (2000, None), (9000, None)], {}, [4.75, 8, 30]),
    "a new status makes them short again": (
        [(0, None), (2000, None), (2010, None, "new"), (4010, None, "new")],
        {},
        [4.75, 8, 4.75, 8],
    ),
    "one above the usual pause replaces the usual one": ([(0, None)], {"shortest": 10}, [10]),
    "bound by how long the rate was seen": ([(0, 0), (20, 50)], {}, [1, 8]),
    "most of the remaining time": ([(0, 0), (20, 80)], {}, [1, 3]),
    "near the end two readings are planned": ([(0, 0), (97, 97)], {}, [1, 2]),
    "the last reading is planned just after the end": ([(0, 0), (98.5, 98.5)], {}, [1, 1.6]),
    "none is shorter than the shortest": ([(0, 0), (99.5, 99.5)], {}, [1, 1]),
    "half the observed time before the first progress": (
        [(0, 0), (3, 0), (8, 0), (60, 0)],
        {},
        [1, 1.5, 4, 4.75],
    ),
    "an overdue job is read soon, then less often": (
        [(0, 0), (90, 90), (101, 90), (150, 90)],
        {},
        [1, 6, 2.75, 4.75],
    ),
    "an end that is put off again and again": ([(0, 0), (97, 97), (111, 98)], {}, [1, 2, 2.5]),
    "a stalled job is read like one without progress": (
        [(0, 0), (10, 10), (20, 20), (80, 20)],
        {},
        [1, 4, 8, 4.75],
    ),
    "of a rate that fell the average counts": (
        [(0, 0), (10, 50), (60, 60), (110, 70)],
        {},
        [1, 4, 24, 0.6 * 30 * 110 / 70],
    ),
    "one that lasts is a restart": (
        [(0, 0), (10, 50), (12, 40), (13, 41), (14, 42), (24, 52)],
        {},
        [1, 4, 4.8, 4.2, 1, 4],
    ),
}


@pytest.mark.parametrize("case", PAUSES)
def test_a_job_is_read_rarely_until_its_end_may_be_near(case: str) -> None:
    readings, settings, pauses = PAUSES[case]

    assert pauses_after(*readings, **settings)[1:] == pytest.approx(pauses)


@pytest.mark.parametrize(("restarts", "pause"), [(MAX_RESTARTS, 5.2), (MAX_RESTARTS + 1, 4.75)])
def test_after_many_restarts_a_job_is_read_like_one_without_progress(
    restarts: int, pause: float
) -> None:
    readings = enumerate([90.0, 10, 10, 10] * restarts)

    assert pauses_after(*readings, (4 * restarts + 12, 50))[-1] == pytest.approx(pause)
