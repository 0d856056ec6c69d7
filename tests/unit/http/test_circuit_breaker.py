"""Many jobs ask the API as one polite client: so often and no more, one try for all in an outage, in their order."""

import contextlib
import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.errors import ActionError, Advice, Cancelled, Forbidden
from docs_platform_action.http.circuit_breaker import RECHECK_SECONDS, CircuitBreaker
from docs_platform_action.http.rate_limit import REQUESTS_PER_SECOND, RateLimiter
from docs_platform_action.http.retry import MAX_PAUSE_SECONDS, TransientError
from tests.unit.fakes import FakeClock
from tests.unit.virtual_time import StuckError, VirtualClock

FOREVER = float("inf")
AFTER_A_LOOK = RECHECK_SECONDS + 1e-5


def bad(*, retry_after: float | None = None, maybe_processed: bool = True, job_specific: bool = False) -> TransientError:
    return TransientError(
        "it is down",
        advice=Advice(cause="", remedy=""),
        maybe_processed=maybe_processed,
        retry_after_seconds=retry_after,
        job_specific=job_specific,
    )


@dataclass
class Left:
    """Stands for a retry state that has so much time left."""

    remaining_seconds: Callable[[], float]


class Crowd:
    """Jobs that share one breaker, each in a thread of its own, and what they did when."""

    def __init__(self, *, seed: int | None = None) -> None:
        self.clock = VirtualClock(seed=seed)
        self.breaker = CircuitBreaker(self.clock, RateLimiter(spread_seconds=0.0))
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
        """Send one request at a moment, with so much time left from then on, and make a pause when it fails."""
        self.clock.sleep(at - self.clock.elapsed)
        until = self.clock.elapsed + left
        try:
            with self.breaker.request(Left(lambda: until - self.clock.elapsed)):
                self.begun.append((name, round(self.clock.elapsed, 3)))
                self.clock.sleep(takes)
                if fails is not None:
                    raise fails
        except (TransientError, ActionError, LookupError) as error:
            assert error is fails  # noqa: PT017  # a test tells which one comes
            if pause is not None:
                self.breaker.back_off(pause)
                self.clock.sleep(pause)

    def asks(self, name: str, **how: object) -> Callable[[], None]:
        return partial(self.ask, name, **how)  # type: ignore[arg-type]  # as `ask` takes it

    def run(self, *jobs: Callable[[], object]) -> list[tuple[str, float]]:
        """Have all jobs done; tell who sent a request, and when."""
        self.clock.run(*jobs)
        return self.begun

    def names(self, *jobs: Callable[[], object]) -> list[str]:
        return [name for name, _ in self.run(*jobs)]


def troubled(clock: FakeClock, *, pause: float | None = 1.0) -> CircuitBreaker:
    """Make a breaker for which one request has just failed."""
    breaker = CircuitBreaker(clock, RateLimiter())
    fail(breaker, bad())
    if pause is not None:
        breaker.back_off(pause)
    return breaker


def fail(breaker: CircuitBreaker, error: BaseException, left: float = FOREVER) -> None:
    with pytest.raises(type(error)), breaker.request(Left(lambda: left)):
        raise error


def succeed(breaker: CircuitBreaker, left: float = FOREVER) -> None:
    with breaker.request(Left(lambda: left)):
        pass


class TestOneJob:
    def test_its_requests_wait_for_nothing(self) -> None:
        clock = FakeClock()
        breaker = CircuitBreaker(clock, RateLimiter())

        for _ in range(REQUESTS_PER_SECOND):
            succeed(breaker)

        assert clock.pauses == []
        assert breaker.failing_since is None

    @given(st.lists(st.floats(0.11, 1), min_size=1, max_size=12), st.floats(0, 3000))
    def test_in_an_outage_it_makes_its_own_pauses_and_no_others(self, draws: list[float], since: float) -> None:
        clock = FakeClock()
        clock.pass_(since)
        breaker = CircuitBreaker(clock, RateLimiter())

        for draw in draws:
            fail(breaker, bad())
            pause = draw * breaker.ceiling_seconds
            breaker.back_off(pause)
            clock.sleep(pause)
        succeed(breaker)

        assert len(clock.pauses) == len(draws)

    def test_nor_after_a_pause_that_the_api_asked_for(self) -> None:
        clock = FakeClock()
        breaker = CircuitBreaker(clock, RateLimiter())
        fail(breaker, bad(retry_after=40))
        breaker.back_off(0.5)
        clock.sleep(40)

        succeed(breaker)

        assert clock.pauses == [40]

    def test_nor_while_what_it_wants_is_not_ready(self) -> None:
        clock = FakeClock()
        breaker = CircuitBreaker(clock, RateLimiter())

        for _ in range(3):
            fail(breaker, bad(job_specific=True))
            breaker.back_off(20)

        assert clock.pauses == []


class TestQueue:
    def test_a_place_in_the_row_is_kept_while_all_are_held_up(self) -> None:
        crowd = Crowd()
        first = [crowd.asks(f"{number:02}", fails=bad() if number == 0 else None, takes=0.5, pause=1) for number in range(10)]
        others = [crowd.asks(f"{number:02}") for number in range(10, 40)]

        begun = crowd.run(*first, *others, crowd.asks("last", at=1.2))

        assert [name for name, _ in begun] == [f"{number:02}" for number in range(40)] + ["last"]
        assert begun[-1][1] < 5

    def test_who_gives_up_its_place_holds_up_nobody(self) -> None:
        crowd = Crowd()

        def leaves() -> None:
            def left() -> float:
                if crowd.clock.elapsed > 0:
                    raise LookupError
                return 0.5

            crowd.clock.sleep(0)
            with pytest.raises(LookupError), crowd.breaker.request(Left(left)):
                pytest.fail("it was let through")

        ten = [crowd.asks(f"{number}") for number in range(10)]
        assert crowd.run(*ten, leaves, crowd.asks("next"))[10:] == [("next", 1.0)]


class TestOutage:
    def test_it_begins_with_the_first_error_and_ends_with_the_first_answer(self) -> None:
        clock = FakeClock()
        breaker = CircuitBreaker(clock, RateLimiter())

        fail(breaker, bad())
        began = clock.monotonic()
        clock.sleep(2)
        fail(breaker, bad())
        assert breaker.failing_since == began

        clock.sleep(3)
        succeed(breaker)
        assert breaker.failing_since is None

    def test_the_pause_of_one_that_failed_is_one_for_all(self) -> None:
        clock = FakeClock()
        breaker = troubled(clock, pause=0.5)

        succeed(breaker)

        assert clock.elapsed == pytest.approx(0.5, abs=1e-5)

    def test_then_one_of_them_tries_and_the_others_wait_for_what_becomes_of_it(self) -> None:
        crowd = Crowd()
        waiting = [crowd.asks(name, at=0.2, takes=4) for name in "abc"]

        begun = crowd.run(crowd.asks("x", fails=bad(), pause=1), *waiting)

        assert begun[:2] == [("x", 0), ("a", 1.1)]
        assert all(5.1 <= at <= 5.1 + AFTER_A_LOOK for _, at in begun[2:])
        assert [name for name, _ in begun[2:]] == ["b", "c"]

    def test_the_pauses_double_with_each_try_up_to_a_bound(self) -> None:
        clock = FakeClock()
        breaker = CircuitBreaker(clock, RateLimiter())
        ceilings = []

        for _ in range(8):
            fail(breaker, bad())
            ceilings.append(breaker.ceiling_seconds)

        assert ceilings == [1, 2, 4, 8, 16, 30, 30, 30]

    def test_a_thousand_failures_are_no_more(self) -> None:
        clock = FakeClock()
        breaker = CircuitBreaker(clock, RateLimiter())

        for _ in range(1200):
            fail(breaker, bad())

        assert breaker.ceiling_seconds == MAX_PAUSE_SECONDS

    def test_those_that_were_under_way_when_it_began_count_as_one(self) -> None:
        crowd = Crowd()

        crowd.run(*(crowd.asks("x", fails=bad(), takes=0.1 + number / 100, pause=0.5) for number in range(10)))

        assert crowd.breaker.ceiling_seconds == 1

    def test_so_do_those_whose_time_is_up(self) -> None:
        clock = FakeClock()
        breaker = troubled(clock)

        for _ in range(5):
            fail(breaker, bad(), left=0)

        assert breaker.ceiling_seconds == 1

    def test_a_pause_is_made_also_when_the_one_that_failed_gives_up(self) -> None:
        clock = FakeClock()
        breaker = troubled(clock, pause=None)

        fail(breaker, bad())
        succeed(breaker)

        # what it is worth, as nothing was drawn; others begin before a pause can be drawn otherwise
        assert clock.elapsed == pytest.approx(1 + 2, abs=1e-4)

    def test_no_job_holds_the_others_up_for_longer_than_the_news_of_all_are_worth(self) -> None:
        clock = FakeClock()
        breaker = troubled(clock, pause=30)

        succeed(breaker)

        assert clock.elapsed == pytest.approx(1, abs=1e-4)

    def test_the_longest_of_several_pauses_counts(self) -> None:
        crowd = Crowd()
        failing = [crowd.asks("x", fails=bad(), pause=pause) for pause in (0.25, 0.75, 0.5)]

        assert crowd.run(*failing, crowd.asks("a", at=0.2))[3:] == [("a", 0.85)]

    def test_one_that_just_failed_does_not_try_for_all_while_another_can(self) -> None:
        crowd = Crowd()

        def failing() -> None:
            for _ in range(3):
                crowd.ask("x", fails=bad(), takes=0, pause=1)

        assert crowd.names(failing, crowd.asks("a", at=0.5), crowd.asks("b", at=1.5))[:4] == ["x", "a", "x", "b"]

    def test_a_refusal_ends_it(self) -> None:
        breaker = troubled(FakeClock())

        fail(breaker, Forbidden("no"))

        assert breaker.failing_since is None

    def test_so_does_the_answer_that_one_job_is_not_ready(self) -> None:
        breaker = troubled(FakeClock())

        fail(breaker, bad(job_specific=True))

        assert breaker.failing_since is None

    def test_when_it_is_over_no_pause_is_left(self) -> None:
        crowd = Crowd()
        late = crowd.asks("late answer", takes=0.3)

        begun = crowd.run(late, crowd.asks("x", fails=bad(), pause=1), crowd.asks("a", at=0.2))

        assert begun[2][1] <= 0.3 + AFTER_A_LOOK

    def test_a_pause_that_is_drawn_when_it_is_over_holds_up_nobody(self) -> None:
        clock = FakeClock()
        breaker = troubled(clock)
        succeed(breaker)
        before = clock.elapsed

        breaker.back_off(30)
        succeed(breaker)

        assert clock.elapsed == before

    def test_nor_does_one_that_was_drawn_in_an_outage_before(self) -> None:
        clock = FakeClock()
        breaker = CircuitBreaker(clock, RateLimiter())
        for _ in range(6):
            fail(breaker, bad())
        breaker.back_off(30)
        before = clock.elapsed
        fail(breaker, bad(job_specific=True), left=0)

        fail(breaker, bad())
        breaker.back_off(0.5)
        succeed(breaker)

        assert clock.elapsed - before == pytest.approx(0.5, abs=1e-4)

    def test_when_it_is_over_what_was_seen_in_it_is_worth_nothing_more(self) -> None:
        clock = FakeClock()
        breaker = CircuitBreaker(clock, RateLimiter())
        for _ in range(4):
            fail(breaker, bad())

        succeed(breaker)
        fail(breaker, bad())

        assert breaker.ceiling_seconds == 1

    @pytest.mark.parametrize("jobs", [1, 10, 40])
    def test_it_costs_the_api_as_much_of_many_jobs_as_of_one(self, jobs: int) -> None:
        crowd = Crowd(seed=jobs)

        def job() -> None:
            while crowd.clock.elapsed < 150:
                crowd.ask("x", fails=bad(), pause=15)

        crowd.run(*[job] * jobs)

        in_the_row_when_it_began = min(jobs, REQUESTS_PER_SECOND)
        after_it = [at for _, at in crowd.begun if at >= 150]
        assert len(crowd.begun) - in_the_row_when_it_began - len(after_it) <= 16


class TestOldNews:
    def test_an_error_after_a_later_request_was_answered_is_trouble_of_one(self) -> None:
        crowd = Crowd()

        begun = crowd.run(crowd.asks("x", fails=bad(), takes=60, pause=1), crowd.asks("a", at=1), crowd.asks("b", at=60.1))

        assert begun[2] == ("b", 60.1)
        assert crowd.breaker.failing_since is None

    def test_also_when_the_answer_to_an_earlier_one_came_last(self) -> None:
        crowd = Crowd()

        crowd.run(crowd.asks("a", takes=5), crowd.asks("x", at=1, fails=bad(), takes=8), crowd.asks("b", at=2))

        assert crowd.breaker.failing_since is None

    @pytest.mark.parametrize(
        "turned_away", [bad(maybe_processed=False), bad(retry_after=1), bad(maybe_processed=False, retry_after=1)]
    )
    def test_but_being_turned_away_is_news_for_all(self, turned_away: TransientError) -> None:
        crowd = Crowd()

        crowd.run(crowd.asks("x", fails=turned_away, takes=6, pause=1), crowd.asks("a", at=1))

        assert crowd.breaker.failing_since is not None

    def test_an_answer_to_what_was_sent_before_it_began_ends_it_all_the_same(self) -> None:
        crowd = Crowd()

        crowd.run(crowd.asks("a", takes=2), crowd.asks("x", at=1, fails=bad(), pause=0))

        assert crowd.breaker.failing_since is None


class TestTryForAll:
    def test_one_that_takes_long_is_not_waited_for_for_ever(self) -> None:
        crowd = Crowd()
        hanging = crowd.asks("hanging", at=0.2, takes=300, fails=bad())

        begun = crowd.run(crowd.asks("x", fails=bad(), pause=1), hanging, crowd.asks("a", at=0.3), crowd.asks("b", at=0.4))

        assert begun[1] == ("hanging", 1.1)
        assert [name for name, _ in begun[2:]] == ["a", "b"]
        assert 1.1 + MAX_PAUSE_SECONDS <= begun[2][1] <= 1.1 + MAX_PAUSE_SECONDS + AFTER_A_LOOK

    def test_its_end_then_lets_nobody_try_beside_the_next_one(self) -> None:
        crowd = Crowd()
        hanging = crowd.asks("hanging", at=0.2, takes=40, fails=Cancelled("cancelled"))
        waiting = [crowd.asks(name, at=0.3, takes=25, fails=bad()) for name in "ab"]

        begun = dict(crowd.run(crowd.asks("x", fails=bad(), pause=1), hanging, *waiting))

        assert begun["b"] >= begun["a"] + 25

    @pytest.mark.parametrize("fault", [LookupError(), Cancelled("cancelled")], ids=["fault", "cancel"])
    def test_one_that_comes_to_nothing_is_followed_by_another_and_is_no_answer(self, fault: Exception) -> None:
        crowd = Crowd()

        begun = crowd.run(
            crowd.asks("x", fails=bad(), pause=1),
            crowd.asks("nothing", at=0.2, fails=fault),
            crowd.asks("a", at=0.3, takes=3),
            crowd.asks("b", at=0.4),
        )

        assert [name for name, _ in begun] == ["x", "nothing", "a", "b"]
        assert 1.2 <= begun[2][1] <= 1.2 + AFTER_A_LOOK
        assert begun[3][1] >= begun[2][1] + 3

    def test_one_that_is_cancelled_in_the_row_is_followed_by_another(self) -> None:
        clock = FakeClock()
        breaker = troubled(clock)

        def cancel() -> None:
            raise Cancelled("cancelled")

        clock.on_sleep = cancel
        with pytest.raises(Cancelled):
            succeed(breaker)
        clock.on_sleep = lambda: None

        succeed(breaker)

        assert clock.elapsed == pytest.approx(1, abs=1e-4)


class TestTimeIsUp:
    @pytest.mark.parametrize("left", [0, -0.001, -500])
    def test_one_is_held_up_by_no_outage(self, left: float) -> None:
        clock = FakeClock()
        breaker = troubled(clock)

        fail(breaker, bad(retry_after=600), left=left)
        succeed(breaker, left=left)

        assert clock.pauses == []

    def test_nor_beyond_the_moment_in_which_it_is(self) -> None:
        crowd = Crowd()
        failing = crowd.asks("x", fails=bad(retry_after=600))

        assert crowd.run(failing, crowd.asks("a", at=1, left=7.125), crowd.asks("b", at=1, left=7.125))[1:] == [
            ("a", 8.125),
            ("b", 8.125),
        ]

    def test_nor_by_one_that_tries_for_all(self) -> None:
        crowd = Crowd()
        hanging = crowd.asks("hanging", at=0.2, takes=29)

        begun = crowd.run(crowd.asks("x", fails=bad(), pause=1), hanging, crowd.asks("a", at=0.3, left=4))

        assert begun[2] == ("a", 4.3)

    def test_but_the_bound_holds_and_they_come_before_the_others(self) -> None:
        crowd = Crowd()
        others = [crowd.asks(f"{number:02}") for number in range(25)]
        late = [crowd.asks(f"late {number}", at=0.5, left=0) for number in range(12)]

        begun = crowd.run(*others, *late)

        assert [(name, at) for name, at in begun if name.startswith("late")] == [
            *((f"late {number}", 1) for number in range(10)),
            *((f"late {number}", 2) for number in (10, 11)),
        ]
        assert begun[-1] == ("24", 3)

    def test_one_whose_time_comes_back_with_the_end_of_the_outage_is_like_any_other(self) -> None:
        crowd = Crowd()
        ten = [crowd.asks(f"{number}", fails=bad(retry_after=5) if number == 0 else None) for number in range(10)]

        def over_soon() -> None:
            crowd.clock.sleep(0)
            with crowd.breaker.request(Left(lambda: 0.0 if crowd.clock.elapsed < 0.5 else FOREVER)):
                crowd.begun.append(("a", crowd.clock.elapsed))

        assert dict(crowd.run(*ten, over_soon))["a"] == pytest.approx(5.1, abs=1e-5)

    def test_an_answer_to_it_ends_the_outage_for_all(self) -> None:
        crowd = Crowd()

        begun = crowd.run(
            crowd.asks("x", fails=bad(retry_after=10**9)), crowd.asks("a", at=1, left=59), crowd.asks("b", at=2, left=500)
        )

        assert begun[1] == ("a", 60)
        assert 60.1 <= begun[2][1] <= 60.1 + AFTER_A_LOOK


class TestRetryAfter:
    def test_it_is_obeyed_by_all_and_then_tried_once(self) -> None:
        crowd = Crowd()
        waiting = [crowd.asks(name, at=0.2, takes=1) for name in "abc"]

        begun = crowd.run(crowd.asks("x", fails=bad(retry_after=40)), *waiting)

        assert begun[1] == ("a", 40.1)
        assert all(at >= 41.1 for _, at in begun[2:])

    def test_the_latest_moment_that_was_asked_for_counts(self) -> None:
        crowd = Crowd()
        asking = [crowd.asks("x", fails=bad(retry_after=seconds), takes=seconds / 100) for seconds in (20, 40, 10)]

        assert crowd.run(*asking, crowd.asks("a", at=1))[3:] == [("a", 40.4)]

    def test_it_is_not_lengthened_by_a_pause_that_was_drawn(self) -> None:
        crowd = Crowd()

        assert crowd.run(crowd.asks("x", fails=bad(retry_after=1), pause=0.5), crowd.asks("a", at=0.2))[1] == ("a", 1.1)

    @pytest.mark.parametrize("others_begin", [0.0, 0.05])
    def test_an_answer_to_what_was_sent_before_does_not_end_it(self, others_begin: float) -> None:
        crowd = Crowd()

        begun = crowd.run(
            crowd.asks("x", fails=bad(retry_after=40)), crowd.asks("y", at=others_begin, takes=1), crowd.asks("a", at=2)
        )

        assert begun[2] == ("a", 40.1)

    def test_nor_does_the_answer_that_a_job_is_not_ready(self) -> None:
        crowd = Crowd()

        begun = crowd.run(
            crowd.asks("x", fails=bad(retry_after=40)),
            crowd.asks("y", takes=1, fails=bad(job_specific=True)),
            crowd.asks("a", at=2),
        )

        assert begun[2] == ("a", 40.1)


class TestFairness:
    def test_each_gets_as_much_of_a_busy_api(self) -> None:
        crowd = Crowd(seed=7)

        def job(name: str) -> None:
            while crowd.clock.elapsed < 60:
                crowd.ask(name, takes=0.3)

        crowd.run(*(partial(job, f"{number}") for number in range(40)))

        counts = [sum(1 for name, _ in crowd.begun if name == f"{number}") for number in range(40)]
        assert max(counts) - min(counts) <= 1
        assert len(crowd.begun) >= 60 * REQUESTS_PER_SECOND

    def test_one_that_comes_often_pushes_nobody_back(self) -> None:
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
                    crowd.ask("bad", fails=bad(), pause=next(draws) * ceiling)
                    ceiling = min(ceiling * 2, MAX_PAUSE_SECONDS)

            crowd.run(*[reads] * 19, fails if failing else reads)
            return max(at for name, at in crowd.begun if name == "good")

        assert longest(failing=True) <= longest(failing=False) * 1.1


class TestCancel:
    @pytest.mark.parametrize("error", [bad(), bad(retry_after=600), None], ids=["outage", "asked", "row"])
    def test_it_ends_every_wait(self, error: TransientError | None) -> None:
        crowd = Crowd()
        ended: list[float] = []

        def waits(number: int) -> None:
            crowd.clock.sleep(number / 100)
            with pytest.raises(Cancelled), crowd.breaker.request(Left(lambda: FOREVER)):
                crowd.clock.sleep(3600)
            ended.append(crowd.clock.elapsed)

        def cancels() -> None:
            crowd.clock.sleep(1.5)
            crowd.clock.cancel()

        crowd.run(crowd.asks("x", fails=error), *(partial(waits, number) for number in range(1, 31)), cancels)

        assert ended == [1.5] * 30


@dataclass(frozen=True, kw_only=True)
class Try:
    """How one request goes."""

    takes: float
    fails: Callable[[], TransientError] | None
    rests: float


TRIES = st.lists(
    st.builds(
        Try,
        takes=st.sampled_from([0.0, 0.01, 0.3, 2.0, 25.0]),
        fails=st.sampled_from([None, bad, bad, partial(bad, maybe_processed=False), partial(bad, job_specific=True)])
        | st.floats(0, 90).map(lambda seconds: partial(bad, retry_after=seconds)),
        rests=st.sampled_from([0.0, 0.4, 5.0]),
    ),
    min_size=1,
    max_size=5,
)


@dataclass(kw_only=True)
class Sent:
    """What became of one request."""

    began: float
    overdue: bool
    in_trouble: bool
    ended: float = FOREVER


class TestAnyCrowd:
    @given(st.lists(st.tuples(TRIES, st.floats(1, 100)), min_size=1, max_size=15), st.integers(0, 999), st.booleans())
    def test_the_api_is_never_pressed_and_everyone_ends(
        self, jobs: list[tuple[list[Try], float]], seed: int, all_fail: bool
    ) -> None:
        clock = VirtualClock(seed=seed)
        breaker = CircuitBreaker(clock, RateLimiter())
        sent: list[Sent] = []
        asked_until = [0.0]
        ended: list[int] = []

        def job(tries: list[Try], seconds: float) -> None:
            for one in tries:
                with contextlib.suppress(TransientError), breaker.request(Left(lambda: seconds - clock.elapsed)):
                    self._exchange(clock, breaker, sent, asked_until, one, overdue=clock.elapsed >= seconds, bad_news=all_fail)
                clock.sleep(one.rests)
            ended.append(1)

        clock.run(*(partial(job, tries, seconds) for tries, seconds in jobs))

        begun = sorted(one.began for one in sent)
        assert len(ended) == len(jobs)
        assert all(later >= first + 1 - 1e-9 for first, later in zip(begun, begun[REQUESTS_PER_SECOND:], strict=False))
        tries_for_all = sorted((one for one in sent if one.in_trouble and not one.overdue), key=lambda one: one.began)
        assert all(later.began >= first.ended for first, later in itertools.pairwise(tries_for_all))

    def _exchange(
        self,
        clock: VirtualClock,
        breaker: CircuitBreaker,
        sent: list[Sent],
        asked_until: list[float],
        one: Try,
        *,
        overdue: bool,
        bad_news: bool,
    ) -> None:
        assert overdue or clock.elapsed >= asked_until[0] - 1e-5
        this = Sent(began=clock.elapsed, overdue=overdue, in_trouble=breaker.failing_since is not None)
        sent.append(this)
        asked_before = asked_until[0]
        clock.sleep(one.takes)
        this.ended = clock.elapsed
        error = one.fails() if one.fails is not None else bad() if bad_news else None
        if error is not None and error.retry_after_seconds is not None:
            asked_until[0] = max(asked_until[0], clock.elapsed + error.retry_after_seconds)
        elif (error is None or error.job_specific) and asked_before == asked_until[0] and overdue:
            asked_until[0] = 0.0  # it was sent after the API had asked for a pause, and answered
        if error is not None:
            raise error


class HastyClock(FakeClock):
    """Of the machine's own threads, any of which makes time pass, unless it stands still."""

    def __init__(self, *, is_stalled: Callable[[], bool]) -> None:
        super().__init__()
        self._stands_still = is_stalled
        self._lock = threading.Lock()

    def sleep(self, seconds: float) -> None:
        time.sleep(0)
        with self._lock:
            if not self._stands_still():
                self.pass_(seconds)


class TestThreads:
    def test_one_at_a_time_tries_for_all(self) -> None:
        """What virtual time does not show, as there no thread is interrupted."""
        under_way = threading.Lock()
        breaker = CircuitBreaker(HastyClock(is_stalled=under_way.locked), RateLimiter(requests_a_second=10**3))
        fail(breaker, bad())
        alone: list[bool] = []

        def job() -> None:
            for _ in range(5):
                with contextlib.suppress(TransientError), breaker.request(Left(lambda: FOREVER)):
                    alone.append(under_way.acquire(blocking=False))
                    time.sleep(0)
                    if alone[-1]:
                        under_way.release()
                    raise bad()

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

        with pytest.raises(StuckError, match=r"(?s)each thread waits for another one's end.*t0:.*waits_for.*t1:"):
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

        with pytest.raises(StuckError, match=r"(?s)what is no pause of the clock's.*after 2.*never.wait"):
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
