"""Whether, when and for how long an operation is retried, and `Retry-After`."""

import itertools
import math
from dataclasses import replace
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.http.retry import (
    LAST_ATTEMPT_SECONDS,
    MAX_PAUSE_SECONDS,
    MIN_ATTEMPT_SECONDS,
    PROXY,
    Retry,
    TransientError,
    full_jitter,
    pause_ceiling,
    read_retry_after,
)
from tests.virtual_time import NOON


class TestRetryAfter:
    def test_a_date_is_compared_with_the_servers_own_clock(self) -> None:
        server = NOON - timedelta(hours=3)
        headers = {"Retry-After": format_datetime(server + timedelta(seconds=20), usegmt=True), "Date": format_datetime(server)}

        assert read_retry_after(headers, NOON) == 20

    @pytest.mark.parametrize(
        ("text", "seconds"),
        [("0", 0), (" 7 ", 7), ("Mon, 04 May 2026 12:00:30 GMT", 30), ("Mon, 04 May 2026 11:00:00 GMT", 0)]
        + [(text, None) for text in ("", "-1", "1.5", "soon", "1e3", "٣", "9999999999", "Mon, 99 May 2026 12:00:30 GMT")],
    )
    def test_the_two_forms_are_read_and_nothing_else(self, text: str, seconds: float | None) -> None:
        assert read_retry_after({"Retry-After": text}, NOON) == seconds

    def test_without_one_there_is_none(self) -> None:
        assert read_retry_after({}, NOON) is None


def transient(**changes: Any) -> TransientError:
    return TransientError("it is down", advice=PROXY, **changes)


def new_retry(**changes: Any) -> Retry:
    """Return the state of an operation asked for at 100, whose pauses are half their ceiling."""
    return Retry(**{"tolerance_seconds": 20.0, "started_at": 100.0, "jitter": lambda ceiling: ceiling / 2, **changes})


def attempts(retry: Retry, error: TransientError, *, seconds: float = 0.0) -> list[float]:
    """Return when an operation is attempted that always fails; each attempt takes this long."""
    now, begun = retry.started_at, []
    while True:
        now = max(now, retry.ready_at)
        begun.append(now)
        now += seconds
        try:
            retry = retry.increment(error, began_at=begun[-1], now=now)
        except TransientError as raised:
            assert raised is error  # noqa: PT017  # no other error may come
            return begun


class TestAttempts:
    def test_pauses_grow_and_one_attempt_is_left_for_the_end(self) -> None:
        assert attempts(new_retry(), transient()) == [100, 100.5, 101.5, 103.5, 107.5, 115.5, 120]

    def test_the_tolerance_counts_from_the_first_failure(self) -> None:
        assert attempts(new_retry(tolerance_seconds=5.0), transient(), seconds=4) == [100, 104.5, 109]

    def test_a_deadline_comes_first(self) -> None:
        assert attempts(new_retry(deadline=102.0), transient()) == [100, 100.5, 101.5, 102]

    def test_after_a_deadline_there_is_one_attempt(self) -> None:
        assert attempts(new_retry(deadline=90.0), transient()) == [100]

    def test_an_error_that_probably_lasts_is_tolerated_for_a_shorter_time(self) -> None:
        assert attempts(new_retry(), transient(tolerance_seconds=2.0)) == [100, 100.5, 101.5, 102]

    def test_but_only_while_it_is_the_last_error(self) -> None:
        retry = new_retry().increment(transient(tolerance_seconds=2.0), began_at=100, now=100)

        retry = retry.increment(transient(), began_at=101, now=101)

        assert retry.last_attempt_at == 120

    def test_an_outage_that_began_for_another_job_counts(self) -> None:
        retry = new_retry().increment(transient(), began_at=100, now=101, server_failing_since=90)

        assert (retry.outage_began_at, retry.last_attempt_at) == (90, 110)

    def test_but_only_until_another_job_gets_a_response(self) -> None:
        waiting = new_retry(server_failing_since=85.0)

        failing = waiting.increment(transient(), began_at=102, now=103, server_failing_since=85)
        alone = replace(failing, server_failing_since=math.inf)
        later = alone.increment(transient(), began_at=110, now=111, server_failing_since=111)

        assert [retry.last_attempt_at for retry in (waiting, failing, alone, later)] == [105, 105, 123, 123]

    def test_one_that_has_used_up_the_tolerance_leaves_no_other_attempt(self) -> None:
        error = transient()

        with pytest.raises(TransientError) as raised:
            new_retry().increment(error, began_at=100, now=101, server_failing_since=80)

        assert raised.value is error

    def test_the_failures_of_all_jobs_make_the_pause_longer(self) -> None:
        retry = new_retry().increment(transient(), began_at=100, now=100, server_failures=4)

        assert retry.next_attempt_at == 104

    def test_a_status_that_is_final_soon_is_tried_again_then(self) -> None:
        retry = new_retry().increment(transient(retry_after_seconds=60.0, retry_until=107.0), began_at=100, now=100)

        assert retry.next_attempt_at == 107

    def test_it_is_immutable(self) -> None:
        retry = new_retry()

        retry.increment(transient(), began_at=100, now=100)

        assert retry == replace(retry, failures=0, failing_since=math.inf, error=None)


class TestNotIdempotent:
    @pytest.mark.parametrize("maybe_processed", [True, False])
    def test_it_is_not_repeated_once_the_server_may_have_processed_it(self, maybe_processed: bool) -> None:
        begun = attempts(new_retry(is_idempotent=False), transient(maybe_processed=maybe_processed))

        assert (len(begun) == 1) is maybe_processed


class TestTurn:
    def test_the_first_attempt_waits_for_others_at_most_for_the_tolerance(self) -> None:
        assert new_retry().turn_ends_at == 120

    def test_in_an_outage_it_waits_until_its_end(self) -> None:
        assert new_retry(failing_since=95.0).turn_ends_at == 115
        assert new_retry(failing_since=105.0).turn_ends_at == 125

    def test_an_outage_of_other_jobs_that_began_later_does_not_extend_that(self) -> None:
        assert new_retry(server_failing_since=95.0).turn_ends_at == 115
        assert new_retry(server_failing_since=105.0).turn_ends_at == 120

    def test_a_deadline_comes_first(self) -> None:
        assert new_retry(deadline=104.0).turn_ends_at == 104

    def test_a_retry_after_is_not_obeyed_longer(self) -> None:
        retry = new_retry().increment(transient(retry_after_seconds=3600.0), began_at=100, now=100)

        assert (retry.next_attempt_at, retry.ready_at) == (3700, 120)

    def test_a_tolerated_time_does_not_count(self) -> None:
        waiting = new_retry().tolerated(130.0)
        failing = new_retry(failing_since=105.0).tolerated(130.0)
        later = new_retry(failing_since=140.0).tolerated(130.0)

        assert [retry.turn_ends_at for retry in (waiting, failing, later)] == [150, 150, 160]
        assert waiting.tolerated(-math.inf) == waiting


class TestAttemptSeconds:
    def test_without_an_outage_they_are_unlimited(self) -> None:
        assert new_retry().attempt_seconds(119.0) == math.inf

    @pytest.mark.parametrize(
        ("began_at", "seconds"),
        [(105, 15), (118, MIN_ATTEMPT_SECONDS), (119.9, MIN_ATTEMPT_SECONDS), (120, LAST_ATTEMPT_SECONDS)],
    )
    def test_in_an_outage_they_are_what_remains_of_it(self, began_at: float, seconds: float) -> None:
        assert new_retry(failing_since=100.0).attempt_seconds(began_at) == seconds


class TestPauses:
    def test_the_ceiling_doubles_up_to_a_limit(self) -> None:
        assert [pause_ceiling(failures) for failures in (1, 2, 3, 4, 5, 6, 7, 1200)] == [1, 2, 4, 8, 16, 30, 30, 30]

    def test_they_are_drawn_below_it(self) -> None:
        assert all(0 <= full_jitter(3) <= 3 for _ in range(100))


@given(st.floats(0.1, 900), st.floats(0, 900) | st.none(), st.floats(0, 70), st.floats(0.05, 1), st.floats(0, 7200) | st.none())
def test_any_operation_ends_in_time(
    tolerance: float, deadline: float | None, seconds: float, jitter: float, retry_after: float | None
) -> None:
    retry = new_retry(
        tolerance_seconds=tolerance,
        deadline=math.inf if deadline is None else 100 + deadline,
        jitter=lambda ceiling: ceiling * jitter,
    )

    begun = attempts(retry, transient(retry_after_seconds=retry_after), seconds=seconds)

    end = min(100 + seconds + tolerance, retry.deadline)
    assert len([at for at in begun if at > end + 1e-6]) <= 1
    assert end - 1e-6 <= begun[-1] <= max(end, 100) + seconds + 1e-6
    pauses = [later - first - seconds for first, later in itertools.pairwise(begun)]
    assert all(pause <= max(MAX_PAUSE_SECONDS, retry_after or 0.0) + 1e-6 for pause in pauses)
    assert all(pause >= (retry_after or 0.0) - 1e-6 for pause in pauses[:-1])
