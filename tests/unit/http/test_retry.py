"""Whether, when and for how long an operation is retried, and `Retry-After`.

`tests/scenarios/test_many.py` shows the pace.
"""

import itertools
import math
from typing import Any

import pytest

from docs_platform_action.errors import NETWORK
from docs_platform_action.http.retry import Retry, TransientError, backoff_pauses, read_retry_after
from tests.virtual_time import NOON


def down(**changes: Any) -> TransientError:
    return TransientError("it is down", advice=NETWORK, **changes)


def retry(**changes: Any) -> Retry:
    """Return the state of an operation asked for at 100 that tolerates an outage for 20 seconds."""
    return Retry(**{"tolerance_seconds": 20.0, "next_attempt_at": 100.0, **changes})


def attempts(state: Retry, error: TransientError, seconds: float) -> list[float]:
    """Return when an operation is attempted that always fails; each attempt takes this long."""
    begun: list[float] = []
    now = 0.0
    for pause_seconds in backoff_pauses(lambda ceiling: ceiling / 2):
        began_at = max(state.begins_at(), now)
        begun.append(began_at)
        now = began_at + seconds
        try:
            state = state.increment(error, now, pause_seconds=pause_seconds)
        except TransientError:
            break
    return begun


@pytest.mark.parametrize(
    ("state", "error", "seconds", "begun"),
    [
        # the tolerance counts from the first failure
        (retry(), down(), 0, [100, 100.5, 101.5, 103.5, 107.5, 115.5, 120]),
        (retry(tolerance_seconds=5.0), down(), 4, [100, 104.5, 109]),
        # an error that probably lasts is tolerated for a shorter time
        (retry(), down(tolerance_seconds=2.0), 0, [100, 100.5, 101.5, 102]),
        (retry(), down(retry_after_seconds=15.0), 0, [100, 115, 120]),
        # a deadline comes first; an attempt that is under way then is followed by the last one
        (retry(deadline=101.5), down(), 0, [100, 100.5, 101.5]),
        (retry(deadline=102.0), down(), 5, [100, 105]),
        # what must not be sent twice is not, unless it was certainly not processed
        (retry(is_idempotent=False), down(maybe_processed=True), 0, [100]),
        (
            retry(is_idempotent=False, deadline=101.0),
            down(maybe_processed=False),
            0,
            [100, 100.5, 101],
        ),
    ],
)
def test_attempts_end_with_one_at_the_end(
    state: Retry, error: TransientError, seconds: float, begun: list[float]
) -> None:
    assert attempts(state, error, seconds) == begun


def test_an_attempt_is_held_but_not_longer_than_is_tolerated() -> None:
    assert retry().begins_at(90.0) == 100
    assert retry().begins_at(107.0) == 107
    assert retry().begins_at(500.0) == 120
    assert retry(deadline=104.0).begins_at(107.0) == 104
    assert retry(failing_since=85.0).begins_at(107.0) == 105


def test_an_attempt_may_take_what_remains_if_another_one_may_follow() -> None:
    assert retry().attempt_seconds(100) == math.inf
    assert retry(failing_since=90.0, is_idempotent=False).attempt_seconds(100) == math.inf
    assert retry(failing_since=90.0).attempt_seconds(100) == 10
    assert retry(failing_since=80.1).attempt_seconds(100) == 2
    assert retry(failing_since=80.0).attempt_seconds(100) == 10


def test_pauses_are_random_below_a_ceiling_that_doubles_up_to_a_limit() -> None:
    ceilings = [1, 2, 4, 8, 16, 30, 30]

    assert [*itertools.islice(backoff_pauses(lambda ceiling: ceiling), 7)] == ceilings
    for ceiling, pause in zip(ceilings, backoff_pauses(), strict=False):
        assert 0 <= pause < ceiling


@pytest.mark.parametrize(
    ("text", "date", "seconds"),
    [
        (" 7 ", "", 7),
        ("Mon, 04 May 2026 12:00:30 GMT", "", 30),
        ("Mon, 04 May 2026 11:00:00 GMT", "", 0),
        ("Mon, 04 May 2026 14:00:30 +0200", "", 30),
        # the server's own clock counts
        ("Mon, 04 May 2026 09:00:20 -0000", "Mon, 04 May 2026 09:00:00 GMT", 20),
        ("", "", None),
        ("-1", "", None),
        ("1.5", "", None),
        ("soon", "", None),
        ("1e3", "", None),
        ("٣", "", None),
        ("9999999999", "", None),
        ("Mon, 99 May 2026 12:00:30 GMT", "", None),
    ],
)
def test_the_two_forms_of_retry_after_are_read_and_nothing_else(
    text: str, date: str, seconds: float | None
) -> None:
    assert read_retry_after({"Retry-After": text, "Date": date}, NOON) == seconds
