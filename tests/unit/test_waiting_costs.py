"""The goals of the benchmark `bench/schedules.py` are met, with fewer jobs."""

from collections.abc import Mapping

import pytest
from bench.schedules import (
    FIXED_5_S,
    ODD_SHAPES,
    OTHERS,
    SHAPES,
    Figures,
    even_durations,
    missed,
    of,
    of_the_action,
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


@pytest.mark.parametrize("name", ODD_SHAPES)
def test_misleading_progress_costs_fewer_requests_than_fixed_5_s(name: str) -> None:
    durations = DURATIONS[::6]

    cost = of_the_action(durations, ODD_SHAPES[name])

    assert cost.requests < of(OTHERS[FIXED_5_S], durations).requests
    assert cost.mean_lag < (15 if name == "ends at 60 %" else 4)


def test_a_collected_job_costs_a_few_more_requests(ours: Mapping[str, Figures]) -> None:
    collected = of_the_action(MANY_DURATIONS, silent, collected=True)

    assert ours["none"].requests < collected.requests < ours["none"].requests + 5
    assert collected.mean_lag < ours["none"].mean_lag


def test_no_job_is_read_twice_within_the_shortest_pause(ours: Mapping[str, Figures]) -> None:
    assert all(cost.requests <= 1 + sum(DURATIONS) / len(DURATIONS) for cost in ours.values())
