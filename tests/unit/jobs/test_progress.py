"""How fast a job progresses: steadily for people, eagerly for the next reading."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.jobs.progress import (
    MAX_REMAINING_SECONDS,
    MIN_POINTS,
    MIN_SECONDS,
    DisplayedEstimate,
    PollingEstimate,
)


def seen_queued(at: float = 1000.0) -> DisplayedEstimate:
    progress = DisplayedEstimate()
    progress.update(at, None, None, queued=True)
    return progress


class TestRest:
    @pytest.mark.parametrize(("at", "percent", "rest"), [(31, 12, 227.3), (144, 57, 108.6), (50, 99, 0.5)])
    def test_a_job_seen_in_the_queue_began_at_nothing(self, at: float, percent: float, rest: float) -> None:
        progress = seen_queued()

        progress.update(1000 + at, percent, None)

        assert progress.remaining_seconds(1000 + at) == pytest.approx(rest, abs=0.1)

    def test_the_last_reading_before_progress_is_where_it_began(self) -> None:
        progress = seen_queued(0)
        progress.update(600, None, None, queued=True)
        progress.update(610, None, 3)

        progress.update(630, 20, 9)

        assert progress.remaining_seconds(630) == 80

    def test_nothing_done_while_it_runs_is_progress_that_takes_time(self) -> None:
        progress = seen_queued(0)
        for at in (10, 20, 30):
            progress.update(at, 0, None)

        progress.update(40, 10, None)

        assert progress.remaining_seconds(40) == 360

    def test_the_percentage_of_a_queued_job_is_none(self) -> None:
        progress = DisplayedEstimate()
        progress.update(0, 0, None, queued=True)
        progress.update(60, 50, None, queued=True)
        assert progress.remaining_seconds(60) is None

        progress.update(70, 10, None)

        assert progress.remaining_seconds(70) == 90

    def test_a_job_met_on_its_way_is_measured_from_there(self) -> None:
        progress = DisplayedEstimate()
        progress.update(500, 60, 100)
        assert progress.remaining_seconds(600) is None

        progress.update(520, 80, 120)

        assert progress.remaining_seconds(520) == 20

    @pytest.mark.parametrize(
        ("percent", "at", "told"),
        [
            (MIN_POINTS, MIN_SECONDS, True),
            (MIN_POINTS - 0.1, MIN_SECONDS, False),
            (MIN_POINTS, MIN_SECONDS - 0.1, False),
        ],
    )
    def test_it_takes_enough_movement(self, percent: float, at: float, told: bool) -> None:
        progress = seen_queued(0)

        progress.update(at, percent, None)

        assert (progress.remaining_seconds(at) is not None) == told

    def test_a_standstill_makes_it_grow(self) -> None:
        progress = seen_queued(0)
        progress.update(50, 50, None)

        assert [progress.remaining_seconds(now) for now in (50, 60, 100)] == [50, 60, 100]

    def test_progress_that_runs_backwards_is_measured_anew(self) -> None:
        progress = seen_queued(0)
        progress.update(100, 50, None)
        progress.update(110, 20, None)
        assert progress.remaining_seconds(110) is None

        progress.update(120, 30, None)

        assert progress.remaining_seconds(120) == 70

    def test_so_is_that_of_a_job_that_is_queued_again(self) -> None:
        progress = seen_queued(0)
        progress.update(100, 50, None)
        progress.update(200, None, None, queued=True)

        progress.update(210, 10, None)

        assert progress.remaining_seconds(210) == 90

    def test_a_reading_without_a_percentage_has_none_and_the_next_goes_on(self) -> None:
        progress = seen_queued(0)
        progress.update(50, 50, None)
        progress.update(60, None, None)
        assert progress.remaining_seconds(60) is None

        progress.update(100, 50, None)

        assert progress.remaining_seconds(100) == 100

    def test_backwards_is_seen_across_one_too(self) -> None:
        progress = seen_queued(0)
        progress.update(50, 50, None)
        progress.update(60, None, None)

        progress.update(100, 40, None)

        assert progress.remaining_seconds(100) is None

    @pytest.mark.parametrize(("percent", "ended"), [(100, False), (57, True)])
    def test_nothing_is_left_at_the_end(self, percent: float, ended: bool) -> None:
        progress = seen_queued(0)

        progress.update(100, percent, None, ended=ended)

        assert progress.remaining_seconds(100) is None

    @pytest.mark.parametrize(("now", "told"), [(MAX_REMAINING_SECONDS, True), (MAX_REMAINING_SECONDS + 1, False)])
    def test_more_than_a_day_is_no_estimate(self, now: float, told: bool) -> None:
        progress = seen_queued(0)
        progress.update(10, 50, None)

        assert (progress.remaining_seconds(now) is not None) == told

    def test_nothing_seen_is_nothing_known(self) -> None:
        assert DisplayedEstimate().remaining_seconds(10) is None
        assert DisplayedEstimate().stalled_since is None

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
    def test_it_is_never_absurd(self, readings: list[tuple[float, float | None, int | None, bool, bool]], later: float) -> None:
        progress, now = DisplayedEstimate(), 0.0
        for pause, percent, page_count, queued, ended in readings:
            now += pause
            progress.update(now, percent, page_count, queued=queued, ended=ended)

            rest = progress.remaining_seconds(now + later)
            assert rest is None or 0 < rest <= MAX_REMAINING_SECONDS
            assert progress.stalled_since is None or progress.stalled_since < now or now - pause == now


class TestStandstill:
    @pytest.mark.parametrize(("percent", "pages"), [(57.0, 231), (57.0, None), (None, 231)])
    def test_it_lasts_since_something_last_moved(self, percent: float | None, pages: int | None) -> None:
        progress = seen_queued(0)
        progress.update(10, percent, pages)
        assert progress.stalled_since is None

        progress.update(20, percent, pages)
        progress.update(30, percent, pages)

        assert progress.stalled_since == 10

    @pytest.mark.parametrize(("percent", "pages"), [(57.1, 231), (57.0, 232), (56.0, 231)])
    def test_whatever_moves_ends_it(self, percent: float, pages: int) -> None:
        progress = DisplayedEstimate()
        progress.update(10, 57.0, 231)
        progress.update(20, 57.0, 231)

        progress.update(30, percent, pages)

        assert progress.stalled_since is None

    def test_what_a_reading_leaves_out_has_not_moved(self) -> None:
        progress = DisplayedEstimate()
        progress.update(10, 57.0, 231)

        progress.update(20, None, None)
        progress.update(30, 57.0, 231)

        assert progress.stalled_since == 10

    def test_a_job_that_reports_nothing_never_stands_still(self) -> None:
        progress = seen_queued(0)

        progress.update(10, None, None)
        progress.update(900, None, None)

        assert progress.stalled_since is None

    def test_in_the_queue_nothing_has_to_move(self) -> None:
        progress = DisplayedEstimate()
        for at in (0, 900):
            progress.update(at, 0.0, 0, queued=True)
            assert progress.stalled_since is None

        progress.update(1000, 0.0, 0)
        assert progress.stalled_since is None
        progress.update(1010, 0.0, 0)

        assert progress.stalled_since == 1000

    def test_a_job_that_has_ended_does_not_stand_still(self) -> None:
        progress = DisplayedEstimate()
        progress.update(10, 57.0, 231)
        progress.update(20, 57.0, 231)

        progress.update(30, 57.0, 231, ended=True)

        assert progress.stalled_since is None


def seen(*readings: tuple[float, float | None], began: float | None = None, shortest: float = 1.0) -> PollingEstimate:
    """Follow readings of seconds and percents."""
    pace = PollingEstimate(began=began, shortest_pause_seconds=shortest)
    for at, percent in readings:
        pace.update(at, percent)
    return pace


class TestEagerRest:
    def test_without_movement_there_is_no_telling(self) -> None:
        assert seen((0, None), (5, 0), (9, 0)).remaining_seconds(9) is None

    def test_two_readings_make_a_pace(self) -> None:
        assert seen((10, 20), (20, 40)).remaining_seconds(20) == 30

    def test_a_job_of_known_age_has_one_with_its_first_reading(self) -> None:
        assert seen((3, 2), began=0.0).remaining_seconds(3) == pytest.approx(147)

    def test_progress_that_was_there_when_the_job_was_met_is_no_movement(self) -> None:
        assert seen((3, 50)).remaining_seconds(3) is None

    def test_progress_that_appears_began_after_the_last_reading_without(self) -> None:
        assert seen((0, None), (100, None), (105, 10), began=0.0).remaining_seconds(105) == 45

    def test_time_that_passes_without_movement_is_taken_off(self) -> None:
        assert seen((0, 0), (10, 50)).remaining_seconds(14) == 6

    def test_a_job_that_should_have_ended_has_less_than_nothing_left(self) -> None:
        assert seen((0, 0), (10, 50)).remaining_seconds(30) == -10

    def test_at_a_hundred_nothing_is_left(self) -> None:
        assert seen((0, 0), (10, 100)).remaining_seconds(10) == 0

    def test_a_pace_that_grew_counts_as_it_is_of_late(self) -> None:
        assert seen((0, 0), (100, 20), (110, 30), (120, 40), (130, 60)).remaining_seconds(130) == 20

    def test_a_pace_that_fell_counts_as_it_is_as_a_whole(self) -> None:
        assert seen((0, 0), (10, 50), (60, 60), (110, 70)).remaining_seconds(110) == pytest.approx(30 * 110 / 70)

    def test_of_late_means_as_far_back_as_a_quarter_of_what_is_left(self) -> None:
        assert seen((0, 0), (60, 20), (70, 39), (71, 40)).remaining_seconds(71) == pytest.approx(60 * 11 / 20)

    def test_of_late_means_three_points_at_least(self) -> None:
        # a whole percent that is just reached says little by itself
        assert seen((0, 0), (96, 96), (98, 98), (98.1, 99)).remaining_seconds(98.1) == pytest.approx(2.1 / 3)


class TestEagerWhatIsNoSteadyProgress:
    def test_a_small_step_back_is_none(self) -> None:
        assert seen((0, 0), (10, 50), (12, 45)).remaining_seconds(12) == 8

    def test_a_large_one_that_lasts_begins_anew(self) -> None:
        pace = seen((0, 0), (10, 50), (12, 40), (13, 41), (14, 42))
        assert pace.remaining_seconds(14) is None
        assert pace.observed_seconds(14) == 0

        pace.update(24, 52)

        assert pace.remaining_seconds(24) == pytest.approx(48)

    def test_a_large_one_that_does_not_last_is_none(self) -> None:
        assert seen((0, 0), (10, 50), (12, 40), (13, 41), (14, 70)).remaining_seconds(14) == pytest.approx(6)

    def test_a_job_that_begins_anew_again_and_again_has_no_pace_to_go_by(self) -> None:
        pace, at = PollingEstimate(began=None, shortest_pause_seconds=1.0), 0.0
        for _ in range(11):
            assert pace.is_reliable
            for percent in (90, 10, 10, 10):
                at += 10
                pace.update(at, percent)

        assert not pace.is_reliable

    def test_a_reading_that_tells_nothing_changes_nothing(self) -> None:
        assert seen((0, 0), (10, 50), (12, None)).remaining_seconds(12) == 8

    def test_a_pace_after_a_standstill_is_a_new_one(self) -> None:
        pace = seen((0, 0), (10, 10), (50, 10), (100, 10), (110, 30))

        assert pace.remaining_seconds(110) == 35
        assert pace.observed_seconds(110) == 10

    def test_steps_as_long_as_one_before_are_no_standstill(self) -> None:
        pace = seen((0, 0), (10, 0), (20, 0), (30, 1), (45, 1), (60, 2))

        assert pace.observed_seconds(60) == 40
        assert pace.remaining_seconds(60) == pytest.approx(98 * 20)


class TestEagerStandstill:
    def test_it_is_twice_as_long_as_the_longest_step(self) -> None:
        pace = seen((0, 0), (10, 5), (14, 7))

        assert not pace.is_stalled(34)
        assert pace.is_stalled(34.1)
        assert pace.seconds_since_progress(34) == 20

    def test_it_is_twice_the_shortest_pause_at_least(self) -> None:
        pace = seen((0, 0), (0.1, 5), shortest=1.0)

        assert not pace.is_stalled(2.1)
        assert pace.is_stalled(2.2)

    def test_a_job_that_tells_nothing_does_not_stand(self) -> None:
        pace = seen((0, None), (500, None))

        assert not pace.is_stalled(500)
        assert (pace.seconds_since_progress(500), pace.observed_seconds(500)) == (0, 0)


@given(
    st.lists(st.tuples(st.floats(0.001, 1e5), st.none() | st.floats(0, 100)), min_size=1),
    st.none() | st.just(0.0),
)
def test_whatever_is_read_makes_a_number_or_none(readings: list[tuple[float, float | None]], began: float | None) -> None:
    pace, now = PollingEstimate(began=began, shortest_pause_seconds=0.001), 0.0

    for pause, percent in readings:
        now += pause
        pace.update(now, percent)

        rest = pace.remaining_seconds(now)
        assert rest is None or not math.isnan(rest)
        assert 0 <= pace.seconds_since_progress(now) <= pace.observed_seconds(now) <= now
