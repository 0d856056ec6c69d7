"""Whether, when and for how long an operation is retried, and `Retry-After`."""

import itertools
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.errors import NETWORK
from docs_platform_action.http.retry import (
    LAST_ATTEMPT_SECONDS,
    MAX_PAUSE_SECONDS,
    MIN_ATTEMPT_SECONDS,
    Retry,
    TransientError,
    backoff_pauses,
    read_retry_after,
)
from tests.virtual_time import NOON


def transient(**changes: Any) -> TransientError:
    return TransientError("it is down", advice=NETWORK, **changes)


def new_retry(**changes: Any) -> Retry:
    """Return the state of an operation asked for at 100 that tolerates an outage for 20 seconds."""
    return Retry(**{"tolerance_seconds": 20.0, "next_attempt_at": 100.0, **changes})


def attempts(
    retry: Retry, error: TransientError, *, seconds: float = 0.0, jitter: float = 0.5, held_until: float = -math.inf
) -> list[float]:
    """Return when an operation is attempted that always fails; each attempt takes this long."""
    now, begun, pauses = retry.next_attempt_at, [], backoff_pauses(lambda ceiling: ceiling * jitter)
    while True:
        now = max(now, retry.begins_at(held_until))
        begun.append(now)
        retry = replace(retry, next_attempt_at=max(retry.next_attempt_at, now))  # as the loop does for one that was held back
        now += seconds
        try:
            retry = retry.increment(error, now, pause_seconds=next(pauses))
        except TransientError as raised:
            assert raised is error  # noqa: PT017  # no other error may come
            return begun


@pytest.mark.parametrize(
    ("retry", "error", "seconds", "begun"),
    [
        # the tolerance counts from the first failure
        (new_retry(), transient(), 0, [100, 100.5, 101.5, 103.5, 107.5, 115.5, 120]),
        (new_retry(tolerance_seconds=5.0), transient(), 4, [100, 104.5, 109]),
        (new_retry(tolerance_seconds=0.0), transient(), 0, [100]),
        # an error that probably lasts is tolerated for a shorter time
        (new_retry(), transient(tolerance_seconds=2.0), 0, [100, 100.5, 101.5, 102]),
        (new_retry(tolerance_seconds=1.0), transient(tolerance_seconds=2.0), 0, [100, 100.5, 101]),
        (new_retry(), transient(retry_after_seconds=15.0), 0, [100, 115, 120]),
        (new_retry(), transient(retry_after_seconds=3600.0), 0, [100, 120]),
        # a deadline comes first; an attempt that is under way then is followed by the last one
        (new_retry(deadline=101.5), transient(), 0, [100, 100.5, 101.5]),
        (new_retry(deadline=102.0), transient(), 5, [100, 105]),
        (new_retry(deadline=90.0), transient(), 0, [100]),
        (new_retry(is_idempotent=False), transient(maybe_processed=True), 0, [100]),
        (new_retry(is_idempotent=False, deadline=101.0), transient(maybe_processed=False), 0, [100, 100.5, 101]),
    ],
)
def test_attempts_end_with_one_at_the_end(retry: Retry, error: TransientError, seconds: float, begun: list[float]) -> None:
    assert attempts(retry, error, seconds=seconds) == begun


@pytest.mark.parametrize(("deadline", "begun"), [(110.0, [110]), (math.inf, [120, 140])])
def test_one_attempt_begins_at_the_end_however_long_it_is_held(deadline: float, begun: list[float]) -> None:
    assert attempts(new_retry(deadline=deadline), transient(), held_until=500.0) == begun


@pytest.mark.parametrize(
    ("retry", "held_until", "begins_at"),
    [
        *((new_retry(), 90.0, 100), (new_retry(), 107.0, 107), (new_retry(), 500.0, 120)),
        *((new_retry(deadline=104.0), 107.0, 104), (new_retry(failing_since=85.0), 107.0, 105)),
    ],
)
def test_an_attempt_is_held_but_not_longer_than_is_tolerated(retry: Retry, held_until: float, begins_at: float) -> None:
    assert retry.begins_at(held_until) == begins_at


def test_an_error_that_lasts_counts_only_while_it_is_the_last_one() -> None:
    retry = new_retry().increment(transient(tolerance_seconds=2.0), 100, pause_seconds=1)

    later = retry.increment(transient(), 101, pause_seconds=1)

    assert (retry.last_attempt_at, later.last_attempt_at) == (102, 120)


def test_a_status_that_is_final_soon_is_tried_again_then() -> None:
    retry = new_retry().increment(transient(retry_after_seconds=60.0, retry_until=107.0), 100, pause_seconds=1)

    assert retry.begins_at() == 107


def test_a_tolerated_time_does_not_count() -> None:
    ends = [new_retry(failing_since=since).tolerating(130.0).last_attempt_at for since in (105.0, 140.0, math.inf)]

    assert ends == [150, 160, math.inf]


def test_the_state_is_immutable() -> None:
    retry, error = new_retry(), transient()

    after = retry.increment(error, 101, pause_seconds=1)

    assert retry == new_retry()
    assert after == replace(retry, error=error, failing_since=101, next_attempt_at=102)


@pytest.mark.parametrize(
    ("began_at", "seconds"), [(105, 15), (119.9, MIN_ATTEMPT_SECONDS), (120, LAST_ATTEMPT_SECONDS), (130, LAST_ATTEMPT_SECONDS)]
)
def test_in_an_outage_an_attempt_may_take_what_remains_of_it(began_at: float, seconds: float) -> None:
    assert new_retry().attempt_seconds(began_at) == math.inf
    assert new_retry(failing_since=100.0).attempt_seconds(began_at) == seconds


def test_the_ceiling_of_the_pauses_doubles_up_to_a_limit() -> None:
    assert [*itertools.islice(backoff_pauses(lambda ceiling: ceiling), 7)] == [1, 2, 4, 8, 16, 30, 30]


def test_pauses_are_drawn_below_their_ceiling() -> None:
    assert all(0 <= pause <= ceiling for pause, ceiling in zip(backoff_pauses(), [1, 2, 4, 8, 16, *[30] * 100], strict=False))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), (" 7 ", 7), ("Mon, 04 May 2026 12:00:30 GMT", 30), ("Mon, 04 May 2026 11:00:00 GMT", 0)]
    + [(text, None) for text in ("", "-1", "1.5", "soon", "1e3", "٣", "9999999999", "Mon, 99 May 2026 12:00:30 GMT")],
)
def test_the_two_forms_of_retry_after_are_read_and_nothing_else(text: str, seconds: float | None) -> None:
    assert read_retry_after({"Retry-After": text}, NOON) == seconds


def test_a_date_is_compared_with_the_servers_own_clock() -> None:
    headers = {"Retry-After": "Mon, 04 May 2026 09:00:20 GMT", "Date": "Mon, 04 May 2026 09:00:00 GMT"}

    assert read_retry_after(headers, NOON) == 20


@given(st.floats(0.1, 900), st.floats(0, 900) | st.none(), st.floats(0, 70), st.floats(0.05, 1), st.floats(0, 7200))
def test_any_operation_ends_in_time(
    tolerance: float, deadline: float | None, seconds: float, jitter: float, retry_after: float
) -> None:
    retry = new_retry(tolerance_seconds=tolerance, deadline=math.inf if deadline is None else 100 + deadline)

    begun = attempts(retry, transient(retry_after_seconds=retry_after), seconds=seconds, jitter=jitter)

    end = min(100 + seconds + tolerance, retry.deadline)
    assert len([at for at in begun if at > end + 1e-6]) <= 1
    assert end - 1e-6 <= begun[-1] <= end + seconds + 1e-6
    pauses = [later - first - seconds for first, later in itertools.pairwise(begun)]
    assert all(pause <= max(MAX_PAUSE_SECONDS, retry_after) + 1e-6 for pause in pauses)
    assert all(pause >= retry_after - 1e-6 for pause in pauses[:-1])
