"""The clock, and sleep that a cancel ends."""

import threading
import time
from datetime import timedelta

import pytest

from docs_platform_action.clock import Clock
from docs_platform_action.errors import Cancelled


class TestClock:
    def test_it_returns_the_machines_time(self) -> None:
        clock = Clock()

        first, second = clock.monotonic(), clock.monotonic()

        assert first <= second
        assert clock.now().utcoffset() == timedelta(0)

    @pytest.mark.parametrize("seconds", [0.001, 0, -5])
    def test_a_pause_ends_by_itself(self, seconds: float) -> None:
        Clock().sleep(seconds)

    def test_a_cancel_wakes_a_sleeper_in_another_thread(self) -> None:
        clock = Clock()
        woken: list[float] = []

        def sleep() -> None:
            with pytest.raises(Cancelled):
                clock.sleep(60)
            woken.append(time.monotonic())

        sleeper = threading.Thread(target=sleep)
        sleeper.start()

        clock.cancellation.cancel()
        sleeper.join(30)

        assert woken

    def test_no_sleep_begins_after_a_cancel(self) -> None:
        clock = Clock()
        clock.cancellation.cancel()

        with pytest.raises(Cancelled):
            clock.sleep(0)
