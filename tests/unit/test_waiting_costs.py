"""The goals of the benchmark `bench/schedules.py` are met, with fewer jobs."""

import math
from collections.abc import Iterator, Mapping
from itertools import chain, repeat

import pytest
from bench.schedules import (
    FIXED_5_S,
    ODD_SHAPES,
    OTHERS,
    SHAPES,
    Figures,
    drawn_durations,
    even_durations,
    figures,
    missed,
    of,
    of_the_action,
    polls_of,
    polls_of_the_action,
    silent,
)

DURATIONS = even_durations(300)
MANY_DURATIONS = even_durations(20_000)
"""For `silent`, whose margins are small and whose polling times do not depend on the duration."""


@pytest.fixture(scope="module")
def fixed() -> Figures:
    return of(OTHERS[FIXED_5_S], MANY_DURATIONS)


@pytest.fixture(scope="module")
def ours() -> Mapping[str, Figures]:
    return {name: of_the_action(MANY_DURATIONS if shape is silent else DURATIONS, shape) for name, shape in SHAPES.items()}


def test_the_goals_are_met(ours: Mapping[str, Figures], fixed: Figures) -> None:
    assert missed(ours, fixed) == []


@pytest.mark.parametrize("name", SHAPES)
def test_a_missed_goal_is_reported(name: str, ours: Mapping[str, Figures], fixed: Figures) -> None:
    worse = Figures(mean_lag=fixed.mean_lag, p95_lag=fixed.p95_lag, requests=fixed.requests)

    lines = missed({**ours, name: worse}, fixed)

    assert len(lines) == (3 if name == "none" else 2)
    assert all(line.startswith(f"{name}: ") for line in lines)


@pytest.mark.parametrize("name", ODD_SHAPES)
def test_misleading_progress_costs_fewer_requests_than_fixed_5_s(name: str) -> None:
    durations = DURATIONS[::6]

    cost = of_the_action(durations, ODD_SHAPES[name])

    assert cost.requests < of(OTHERS[FIXED_5_S], durations).requests
    assert cost.mean_lag < (15 if name == "ends at 60 %" else 4)


def test_an_attached_job_costs_a_few_more_requests(ours: Mapping[str, Figures]) -> None:
    attached = of_the_action(MANY_DURATIONS, silent, attached=True)

    assert ours["none"].requests < attached.requests < ours["none"].requests + 5
    assert attached.mean_lag < ours["none"].mean_lag


def test_no_job_is_read_twice_within_the_shortest_pause(ours: Mapping[str, Figures]) -> None:
    assert all(cost.requests <= 1 + sum(DURATIONS) / len(DURATIONS) for cost in ours.values())


class TestMeasurement:
    @pytest.mark.parametrize("attached", [False, True])
    def test_a_silent_job_is_read_at_the_same_moments_however_long_it_takes(self, *, attached: bool) -> None:
        moments = polls_of_the_action(3600, silent, attached=attached)

        for seconds in (8, 60, 250, 1500):
            own = polls_of_the_action(seconds, silent, attached=attached)
            assert own == moments[: len(own)]
            assert own[-2] < seconds <= own[-1]

    def test_other_schedules_pause_before_each_request(self) -> None:
        assert polls_of(lambda: repeat(5.0), 12) == [5, 10, 15]
        assert polls_of(lambda: repeat(5.0), 15) == [5, 10, 15]

    def test_pauses_double(self) -> None:
        assert polls_of(OTHERS["15 s, doubling"], 100) == [15, 45, 105]

    def test_figures(self) -> None:
        lags: Iterator[float] = chain(repeat(1.0, 95), repeat(21.0, 5))

        assert figures([(lag, 3) for lag in lags]) == Figures(mean_lag=2, p95_lag=1, requests=3)

    def test_durations_have_the_documented_distribution(self) -> None:
        drawn, even = drawn_durations(2000), sorted(DURATIONS)

        assert drawn == drawn_durations(2000)
        assert even[len(even) // 2] == pytest.approx(240, rel=0.02)
        assert math.exp(sum(map(math.log, drawn)) / len(drawn)) == pytest.approx(240, rel=0.05)
        assert 8 <= min(*drawn, *even) <= max(*drawn, *even) <= 3600
