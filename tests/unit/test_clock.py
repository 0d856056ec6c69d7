"""The clock and its sleep, which a cancellation ends."""

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
    def test_a_sleep_ends(self, seconds: float) -> None:
        Clock().sleep(seconds)

    def test_a_cancellation_ends_a_sleep_in_another_thread(self) -> None:
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

    def test_sleeping_after_a_cancellation_raises(self) -> None:
        clock = Clock()
        clock.cancellation.cancel()

        with pytest.raises(Cancelled):
            clock.sleep(0)
