"""Maximum numbers of spans and of moments."""

import pytest

from admin_api_simulator.peaks import max_concurrent, max_within


@pytest.mark.parametrize(
    ("spans", "most"),
    [
        ([], 0),
        ([(1.0, 1.0)], 0),
        ([(0.0, 2.0), (2.0, 4.0)], 1),
        ([(0.0, 2.5), (2.0, 4.0)], 2),
        ([(0.0, 9.0), (1.0, 2.0), (3.0, 5.0), (4.0, 6.0)], 3),
        ([(4.0, 6.0), (0.0, 5.0), (0.0, 5.0)], 3),
    ],
)
def test_what_ends_at_a_moment_is_not_there_together_with_what_starts_then(spans: list[tuple[float, float]], most: int) -> None:
    assert max_concurrent(spans) == most


@pytest.mark.parametrize(
    ("moments", "seconds", "most"),
    [
        ([], 1.0, 0),
        ([5.0], 1.0, 1),
        ([0.0, 1.0, 2.0], 1.0, 1),
        ([0.0, 0.5, 1.25, 1.375], 1.0, 3),
        ([1.375, 0.0, 1.25, 0.5], 1.0, 3),
        ([0.0, 0.5, 1.25, 1.375], 0.25, 2),
    ],
)
def test_a_stretch_of_time_holds_its_start_and_not_its_end(moments: list[float], seconds: float, most: int) -> None:
    assert max_within(moments, seconds) == most
