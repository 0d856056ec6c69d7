"""The requests of all jobs share one rate limit and, in an outage, one probe at a time. Starts also have their own circuit."""

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.errors import Advice, Cancelled
from docs_platform_action.http.circuit_breaker import RECHECK_SECONDS, CircuitBreaker
from docs_platform_action.http.rate_limit import REQUESTS_PER_SECOND, QueuedRequest
from docs_platform_action.http.retry import MAX_PAUSE_SECONDS, Retry, TransientError
from tests.virtual_time import StuckError, VirtualClock

FOREVER = float("inf")
AFTER_A_RECHECK = RECHECK_SECONDS + 1e-5
TOLERANCE = 300.0


@pytest.fixture(autouse=True, scope="module")
def _window_of_a_second() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("docs_platform_action.http.rate_limit.WINDOW_SECONDS", 1.0)
        yield


def transient(*, status: int = 503, retry_after: float | None = None, job_specific: bool = False) -> TransientError:
    advice = Advice(cause="", remedy="")
    return TransientError("it is down", advice=advice, status=status, retry_after_seconds=retry_after, job_specific=job_specific)


def throttled(retry_after: float | None = None) -> TransientError:
    """Return the error that asks to try later."""
    advice = Advice(cause="", remedy="")
    return TransientError("it is full", advice=advice, status=429, maybe_processed=False, retry_after_seconds=retry_after)


class Crowd:
    """Jobs that share one breaker, each in its own thread, and when each request began. A pause is half of its ceiling."""

    def __init__(self, *, seed: int | None = None) -> None:
        self.clock = VirtualClock(seed=seed)
        self.breaker = CircuitBreaker(self.clock)
        self.begun: list[tuple[str, float]] = []

    def retry(self, *, left: float = FOREVER, jitter: float = 0.5) -> Retry:
        """Return the state of an operation that has this much time left."""
        now = self.clock.monotonic()
        return Retry(tolerance_seconds=TOLERANCE, started_at=now, deadline=now + left, jitter=lambda ceiling: ceiling * jitter)

    @contextlib.contextmanager
    def request(self, name: str, retry: Retry, *, is_start: bool = False) -> Iterator[QueuedRequest]:
        """Wait until a request may begin."""
        with self.breaker.request(is_start=is_start) as request:
            while (pause := self.breaker.begin(request, retry)) > 0:
                self.clock.sleep(pause)
            self.begun.append((name, round(self.clock.elapsed, 3)))
            yield request

    def ask(
        self,
        name: str,
        *,
        at: float = 0.0,
        takes: float = 0.1,
        fails: TransientError | None = None,
        times: int = 1,
        left: float = FOREVER,
        jitter: float = 0.5,
        is_start: bool = False,
    ) -> None:
        """Carry out an operation that fails this many times, then succeeds, unless its last attempt fails."""
        self.clock.sleep(at - self.clock.elapsed)
        retry = self.retry(left=left, jitter=jitter)
        for number in itertools.count():
            with self.request(name, retry, is_start=is_start) as request:
                self.clock.sleep(takes)
                if fails is None or number == times:
                    self.breaker.succeeded(request)
                    return
                try:
                    retry = self.breaker.failed(request, fails, retry)
                except TransientError:
                    return

    def asks(self, name: str, **how: object) -> Callable[[], None]:
        return partial(self.ask, name, **how)  # type: ignore[arg-type]  # as `ask` takes it

    def run(self, *jobs: Callable[[], object]) -> list[tuple[str, float]]:
        """Run all jobs; return who sent a request, and when."""
        self.clock.run(*jobs)
        return self.begun

    def times(self, name: str) -> list[float]:
        return [at for one, at in self.begun if one == name]


def ask(name: str, **how: Any) -> tuple[str, dict[str, Any]]:
    return name, how


NOT_READY = transient(job_specific=True)
TIMES: dict[str, tuple[list[tuple[str, dict[str, Any]]], dict[str, list[float]]]] = {
    "after a Retry-After, a job does not wait again": ([ask("a", fails=transient(retry_after=40))], {"a": [0, 40.1]}),
    "a job that is not ready waits for its own pauses": (
        [ask("a", fails=NOT_READY, times=3), *(ask("b", at=at) for at in (1, 2, 3))],
        {"a": [0, 0.6, 1.7, 3.8], "b": [1, 2, 3]},
    ),
    "the pause of a failed request blocks all": ([ask("x", fails=transient()), ask("a", at=0.2)], {"a": [0.6]}),
    "all wait for the whole ceiling if the failed request gives up": (
        [ask("x", fails=transient(), left=0), ask("a", at=0.2)],
        {"a": [1.1]},
    ),
    "the longest of several pauses counts": (
        [*(ask("x", fails=transient(), jitter=jitter) for jitter in (0.25, 0.75, 0.5)), ask("a", at=0.2)],
        {"a": [0.85]},
    ),
    "the end of an outage resets the ceiling": (
        [ask("x", fails=transient(), times=4), ask("y", at=20, fails=transient())],
        {"y": [20, 20.6]},
    ),
    "an overdue request is not blocked": (
        [ask("x", fails=transient(retry_after=600)), *(ask(f"{left}", at=1, left=left, fails=transient()) for left in (0, 5))],
        {"0": [1], "5": [6]},
    ),
    "a request waits for others at most for the tolerance": (
        [ask("x", fails=transient(retry_after=10**6), times=10**6), ask("a", at=1)],
        {"a": [1 + TOLERANCE]},
    ),
    "the latest Retry-After counts": (
        [*(ask("x", fails=transient(retry_after=seconds), takes=seconds / 100) for seconds in (20, 40, 10)), ask("a", at=1)],
        {"a": [40.4]},
    ),
    **{
        f"a response to a request of {began} s does not end it, {kind}": (
            [ask("x", fails=transient(retry_after=40)), ask("y", at=began, takes=1, fails=error), ask("a", at=2)],
            {"a": [40.1]},
        )
        for began in (0.0, 0.05)
        for kind, error in {"not ready": NOT_READY, "good": None}.items()
    },
    **{
        f"a pause that a {status} to a start asks for blocks only starts": (
            [
                ask("start", is_start=True, fails=transient(status=status, retry_after=3600), left=0),
                ask("read", at=1),
                ask("other", at=2, is_start=True, left=19),
            ],
            {"read": [1], "other": [21]},
        )
        for status in (408, 425, 500, 502, 503)
    },
    "a response to a read does not end the pause of the starts": (
        [ask("x", is_start=True, fails=throttled(50)), ask("read", at=1), ask("a", at=2, is_start=True)],
        {"a": [50.1]},
    ),
    "a request that just failed does not probe while another can": (
        [ask("x", fails=transient(), times=3), ask("a", at=0.2, fails=transient()), ask("b", at=0.3)],
        {"a": [0.6, 1.95], "b": [1.7]},
    ),
}


@pytest.mark.parametrize("name", TIMES)
def test_requests_begin_when_the_breaker_lets_them(name: str) -> None:
    asks, expected = TIMES[name]
    crowd = Crowd()

    crowd.run(*(crowd.asks(one, **how) for one, how in asks))

    assert {one: crowd.times(one) for one in expected} == expected


class TestOneJob:
    def test_its_requests_do_not_wait(self) -> None:
        crowd = Crowd()

        crowd.run(*[crowd.asks("a", takes=0)] * REQUESTS_PER_SECOND)

        assert crowd.times("a") == [0] * REQUESTS_PER_SECOND

    @given(st.integers(1, 12), st.floats(0.05, 1))
    def test_in_an_outage_it_waits_only_for_its_own_pauses(self, times: int, jitter: float) -> None:
        crowd = Crowd()

        crowd.run(crowd.asks("a", takes=0, fails=transient(), times=times, jitter=jitter, left=10**6))

        pauses = [later - first for first, later in itertools.pairwise(crowd.times("a"))]
        ceilings = [1, 2, 4, 8, 16, *[30] * 7]
        assert pauses == pytest.approx([jitter * ceiling for ceiling in ceilings[:times]], abs=0.002)


class TestQueue:
    def test_all_begin_soon_after_an_outage(self) -> None:
        crowd = Crowd()

        crowd.run(crowd.asks("x", fails=transient()), *(crowd.asks(f"{number}", at=0.2) for number in range(30)))

        first, probe, *others = sorted(at for _, at in crowd.begun)
        assert (first, probe, len(others)) == (0, 0.6, 30)
        assert 0.7 <= others[0] <= others[-1] < 0.7 + AFTER_A_RECHECK + 3

    def test_a_request_that_leaves_the_queue_blocks_nobody(self) -> None:
        crowd = Crowd()

        def leaves() -> None:
            crowd.clock.sleep(0.2)
            with crowd.breaker.request(is_start=False) as request:
                assert crowd.breaker.begin(request, crowd.retry()) > 0

        crowd.run(crowd.asks("x", fails=transient(), jitter=1), leaves, crowd.asks("a", at=0.3))

        assert crowd.times("a") == [1.1]


class TestOutage:
    def test_it_begins_with_the_first_error_and_ends_with_the_first_response(self) -> None:
        crowd = Crowd()
        seen = []

        def looks() -> None:
            for _ in range(40):
                crowd.clock.sleep(0.1)
                seen.append(crowd.breaker.failing_since(is_start=False))

        crowd.run(crowd.asks("a", fails=transient(), takes=0.25, times=2), looks)

        began = crowd.clock.monotonic() - crowd.clock.elapsed + 0.25
        assert [*dict.fromkeys(seen)] == [FOREVER, pytest.approx(began)]
        assert seen[-1] == FOREVER

    def test_after_the_pause_one_request_probes_and_the_others_wait_for_its_result(self) -> None:
        crowd = Crowd()

        crowd.run(crowd.asks("x", fails=transient()), *(crowd.asks(name, at=0.2, takes=4) for name in "abc"))

        assert crowd.times("a") == [0.6]
        assert all(4.6 <= at <= 4.6 + AFTER_A_RECHECK for name in "xbc" for at in crowd.times(name)[-1:])

    def test_the_pauses_grow_with_each_failed_probe_whoever_sends_it(self) -> None:
        crowd = Crowd()

        crowd.run(*(crowd.asks(name, at=number / 5, fails=transient(), jitter=1) for number, name in enumerate("abcd")))

        assert [at for _, at in crowd.begun[:5]] == pytest.approx([0, 1.1, 3.2, 7.3, 15.4], abs=AFTER_A_RECHECK)

    def test_failures_of_requests_that_were_under_way_count_as_one(self) -> None:
        crowd = Crowd()

        crowd.run(*(crowd.asks(f"{number}", fails=transient(), takes=0.1 + number / 100) for number in range(5)))

        assert min(crowd.times(f"{number}")[1] for number in range(5)) <= 0.2 + 0.5 + AFTER_A_RECHECK

    def test_a_job_that_has_failed_more_often_than_the_server_pauses_alone(self) -> None:
        crowd = Crowd()

        def good() -> None:
            for _ in range(200):
                crowd.ask("good")
                crowd.clock.sleep(0.4)

        crowd.run(crowd.asks("x", fails=transient(), times=7, jitter=1), good)

        assert crowd.times("x")[-1] > 80
        assert crowd.times("good")[-1] <= 200 * 0.5 + 7 * (1 + AFTER_A_RECHECK)

    def test_a_response_to_an_earlier_request_ends_it_but_not_its_pause(self) -> None:
        crowd = Crowd()

        crowd.run(
            crowd.asks("late answer", takes=0.3),
            crowd.asks("x", fails=transient(), jitter=1),
            crowd.asks("a", at=0.4),
            crowd.asks("b", at=0.4, takes=5),
            crowd.asks("c", at=0.4),
        )

        assert [crowd.times(name) for name in "abc"] == [[pytest.approx(1.1, abs=AFTER_A_RECHECK)]] * 3

    @pytest.mark.parametrize("jobs", [1, 10, 40])
    def test_many_jobs_send_as_few_requests_as_one(self, jobs: int) -> None:
        crowd = Crowd(seed=jobs)

        crowd.run(*[crowd.asks("x", fails=transient(), times=10**6, left=150)] * jobs)

        queued_when_it_began = min(jobs, REQUESTS_PER_SECOND)
        last_attempts = [at for _, at in crowd.begun if at >= 150]
        assert len(last_attempts) == jobs
        assert len(crowd.begun) - queued_when_it_began - jobs <= 16

    def test_a_probe_that_takes_long_does_not_block_the_others(self) -> None:
        crowd = Crowd()

        crowd.run(crowd.asks("x", fails=transient()), crowd.asks("packing", at=0.2, takes=200), crowd.asks("a", at=1))

        assert crowd.times("a")[0] == pytest.approx(0.6 + MAX_PAUSE_SECONDS, abs=AFTER_A_RECHECK)


class TestOverdue:
    def test_overdue_requests_come_before_the_others(self) -> None:
        crowd = Crowd()
        others = [crowd.asks(f"{number:02}") for number in range(25)]

        begun = crowd.run(*others, *(crowd.asks(f"late {number}", at=0.5, left=0) for number in range(12)))

        assert [(name, at) for name, at in begun if name.startswith("late")] == [
            *((f"late {number}", 1) for number in range(10)),
            *((f"late {number}", 2) for number in (10, 11)),
        ]
        assert begun[-1] == ("24", 3)

    def test_a_response_to_one_ends_the_pause_for_all(self) -> None:
        crowd = Crowd()

        crowd.run(
            crowd.asks("x", fails=transient(retry_after=10**9)), crowd.asks("a", at=1, left=59), crowd.asks("b", at=2, left=500)
        )

        assert crowd.times("a") == [60]
        assert 60.1 <= crowd.times("b")[0] <= 60.1 + AFTER_A_RECHECK


class TestRetryAfter:
    def test_all_obey_it_and_then_one_probes(self) -> None:
        crowd = Crowd()

        crowd.run(crowd.asks("x", fails=transient(retry_after=40)), *(crowd.asks(name, at=0.2, takes=1) for name in "abc"))

        assert crowd.times("a") == [40.1]
        assert all(crowd.times(name)[0] >= 41.1 for name in "bc")


class TestStarts:
    @pytest.mark.parametrize("error", [throttled(), throttled(20), throttled(3600)])
    def test_one_that_is_refused_blocks_no_other_request(self, error: TransientError) -> None:
        crowd = Crowd()

        def reads() -> None:
            for _ in range(20):
                crowd.ask("read", takes=0)
                crowd.clock.sleep(1)

        crowd.run(crowd.asks("start", is_start=True, fails=error, times=10**6, left=19), reads)

        assert crowd.times("read") == [*range(20)]

    def test_but_other_starts(self) -> None:
        crowd = Crowd()

        crowd.run(
            crowd.asks("first", is_start=True, fails=throttled(20)),
            *(crowd.asks(name, at=1, is_start=True, takes=2) for name in "abc"),
            crowd.asks("read", at=1),
        )

        assert (crowd.times("a"), crowd.times("read")) == ([20.1], [1])
        assert all(crowd.times(name)[0] >= 22.1 for name in "bc")

    def test_a_start_that_is_always_refused_does_not_keep_others_from_probing(self) -> None:
        crowd = Crowd()

        crowd.run(
            crowd.asks("refused", is_start=True, fails=throttled(), times=10**6, left=200),
            *(crowd.asks(f"{number}", at=0.5, is_start=True) for number in range(20)),
        )

        assert all(crowd.times(f"{number}")[0] < 10 for number in range(20))

    @pytest.mark.parametrize("is_start", [True, False])
    def test_an_outage_blocks_both(self, is_start: bool) -> None:
        crowd = Crowd()

        crowd.run(
            crowd.asks("x", is_start=is_start, fails=transient()),
            *(crowd.asks(f"{kind}", at=0.2, is_start=kind) for kind in (0, 1)),
        )

        assert all(crowd.times(name)[0] >= 0.6 for name in "01")

    def test_a_start_that_waits_for_its_circuit_does_not_block_the_reads_behind_it(self) -> None:
        crowd = Crowd()

        crowd.run(
            crowd.asks("refused", is_start=True, fails=throttled(100)),
            crowd.asks("waits", at=0.5, is_start=True),
            crowd.asks("x", at=1, fails=transient(), times=3),
            *(crowd.asks(name, at=1.2) for name in "abc"),
        )

        assert all(crowd.times(name)[0] < 3 for name in "abc")

    def test_their_outage_can_be_tolerated(self) -> None:
        crowd = Crowd()
        seen = []

        def looks() -> None:
            for _ in range(3):
                crowd.clock.sleep(5)
                crowd.breaker.tolerate_starts(crowd.clock.monotonic())
                seen.append(crowd.breaker.failing_since(is_start=True) - crowd.clock.monotonic())

        crowd.run(crowd.asks("x", at=6, is_start=True, fails=throttled(5)), looks)

        assert seen == [FOREVER, 0, FOREVER]


class TestFairness:
    def test_all_jobs_get_the_same_share(self) -> None:
        crowd = Crowd(seed=7)

        def job(name: str) -> None:
            while crowd.clock.elapsed < 60:
                crowd.ask(name, takes=0.3)

        crowd.run(*(partial(job, f"{number}") for number in range(40)))

        counts = [len(crowd.times(f"{number}")) for number in range(40)]
        assert max(counts) - min(counts) <= 1
        assert len(crowd.begun) >= 60 * REQUESTS_PER_SECOND

    def test_a_frequent_sender_delays_nobody(self) -> None:
        crowd = Crowd()

        def pushy() -> None:
            for _ in range(100):
                crowd.ask("pushy", takes=0.001)

        crowd.run(pushy, pushy, crowd.asks("a", at=0.5))

        assert crowd.times("a")[0] <= 1.01

    def test_a_job_that_always_fails_hardly_slows_the_others(self) -> None:
        def longest(*, failing: bool) -> float:
            crowd = Crowd(seed=3)

            def reads() -> None:
                for _ in range(30):
                    crowd.ask("good")
                    crowd.clock.sleep(10)

            crowd.run(*[reads] * 19, crowd.asks("bad", fails=transient(), times=10**6) if failing else reads)
            return max(crowd.times("good"))

        assert longest(failing=True) <= longest(failing=False) * 1.1


class TestCancel:
    @pytest.mark.parametrize("error", [transient(), transient(retry_after=600), None], ids=["outage", "asked", "row"])
    def test_it_ends_every_wait(self, error: TransientError | None) -> None:
        crowd = Crowd()
        ended: list[float] = []

        def waits(number: int) -> None:
            crowd.clock.sleep(number / 100)
            with pytest.raises(Cancelled), crowd.request("waits", crowd.retry()):
                crowd.clock.sleep(3600)
            ended.append(crowd.clock.elapsed)

        def cancels() -> None:
            crowd.clock.sleep(1.5)
            crowd.clock.cancel()

        def fails() -> None:
            with contextlib.suppress(Cancelled):
                crowd.ask("x", fails=error)

        crowd.run(fails, *(partial(waits, number) for number in range(1, 31)), cancels)

        assert ended == [1.5] * 30


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """How one request ends."""

    takes: float
    error: TransientError | None


ATTEMPTS = st.lists(
    st.builds(
        Attempt,
        takes=st.sampled_from([0.0, 0.01, 0.3, 2.0, 25.0]),
        error=st.sampled_from([None, transient(), transient(), transient(job_specific=True), throttled()])
        | st.floats(0, 90).map(lambda seconds: transient(retry_after=seconds))
        | st.floats(0, 90).map(throttled),
    ),
    min_size=1,
    max_size=5,
)


@dataclass(kw_only=True)
class Sent:
    """How one request ended."""

    began: float
    is_start: bool
    overdue: bool
    while_failing: bool
    ended: float = FOREVER


class TestAnyCrowd:
    @given(
        st.lists(st.tuples(ATTEMPTS, st.floats(1, 100), st.booleans()), min_size=1, max_size=15),
        st.integers(0, 999),
        st.booleans(),
    )
    def test_the_limits_hold_and_every_job_ends(
        self, jobs: list[tuple[list[Attempt], float, bool]], seed: int, all_fail: bool
    ) -> None:
        crowd = Crowd(seed=seed)
        sent: list[Sent] = []
        asked_until = {True: 0.0, False: 0.0}  # by `is_start`, for requests that are not overdue
        ended: list[int] = []

        def job(attempts: list[Attempt], seconds: float, is_start: bool) -> None:
            retry = crowd.retry(left=seconds)
            for one in [*attempts, *[Attempt(takes=0.1, error=transient())] * (20 * all_fail)]:
                with crowd.request("x", retry, is_start=is_start) as request:
                    assert request.is_overdue or crowd.clock.elapsed >= asked_until[False] - 1e-5
                    assert request.is_overdue or not is_start or crowd.clock.elapsed >= asked_until[True] - 1e-5
                    failing = crowd.breaker.failing_since(is_start=False) < FOREVER
                    this = Sent(began=crowd.clock.elapsed, is_start=is_start, overdue=request.is_overdue, while_failing=failing)
                    sent.append(this)
                    crowd.clock.sleep(one.takes)
                    this.ended = crowd.clock.elapsed
                    if one.error is None or one.error.job_specific:
                        asked_until.update(dict.fromkeys(asked_until if is_start and one.error is None else [False], 0.0))
                    elif one.error.retry_after_seconds is not None:
                        concerned = is_start and one.error.is_throttled
                        asked_until[concerned] = max(asked_until[concerned], crowd.clock.elapsed + one.error.retry_after_seconds)
                    if one.error is None:
                        crowd.breaker.succeeded(request)
                        break
                    try:
                        retry = crowd.breaker.failed(request, one.error, retry)
                    except TransientError:
                        break
            ended.append(1)

        crowd.run(*(partial(job, *one) for one in jobs))

        begun = sorted(one.began for one in sent)
        assert len(ended) == len(jobs)
        assert all(later >= first + 1 - 1e-9 for first, later in zip(begun, begun[REQUESTS_PER_SECOND:], strict=False))
        probes = sorted((one for one in sent if one.while_failing and not one.overdue), key=lambda one: one.began)
        assert all(later.began >= first.ended for first, later in itertools.pairwise(probes))


class HastyClock(VirtualClock):
    """A clock for real threads, any of which makes time pass unless the clock is stalled."""

    def __init__(self, *, is_stalled: Callable[[], bool]) -> None:
        super().__init__()
        self._is_stalled = is_stalled
        self._lock = threading.Lock()

    def sleep(self, seconds: float) -> None:
        time.sleep(0)
        with self._lock:
            if not self._is_stalled():
                self.advance(seconds)


class TestThreads:
    def test_one_request_at_a_time_probes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """In virtual time, no thread is interrupted."""
        monkeypatch.setattr("docs_platform_action.http.rate_limit.REQUESTS_PER_SECOND", 10**3)
        under_way = threading.Lock()
        clock = HastyClock(is_stalled=under_way.locked)
        breaker = CircuitBreaker(clock)
        alone: list[bool] = []

        def fail(retry: Retry) -> Retry:
            with breaker.request(is_start=False) as request:
                while (pause := breaker.begin(request, retry)) > 0:
                    clock.sleep(pause)
                alone.append(under_way.acquire(blocking=False))
                time.sleep(0)
                if alone[-1]:
                    under_way.release()
                return breaker.failed(request, transient(), retry)

        def job() -> None:
            retry = Retry(tolerance_seconds=10**9, started_at=clock.monotonic())
            for _ in range(5):
                retry = fail(retry)

        fail(Retry(tolerance_seconds=10**9, started_at=clock.monotonic()))
        threads = [threading.Thread(target=job, daemon=True) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

        assert alone == [True] * 51


class TestVirtualClock:
    def test_time_passes_to_the_next_one_that_wakes_up(self) -> None:
        clock = VirtualClock()
        woken: list[tuple[str, float]] = []

        def sleeps(name: str, *pauses: float) -> None:
            for pause in pauses:
                clock.sleep(pause)
                woken.append((name, clock.elapsed))

        clock.run(partial(sleeps, "a", 3, 3), partial(sleeps, "b", 1, 2, 0, 10**9), partial(sleeps, "c", 3))

        assert woken == [("b", 1), ("a", 3), ("c", 3), ("b", 3), ("b", 3), ("a", 6), ("b", 3 + 10**9)]

    def test_a_thread_that_starts_others_can_wait_for_them(self) -> None:
        clock = VirtualClock()
        seen: list[float] = []

        def starts() -> None:
            helpers = [clock.Thread(target=partial(clock.sleep, seconds)) for seconds in (5, 2)]
            for helper in helpers:
                helper.start()
            for helper in helpers:
                helper.join()
                seen.append(clock.elapsed)

        clock.run(starts)

        assert seen == [5, 5]

    def test_what_one_fails_with_is_seen_when_all_have_ended(self) -> None:
        clock = VirtualClock()

        def fails() -> None:
            raise LookupError

        with pytest.raises(LookupError):
            clock.run(fails, partial(clock.sleep, 7))

        assert clock.elapsed == 7

    def test_a_cancel_ends_every_sleep(self) -> None:
        clock = VirtualClock()
        cancelled: list[float] = []

        def sleeps(seconds: float) -> None:
            for _ in range(2):
                with pytest.raises(Cancelled):
                    clock.sleep(seconds)
            cancelled.append(clock.elapsed)

        def cancels() -> None:
            clock.sleep(1)
            clock.cancel()

        clock.run(partial(sleeps, 60), cancels, partial(sleeps, 30))

        assert cancelled == [1, 1]

    def test_threads_that_wait_for_each_other_are_a_failure(self) -> None:
        clock = VirtualClock()
        threads: list[threading.Thread] = []

        def waits_for(number: int) -> None:
            clock.sleep(1)
            threads[number].join()

        def starts() -> None:
            threads.extend(clock.Thread(target=partial(waits_for, 1 - number), name=f"t{number}") for number in (0, 1))
            for thread in threads:
                thread.start()

        with pytest.raises(StuckError, match=r"(?s)each thread waits for another thread to end.*t0:.*waits_for.*t1:"):
            clock.run(starts)
