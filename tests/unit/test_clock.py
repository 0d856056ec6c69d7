"""The run's clock ends every wait when the run is cancelled."""

import queue
import threading

import pytest

from docs_platform_action.clock import Clock
from docs_platform_action.errors import Cancelled


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_cancel_ends_a_sleep_of_another_thread(clock: Clock) -> None:
    ended: list[type[BaseException]] = []

    def sleep() -> None:
        try:
            clock.sleep(3600)
        except Cancelled:
            ended.append(Cancelled)

    thread = threading.Thread(target=sleep)
    thread.start()
    clock.cancellation.cancel()
    thread.join()

    assert ended == [Cancelled]
    with pytest.raises(Cancelled):
        clock.sleep(-1)


def test_a_wait_for_another_thread_ends_with_its_value_in_time_or_at_an_abort(clock: Clock) -> None:
    arrivals: queue.Queue[int] = queue.Queue()
    arrivals.put(7)

    assert clock.wait_for(arrivals, 3600) == 7
    with pytest.raises(queue.Empty):
        clock.wait_for(arrivals, 0)
    clock.cancellation.cancel()  # requests that are under way may finish
    arrivals.put(8)
    assert clock.wait_for(arrivals, 3600) == 8
    clock.cancellation.is_aborted = True
    with pytest.raises(Cancelled):
        clock.wait_for(arrivals, 3600)
