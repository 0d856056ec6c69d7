"""Time that several threads share, and that passes only when all of them sleep; a platform whose answers take such time."""

import gc
import heapq
import random
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from docs_platform_action.api.client import ApiClient, ApiResponse
from docs_platform_action.clock import Cancellation, Clock
from docs_platform_action.errors import Cancelled
from docs_platform_action.http.client import Request, Timeouts
from docs_platform_action.http.faults import NetworkError
from tests.unit.fakes import BASE_URL, NOON, FakeAdapter, http_client

STUCK_SECONDS = 20.0
"""Of real time: a thread that runs for so long without a pause waits for something that does not come."""

MAX_PAUSES = 2_000_000
"""A test that makes more of them has a thread in it that wakes up over and over."""


class StuckError(AssertionError):
    """Virtual time cannot go on."""


def _taken() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


@dataclass(eq=False)
class _Worker:
    name: str
    turn: threading.Lock = field(default_factory=_taken)
    ident: int | None = None
    ended: bool = False
    awaits: "_Worker | None" = None


class VirtualClock(Clock):
    """A `Clock` for the threads that `run` starts, and those that they start as `clock.Thread`.

    One of them runs at a time, until it sleeps, joins another or ends; then comes the one that is to wake up earliest, and the
    time is its time. Those that wake up at the same moment come in the order in which they fell asleep, or in one that `seed`
    stands for. So each run of a test is the same. What can go on no more raises `StuckError`, with what the threads were at.
    """

    def __init__(self, *, seed: int | None = None) -> None:
        self._began = self._now = 5000.0
        self._chance = random.Random(seed) if seed is not None else None  # noqa: S311  # nothing is to be kept secret
        self._sleepers: list[tuple[float, float, int, _Worker]] = []
        self._workers: list[_Worker] = []
        self._own = threading.local()
        self._all_ended = threading.Event()
        self._failures: list[BaseException] = []
        self._stuck: str | None = None
        self.cancellation = Cancellation()
        self._cancelled = False
        self._queued = 0
        self.pauses = 0
        clock = self

        class Thread(threading.Thread):
            """One whose `start` and `join` the clock knows of, to be handed in where the code under test starts threads."""

            def start(self) -> None:
                self._worker = clock._enter(self.name)  # the clock's own
                super().start()

            def run(self) -> None:
                clock._work(self._worker, super().run)  # the same

            def join(self, timeout: float | None = None) -> None:
                clock._await(self._worker)  # the same
                super().join(timeout)

        self.Thread = Thread

    @property
    def elapsed(self) -> float:
        return self._now - self._began

    def monotonic(self) -> float:
        return self._now

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.elapsed)

    def sleep(self, seconds: float) -> None:
        if self._cancelled:
            raise Cancelled("cancelled")
        self.pauses += 1
        if self.pauses > MAX_PAUSES:
            self._stuck = self._stuck or f"more than {MAX_PAUSES} pauses in {self.elapsed} s"
            raise StuckError(self._stuck)
        worker = self._me()
        self._queue(worker, max(seconds, 0.0))
        self._yield_to_next(worker)
        if self._cancelled:
            raise Cancelled("cancelled")

    def cancel(self) -> None:
        """End every sleep now, in the order in which they were to end."""
        self._cancelled = True
        self._sleepers = [(self._now, *rest) for _, *rest in sorted(self._sleepers)]  # type: ignore[misc]  # the same four
        heapq.heapify(self._sleepers)

    def run(self, *works: Callable[[], object]) -> None:
        """Carry the works out, each in a thread of its own, and wait until all have ended; raise what the first failed with."""
        threads = [self.Thread(target=work, name=f"work {number + 1}", daemon=True) for number, work in enumerate(works)]
        for thread in threads:
            thread.start()
        if not works:
            return
        self._wake_next()
        paused = -1
        while not self._all_ended.wait(STUCK_SECONDS):
            if paused == self.pauses:
                self._stuck = f"a thread waits for what is no pause of the clock's\n{self._what_they_are_at()}"
                break
            paused = self.pauses
        self._all_ended.clear()
        if self._stuck is not None:
            raise StuckError(self._stuck)
        for thread in threads:
            thread.join()  # it has done its work, but a loaded machine may not have ended it
        if self._failures:
            raise self._failures[0]

    def _enter(self, name: str) -> _Worker:
        worker = _Worker(name)
        self._workers.append(worker)
        self._queue(worker, 0.0)
        return worker

    def _work(self, worker: _Worker, work: Callable[[], None]) -> None:
        worker.turn.acquire()
        self._own.worker, worker.ident = worker, threading.get_ident()
        try:
            if self._stuck is None:
                work()
        except BaseException as error:  # noqa: BLE001  # whatever it is, the test is to see it
            self._failures.append(error)
        finally:
            worker.ended = True
            self._workers.remove(worker)
            for other in self._workers:
                if other.awaits is worker:
                    self._queue(other, 0.0)
            self._wake_next()

    def _await(self, worker: _Worker) -> None:
        if worker.ended:
            return
        me = self._me()
        me.awaits = worker
        self._yield_to_next(me)
        me.awaits = None

    def _me(self) -> _Worker:
        worker: _Worker | None = getattr(self._own, "worker", None)
        if worker is None:
            raise StuckError(f"the clock does not know the thread {threading.current_thread().name!r}, which wants to wait")
        return worker

    def _queue(self, worker: _Worker, seconds: float) -> None:
        tie = self._chance.random() if self._chance is not None else 0.0
        self._queued += 1
        heapq.heappush(self._sleepers, (self._now + seconds, tie, self._queued, worker))

    def _yield_to_next(self, me: _Worker) -> None:
        if self._sleepers and self._sleepers[0][3] is me:
            self._now = max(self._now, heapq.heappop(self._sleepers)[0])
            return
        self._wake_next()
        me.turn.acquire()
        if self._stuck is not None:
            raise StuckError(self._stuck)

    def _wake_next(self) -> None:
        if self._sleepers:
            at, _, _, worker = heapq.heappop(self._sleepers)
            self._now = max(self._now, at)
            worker.turn.release()
        elif not self._workers:
            self._all_ended.set()
        else:
            self._stuck = self._stuck or f"each thread waits for another one's end\n{self._what_they_are_at()}"
            self._workers[0].turn.release()

    def _what_they_are_at(self) -> str:
        gc.disable()  # within the next line it may end in a deadlock, up to Python 3.11 (python/cpython#106883)
        frames = sys._current_frames()  # noqa: SLF001  # there is no other way to another thread's stack
        gc.enable()
        stacks = [
            f"{worker.name}:\n{''.join(traceback.format_stack(frames[worker.ident])[-6:])}"
            for worker in self._workers
            if worker.ident in frames
        ]
        return f"after {self.elapsed} s of virtual time\n" + "\n".join(stacks[:5])


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A request as a platform saw it: when it began and ended on the clock, counted from its beginning, and what it got."""

    method: str
    path: str
    began: float
    ended: float
    got: ApiResponse | Exception


Reply = tuple[float, ApiResponse | Exception]
"""How many seconds an answer takes, and what it is."""


class VirtualPlatform(ApiClient):
    """Answers what `reply` gives for a method, a path and the moment; whatever takes longer than the caller's timeouts is cut."""

    def __init__(self, clock: VirtualClock, reply: Callable[[str, str, float], Reply]) -> None:
        super().__init__(http_client(FakeAdapter()), base_url=BASE_URL, key="k")
        self._clock = clock
        self._reply = reply
        self.under_way = 0
        self.requests: list[Seen] = []

    def send(self, request: Request, timeouts: Timeouts, *, new_connection: bool = False) -> ApiResponse:  # noqa: ARG002  # all are fresh
        began = self._clock.elapsed
        takes, got = self._reply(request.method, request.url, began)
        longest = min(timeouts.total_seconds, timeouts.idle_seconds)
        if takes > longest:
            takes, got = (
                longest,
                NetworkError(f"api.example.com took longer than {longest:.3g} s to respond", maybe_processed=True),
            )
        request.maybe_processed = True
        self.under_way += 1
        try:
            self._clock.sleep(takes)
        finally:
            self.under_way -= 1
            ended = self._clock.elapsed
            self.requests.append(Seen(method=request.method, path=request.url, began=began, ended=ended, got=got))
        if isinstance(got, Exception):
            raise got
        return got

    def begun(self, path: str | None = None) -> list[float]:
        """Tell when requests began, in order: those to one path, or all."""
        return sorted(round(request.began, 6) for request in self.requests if path in {request.path, None})
