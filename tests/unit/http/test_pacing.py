"""Requests begin a tenth of a second apart, and starts wait for the platform."""

import pytest

from docs_platform_action.http.pacing import Pacer
from tests.virtual_time import VirtualClock


def test_requests_of_several_threads_begin_a_tenth_of_a_second_apart_and_a_pause_saves_no_turns() -> None:
    clock = VirtualClock()
    pacer, begun = Pacer(clock), []

    def send() -> None:
        for pause in (0.0, 0.0, 60.0):
            clock.sleep(pause)
            pacer.wait_for_turn()
            begun.append(clock.elapsed)

    clock.run(send, send)

    assert begun == pytest.approx([0, 0.1, 0.2, 0.3, 60.2, 60.3])


def test_a_hold_of_starts_only_grows() -> None:
    pacer, held = Pacer(VirtualClock()), []

    for until in (5.0, 9.0, 7.0):
        pacer.hold_starts(until)
        held.append(pacer.starts_held_until)

    assert held == [5, 9, 9]
