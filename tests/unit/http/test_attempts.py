"""Whether, when and for how long an operation is retried.

`tests/scenarios/test_many.py` shows the pace.
"""

import itertools
import math
from typing import Any, Final

import pytest

from docs_platform_action.errors import Advice, Cancelled
from docs_platform_action.http.attempts import (
    LAST_ATTEMPT_SECONDS,
    MIN_ATTEMPT_SECONDS,
    Attempts,
    Pause,
    Retry,
    TransientError,
    backoff_pauses,
)
from tests.virtual_time import BEGINNING, VirtualClock

ADVICE: Final = Advice(cause="It is down.", remedy="Wait.")


def down(**changes: Any) -> TransientError:
    return TransientError("it is down", advice=ADVICE, **changes)


def retry(**changes: Any) -> Retry:
    """Return the state of an operation asked for at 100 that tolerates an outage for 20 seconds."""
    return Retry(**{"tolerance_seconds": 20.0, "next_attempt_at": 100.0, **changes})


def begun_times(state: Retry, error: TransientError, seconds: float) -> list[float]:
    """Return when an operation is attempted that always fails; each attempt takes this long."""
    begun: list[float] = []
    now = 0.0
    pauses = backoff_pauses(lambda ceiling: ceiling / 2)
    next_state: Retry | None = state
    while next_state is not None:
        state = next_state
        began_at = max(state.begins_at(), now)
        begun.append(began_at)
        now = began_at + seconds
        next_state = state.after(error, now, pause_seconds=next(pauses))
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
        (retry(is_idempotent=False), down(is_unprocessed=False), 0, [100]),
        (
            retry(is_idempotent=False, deadline=101.0),
            down(is_unprocessed=True),
            0,
            [100, 100.5, 101],
        ),
    ],
)
def test_attempts_end_with_one_at_the_end(
    state: Retry, error: TransientError, seconds: float, begun: list[float]
) -> None:
    assert begun_times(state, error, seconds) == begun


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


class Operation:
    """The attempts of an operation that tolerates an outage for 20 seconds, by default.

    Pauses are the longest ones.
    """

    def __init__(self, **options: Any) -> None:
        self.clock = VirtualClock()
        self.attempts = Attempts(
            self.clock,
            **{"tolerance_seconds": 20.0, "jitter": lambda ceiling: ceiling, **options},
        )

    def fail(
        self,
        error: TransientError | None = None,
        *,
        after: float = 0.0,
        pause_seconds: float | None = None,
    ) -> Pause | None:
        """Make an attempt that fails after some seconds. Return the pause that follows."""
        self.attempts.wait()
        self.clock.sleep(after)
        return self.attempts.failed(error or down(), pause_seconds=pause_seconds)

    def fail_until_the_end(self, after: float = 0.0) -> list[Pause]:
        """Make attempts until there is no further one. Return the pauses."""
        pauses = []
        while (pause := self.fail(after=after)) is not None:
            pauses.append(pause)
        return pauses


class TestPauses:
    def test_they_grow_until_the_last_attempt_and_one_is_the_first(self) -> None:
        operation = Operation()

        pauses = operation.fail_until_the_end()

        assert pauses == [
            Pause(seconds=1, budget_seconds=20, is_first=True),
            Pause(seconds=2, budget_seconds=19, is_first=False),
            Pause(seconds=4, budget_seconds=17, is_first=False),
            Pause(seconds=8, budget_seconds=13, is_first=False),
            Pause(seconds=5, budget_seconds=5, is_first=False),
        ]
        assert operation.clock.elapsed == 20
        assert operation.attempts.has_failed

    @pytest.mark.parametrize(
        ("options", "error", "pause_seconds", "seconds", "budget_seconds"),
        [
            ({}, down(retry_after_seconds=7.0), None, 7, 20),
            ({}, down(retry_after_seconds=0.5), None, 1, 20),
            ({}, down(retry_after_seconds=99.0), None, 20, 20),
            ({}, down(tolerance_seconds=5.0), None, 1, 5),
            ({"tolerance_seconds": math.inf}, down(), None, 1, math.inf),
            # a pause of the caller's
            ({}, down(), 10.0, 10, 20),
            ({}, down(retry_after_seconds=7.0), 10.0, 10, 20),
            ({}, down(retry_after_seconds=12.0), 10.0, 12, 20),
            ({}, down(), 99.0, 20, 20),
        ],
    )
    def test_one_is_as_long_as_asked_for_but_ends_with_the_budget(
        self,
        options: dict[str, Any],
        error: TransientError,
        pause_seconds: float | None,
        seconds: float,
        budget_seconds: float,
    ) -> None:
        operation = Operation(**options)

        pause = operation.fail(error, pause_seconds=pause_seconds)

        assert pause == Pause(seconds=seconds, budget_seconds=budget_seconds, is_first=True)

    def test_one_ends_when_a_status_becomes_final(self) -> None:
        operation = Operation()
        settles_at = operation.clock.monotonic() + 3

        pause = operation.fail(down(retry_until=settles_at), pause_seconds=10.0)

        assert pause == Pause(seconds=3, budget_seconds=3, is_first=True)

    def test_one_without_time_to_retry_has_no_budget(self) -> None:
        operation = Operation(tolerance_seconds=0.0)

        pauses = operation.fail_until_the_end(after=2.0)

        # an attempt may follow that begins after the one that failed
        assert pauses == [Pause(seconds=0, budget_seconds=0, is_first=True)]


class TestLastAttempt:
    def test_it_begins_at_the_deadline_and_has_a_time_of_its_own(self) -> None:
        operation = Operation(deadline=BEGINNING + 5)

        limits = []
        pause = operation.fail()
        while pause is not None:
            operation.attempts.wait()
            limits.append(operation.attempts.time_limit_seconds)
            pause = operation.attempts.failed(down())

        assert operation.clock.elapsed == 5
        assert limits == [4, MIN_ATTEMPT_SECONDS, LAST_ATTEMPT_SECONDS]

    def test_one_that_begins_late_is_the_last_one(self) -> None:
        operation = Operation()
        operation.fail()
        operation.clock.advance(99)  # the machine was busy

        assert operation.fail() is None

    def test_the_first_one_is_the_last_one_once_the_deadline_is_over(self) -> None:
        operation = Operation(deadline=BEGINNING - 1)

        assert operation.fail() is None
        assert operation.clock.elapsed == 0

    @pytest.mark.parametrize("is_unprocessed", [True, False])
    def test_what_must_not_be_sent_twice_is_sent_again_only_if_it_was_not_processed(
        self, is_unprocessed: bool
    ) -> None:
        operation = Operation(is_idempotent=False)

        pause = operation.fail(down(is_unprocessed=is_unprocessed))

        assert (pause is not None) == is_unprocessed


class TestWaits:
    def test_the_first_attempt_begins_at_once_and_another_one_after_its_pause(self) -> None:
        operation = Operation()

        operation.attempts.wait()
        assert operation.clock.elapsed == 0

        operation.attempts.failed(down(), pause_seconds=6.0)
        operation.attempts.wait()
        assert operation.clock.elapsed == 6

    def test_a_cancelled_run_ends_one(self) -> None:
        operation = Operation()
        operation.fail()
        operation.clock.cancel()

        with pytest.raises(Cancelled):
            operation.attempts.wait()

    def test_an_attempt_is_held_as_long_as_the_server_asks_for(self) -> None:
        operation = Operation()
        held_until = operation.clock.monotonic() + 7

        assert operation.attempts.hold_seconds(held_until) == 7
        operation.clock.advance(6)
        assert operation.attempts.hold_seconds(held_until) == 1
        operation.clock.advance(1)
        assert operation.attempts.hold_seconds(held_until) == 0

    def test_an_attempt_is_held_at_most_as_long_as_an_outage_is_tolerated(self) -> None:
        operation = Operation()

        assert operation.attempts.hold_seconds(operation.clock.monotonic() + 99) == 20

    def test_an_attempt_that_was_held_begins_afterwards(self) -> None:
        operation = Operation()
        operation.clock.advance(7)
        operation.attempts.begin()

        # the longest hold counts from the attempt's beginning
        assert operation.attempts.hold_seconds(operation.clock.monotonic() + 99) == 20


def test_a_reset_begins_anew() -> None:
    operation = Operation()
    first = operation.fail()
    operation.fail()
    assert operation.attempts.elapsed_seconds == 1
    operation.clock.advance(500)

    operation.attempts.reset()

    assert not operation.attempts.has_failed
    assert operation.attempts.elapsed_seconds == 0
    assert operation.attempts.time_limit_seconds == math.inf
    # the same hold, pause and budget as the first time
    assert operation.attempts.hold_seconds(operation.clock.monotonic() + 99) == 20
    assert operation.fail() == first


def test_the_time_of_an_outage_counts_from_the_first_attempt() -> None:
    operation = Operation()

    operation.fail(after=3.0)
    operation.attempts.wait()

    assert operation.attempts.elapsed_seconds == 4


def test_attempts_follow_each_other_until_another_one_is_of_no_use() -> None:
    operation = Operation()
    last = down()
    begun = []

    for number in operation.attempts:
        begun.append((number, operation.clock.elapsed))
        operation.attempts.failed(down() if number < 6 else last)

    assert begun == [(1, 0), (2, 1), (3, 3), (4, 7), (5, 15), (6, 20)]
    assert operation.attempts.error is last
