"""How fast a job comes to its end is told from the first movement on, and rather too fast than too slow."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.jobs.pace import Pace


def seen(*readings: tuple[float, float | None], began: float | None = None, finest: float = 1.0) -> Pace:
    """Follow readings of seconds and percents."""
    pace = Pace(began=began, finest_seconds=finest)
    for at, percent in readings:
        pace.see(at, percent)
    return pace


class TestRest:
    def test_without_movement_there_is_no_telling(self) -> None:
        assert seen((0, None), (5, 0), (9, 0)).rest_seconds(9) is None

    def test_two_readings_make_a_pace(self) -> None:
        assert seen((10, 20), (20, 40)).rest_seconds(20) == 30

    def test_a_job_of_known_age_has_one_with_its_first_reading(self) -> None:
        assert seen((3, 2), began=0.0).rest_seconds(3) == pytest.approx(147)

    def test_progress_that_was_there_when_the_job_was_met_is_no_movement(self) -> None:
        assert seen((3, 50)).rest_seconds(3) is None

    def test_progress_that_appears_began_after_the_last_reading_without(self) -> None:
        assert seen((0, None), (100, None), (105, 10), began=0.0).rest_seconds(105) == 45

    def test_time_that_passes_without_movement_is_taken_off(self) -> None:
        assert seen((0, 0), (10, 50)).rest_seconds(14) == 6

    def test_a_job_that_should_have_ended_has_less_than_nothing_left(self) -> None:
        assert seen((0, 0), (10, 50)).rest_seconds(30) == -10

    def test_at_a_hundred_nothing_is_left(self) -> None:
        assert seen((0, 0), (10, 100)).rest_seconds(10) == 0

    def test_a_pace_that_grew_counts_as_it_is_of_late(self) -> None:
        assert seen((0, 0), (100, 20), (110, 30), (120, 40), (130, 60)).rest_seconds(130) == 20

    def test_a_pace_that_fell_counts_as_it_is_as_a_whole(self) -> None:
        assert seen((0, 0), (10, 50), (60, 60), (110, 70)).rest_seconds(110) == pytest.approx(30 * 110 / 70)

    def test_of_late_means_as_far_back_as_a_quarter_of_what_is_left(self) -> None:
        assert seen((0, 0), (60, 20), (70, 39), (71, 40)).rest_seconds(71) == pytest.approx(60 * 11 / 20)

    def test_of_late_means_three_points_at_least(self) -> None:
        # a whole percent that is just reached says little by itself
        assert seen((0, 0), (96, 96), (98, 98), (98.1, 99)).rest_seconds(98.1) == pytest.approx(2.1 / 3)


class TestWhatIsNoSteadyProgress:
    def test_a_small_step_back_is_none(self) -> None:
        assert seen((0, 0), (10, 50), (12, 45)).rest_seconds(12) == 8

    def test_a_large_one_that_lasts_begins_anew(self) -> None:
        pace = seen((0, 0), (10, 50), (12, 40), (13, 41), (14, 42))
        assert pace.rest_seconds(14) is None
        assert pace.seen_for(14) == 0

        pace.see(24, 52)

        assert pace.rest_seconds(24) == pytest.approx(48)

    def test_a_large_one_that_does_not_last_is_none(self) -> None:
        assert seen((0, 0), (10, 50), (12, 40), (13, 41), (14, 70)).rest_seconds(14) == pytest.approx(6)

    def test_a_job_that_begins_anew_again_and_again_has_no_pace_to_go_by(self) -> None:
        pace, at = Pace(began=None, finest_seconds=1.0), 0.0
        for _ in range(11):
            assert pace.is_to_be_trusted
            for percent in (90, 10, 10, 10):
                at += 10
                pace.see(at, percent)

        assert not pace.is_to_be_trusted

    def test_a_reading_that_tells_nothing_changes_nothing(self) -> None:
        assert seen((0, 0), (10, 50), (12, None)).rest_seconds(12) == 8

    def test_a_pace_after_a_standstill_is_a_new_one(self) -> None:
        pace = seen((0, 0), (10, 10), (50, 10), (100, 10), (110, 30))

        assert pace.rest_seconds(110) == 35
        assert pace.seen_for(110) == 10

    def test_steps_as_long_as_one_before_are_no_standstill(self) -> None:
        pace = seen((0, 0), (10, 0), (20, 0), (30, 1), (45, 1), (60, 2))

        assert pace.seen_for(60) == 40
        assert pace.rest_seconds(60) == pytest.approx(98 * 20)


class TestStandstill:
    def test_it_is_twice_as_long_as_the_longest_step(self) -> None:
        pace = seen((0, 0), (10, 5), (14, 7))

        assert not pace.stands_still(34)
        assert pace.stands_still(34.1)
        assert pace.still_for(34) == 20

    def test_it_is_twice_the_shortest_pause_at_least(self) -> None:
        pace = seen((0, 0), (0.1, 5), finest=1.0)

        assert not pace.stands_still(2.1)
        assert pace.stands_still(2.2)

    def test_a_job_that_tells_nothing_does_not_stand(self) -> None:
        pace = seen((0, None), (500, None))

        assert not pace.stands_still(500)
        assert (pace.still_for(500), pace.seen_for(500)) == (0, 0)


@given(
    st.lists(st.tuples(st.floats(0.001, 1e5), st.none() | st.floats(0, 100)), min_size=1),
    st.none() | st.just(0.0),
)
def test_whatever_is_read_makes_a_number_or_none(readings: list[tuple[float, float | None]], began: float | None) -> None:
    pace, now = Pace(began=began, finest_seconds=0.001), 0.0

    for pause, percent in readings:
        now += pause
        pace.see(now, percent)

        rest = pace.rest_seconds(now)
        assert rest is None or not math.isnan(rest)
        assert 0 <= pace.still_for(now) <= pace.seen_for(now) <= now
