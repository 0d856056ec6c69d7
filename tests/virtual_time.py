"""The clock of the tests: it moves when it is told to, or when all threads of a run sleep on it."""

import heapq
import math
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from docs_platform_action.clock import Clock

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)

BEGINNING = 1e8
"""Seconds that the clock shows at first.

They are more than any machine's uptime, so a test that mixes both clocks fails everywhere.
"""


class StuckError(AssertionError):
    """Each thread waits for another one, so virtual time cannot advance."""


def _nothing() -> None:
    """Do nothing."""


def _taken() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


@dataclass(eq=False)
class _Worker:
    turn: threading.Lock = field(default_factory=_taken)
    has_ended: bool = False
    awaited: "_Worker | None" = None


@dataclass(order=True)
class _Sleeper:
    """A worker that sleeps, in the order of its wake-up."""

    wakes_at: float
    tie_break: float
    number: int
    worker: _Worker = field(compare=False)


class VirtualClock(Clock):
    """A clock that begins at noon, and that only sleeps and `advance` move.

    Outside of `run`, a sleep moves the clock and returns at once. `run` starts threads, which may
    create others as `clock.Thread`. One of them runs at a time, until it sleeps, joins another or
    ends. Then the clock moves to the earliest wake-up, and that thread runs. Threads that wake up
    at the same time run in the order in which they went to sleep, or in an order drawn from `seed`,
    so each run of a test is the same. Raises `StuckError` if no thread can run.

    With `real_rate`, the machine's time counts as well, so many times: for real sockets, and pauses
    that take no time. A sleep of one thread then also uses up the time limits of other threads'
    exchanges.
    """

    def __init__(self, *, seed: int | None = None, real_rate: float = 0.0) -> None:
        super().__init__()
        self._real_rate = real_rate
        self._began_really = time.monotonic()
        self._now = BEGINNING
        self._began_at = datetime.now(UTC) if real_rate else NOON
        self._call = _nothing
        self._interval = math.inf
        self._call_at = math.inf
        # not for secrets
        self._chance = random.Random(seed) if seed is not None else None  # noqa: S311
        self._sleepers: list[_Sleeper] = []
        self._workers: list[_Worker] = []
        self._own = threading.local()
        self._all_ended = threading.Event()
        self._failures: list[BaseException] = []
        self._is_stuck = False
        self._queued = 0
        clock = self

        class Thread(threading.Thread):
            """A thread that the clock schedules, for code under test that starts threads."""

            def start(self) -> None:
                self._worker = clock._enter()  # an attribute for the clock
                super().start()

            def run(self) -> None:
                clock._work(self._worker, super().run)  # the same

            def join(self, timeout: float | None = None) -> None:
                clock._await(self._worker)  # the same
                super().join(timeout)

        self.Thread = Thread

    @property
    def elapsed(self) -> float:
        """Seconds since the clock was created."""
        return self.monotonic() - BEGINNING

    def monotonic(self) -> float:
        if not self._real_rate:
            return self._now
        real_seconds = time.monotonic() - self._began_really
        return self._now + real_seconds * self._real_rate

    def now(self) -> datetime:
        return self._began_at + timedelta(seconds=self.elapsed)

    def call_every(self, seconds: float, call: Callable[[], None]) -> None:
        """Call a function at these intervals, as the main thread does in a real run.

        The thread that moves the clock calls it.
        """
        self._call = call
        self._interval = seconds
        self._call_at = self._now + seconds

    def advance(self, seconds: float) -> None:
        """Move the clock."""
        self._move_to(self._now + seconds)

    def _move_to(self, until: float) -> None:
        while self._call_at <= until:
            self._now = self._call_at
            self._call_at += self._interval
            self._call()
        self._now = max(self._now, until)

    def sleep(self, seconds: float) -> None:
        self.cancellation.check()
        worker: _Worker | None = getattr(self._own, "worker", None)
        if worker is not None:
            self._queue(worker, max(seconds, 0.0))
            self._yield_to_next(worker)
            self.cancellation.check()
        elif self._workers:
            name = threading.current_thread().name
            raise StuckError(f"the clock did not start the thread {name!r}, which tries to sleep")
        else:
            self.advance(max(seconds, 0.0))

    def cancel(self) -> None:
        """End every sleep now, as if all threads woke up at the same time."""
        self.cancellation.cancel()
        for sleeper in self._sleepers:
            sleeper.wakes_at = self._now
        heapq.heapify(self._sleepers)

    def run(self, *works: Callable[[], object]) -> None:
        """Run each function in a thread, wait until all have ended, and raise the first error."""
        for work in works:
            self.Thread(target=work, daemon=True).start()
        self._wake_next()
        # pytest ends a test whose thread waits without sleeping on the clock
        self._all_ended.wait()
        self._all_ended.clear()
        if self._failures:
            raise self._failures[0]

    def _enter(self) -> _Worker:
        worker = _Worker()
        self._workers.append(worker)
        self._queue(worker, 0.0)
        return worker

    def _work(self, worker: _Worker, work: Callable[[], None]) -> None:
        worker.turn.acquire()
        self._own.worker = worker
        try:
            if not self._is_stuck:
                work()
        except BaseException as error:  # noqa: BLE001  # the test must see every error
            self._failures.append(error)
        finally:
            worker.has_ended = True
            self._workers.remove(worker)
            for other in self._workers:
                if other.awaited is worker:
                    self._queue(other, 0.0)
            self._wake_next()

    def _await(self, worker: _Worker) -> None:
        if not worker.has_ended:
            me: _Worker = self._own.worker
            me.awaited = worker
            self._yield_to_next(me)
            me.awaited = None

    def _queue(self, worker: _Worker, seconds: float) -> None:
        tie_break = self._chance.random() if self._chance is not None else 0.0
        self._queued += 1
        sleeper = _Sleeper(self._now + seconds, tie_break, self._queued, worker)
        heapq.heappush(self._sleepers, sleeper)

    def _yield_to_next(self, me: _Worker) -> None:
        if self._sleepers and self._sleepers[0].worker is me:
            self._move_to(heapq.heappop(self._sleepers).wakes_at)
            return
        self._wake_next()
        me.turn.acquire()
        if self._is_stuck:
            raise StuckError(
                f"each thread waits for another one, after {self.elapsed} s of virtual time"
            )

    def _wake_next(self) -> None:
        if self._sleepers:
            sleeper = heapq.heappop(self._sleepers)
            self._move_to(sleeper.wakes_at)
            sleeper.worker.turn.release()
        elif self._workers:
            self._is_stuck = True
            self._workers[0].turn.release()
        else:
            self._all_ended.set()
