"""The requests of all jobs share one rate limit, one queue, and one probe at a time in an outage."""

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.errors import ActionError, Advice, Cancelled, Forbidden
from docs_platform_action.http.circuit_breaker import RECHECK_SECONDS, CircuitBreaker
from docs_platform_action.http.rate_limit import REQUESTS_PER_SECOND
from docs_platform_action.http.retry import MAX_PAUSE_SECONDS, TransientError
from tests.unit.fakes import FakeClock
from tests.unit.virtual_time import StuckError, VirtualClock

FOREVER = float("inf")
AFTER_A_RECHECK = RECHECK_SECONDS + 1e-5


@pytest.fixture(autouse=True, scope="module")
def _window_of_a_second() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("docs_platform_action.http.rate_limit.WINDOW_SECONDS", 1.0)
        yield


def transient(*, retry_after: float | None = None, maybe_processed: bool = True, job_specific: bool = False) -> TransientError:
    return TransientError(
        "it is down",
        advice=Advice(cause="", remedy=""),
        maybe_processed=maybe_processed,
        retry_after_seconds=retry_after,
        job_specific=job_specific,
    )


@dataclass
class FakeRetryState:
    """A retry state with this much time left."""

    remaining_seconds: Callable[[], float]


class Crowd:
    """Jobs that share one breaker, each in its own thread, and when each request began."""

    def __init__(self, *, seed: int | None = None) -> None:
        self.clock = VirtualClock(seed=seed)
        self.breaker = CircuitBreaker(self.clock)
        self.begun: list[tuple[str, float]] = []

    def ask(
        self,
        name: str,
        *,
        at: float = 0.0,
        takes: float = 0.1,
        fails: BaseException | None = None,
        left: float = FOREVER,
        pause: float | None = None,
    ) -> None:
        """Send a request at a moment, with this much time left from then on, and pause if it fails."""
        self.clock.sleep(at - self.clock.elapsed)
        until = self.clock.elapsed + left
        try:
            with self.breaker.request(FakeRetryState(lambda: until - self.clock.elapsed)):
                self.begun.append((name, round(self.clock.elapsed, 3)))
                self.clock.sleep(takes)
                if fails is not None:
                    raise fails
        except (TransientError, ActionError, LookupError) as error:
            assert error is fails  # noqa: PT017  # the test says which one comes
            if pause is not None:
                self.breaker.back_off(pause)
                self.clock.sleep(pause)

    def asks(self, name: str, **how: object) -> Callable[[], None]:
        return partial(self.ask, name, **how)  # type: ignore[arg-type]  # as `ask` takes it

    def run(self, *jobs: Callable[[], object]) -> list[tuple[str, float]]:
        """Run all jobs; return who sent a request, and when."""
        self.clock.run(*jobs)
        return self.begun

    def names(self, *jobs: Callable[[], object]) -> list[str]:
        return [name for name, _ in self.run(*jobs)]


def opened_breaker(clock: FakeClock, *, pause: float | None = 1.0) -> CircuitBreaker:
    """Return a breaker for which one request has just failed."""
    breaker = CircuitBreaker(clock)
    fail(breaker, transient())
    if pause is not None:
        breaker.back_off(pause)
    return breaker


def fail(breaker: CircuitBreaker, error: BaseException, left: float = FOREVER) -> None:
    with pytest.raises(type(error)), breaker.request(FakeRetryState(lambda: left)):
        raise error


def succeed(breaker: CircuitBreaker, left: float = FOREVER) -> None:
    with breaker.request(FakeRetryState(lambda: left)):
        pass


class TestOneJob:
    def test_its_requests_do_not_wait(self) -> None:
        clock = FakeClock()
        breaker = CircuitBreaker(clock)

        for _ in range(REQUESTS_PER_SECOND):
            succeed(breaker)

        assert clock.pauses == []
        assert breaker.failing_since == FOREVER

    @given(st.lists(st.floats(0.11, 1), min_size=1, max_size=12), st.floats(0, 3000))
    def test_in_an_outage_it_waits_only_for_its_own_pauses(self, draws: list[float], since: float) -> None:
        clock = FakeClock()
        clock.pass_(since)
        breaker = CircuitBreaker(clock)

        for draw in draws:
            fail(breaker, transient())
            pause = draw * breaker.ceiling_seconds
            breaker.back_off(pause)
            clock.sleep(pause)
        succeed(breaker)

        assert len(clock.pauses) == len(draws)

    def test_after_a_retry_after_it_does_not_wait_again(self) -> None:
        clock = FakeClock()
        breaker = CircuitBreaker(clock)
        fail(breaker, transient(retry_after=40))
        breaker.back_off(0.5)
        clock.sleep(40)

        succeed(breaker)

        assert clock.pauses == [40]

    def test_it_does_not_wait_if_it_is_not_ready(self) -> None:
        clock = FakeClock()
        breaker = CircuitBreaker(clock)

        for _ in range(3):
            fail(breaker, transient(job_specific=True))
            breaker.back_off(20)

        assert clock.pauses == []


class TestQueue:
    def test_requests_keep_their_order_while_all_are_blocked(self) -> None:
        crowd = Crowd()
        first = [
            crowd.asks(f"{number:02}", fails=transient() if number == 0 else None, takes=0.5, pause=1) for number in range(10)
        ]
        others = [crowd.asks(f"{number:02}") for number in range(10, 40)]

        begun = crowd.run(*first, *others, crowd.asks("last", at=1.2))

        assert [name for name, _ in begun] == [f"{number:02}" for number in range(40)] + ["last"]
        assert begun[-1][1] < 5

    def test_a_request_that_leaves_the_queue_blocks_nobody(self) -> None:
        crowd = Crowd()

        def leaves() -> None:
            def left() -> float:
                if crowd.clock.elapsed > 0:
                    raise LookupError
                return 0.5

            crowd.clock.sleep(0)
            with pytest.raises(LookupError), crowd.breaker.request(FakeRetryState(left)):
                pytest.fail("it was let through")

        ten = [crowd.asks(f"{number}") for number in range(10)]
        assert crowd.run(*ten, leaves, crowd.asks("next"))[10:] == [("next", 1.0)]


class TestOutage:
    def test_it_begins_with_the_first_error_and_ends_with_the_first_response(self) -> None:
        clock = FakeClock()
        breaker = CircuitBreaker(clock)

        fail(breaker, transient())
        began = clock.monotonic()
        clock.sleep(2)
        fail(breaker, transient())
        assert breaker.failing_since == began

        clock.sleep(3)
        succeed(breaker)
        assert breaker.failing_since == FOREVER

    def test_the_pause_of_a_failed_request_blocks_all(self) -> None:
        clock = FakeClock()
        breaker = opened_breaker(clock, pause=0.5)

        succeed(breaker)

        assert clock.elapsed == pytest.approx(0.5, abs=1e-5)

    def test_after_the_pause_one_request_probes_and_the_others_wait_for_its_result(self) -> None:
        crowd = Crowd()
        waiting = [crowd.asks(name, at=0.2, takes=4) for name in "abc"]

        begun = crowd.run(crowd.asks("x", fails=transient(), pause=1), *waiting)

        assert begun[:2] == [("x", 0), ("a", 1.1)]
        assert all(5.1 <= at <= 5.1 + AFTER_A_RECHECK for _, at in begun[2:])
        assert [name for name, _ in begun[2:]] == ["b", "c"]

    def test_the_ceiling_doubles_with_each_failed_probe_up_to_a_limit(self) -> None:
        clock = FakeClock()
        breaker = CircuitBreaker(clock)
        ceilings = []

        for _ in range(8):
            fail(breaker, transient())
            ceilings.append(breaker.ceiling_seconds)

        assert ceilings == [1, 2, 4, 8, 16, 30, 30, 30]

    def test_a_thousand_failures_do_not_raise_the_limit(self) -> None:
        clock = FakeClock()
        breaker = CircuitBreaker(clock)

        for _ in range(1200):
            fail(breaker, transient())

        assert breaker.ceiling_seconds == MAX_PAUSE_SECONDS

    def test_failures_of_requests_that_were_under_way_count_as_one(self) -> None:
        crowd = Crowd()

        crowd.run(*(crowd.asks("x", fails=transient(), takes=0.1 + number / 100, pause=0.5) for number in range(10)))

        assert crowd.breaker.ceiling_seconds == 1

    def test_failures_of_overdue_requests_do_not_raise_the_ceiling(self) -> None:
        clock = FakeClock()
        breaker = opened_breaker(clock)

        for _ in range(5):
            fail(breaker, transient(), left=0)

        assert breaker.ceiling_seconds == 1

    def test_all_wait_for_the_ceiling_if_the_failed_request_gives_up(self) -> None:
        clock = FakeClock()
        breaker = opened_breaker(clock, pause=None)

        fail(breaker, transient())
        succeed(breaker)

        # the whole ceiling of each failure, because no pause was drawn
        assert clock.elapsed == pytest.approx(1 + 2, abs=1e-4)

    def test_no_pause_is_longer_than_the_ceiling(self) -> None:
        clock = FakeClock()
        breaker = opened_breaker(clock, pause=30)

        succeed(breaker)

        assert clock.elapsed == pytest.approx(1, abs=1e-4)

    def test_the_longest_of_several_pauses_counts(self) -> None:
        crowd = Crowd()
        failing = [crowd.asks("x", fails=transient(), pause=pause) for pause in (0.25, 0.75, 0.5)]

        assert crowd.run(*failing, crowd.asks("a", at=0.2))[3:] == [("a", 0.85)]

    def test_a_request_that_just_failed_does_not_probe_while_another_can(self) -> None:
        crowd = Crowd()

        def failing() -> None:
            for _ in range(3):
                crowd.ask("x", fails=transient(), takes=0, pause=1)

        assert crowd.names(failing, crowd.asks("a", at=0.5), crowd.asks("b", at=1.5))[:4] == ["x", "a", "x", "b"]

    def test_a_final_error_ends_it(self) -> None:
        breaker = opened_breaker(FakeClock())

        fail(breaker, Forbidden("no"))

        assert breaker.failing_since == FOREVER

    def test_a_response_that_one_job_is_not_ready_ends_it(self) -> None:
        breaker = opened_breaker(FakeClock())

        fail(breaker, transient(job_specific=True))

        assert breaker.failing_since == FOREVER

    def test_its_end_ends_the_pause(self) -> None:
        crowd = Crowd()
        late = crowd.asks("late answer", takes=0.3)

        begun = crowd.run(late, crowd.asks("x", fails=transient(), pause=1), crowd.asks("a", at=0.2))

        assert begun[2][1] <= 0.3 + AFTER_A_RECHECK

    def test_a_pause_that_is_drawn_after_its_end_blocks_nobody(self) -> None:
        clock = FakeClock()
        breaker = opened_breaker(clock)
        succeed(breaker)
        before = clock.elapsed

        breaker.back_off(30)
        succeed(breaker)

        assert clock.elapsed == before

    def test_a_pause_that_was_drawn_in_an_earlier_outage_blocks_nobody(self) -> None:
        clock = FakeClock()
        breaker = CircuitBreaker(clock)
        for _ in range(6):
            fail(breaker, transient())
        breaker.back_off(30)
        before = clock.elapsed
        fail(breaker, transient(job_specific=True), left=0)

        fail(breaker, transient())
        breaker.back_off(0.5)
        succeed(breaker)

        assert clock.elapsed - before == pytest.approx(0.5, abs=1e-4)

    def test_its_end_resets_the_ceiling(self) -> None:
        clock = FakeClock()
        breaker = CircuitBreaker(clock)
        for _ in range(4):
            fail(breaker, transient())

        succeed(breaker)
        fail(breaker, transient())

        assert breaker.ceiling_seconds == 1

    @pytest.mark.parametrize("jobs", [1, 10, 40])
    def test_many_jobs_send_as_few_requests_as_one(self, jobs: int) -> None:
        crowd = Crowd(seed=jobs)

        def job() -> None:
            while crowd.clock.elapsed < 150:
                crowd.ask("x", fails=transient(), pause=15)

        crowd.run(*[job] * jobs)

        queued_when_it_began = min(jobs, REQUESTS_PER_SECOND)
        after_the_outage = [at for _, at in crowd.begun if at >= 150]
        assert len(crowd.begun) - queued_when_it_began - len(after_the_outage) <= 16


class TestLateResponses:
    def test_an_error_after_a_later_request_was_answered_opens_nothing(self) -> None:
        crowd = Crowd()

        begun = crowd.run(crowd.asks("x", fails=transient(), takes=60, pause=1), crowd.asks("a", at=1), crowd.asks("b", at=60.1))

        assert begun[2] == ("b", 60.1)
        assert crowd.breaker.failing_since == FOREVER

    def test_nor_does_one_before_the_response_to_an_earlier_request(self) -> None:
        crowd = Crowd()

        crowd.run(crowd.asks("a", takes=5), crowd.asks("x", at=1, fails=transient(), takes=8), crowd.asks("b", at=2))

        assert crowd.breaker.failing_since == FOREVER

    @pytest.mark.parametrize(
        "error", [transient(maybe_processed=False), transient(retry_after=1), transient(maybe_processed=False, retry_after=1)]
    )
    def test_a_request_that_was_not_processed_opens_it_anyway(self, error: TransientError) -> None:
        crowd = Crowd()

        crowd.run(crowd.asks("x", fails=error, takes=6, pause=1), crowd.asks("a", at=1))

        assert crowd.breaker.failing_since < FOREVER

    def test_a_response_to_an_earlier_request_ends_the_outage(self) -> None:
        crowd = Crowd()

        crowd.run(crowd.asks("a", takes=2), crowd.asks("x", at=1, fails=transient(), pause=0))

        assert crowd.breaker.failing_since == FOREVER


class TestProbe:
    def test_the_wait_for_a_slow_one_is_limited(self) -> None:
        crowd = Crowd()
        hanging = crowd.asks("hanging", at=0.2, takes=300, fails=transient())

        begun = crowd.run(crowd.asks("x", fails=transient(), pause=1), hanging, crowd.asks("a", at=0.3), crowd.asks("b", at=0.4))

        assert begun[1] == ("hanging", 1.1)
        assert [name for name, _ in begun[2:]] == ["a", "b"]
        assert 1.1 + MAX_PAUSE_SECONDS <= begun[2][1] <= 1.1 + MAX_PAUSE_SECONDS + AFTER_A_RECHECK

    def test_the_end_of_a_slow_one_starts_no_second_one(self) -> None:
        crowd = Crowd()
        hanging = crowd.asks("hanging", at=0.2, takes=40, fails=Cancelled("cancelled"))
        waiting = [crowd.asks(name, at=0.3, takes=25, fails=transient()) for name in "ab"]

        begun = dict(crowd.run(crowd.asks("x", fails=transient(), pause=1), hanging, *waiting))

        assert begun["b"] >= begun["a"] + 25

    @pytest.mark.parametrize("fault", [LookupError(), Cancelled("cancelled")], ids=["fault", "cancel"])
    def test_one_without_a_result_is_followed_by_another(self, fault: Exception) -> None:
        crowd = Crowd()

        begun = crowd.run(
            crowd.asks("x", fails=transient(), pause=1),
            crowd.asks("nothing", at=0.2, fails=fault),
            crowd.asks("a", at=0.3, takes=3),
            crowd.asks("b", at=0.4),
        )

        assert [name for name, _ in begun] == ["x", "nothing", "a", "b"]
        assert 1.2 <= begun[2][1] <= 1.2 + AFTER_A_RECHECK
        assert begun[3][1] >= begun[2][1] + 3

    def test_one_that_is_cancelled_in_the_queue_is_followed_by_another(self) -> None:
        clock = FakeClock()
        breaker = opened_breaker(clock)

        def cancel() -> None:
            raise Cancelled("cancelled")

        clock.on_sleep = cancel
        with pytest.raises(Cancelled):
            succeed(breaker)
        clock.on_sleep = lambda: None

        succeed(breaker)

        assert clock.elapsed == pytest.approx(1, abs=1e-4)


class TestOverdueRequests:
    @pytest.mark.parametrize("left", [0, -0.001, -500])
    def test_no_outage_blocks_one(self, left: float) -> None:
        clock = FakeClock()
        breaker = opened_breaker(clock)

        fail(breaker, transient(retry_after=600), left=left)
        succeed(breaker, left=left)

        assert clock.pauses == []

    def test_a_request_is_blocked_only_until_it_is_one(self) -> None:
        crowd = Crowd()
        failing = crowd.asks("x", fails=transient(retry_after=600))

        assert crowd.run(failing, crowd.asks("a", at=1, left=7.125), crowd.asks("b", at=1, left=7.125))[1:] == [
            ("a", 8.125),
            ("b", 8.125),
        ]

    def test_no_probe_blocks_one(self) -> None:
        crowd = Crowd()
        hanging = crowd.asks("hanging", at=0.2, takes=29)

        begun = crowd.run(crowd.asks("x", fails=transient(), pause=1), hanging, crowd.asks("a", at=0.3, left=4))

        assert begun[2] == ("a", 4.3)

    def test_the_rate_limit_holds_and_they_come_before_the_others(self) -> None:
        crowd = Crowd()
        others = [crowd.asks(f"{number:02}") for number in range(25)]
        late = [crowd.asks(f"late {number}", at=0.5, left=0) for number in range(12)]

        begun = crowd.run(*others, *late)

        assert [(name, at) for name, at in begun if name.startswith("late")] == [
            *((f"late {number}", 1) for number in range(10)),
            *((f"late {number}", 2) for number in (10, 11)),
        ]
        assert begun[-1] == ("24", 3)

    def test_one_that_gets_time_again_waits_like_any_other(self) -> None:
        crowd = Crowd()
        ten = [crowd.asks(f"{number}", fails=transient(retry_after=5) if number == 0 else None) for number in range(10)]

        def over_soon() -> None:
            crowd.clock.sleep(0)
            with crowd.breaker.request(FakeRetryState(lambda: 0.0 if crowd.clock.elapsed < 0.5 else FOREVER)):
                crowd.begun.append(("a", crowd.clock.elapsed))

        assert dict(crowd.run(*ten, over_soon))["a"] == pytest.approx(5.1, abs=1e-5)

    def test_a_response_to_one_ends_the_outage_for_all(self) -> None:
        crowd = Crowd()

        begun = crowd.run(
            crowd.asks("x", fails=transient(retry_after=10**9)), crowd.asks("a", at=1, left=59), crowd.asks("b", at=2, left=500)
        )

        assert begun[1] == ("a", 60)
        assert 60.1 <= begun[2][1] <= 60.1 + AFTER_A_RECHECK


class TestRetryAfter:
    def test_all_obey_it_and_then_one_probes(self) -> None:
        crowd = Crowd()
        waiting = [crowd.asks(name, at=0.2, takes=1) for name in "abc"]

        begun = crowd.run(crowd.asks("x", fails=transient(retry_after=40)), *waiting)

        assert begun[1] == ("a", 40.1)
        assert all(at >= 41.1 for _, at in begun[2:])

    def test_the_latest_one_counts(self) -> None:
        crowd = Crowd()
        asking = [crowd.asks("x", fails=transient(retry_after=seconds), takes=seconds / 100) for seconds in (20, 40, 10)]

        assert crowd.run(*asking, crowd.asks("a", at=1))[3:] == [("a", 40.4)]

    def test_a_drawn_pause_does_not_extend_it(self) -> None:
        crowd = Crowd()

        assert crowd.run(crowd.asks("x", fails=transient(retry_after=1), pause=0.5), crowd.asks("a", at=0.2))[1] == ("a", 1.1)

    @pytest.mark.parametrize("others_begin", [0.0, 0.05])
    def test_a_response_to_an_earlier_request_does_not_end_it(self, others_begin: float) -> None:
        crowd = Crowd()

        begun = crowd.run(
            crowd.asks("x", fails=transient(retry_after=40)), crowd.asks("y", at=others_begin, takes=1), crowd.asks("a", at=2)
        )

        assert begun[2] == ("a", 40.1)

    def test_nor_does_the_response_that_a_job_is_not_ready(self) -> None:
        crowd = Crowd()

        begun = crowd.run(
            crowd.asks("x", fails=transient(retry_after=40)),
            crowd.asks("y", takes=1, fails=transient(job_specific=True)),
            crowd.asks("a", at=2),
        )

        assert begun[2] == ("a", 40.1)


class TestFairness:
    def test_all_jobs_get_the_same_share(self) -> None:
        crowd = Crowd(seed=7)

        def job(name: str) -> None:
            while crowd.clock.elapsed < 60:
                crowd.ask(name, takes=0.3)

        crowd.run(*(partial(job, f"{number}") for number in range(40)))

        counts = [sum(1 for name, _ in crowd.begun if name == f"{number}") for number in range(40)]
        assert max(counts) - min(counts) <= 1
        assert len(crowd.begun) >= 60 * REQUESTS_PER_SECOND

    def test_a_frequent_sender_delays_nobody(self) -> None:
        crowd = Crowd()

        def pushy() -> None:
            for _ in range(100):
                crowd.ask("pushy", takes=0.001)

        begun = dict(crowd.run(pushy, pushy, crowd.asks("a", at=0.5)))

        assert begun["a"] <= 1.01

    def test_a_job_that_always_fails_hardly_slows_the_others(self) -> None:
        def longest(*, failing: bool) -> float:
            crowd = Crowd(seed=3)
            draws = itertools.cycle([0.3, 0.9, 0.1, 0.6])

            def reads() -> None:
                for _ in range(30):
                    crowd.ask("good")
                    crowd.clock.sleep(10)

            def fails() -> None:
                ceiling = 1.0
                while crowd.clock.elapsed < 300:
                    crowd.ask("bad", fails=transient(), pause=next(draws) * ceiling)
                    ceiling = min(ceiling * 2, MAX_PAUSE_SECONDS)

            crowd.run(*[reads] * 19, fails if failing else reads)
            return max(at for name, at in crowd.begun if name == "good")

        assert longest(failing=True) <= longest(failing=False) * 1.1


class TestCancel:
    @pytest.mark.parametrize("error", [transient(), transient(retry_after=600), None], ids=["outage", "asked", "row"])
    def test_it_ends_every_wait(self, error: TransientError | None) -> None:
        crowd = Crowd()
        ended: list[float] = []

        def waits(number: int) -> None:
            crowd.clock.sleep(number / 100)
            with pytest.raises(Cancelled), crowd.breaker.request(FakeRetryState(lambda: FOREVER)):
                crowd.clock.sleep(3600)
            ended.append(crowd.clock.elapsed)

        def cancels() -> None:
            crowd.clock.sleep(1.5)
            crowd.clock.cancel()

        crowd.run(crowd.asks("x", fails=error), *(partial(waits, number) for number in range(1, 31)), cancels)

        assert ended == [1.5] * 30


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """How one request ends."""

    takes: float
    fails: Callable[[], TransientError] | None
    pause: float


ATTEMPTS = st.lists(
    st.builds(
        Attempt,
        takes=st.sampled_from([0.0, 0.01, 0.3, 2.0, 25.0]),
        fails=st.sampled_from(
            [None, transient, transient, partial(transient, maybe_processed=False), partial(transient, job_specific=True)]
        )
        | st.floats(0, 90).map(lambda seconds: partial(transient, retry_after=seconds)),
        pause=st.sampled_from([0.0, 0.4, 5.0]),
    ),
    min_size=1,
    max_size=5,
)


@dataclass(kw_only=True)
class Sent:
    """How one request ended."""

    began: float
    overdue: bool
    while_open: bool
    ended: float = FOREVER


class TestAnyCrowd:
    @given(st.lists(st.tuples(ATTEMPTS, st.floats(1, 100)), min_size=1, max_size=15), st.integers(0, 999), st.booleans())
    def test_the_limits_hold_and_every_job_ends(self, jobs: list[tuple[list[Attempt], float]], seed: int, all_fail: bool) -> None:
        clock = VirtualClock(seed=seed)
        breaker = CircuitBreaker(clock)
        sent: list[Sent] = []
        blocked_until = [0.0]
        ended: list[int] = []

        def job(attempts: list[Attempt], seconds: float) -> None:
            for one in attempts:
                with contextlib.suppress(TransientError), breaker.request(FakeRetryState(lambda: seconds - clock.elapsed)):
                    self._exchange(clock, breaker, sent, blocked_until, one, overdue=clock.elapsed >= seconds, all_fail=all_fail)
                clock.sleep(one.pause)
            ended.append(1)

        clock.run(*(partial(job, attempts, seconds) for attempts, seconds in jobs))

        begun = sorted(one.began for one in sent)
        assert len(ended) == len(jobs)
        assert all(later >= first + 1 - 1e-9 for first, later in zip(begun, begun[REQUESTS_PER_SECOND:], strict=False))
        probes = sorted((one for one in sent if one.while_open and not one.overdue), key=lambda one: one.began)
        assert all(later.began >= first.ended for first, later in itertools.pairwise(probes))

    def _exchange(
        self,
        clock: VirtualClock,
        breaker: CircuitBreaker,
        sent: list[Sent],
        blocked_until: list[float],
        one: Attempt,
        *,
        overdue: bool,
        all_fail: bool,
    ) -> None:
        assert overdue or clock.elapsed >= blocked_until[0] - 1e-5
        this = Sent(began=clock.elapsed, overdue=overdue, while_open=breaker.failing_since < FOREVER)
        sent.append(this)
        blocked_before = blocked_until[0]
        clock.sleep(one.takes)
        this.ended = clock.elapsed
        error = one.fails() if one.fails is not None else transient() if all_fail else None
        if error is not None and error.retry_after_seconds is not None:
            blocked_until[0] = max(blocked_until[0], clock.elapsed + error.retry_after_seconds)
        elif (error is None or error.job_specific) and blocked_before == blocked_until[0] and overdue:
            blocked_until[0] = 0.0  # it was sent after the API had asked for a pause, and succeeded
        if error is not None:
            raise error


class HastyClock(FakeClock):
    """A clock for real threads, any of which makes time pass unless the clock is stalled."""

    def __init__(self, *, is_stalled: Callable[[], bool]) -> None:
        super().__init__()
        self._is_stalled = is_stalled
        self._lock = threading.Lock()

    def sleep(self, seconds: float) -> None:
        time.sleep(0)
        with self._lock:
            if not self._is_stalled():
                self.pass_(seconds)


class TestThreads:
    def test_one_request_at_a_time_probes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """In virtual time, no thread is interrupted."""
        monkeypatch.setattr("docs_platform_action.http.rate_limit.REQUESTS_PER_SECOND", 10**3)
        under_way = threading.Lock()
        breaker = CircuitBreaker(HastyClock(is_stalled=under_way.locked))
        fail(breaker, transient())
        alone: list[bool] = []

        def job() -> None:
            for _ in range(5):
                with contextlib.suppress(TransientError), breaker.request(FakeRetryState(lambda: FOREVER)):
                    alone.append(under_way.acquire(blocking=False))
                    time.sleep(0)
                    if alone[-1]:
                        under_way.release()
                    raise transient()

        threads = [threading.Thread(target=job, daemon=True) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

        assert alone == [True] * 50


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

    def test_chance_draws_among_those_of_one_moment_and_the_same_ones_each_time(self) -> None:
        def order(seed: int) -> list[int]:
            clock = VirtualClock(seed=seed)
            woken: list[int] = []

            def sleeps(number: int) -> None:
                clock.sleep(1)
                woken.append(number)

            clock.run(*(partial(sleeps, number) for number in range(9)))
            return woken

        assert order(1) == order(1) != order(2)
        assert sorted(order(1)) == list(range(9))

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

    def test_so_is_one_that_waits_for_something_else(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tests.unit.virtual_time.STUCK_SECONDS", 0.01)
        clock = VirtualClock()
        waiting = threading.Event()

        class Never(threading.Event):
            def wait(self, timeout: float | None = None) -> bool:
                waiting.set()
                return super().wait(timeout)

        class Patient(threading.Event):
            """Has the clock look at its threads only when one waits."""

            def wait(self, timeout: float | None = None) -> bool:
                assert waiting.wait(60)
                return super().wait(timeout)

        never = Never()
        monkeypatch.setattr(clock, "_all_ended", Patient())

        def waits() -> None:
            clock.sleep(2)
            never.wait(60)

        with pytest.raises(StuckError, match=r"(?s)a thread waits without sleeping on the clock.*after 2.*never.wait"):
            clock.run(waits, partial(clock.sleep, 3))

        never.set()

    def test_so_is_one_that_wakes_up_over_and_over(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tests.unit.virtual_time.MAX_PAUSES", 50)
        clock = VirtualClock()

        def spins() -> None:
            while True:
                clock.sleep(1e-20)

        with pytest.raises(StuckError, match="more than 50 pauses"):
            clock.run(spins, partial(clock.sleep, 3))

    def test_a_thread_that_it_does_not_know_cannot_sleep(self) -> None:
        with pytest.raises(StuckError, match="'MainThread'"):
            VirtualClock().sleep(1)

    def test_nothing_to_do_takes_no_time(self) -> None:
        VirtualClock().run()
