"""Time that can be slept through, and cut short."""

import threading
import time
from collections.abc import Generator
from datetime import timedelta

import backoff
import pytest

from docs_platform_action.clock import SystemClock, slept_on
from docs_platform_action.errors import Cancelled
from tests.unit.fakes import FakeClock


class TestSystemClock:
    def test_it_reads_the_machines_time(self) -> None:
        clock = SystemClock()

        first, second = clock.monotonic(), clock.monotonic()

        assert first <= second
        assert clock.now().utcoffset() == timedelta(0)

    @pytest.mark.parametrize("seconds", [0.001, 0, -5])
    def test_a_pause_ends_by_itself(self, seconds: float) -> None:
        SystemClock().sleep(seconds)

    def test_a_cancel_wakes_a_sleeper_in_another_thread(self) -> None:
        clock = SystemClock()
        woken: list[float] = []

        def sleep() -> None:
            with pytest.raises(Cancelled):
                clock.sleep(60)
            woken.append(time.monotonic())

        sleeper = threading.Thread(target=sleep)
        sleeper.start()

        clock.cancellation.cancel()
        sleeper.join(5)

        assert woken

    def test_nobody_sleeps_after_a_cancel(self) -> None:
        clock = SystemClock()
        clock.cancellation.cancel()

        with pytest.raises(Cancelled):
            clock.sleep(0)


class TestSleptOn:
    def test_backoff_pauses_on_the_clock_and_hands_each_outcome_to_the_schedule(self) -> None:
        clock = FakeClock()
        seen: list[int] = []
        tries = iter([1, 2, 3])

        def schedule() -> Generator[float, int, None]:
            outcome = yield 0.0
            while True:
                seen.append(outcome)
                outcome = yield outcome * 10.0

        take = backoff.on_predicate(slept_on(clock, schedule), predicate=lambda number: number < 3, jitter=None, logger=None)

        assert take(lambda: next(tries))() == 3
        assert seen == [1, 2]
        assert clock.pauses == [10.0, 20.0]

    def test_a_schedule_that_ends_gives_up(self) -> None:
        clock = FakeClock()

        def schedule() -> Generator[float, int, None]:
            yield 0.0
            yield 7.0

        take = backoff.on_predicate(slept_on(clock, schedule), predicate=lambda _number: True, jitter=None, logger=None)

        assert take(lambda: 1)() == 1
        assert clock.pauses == [7.0]

    def test_a_cancel_in_a_pause_ends_the_tries(self) -> None:
        clock = SystemClock()
        clock.cancellation.cancel()

        def schedule() -> Generator[float, int, None]:
            while True:
                yield 60.0

        take = backoff.on_predicate(slept_on(clock, schedule), predicate=lambda _number: True, jitter=None, logger=None)

        with pytest.raises(Cancelled):
            take(lambda: 1)()
