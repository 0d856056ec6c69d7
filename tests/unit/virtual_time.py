"""A clock for several threads that advances only when all of them sleep, and a platform whose responses take virtual time."""

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
"""Real seconds: a thread that runs this long without sleeping is stuck."""

MAX_PAUSES = 2_000_000
"""Maximum pauses; a test with more has a thread that wakes up in an endless loop."""


class StuckError(AssertionError):
    """Virtual time cannot advance."""


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
    """A `Clock` for the threads that `run` starts, and for threads that they create as `clock.Thread`.

    One thread runs at a time, until it sleeps, joins another or ends. Then the clock advances to the earliest wake-up, and that
    thread runs. Threads that wake up at the same time run in the order in which they went to sleep, or in an order drawn from
    `seed`, so each run of a test is the same. Raises `StuckError` with the stacks of the threads if no thread can run.
    """

    def __init__(self, *, seed: int | None = None) -> None:
        self._began = self._now = 5000.0
        self._chance = random.Random(seed) if seed is not None else None  # noqa: S311  # not for secrets
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
            """A thread that the clock schedules, for code under test that starts threads."""

            def start(self) -> None:
                self._worker = clock._enter(self.name)  # an attribute for the clock
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
        """End every sleep now, in the order of their wake-ups."""
        self._cancelled = True
        self._sleepers = [(self._now, *rest) for _, *rest in sorted(self._sleepers)]  # type: ignore[misc]  # the same four fields
        heapq.heapify(self._sleepers)

    def run(self, *works: Callable[[], object]) -> None:
        """Run each function in a thread, wait until all have ended, and raise the first error."""
        threads = [self.Thread(target=work, name=f"work {number + 1}", daemon=True) for number, work in enumerate(works)]
        for thread in threads:
            thread.start()
        if not works:
            return
        self._wake_next()
        paused = -1
        while not self._all_ended.wait(STUCK_SECONDS):
            if paused == self.pauses:
                self._stuck = f"a thread waits without sleeping on the clock\n{self._describe_threads()}"
                break
            paused = self.pauses
        self._all_ended.clear()
        if self._stuck is not None:
            raise StuckError(self._stuck)
        for thread in threads:
            thread.join()  # its work is done, but on a loaded machine the thread may not have ended
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
        except BaseException as error:  # noqa: BLE001  # the test must see every error
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
            raise StuckError(f"the clock did not start the thread {threading.current_thread().name!r}, which tries to sleep")
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
            self._stuck = self._stuck or f"each thread waits for another thread to end\n{self._describe_threads()}"
            self._workers[0].turn.release()

    def _describe_threads(self) -> str:
        gc.disable()  # a collection during the next line may deadlock up to Python 3.11 (python/cpython#106883)
        frames = sys._current_frames()  # noqa: SLF001  # the only way to read another thread's stack
        gc.enable()
        stacks = [
            f"{worker.name}:\n{''.join(traceback.format_stack(frames[worker.ident])[-6:])}"
            for worker in self._workers
            if worker.ident in frames
        ]
        return f"after {self.elapsed} s of virtual time\n" + "\n".join(stacks[:5])


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A request to the platform: its start and end in seconds since the clock's start, and its result."""

    method: str
    path: str
    began: float
    ended: float
    got: ApiResponse | Exception


Reply = tuple[float, ApiResponse | Exception]
"""Seconds until the response, and the response or error."""


class VirtualPlatform(ApiClient):
    """Responds with `reply(method, path, time)`; a response that takes longer than the caller's timeouts is a network error."""

    def __init__(self, clock: VirtualClock, reply: Callable[[str, str, float], Reply]) -> None:
        super().__init__(http_client(FakeAdapter()), base_url=BASE_URL, key="k")
        self._clock = clock
        self._reply = reply
        self.under_way = 0
        self.requests: list[Seen] = []

    def send(self, request: Request, timeouts: Timeouts, *, new_connection: bool = False) -> ApiResponse:  # noqa: ARG002  # every connection is new
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
        """Return the sorted start times of the requests to one path, or of all requests."""
        return sorted(round(request.began, 6) for request in self.requests if path in {request.path, None})
