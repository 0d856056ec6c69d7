"""The jobs of one run share one API, in an outage too."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from admin_api_simulator import Fault
from docs_platform_action.api.admin_api import DeadlineExceeded
from docs_platform_action.api.calls import Call
from docs_platform_action.errors import ActionError, StartUnconfirmed, Unavailable
from docs_platform_action.http.client import Request
from docs_platform_action.http.connection import AbortableRequest
from docs_platform_action.job import Job
from docs_platform_action.models import API, EXPORT, ExportJob
from tests.faults import BY_NAME
from tests.unit.api.talk import Talk
from tests.virtual_platform import Trouble
from tests.virtual_run import without_watchdog

GOOD = Fault(json={"status": "running"})
LOST = Fault(cut="before_response")
NO_ROOM = Fault(status=429)

Reply = Callable[[str, float], Trouble]
"""What happens to a request of a job, by the job's name and the time."""


def later(seconds: int, status: int = 429) -> Fault:
    return Fault(status=status, headers={"Retry-After": f"{seconds}"})


@pytest.fixture(autouse=True, scope="module")
def _window_of_a_second() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("docs_platform_action.http.rate_limit.WINDOW_SECONDS", 1.0)
        yield


class Crowd(Talk):
    """Jobs that share one API, each in its own thread. A request takes a tenth of a second, or what `seconds_of` says."""

    def __init__(self, reply: Reply, *, tolerance: float = 300.0, others: Sequence[Job] = ()) -> None:
        super().__init__(self._reply_to, tolerance=tolerance, seconds=0.1, job=Job(mode=EXPORT), others=others)
        self._reply = reply
        self.begun: dict[str, list[float]] = {}
        self.failed = 0
        self.jobs: dict[str, Job] = {}
        self.ended: dict[str, tuple[float, Exception | None]] = {}

    def _reply_to(self, request: AbortableRequest) -> Trouble:
        name, at = request.target.removeprefix("/").replace("%20", " "), self.clock.elapsed
        self.begun.setdefault(name, []).append(round(at, 3))
        trouble = self._reply(name, at)
        self.failed += trouble is not GOOD
        return trouble

    def polls(
        self, name: str, *, at: float = 0.0, reads: int = 1, rest: float = 10.0, deadline: float | None = None, **changes: Any
    ) -> Callable[[], None]:
        """Return a job's work: `reads` readings, and `rest` seconds between them. The deadline is in seconds from its start."""
        job = self.jobs[name] = Job(mode=EXPORT, domain=name)

        def read() -> None:
            self.clock.sleep(at)
            until = math.inf if deadline is None else self.clock.monotonic() + deadline
            error: Exception | None = None
            try:
                for number in range(reads):
                    if number > 0:
                        self.clock.sleep(rest)
                    request = Request(method="GET", url=f"/{name.replace(' ', '%20')}")
                    self.api.send(Call(job=job, request=request, read=ExportJob.from_json, deadline=until, **changes))
            except ActionError as caught:
                error = caught
            self.ended[name] = (round(self.clock.elapsed, 3), error)

        return read

    def run(self, *works: Callable[[], None]) -> None:
        with without_watchdog():
            self.clock.run(*works)

    @property
    def all_begun(self) -> list[float]:
        return sorted(at for times in self.begun.values() for at in times)

    def error(self, name: str) -> type[Exception]:
        return type(self.ended[name][1])

    @property
    def is_without_failure(self) -> bool:
        return all(error is None for _, error in self.ended.values())

    def announced(self, name: str) -> tuple[int, int]:
        """Return how many outages and how many recoveries were announced for a job."""
        events = [event[0] for event in self.events.seen if event[1] is self.jobs[name] and event[2] == API]
        return events.count("retrying"), events.count("recovered")


def down(until: float, bad: Trouble = LOST) -> Reply:
    """Make a platform that fails until a time."""
    return lambda _name, at: bad if at < until else GOOD


def all_but(name: str, bad: Trouble) -> Reply:
    """Make a platform that fails for one job only."""
    return lambda asking, _at: bad if asking == name else GOOD


class TestOutage:
    def test_one_that_a_job_detects_applies_to_all(self) -> None:
        crowd = Crowd(down(5))

        crowd.run(crowd.polls("first"), *(crowd.polls(name, at=0.5) for name in ("second", "third", "fourth")))

        # the pauses are 1, 2 and 4 s, and another job sends the request after each
        assert crowd.all_begun == pytest.approx([0, 1.1, 3.2, 7.3, 7.4, 7.4, 7.4], abs=0.3)
        assert [crowd.begun[name][0] for name in ("second", "third")] == [1.1, 3.2]
        assert crowd.is_without_failure
        assert [crowd.announced(name) for name in crowd.jobs] == [(1, 1), (1, 1), (1, 1), (0, 0)]

    def test_the_jobs_share_one_tolerance(self) -> None:
        crowd = Crowd(down(10**6), tolerance=100)

        crowd.run(*(crowd.polls(name, at=at) for name, at in (("first", 0), ("second", 50), ("third", 99))))

        for name in crowd.jobs:
            assert crowd.error(name) is Unavailable
            assert crowd.ended[name][0] == pytest.approx(100.2, abs=0.11)

    def test_jobs_that_start_after_the_tolerance_get_one_attempt_each(self) -> None:
        crowd = Crowd(down(10**6), tolerance=100)

        crowd.run(crowd.polls("first"), *(crowd.polls(f"late {number}", at=400) for number in range(25)))

        for number in range(25):
            name = f"late {number}"
            assert crowd.begun[name] == [400 + number // 10]
            assert (crowd.error(name), crowd.ended[name][0]) == (Unavailable, round(400.1 + number // 10, 3))
            assert crowd.announced(name) == (0, 0)

    def test_if_that_attempt_succeeds_the_outage_is_over_for_all(self) -> None:
        crowd = Crowd(down(200, later(999999999, 503)), tolerance=100)

        crowd.run(crowd.polls("first"), crowd.polls("late", at=400), crowd.polls("later", at=401, reads=3))

        assert crowd.error("first") is Unavailable
        assert (crowd.ended["late"], crowd.ended["later"]) == ((400.1, None), (421.3, None))

    def test_once_another_job_gets_a_response_only_the_jobs_own_failures_count(self) -> None:
        down_until = {"first": 90, "later": 230}
        crowd = Crowd(lambda name, at: LOST if at < down_until[name] else GOOD, tolerance=200)

        crowd.run(crowd.polls("first"), crowd.polls("later", at=40))

        assert crowd.begun["later"][0] == pytest.approx(61, abs=2)
        assert crowd.is_without_failure

    def test_no_job_waits_longer_for_its_turn_because_others_fail_again(self) -> None:
        crowd = Crowd(all_but("bad", later(3600)), tolerance=60)

        crowd.run(crowd.polls("bad"), *(crowd.polls(f"good {number}", at=number, reads=4) for number in range(3)))

        for number in range(3):
            begun = crowd.begun[f"good {number}"]
            assert begun[0] <= number + 60 + 1
            assert all(after - first <= 10 + 60 + 1 for first, after in itertools.pairwise(begun))

    def test_one_error_after_a_long_wait_for_a_turn_is_retried(self) -> None:
        def reply(name: str, _at: float) -> Trouble:
            if name == "bad":
                return later(3600)
            return Fault(status=502) if len(crowd.begun["good"]) == 3 else GOOD

        crowd = Crowd(reply, tolerance=60)

        crowd.run(crowd.polls("good", reads=5, rest=20.0), crowd.polls("bad", at=0.05))

        assert crowd.ended["good"][1] is None

    @pytest.mark.parametrize(
        ("other", "is_over"), [(BY_NAME["certificate not trusted"].trouble, False), (Fault(status=401), True)]
    )
    def test_a_failure_ends_it_only_with_a_response(self, other: Trouble, is_over: bool) -> None:
        crowd = Crowd(lambda name, _at: other if name == "other" else Fault(status=502), tolerance=60)

        crowd.run(crowd.polls("down"), crowd.polls("other", at=30))

        assert crowd.error("down") is Unavailable
        assert (crowd.api.breaker.answered_at > 0) == is_over

    def test_a_start_that_fails_finally_makes_no_other_job_retry_sooner(self) -> None:
        crowd = Crowd(down(10**6, Fault(status=502)), tolerance=60)

        crowd.run(*(crowd.polls(f"{number}", at=number, idempotent=False) for number in range(30)))

        assert all(crowd.error(f"{number}") is StartUnconfirmed for number in range(30))
        assert len([at for at in crowd.all_begun if at < 60]) <= 7

    def test_a_thousand_jobs_load_the_platform_no_more_than_ten(self) -> None:
        crowd = Crowd(lambda _name, at: Fault(status=503) if 30 <= at < 60 else GOOD)
        jobs = [crowd.polls(f"{number}", reads=5) for number in range(1000)]

        def works(first: int) -> None:
            for number in range(first, 1000, 50):
                jobs[number]()

        crowd.run(*(lambda first=first: works(first) for first in range(50)))

        begun = crowd.all_begun
        assert crowd.is_without_failure
        assert all(after >= first + 1 - 1e-9 for first, after in zip(begun, begun[10:], strict=False))
        # ten were in flight when the outage began; then one was sent after each pause of 1, 2, 4, 8 and 16 s
        assert crowd.failed <= 10 + 5


class TestOneJob:
    @pytest.mark.parametrize("status", [404, 409])
    def test_one_that_is_not_ready_is_not_an_outage(self, status: int) -> None:
        crowd = Crowd(all_but("unready", later(7, status)))
        unready = crowd.polls("unready", temporary_until={status: crowd.clock.monotonic() + 20})

        crowd.run(unready, *(crowd.polls(f"good {number}", reads=100, rest=0.4) for number in range(3)))

        assert crowd.begun["unready"][:3] == [0, 7.1, 14.2]
        assert [crowd.ended[f"good {number}"] for number in range(3)] == [(49.6, None)] * 3
        assert crowd.api.breaker.failing_since(is_start=False) == math.inf

    def test_a_deadline_applies_while_others_retry(self) -> None:
        crowd = Crowd(lambda name, _at: BY_NAME["no response (read timeout)"].trouble if name == "first" else Fault(status=502))

        crowd.run(crowd.polls("first"), crowd.polls("timed", at=35, deadline=7.5), crowd.polls("timed too", at=30.5, deadline=1))

        assert (crowd.begun["timed"], crowd.error("timed")) == ([42.5], DeadlineExceeded)
        assert (crowd.begun["timed too"], crowd.error("timed too")) == ([31.1, 31.5], DeadlineExceeded)

    def test_a_deadline_in_the_queue_is_followed_by_one_last_attempt(self) -> None:
        crowd = Crowd(down(0))

        crowd.run(*(crowd.polls(f"other {number:02}") for number in range(60)), crowd.polls("timed", at=0.5, deadline=2.2))

        assert (crowd.begun["timed"], crowd.ended["timed"][1]) == ([3], None)


class TestAFullPlatform:
    """A 429 to a start may only mean that another job of the run must end first."""

    @pytest.mark.parametrize("full", [NO_ROOM, later(7)])
    def test_a_start_is_retried_while_other_jobs_run(self, full: Fault) -> None:
        others = [Job(mode=EXPORT), Job(mode=EXPORT, job_id="se_2")]
        crowd = Crowd(lambda name, at: full if name == "one more" and at < 500 else GOOD, tolerance=60, others=others)

        crowd.run(crowd.polls("at work", reads=40, rest=15.0), crowd.polls("one more", idempotent=False))

        assert crowd.is_without_failure
        assert 500 <= crowd.ended["one more"][0] < 540
        assert crowd.ended["at work"][0] < 39 * 15 + 40  # it does not block the other job like an outage

    def test_failures_of_the_other_jobs_do_not_end_that(self) -> None:
        def no_room_yet(name: str, at: float) -> Trouble:
            bad = NO_ROOM if name == "one more" else Fault(status=503)
            return bad if at < 500 else GOOD

        crowd = Crowd(no_room_yet, tolerance=60, others=[Job(mode=EXPORT, job_id="se_2")])

        crowd.run(crowd.polls("at work"), crowd.polls("one more", idempotent=False))

        assert (crowd.error("at work"), crowd.ended["one more"][1]) == (Unavailable, None)

    def test_once_no_other_job_runs_the_tolerance_applies(self) -> None:
        other = Job(mode=EXPORT, job_id="se_2")
        crowd = Crowd(all_but("one more", NO_ROOM), tolerance=60, others=[other])

        def ends() -> None:
            crowd.clock.sleep(100)
            other.ended_at = 100.0

        crowd.run(crowd.polls("at work", reads=11), crowd.polls("one more", idempotent=False), ends)

        assert crowd.error("one more") is Unavailable
        assert 130 < crowd.ended["one more"][0] < 200
