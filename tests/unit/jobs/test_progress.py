"""The estimates of the remaining time: for people, and for the next reading."""

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


class TestDisplayedRemaining:
    @pytest.mark.parametrize(("at", "percent", "remaining"), [(31, 12, 227.3), (144, 57, 108.6), (50, 99, 0.5)])
    def test_a_job_seen_in_the_queue_began_at_zero(self, at: float, percent: float, remaining: float) -> None:
        progress = seen_queued()

        progress.update(1000 + at, percent, None)

        assert progress.remaining_seconds(1000 + at) == pytest.approx(remaining, abs=0.1)

    def test_the_rate_begins_at_the_last_reading_before_progress(self) -> None:
        progress = seen_queued(0)
        progress.update(600, None, None, queued=True)
        progress.update(610, None, 3)

        progress.update(630, 20, 9)

        assert progress.remaining_seconds(630) == 80

    def test_time_at_zero_percent_counts(self) -> None:
        progress = seen_queued(0)
        for at in (10, 20, 30):
            progress.update(at, 0, None)

        progress.update(40, 10, None)

        assert progress.remaining_seconds(40) == 360

    def test_the_percentage_of_a_queued_job_is_ignored(self) -> None:
        progress = DisplayedEstimate()
        progress.update(0, 0, None, queued=True)
        progress.update(60, 50, None, queued=True)
        assert progress.remaining_seconds(60) is None

        progress.update(70, 10, None)

        assert progress.remaining_seconds(70) == 90

    def test_a_running_job_is_measured_from_its_first_reading(self) -> None:
        progress = DisplayedEstimate()
        progress.update(500, 60, 100)
        assert progress.remaining_seconds(600) is None

        progress.update(520, 80, 120)

        assert progress.remaining_seconds(520) == 20

    @pytest.mark.parametrize(
        ("percent", "at", "is_estimated"),
        [
            (MIN_POINTS, MIN_SECONDS, True),
            (MIN_POINTS - 0.1, MIN_SECONDS, False),
            (MIN_POINTS, MIN_SECONDS - 0.1, False),
        ],
    )
    def test_it_needs_enough_progress(self, percent: float, at: float, is_estimated: bool) -> None:
        progress = seen_queued(0)

        progress.update(at, percent, None)

        assert (progress.remaining_seconds(at) is not None) == is_estimated

    def test_it_grows_during_a_stall(self) -> None:
        progress = seen_queued(0)
        progress.update(50, 50, None)

        assert [progress.remaining_seconds(now) for now in (50, 60, 100)] == [50, 60, 100]

    def test_the_rate_is_measured_again_if_progress_falls(self) -> None:
        progress = seen_queued(0)
        progress.update(100, 50, None)
        progress.update(110, 20, None)
        assert progress.remaining_seconds(110) is None

        progress.update(120, 30, None)

        assert progress.remaining_seconds(120) == 70

    def test_the_rate_is_measured_again_if_the_job_is_queued_again(self) -> None:
        progress = seen_queued(0)
        progress.update(100, 50, None)
        progress.update(200, None, None, queued=True)

        progress.update(210, 10, None)

        assert progress.remaining_seconds(210) == 90

    def test_a_reading_without_a_percentage_has_none_and_the_next_continues(self) -> None:
        progress = seen_queued(0)
        progress.update(50, 50, None)
        progress.update(60, None, None)
        assert progress.remaining_seconds(60) is None

        progress.update(100, 50, None)

        assert progress.remaining_seconds(100) == 100

    def test_a_fall_is_seen_across_a_reading_without_a_percentage(self) -> None:
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

    @pytest.mark.parametrize(("now", "is_estimated"), [(MAX_REMAINING_SECONDS, True), (MAX_REMAINING_SECONDS + 1, False)])
    def test_more_than_a_day_is_not_displayed(self, now: float, is_estimated: bool) -> None:
        progress = seen_queued(0)
        progress.update(10, 50, None)

        assert (progress.remaining_seconds(now) is not None) == is_estimated

    def test_without_readings_nothing_is_known(self) -> None:
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

            remaining = progress.remaining_seconds(now + later)
            assert remaining is None or 0 < remaining <= MAX_REMAINING_SECONDS
            assert progress.stalled_since is None or progress.stalled_since < now or now - pause == now


class TestStandstill:
    @pytest.mark.parametrize(("percent", "pages"), [(57.0, 231), (57.0, None), (None, 231)])
    def test_it_lasts_since_the_last_change(self, percent: float | None, pages: int | None) -> None:
        progress = seen_queued(0)
        progress.update(10, percent, pages)
        assert progress.stalled_since is None

        progress.update(20, percent, pages)
        progress.update(30, percent, pages)

        assert progress.stalled_since == 10

    @pytest.mark.parametrize(("percent", "pages"), [(57.1, 231), (57.0, 232), (56.0, 231)])
    def test_any_change_ends_it(self, percent: float, pages: int) -> None:
        progress = DisplayedEstimate()
        progress.update(10, 57.0, 231)
        progress.update(20, 57.0, 231)

        progress.update(30, percent, pages)

        assert progress.stalled_since is None

    def test_what_a_reading_leaves_out_has_not_changed(self) -> None:
        progress = DisplayedEstimate()
        progress.update(10, 57.0, 231)

        progress.update(20, None, None)
        progress.update(30, 57.0, 231)

        assert progress.stalled_since == 10

    def test_a_job_without_progress_never_stalls(self) -> None:
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

    def test_an_ended_job_is_not_stalled(self) -> None:
        progress = DisplayedEstimate()
        progress.update(10, 57.0, 231)
        progress.update(20, 57.0, 231)

        progress.update(30, 57.0, 231, ended=True)

        assert progress.stalled_since is None


def seen(*readings: tuple[float, float | None], began: float | None = None, shortest: float = 1.0) -> PollingEstimate:
    estimate = PollingEstimate(began=began, shortest_pause_seconds=shortest)
    for at, percent in readings:
        estimate.update(at, percent)
    return estimate


class TestPollingRemaining:
    def test_without_progress_there_is_no_estimate(self) -> None:
        assert seen((0, None), (5, 0), (9, 0)).remaining_seconds(9) is None

    def test_two_readings_give_a_rate(self) -> None:
        assert seen((10, 20), (20, 40)).remaining_seconds(20) == 30

    def test_a_job_of_known_age_has_a_rate_from_its_first_reading(self) -> None:
        assert seen((3, 2), began=0.0).remaining_seconds(3) == pytest.approx(147)

    def test_progress_in_the_first_reading_gives_no_rate(self) -> None:
        assert seen((3, 50)).remaining_seconds(3) is None

    def test_progress_began_after_the_last_reading_without_it(self) -> None:
        assert seen((0, None), (100, None), (105, 10), began=0.0).remaining_seconds(105) == 45

    def test_time_without_progress_is_subtracted(self) -> None:
        assert seen((0, 0), (10, 50)).remaining_seconds(14) == 6

    def test_an_overdue_job_has_negative_time_remaining(self) -> None:
        assert seen((0, 0), (10, 50)).remaining_seconds(30) == -10

    def test_at_100_percent_no_time_remains(self) -> None:
        assert seen((0, 0), (10, 100)).remaining_seconds(10) == 0

    def test_a_rate_that_rose_is_the_recent_one(self) -> None:
        assert seen((0, 0), (100, 20), (110, 30), (120, 40), (130, 60)).remaining_seconds(130) == 20

    def test_a_rate_that_fell_is_the_average(self) -> None:
        assert seen((0, 0), (10, 50), (60, 60), (110, 70)).remaining_seconds(110) == pytest.approx(30 * 110 / 70)

    def test_recent_means_a_quarter_of_the_remaining_points(self) -> None:
        assert seen((0, 0), (60, 20), (70, 39), (71, 40)).remaining_seconds(71) == pytest.approx(60 * 11 / 20)

    def test_recent_means_at_least_three_points(self) -> None:
        # a whole percent that is just reached says little by itself
        assert seen((0, 0), (96, 96), (98, 98), (98.1, 99)).remaining_seconds(98.1) == pytest.approx(2.1 / 3)


class TestUnevenProgress:
    def test_a_small_fall_is_ignored(self) -> None:
        assert seen((0, 0), (10, 50), (12, 45)).remaining_seconds(12) == 8

    def test_a_large_fall_that_lasts_is_a_restart(self) -> None:
        estimate = seen((0, 0), (10, 50), (12, 40), (13, 41), (14, 42))
        assert estimate.remaining_seconds(14) is None
        assert estimate.observed_seconds(14) == 0

        estimate.update(24, 52)

        assert estimate.remaining_seconds(24) == pytest.approx(48)

    def test_a_large_fall_that_does_not_last_is_ignored(self) -> None:
        assert seen((0, 0), (10, 50), (12, 40), (13, 41), (14, 70)).remaining_seconds(14) == pytest.approx(6)

    def test_the_progress_of_a_job_that_restarts_too_often_is_not_reliable(self) -> None:
        estimate, at = PollingEstimate(began=None, shortest_pause_seconds=1.0), 0.0
        for _ in range(11):
            assert estimate.is_reliable
            for percent in (90, 10, 10, 10):
                at += 10
                estimate.update(at, percent)

        assert not estimate.is_reliable

    def test_a_reading_without_progress_changes_nothing(self) -> None:
        assert seen((0, 0), (10, 50), (12, None)).remaining_seconds(12) == 8

    def test_the_rate_is_measured_again_after_a_stall(self) -> None:
        estimate = seen((0, 0), (10, 10), (50, 10), (100, 10), (110, 30))

        assert estimate.remaining_seconds(110) == 35
        assert estimate.observed_seconds(110) == 10

    def test_a_step_as_long_as_an_earlier_one_is_not_a_stall(self) -> None:
        estimate = seen((0, 0), (10, 0), (20, 0), (30, 1), (45, 1), (60, 2))

        assert estimate.observed_seconds(60) == 40
        assert estimate.remaining_seconds(60) == pytest.approx(98 * 20)


class TestPollingStall:
    def test_it_is_twice_as_long_as_the_longest_step(self) -> None:
        estimate = seen((0, 0), (10, 5), (14, 7))

        assert not estimate.is_stalled(34)
        assert estimate.is_stalled(34.1)
        assert estimate.seconds_since_progress(34) == 20

    def test_it_is_twice_the_shortest_pause_at_least(self) -> None:
        estimate = seen((0, 0), (0.1, 5), shortest=1.0)

        assert not estimate.is_stalled(2.1)
        assert estimate.is_stalled(2.2)

    def test_a_job_without_progress_is_not_stalled(self) -> None:
        estimate = seen((0, None), (500, None))

        assert not estimate.is_stalled(500)
        assert (estimate.seconds_since_progress(500), estimate.observed_seconds(500)) == (0, 0)


@given(
    st.lists(st.tuples(st.floats(0.001, 1e5), st.none() | st.floats(0, 100)), min_size=1),
    st.none() | st.just(0.0),
)
def test_any_readings_give_a_number_or_none(readings: list[tuple[float, float | None]], began: float | None) -> None:
    estimate, now = PollingEstimate(began=began, shortest_pause_seconds=0.001), 0.0

    for pause, percent in readings:
        now += pause
        estimate.update(now, percent)

        remaining = estimate.remaining_seconds(now)
        assert remaining is None or not math.isnan(remaining)
        assert 0 <= estimate.seconds_since_progress(now) <= estimate.observed_seconds(now) <= now
