"""A signal ends the work at once, even if the work is blocked."""

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import pytest

from docs_platform_action.signals import ABORT_GRACE_SECONDS, FORCE_EXIT_SECONDS, SIGNALS, SignalHandler
from tests.virtual_time import VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def signal_handler(clock: VirtualClock) -> Generator[SignalHandler]:
    before = [signal.getsignal(number) for number in SIGNALS]
    yield SignalHandler(clock)
    for number, handler in zip(SIGNALS, before, strict=True):
        signal.signal(number, handler)


def receive(number: signal.Signals) -> None:
    """Send this process a signal; the kernel delivers it to the main thread."""
    os.kill(os.getpid(), number)


def nothing() -> None:
    pass


@dataclass
class FakeWork:
    """Work whose functions are passed in."""

    run: Callable[[], None]
    tick: Callable[[], None] = nothing
    tick_seconds: float = 5.0
    on_stop: Callable[[], None] = nothing
    on_abort: Callable[[], None] = nothing
    grace_seconds: float = 0.0
    leaving_seconds: float = ABORT_GRACE_SECONDS

    def stop(self) -> float:
        self.on_stop()
        return self.grace_seconds

    def abort(self) -> float:
        self.on_abort()
        return self.leaving_seconds


def run(signal_handler: SignalHandler, work: Callable[[], None], **parts: Any) -> signal.Signals | None:
    return signal_handler.run(FakeWork(work, **parts))


def test_work_that_ends_returns_no_signal(signal_handler: SignalHandler) -> None:
    done: list[str] = []

    assert run(signal_handler, lambda: done.append("work")) is None
    assert done == ["work"]


def test_what_the_work_raises_is_raised(signal_handler: SignalHandler) -> None:
    def work() -> None:
        raise LookupError("lost")

    with pytest.raises(LookupError, match="lost"):
        run(signal_handler, work)


def test_ticks_come_while_the_work_runs(signal_handler: SignalHandler) -> None:
    idle = threading.Event()

    run(signal_handler, lambda: assert_soon(idle), tick=idle.set, tick_seconds=0.001)

    assert idle.is_set()


def test_a_signal_ends_a_run_whose_tick_is_blocked(signal_handler: SignalHandler) -> None:
    reported, stopped = threading.Event(), threading.Event()

    def tick() -> None:
        receive(signal.SIGINT)
        assert_soon(reported)  # until then it is blocked, as by a log that nobody reads

    received = run(
        signal_handler,
        lambda: assert_soon(stopped),
        tick=tick,
        tick_seconds=0.001,
        on_stop=stopped.set,
        grace_seconds=60.0,
    )
    reported.set()

    assert received is signal.SIGINT


def test_a_blocked_tick_is_not_called_again_meanwhile(signal_handler: SignalHandler) -> None:
    started, reported = threading.Event(), threading.Event()
    calls: list[int] = []

    def tick() -> None:
        calls.append(1)
        started.set()
        assert_soon(reported)

    def work() -> None:
        assert_soon(started)
        time.sleep(0.02)

    run(signal_handler, work, tick=tick, tick_seconds=0.001)
    reported.set()

    assert calls == [1]


def test_a_tick_ends_before_the_run(signal_handler: SignalHandler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("docs_platform_action.signals.ABORT_GRACE_SECONDS", 60.0)
    started, reported = threading.Event(), threading.Event()

    def tick() -> None:
        started.set()
        time.sleep(0.05)
        reported.set()

    run(signal_handler, lambda: assert_soon(started), tick=tick, tick_seconds=0.001)

    assert reported.is_set()


def test_what_a_tick_raises_is_raised(signal_handler: SignalHandler) -> None:
    ended = threading.Event()

    def tick() -> None:
        raise LookupError("lost")

    with pytest.raises(LookupError, match="lost"):
        run(signal_handler, lambda: assert_soon(ended), tick=tick, tick_seconds=0.001)
    ended.set()


def assert_soon(event: threading.Event) -> None:
    assert event.wait(60)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_stops_the_work_and_is_returned(signal_handler: SignalHandler, number: signal.Signals) -> None:
    stopped = threading.Event()

    def work() -> None:
        receive(number)
        assert_soon(stopped)

    assert run(signal_handler, work, on_stop=stopped.set, grace_seconds=60.0) is number


def test_work_that_ends_in_its_grace_is_not_aborted(signal_handler: SignalHandler) -> None:
    stopped, aborted = threading.Event(), threading.Event()

    def work() -> None:
        receive(signal.SIGINT)
        assert_soon(stopped)

    run(signal_handler, work, on_stop=stopped.set, on_abort=aborted.set, grace_seconds=60.0)

    assert not aborted.is_set()


def test_work_that_does_not_stop_is_aborted(signal_handler: SignalHandler) -> None:
    aborted = threading.Event()

    def work() -> None:
        receive(signal.SIGTERM)
        assert_soon(aborted)

    assert run(signal_handler, work, on_abort=aborted.set) is signal.SIGTERM
    assert aborted.is_set()


def test_work_that_never_ends_is_abandoned(signal_handler: SignalHandler) -> None:
    released = threading.Event()

    def work() -> None:
        receive(signal.SIGTERM)
        released.wait(5)

    assert run(signal_handler, work, leaving_seconds=0.01) is signal.SIGTERM
    released.set()


def test_work_that_has_something_to_clean_up_gets_its_time(signal_handler: SignalHandler) -> None:
    aborted = threading.Event()
    cleaned: list[str] = []

    def work() -> None:
        receive(signal.SIGTERM)
        assert_soon(aborted)
        time.sleep(0.02)
        cleaned.append("parts")

    run(signal_handler, work, on_abort=aborted.set, leaving_seconds=60.0)

    assert cleaned == ["parts"]


def test_a_second_signal_changes_nothing(signal_handler: SignalHandler) -> None:
    stopped = threading.Event()

    def work() -> None:
        receive(signal.SIGINT)
        assert_soon(stopped)

    def stop() -> None:
        receive(signal.SIGTERM)
        stopped.set()

    assert run(signal_handler, work, on_stop=stop, grace_seconds=60.0) is signal.SIGINT


def test_endless_signals_do_not_delay_the_abort(signal_handler: SignalHandler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("docs_platform_action.signals.FORCE_EXIT_SECONDS", math.inf)  # a late signal would end the tests
    aborted = threading.Event()

    def work() -> None:
        until = time.monotonic() + 30
        while not aborted.is_set() and time.monotonic() < until:
            receive(signal.SIGINT)
            aborted.wait(0.002)

    run(signal_handler, work, on_abort=aborted.set, grace_seconds=0.02)

    assert aborted.is_set()


def test_what_the_work_raises_after_a_signal_is_not_raised(signal_handler: SignalHandler) -> None:
    stopped = threading.Event()

    def work() -> None:
        receive(signal.SIGINT)
        assert_soon(stopped)
        raise LookupError("lost")

    assert run(signal_handler, work, on_stop=stopped.set, grace_seconds=60.0) is signal.SIGINT


def test_a_signal_before_the_work_keeps_it_from_beginning(signal_handler: SignalHandler) -> None:
    done: list[str] = []
    receive(signal.SIGTERM)

    assert run(signal_handler, lambda: done.append("work")) is signal.SIGTERM
    assert done == []


class Left(BaseException):
    """Replaces the end of the process."""


@pytest.fixture
def exits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    codes: list[int] = []

    def leave(code: int) -> None:
        codes.append(code)
        raise Left

    monkeypatch.setattr("docs_platform_action.signals.os._exit", leave)
    return codes


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_long_after_the_first_ends_a_run_that_is_blocked(
    signal_handler: SignalHandler, exits: list[int], clock: VirtualClock, number: signal.Signals, code: int
) -> None:
    receive(signal.SIGINT)
    clock.advance(FORCE_EXIT_SECONDS + 0.001)

    with pytest.raises(Left):
        receive(number)

    assert exits == [code]
    del signal_handler


def test_one_soon_after_the_first_does_not(signal_handler: SignalHandler, exits: list[int], clock: VirtualClock) -> None:
    for seconds in (0, 0.5, FORCE_EXIT_SECONDS - 0.5):
        clock.advance(seconds)
        receive(signal.SIGINT)

    assert exits == []
    assert run(signal_handler, nothing) is signal.SIGINT


def test_the_time_counts_from_the_first_signal(signal_handler: SignalHandler, exits: list[int], clock: VirtualClock) -> None:
    receive(signal.SIGINT)
    clock.advance(FORCE_EXIT_SECONDS - 0.5)
    receive(signal.SIGINT)
    clock.advance(1)

    with pytest.raises(Left):
        receive(signal.SIGTERM)

    assert exits == [143]
    del signal_handler


def test_ignored_signals_do_nothing(signal_handler: SignalHandler, exits: list[int]) -> None:
    signal_handler.ignore()

    for number in SIGNALS:
        receive(number)

    assert exits == []
    assert run(signal_handler, nothing) is None
