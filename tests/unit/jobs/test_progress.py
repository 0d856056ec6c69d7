"""How long the rest of a job may take, and since when its progress has stood still."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.jobs.progress import LEAST_POINTS, LEAST_SECONDS, LONGEST_REST_SECONDS, Progress


def seen_queued(at: float = 1000.0) -> Progress:
    progress = Progress()
    progress.see(at, None, None, queued=True)
    return progress


class TestRest:
    @pytest.mark.parametrize(("at", "percent", "rest"), [(31, 12, 227.3), (144, 57, 108.6), (50, 99, 0.5)])
    def test_a_job_seen_in_the_queue_began_at_nothing(self, at: float, percent: float, rest: float) -> None:
        progress = seen_queued()

        progress.see(1000 + at, percent, None)

        assert progress.rest_seconds(1000 + at) == pytest.approx(rest, abs=0.1)

    def test_the_last_reading_before_progress_is_where_it_began(self) -> None:
        progress = seen_queued(0)
        progress.see(600, None, None, queued=True)
        progress.see(610, None, 3)

        progress.see(630, 20, 9)

        assert progress.rest_seconds(630) == 80

    def test_nothing_done_while_it_runs_is_progress_that_takes_time(self) -> None:
        progress = seen_queued(0)
        for at in (10, 20, 30):
            progress.see(at, 0, None)

        progress.see(40, 10, None)

        assert progress.rest_seconds(40) == 360

    def test_the_percentage_of_a_queued_job_is_none(self) -> None:
        progress = Progress()
        progress.see(0, 0, None, queued=True)
        progress.see(60, 50, None, queued=True)
        assert progress.rest_seconds(60) is None

        progress.see(70, 10, None)

        assert progress.rest_seconds(70) == 90

    def test_a_job_met_on_its_way_is_measured_from_there(self) -> None:
        progress = Progress()
        progress.see(500, 60, 100)
        assert progress.rest_seconds(600) is None

        progress.see(520, 80, 120)

        assert progress.rest_seconds(520) == 20

    @pytest.mark.parametrize(
        ("percent", "at", "told"),
        [
            (LEAST_POINTS, LEAST_SECONDS, True),
            (LEAST_POINTS - 0.1, LEAST_SECONDS, False),
            (LEAST_POINTS, LEAST_SECONDS - 0.1, False),
        ],
    )
    def test_it_takes_enough_movement(self, percent: float, at: float, told: bool) -> None:
        progress = seen_queued(0)

        progress.see(at, percent, None)

        assert (progress.rest_seconds(at) is not None) == told

    def test_a_standstill_makes_it_grow(self) -> None:
        progress = seen_queued(0)
        progress.see(50, 50, None)

        assert [progress.rest_seconds(now) for now in (50, 60, 100)] == [50, 60, 100]

    def test_progress_that_runs_backwards_is_measured_anew(self) -> None:
        progress = seen_queued(0)
        progress.see(100, 50, None)
        progress.see(110, 20, None)
        assert progress.rest_seconds(110) is None

        progress.see(120, 30, None)

        assert progress.rest_seconds(120) == 70

    def test_so_is_that_of_a_job_that_is_queued_again(self) -> None:
        progress = seen_queued(0)
        progress.see(100, 50, None)
        progress.see(200, None, None, queued=True)

        progress.see(210, 10, None)

        assert progress.rest_seconds(210) == 90

    def test_a_reading_without_a_percentage_has_none_and_the_next_goes_on(self) -> None:
        progress = seen_queued(0)
        progress.see(50, 50, None)
        progress.see(60, None, None)
        assert progress.rest_seconds(60) is None

        progress.see(100, 50, None)

        assert progress.rest_seconds(100) == 100

    def test_backwards_is_seen_across_one_too(self) -> None:
        progress = seen_queued(0)
        progress.see(50, 50, None)
        progress.see(60, None, None)

        progress.see(100, 40, None)

        assert progress.rest_seconds(100) is None

    @pytest.mark.parametrize(("percent", "ended"), [(100, False), (57, True)])
    def test_nothing_is_left_at_the_end(self, percent: float, ended: bool) -> None:
        progress = seen_queued(0)

        progress.see(100, percent, None, ended=ended)

        assert progress.rest_seconds(100) is None

    @pytest.mark.parametrize(("now", "told"), [(LONGEST_REST_SECONDS, True), (LONGEST_REST_SECONDS + 1, False)])
    def test_more_than_a_day_is_no_estimate(self, now: float, told: bool) -> None:
        progress = seen_queued(0)
        progress.see(10, 50, None)

        assert (progress.rest_seconds(now) is not None) == told

    def test_nothing_seen_is_nothing_known(self) -> None:
        assert Progress().rest_seconds(10) is None
        assert Progress().still_since is None

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
        progress, now = Progress(), 0.0
        for pause, percent, page_count, queued, ended in readings:
            now += pause
            progress.see(now, percent, page_count, queued=queued, ended=ended)

            rest = progress.rest_seconds(now + later)
            assert rest is None or 0 < rest <= LONGEST_REST_SECONDS
            assert progress.still_since is None or progress.still_since < now or pause == 0


class TestStandstill:
    @pytest.mark.parametrize(("percent", "pages"), [(57.0, 231), (57.0, None), (None, 231)])
    def test_it_lasts_since_something_last_moved(self, percent: float | None, pages: int | None) -> None:
        progress = seen_queued(0)
        progress.see(10, percent, pages)
        assert progress.still_since is None

        progress.see(20, percent, pages)
        progress.see(30, percent, pages)

        assert progress.still_since == 10

    @pytest.mark.parametrize(("percent", "pages"), [(57.1, 231), (57.0, 232), (56.0, 231)])
    def test_whatever_moves_ends_it(self, percent: float, pages: int) -> None:
        progress = Progress()
        progress.see(10, 57.0, 231)
        progress.see(20, 57.0, 231)

        progress.see(30, percent, pages)

        assert progress.still_since is None

    def test_what_a_reading_leaves_out_has_not_moved(self) -> None:
        progress = Progress()
        progress.see(10, 57.0, 231)

        progress.see(20, None, None)
        progress.see(30, 57.0, 231)

        assert progress.still_since == 10

    def test_a_job_that_reports_nothing_never_stands_still(self) -> None:
        progress = seen_queued(0)

        progress.see(10, None, None)
        progress.see(900, None, None)

        assert progress.still_since is None

    def test_in_the_queue_nothing_has_to_move(self) -> None:
        progress = Progress()
        for at in (0, 900):
            progress.see(at, 0.0, 0, queued=True)
            assert progress.still_since is None

        progress.see(1000, 0.0, 0)
        assert progress.still_since is None
        progress.see(1010, 0.0, 0)

        assert progress.still_since == 1000

    def test_a_job_that_has_ended_does_not_stand_still(self) -> None:
        progress = Progress()
        progress.see(10, 57.0, 231)
        progress.see(20, 57.0, 231)

        progress.see(30, 57.0, 231, ended=True)

        assert progress.still_since is None
