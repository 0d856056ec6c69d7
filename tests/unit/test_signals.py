"""A signal ends the work at once, even if the work is blocked."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from unittest.mock import Mock

import pytest

from docs_platform_action.signals import FORCE_EXIT_SECONDS, SIGNALS, SignalHandler
from tests.virtual_time import VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def handler(clock: VirtualClock) -> Iterator[SignalHandler]:
    before = [signal.getsignal(number) for number in SIGNALS]
    yield SignalHandler(clock)
    for number, former in zip(SIGNALS, before, strict=True):
        signal.signal(number, former)


def receive(number: signal.Signals) -> None:
    """Send this process a signal; the kernel delivers it to the main thread."""
    os.kill(os.getpid(), number)


def nothing() -> None:
    """Do nothing."""


@dataclass
class FakeWork:
    """Work that records what is asked of it."""

    run: Callable[[], None]
    tick: Callable[[], None] = nothing
    tick_seconds: float = 5.0
    on_stop: Callable[[], None] = nothing
    on_abort: Callable[[], None] = nothing
    asked: list[str] = field(default_factory=list)

    def stop(self) -> float:
        self.asked.append("stop")
        self.on_stop()
        return 3600.0 if self.on_stop is not nothing else 0.0

    def abort(self) -> float:
        self.asked.append("abort")
        self.on_abort()
        return 3600.0 if self.on_abort is not nothing else 0.0


@pytest.mark.parametrize("error", [LookupError("lost"), SystemExit(3)])
def test_work_that_ends_returns_no_signal_and_its_error_is_raised(
    handler: SignalHandler, error: BaseException
) -> None:
    def fail() -> None:
        raise error

    done: list[str] = []
    assert handler.run(FakeWork(lambda: done.append("work"))) is None
    assert done == ["work"]
    with pytest.raises(type(error)):
        handler.run(FakeWork(fail))


def test_a_signal_before_the_work_is_returned_without_it(handler: SignalHandler) -> None:
    done: list[str] = []
    receive(signal.SIGTERM)

    assert handler.run(FakeWork(lambda: done.append("work"))) is signal.SIGTERM
    assert not done


def test_ticks_come_while_the_work_runs(handler: SignalHandler) -> None:
    ticked = threading.Event()

    handler.run(FakeWork(lambda: assert_soon(ticked), tick=ticked.set, tick_seconds=0.001))

    assert ticked.is_set()


def assert_soon(event: threading.Event) -> None:
    assert event.wait(60)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_stops_work_that_then_ends_by_itself(
    handler: SignalHandler, number: signal.Signals
) -> None:
    stopped = threading.Event()

    def run() -> None:
        receive(number)
        assert_soon(stopped)

    work = FakeWork(run, on_stop=stopped.set)

    assert handler.run(work) is number
    assert work.asked == ["stop"]


@pytest.mark.parametrize("is_blocked", [False, True])
def test_work_that_does_not_stop_is_aborted_and_if_it_is_blocked_abandoned(
    handler: SignalHandler, is_blocked: bool
) -> None:
    aborted = threading.Event()

    def run() -> None:
        receive(signal.SIGINT)
        assert_soon(aborted)

    work = FakeWork(run, on_abort=nothing if is_blocked else aborted.set)

    assert handler.run(work) is signal.SIGINT
    assert work.asked == ["stop", "abort"]
    aborted.set()


def test_a_signal_ends_a_run_whose_tick_is_blocked(handler: SignalHandler) -> None:
    ticking = threading.Event()
    never = threading.Event()

    def tick() -> None:
        ticking.set()
        never.wait()

    def work() -> None:
        assert_soon(ticking)
        receive(signal.SIGINT)

    assert handler.run(FakeWork(work, tick=tick, tick_seconds=0.001)) in {signal.SIGINT, None}
    never.set()


class TestFinish:
    @pytest.mark.parametrize("has_threads", [True, False])
    def test_a_write_that_ends_has_all_the_time_it_needs_and_its_error_is_raised(
        self, handler: SignalHandler, monkeypatch: pytest.MonkeyPatch, has_threads: bool
    ) -> None:
        if not has_threads:
            no_threads = Mock(side_effect=RuntimeError("can't start new thread"))
            monkeypatch.setattr(threading.Thread, "start", no_threads)

        def fail() -> None:
            raise LookupError("lost")

        done: list[str] = []
        assert handler.finish(lambda: done.append("written"), grace_seconds=0.0) is None
        assert done == ["written"]
        with pytest.raises(LookupError, match="lost"):
            handler.finish(fail, grace_seconds=0.0)

    def test_after_a_signal_a_write_gets_its_grace(self, handler: SignalHandler) -> None:
        blocked = threading.Event()
        done = threading.Event()
        receive(signal.SIGTERM)

        given_up = handler.finish(lambda: assert_soon(blocked), grace_seconds=0.0)

        assert given_up == signal.SIGTERM
        assert handler.finish(done.set, grace_seconds=60.0) is None
        assert handler.received is signal.SIGTERM
        assert done.is_set()
        blocked.set()

    def test_a_signal_ends_the_wait_for_a_write_that_blocks(self, handler: SignalHandler) -> None:
        blocked = threading.Event()

        def write() -> None:
            receive(signal.SIGINT)
            assert_soon(blocked)

        assert handler.finish(write, grace_seconds=0.0) == signal.SIGINT
        blocked.set()


@pytest.mark.usefixtures("handler")
@pytest.mark.parametrize(
    ("seconds", "exits"), [(FORCE_EXIT_SECONDS - 0.1, []), (FORCE_EXIT_SECONDS + 0.1, [143])]
)
def test_only_a_late_second_signal_ends_the_process(
    clock: VirtualClock, monkeypatch: pytest.MonkeyPatch, seconds: float, exits: list[int]
) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    receive(signal.SIGINT)
    clock.advance(seconds)
    receive(signal.SIGTERM)

    assert ended == exits
