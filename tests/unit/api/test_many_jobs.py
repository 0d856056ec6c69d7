"""The jobs of one run share one pace, the pauses that the platform asks for on starts, and its room for jobs."""

import itertools
import math
import random
from collections.abc import Callable
from typing import Final

import pytest

from admin_api_simulator import Fault
from docs_platform_action.api.answers import Call
from docs_platform_action.errors import ActionError, Unavailable
from docs_platform_action.http.pacing import GAP_SECONDS
from docs_platform_action.http.transport import Request
from docs_platform_action.inputs.settings import Mode
from docs_platform_action.job import Job
from docs_platform_action.models import ExportJob
from tests.faults import Operation
from tests.unit.api.talk import Talk
from tests.virtual_platform import Sent, Trouble

GOOD: Final = Fault(json={"status": "running"})
FULL: Final = Fault(status=429)

Reply = Callable[[str, float], Trouble]
"""What happens to a request of a job, by the job's name and the time."""


def later(seconds: int, status: int = 429) -> Fault:
    return Fault(status=status, headers={"Retry-After": f"{seconds}"})


class Crowd(Talk):
    """Jobs that share one API, each in its own thread. A request takes a hundredth of a second."""

    def __init__(self, reply: Reply, *, tolerance: float = 300.0, others: tuple[Job, ...] = ()) -> None:
        drawn = random.Random(7)  # noqa: S311  # not for secrets
        super().__init__(
            self._reply_to,
            tolerance=tolerance,
            seconds=0.01,
            jitter=lambda ceiling: drawn.uniform(0, ceiling),
            job=Job(mode=Mode.EXPORT),
            others=others,
        )
        self._reply = reply
        self.begun: dict[str, list[float]] = {}
        self.ended: dict[str, tuple[float, ActionError | None]] = {}

    def _reply_to(self, sent: Sent) -> Trouble:
        name, at = sent.target.removeprefix("/"), self.clock.elapsed
        self.begun.setdefault(name, []).append(at)
        return self._reply(name, at)

    def calls(self, name: str, *, at: float = 0.0, times: int = 1, is_start: bool = False) -> Callable[[], None]:
        """Return the work of a job that calls the API so many times from then on, every ten seconds."""

        def work() -> None:
            error: ActionError | None = None
            self.clock.sleep(at)
            try:
                for number in range(times):
                    self.clock.sleep(10 if number else 0)
                    request = Request(method="GET", url=f"/{name}")
                    self.api.send(
                        Call(job=Job(mode=Mode.EXPORT), action="", request=request, read=ExportJob.from_json, is_start=is_start)
                    )
            except ActionError as caught:
                error = caught
            self.ended[name] = (self.clock.elapsed, error)

        return work

    @property
    def all_begun(self) -> list[float]:
        return sorted(at for times in self.begun.values() for at in times)


def only(name: str, bad: Trouble, *, until: float = math.inf) -> Reply:
    """Make a platform that fails for one job, until then."""
    return lambda asking, at: bad if asking == name and at < until else GOOD


class TestPace:
    def test_requests_are_a_tenth_of_a_second_apart_however_many_jobs_there_are(self) -> None:
        crowd = Crowd(only("", GOOD))

        crowd.clock.run(*(crowd.calls(f"{number}", times=3) for number in range(200)))

        begun = crowd.all_begun
        assert len(begun) == 600
        assert all(second - first >= GAP_SECONDS - 1e-6 for first, second in itertools.pairwise(begun))

    def test_a_hundred_jobs_send_a_failing_platform_a_few_requests_a_second(self) -> None:
        crowd = Crowd(lambda _name, _at: Fault(status=502))

        crowd.clock.run(*(crowd.calls(f"{number}") for number in range(100)))

        lasting = [at for at in crowd.all_begun if 60 <= at < 300]
        assert len(lasting) / 240 < 9
        assert {type(error) for _, error in crowd.ended.values()} == {Unavailable}

    @pytest.mark.parametrize("bad", [Fault(status=502), later(200), later(200, 503), Fault(cut="before_response")])
    def test_the_failures_of_one_job_hold_no_other_one_back(self, bad: Trouble) -> None:
        crowd = Crowd(only("bad", bad), tolerance=60)

        crowd.clock.run(crowd.calls("bad"), crowd.calls("good", at=1, times=20))

        assert isinstance(crowd.ended["bad"][1], Unavailable)
        assert crowd.ended["good"][1] is None
        assert crowd.ended["good"][0] < 1 + 20 * (10 + GAP_SECONDS + 0.01)


class TestPausesOfStarts:
    @pytest.mark.parametrize("status", [429, 503])
    def test_one_that_the_platform_asks_for_holds_back_all_starts_and_no_reads(self, status: int) -> None:
        crowd = Crowd(only("first", later(40, status), until=1))

        crowd.clock.run(
            crowd.calls("first", is_start=True), crowd.calls("second", at=1, is_start=True), crowd.calls("read", at=1, times=2)
        )

        assert [round(crowd.begun[name][-1]) for name in ("first", "second")] == [40, 40]
        assert round(crowd.begun["read"][0]) == 1

    def test_one_of_a_day_parks_the_others_no_longer_than_the_tolerance(self) -> None:
        crowd = Crowd(only("first", later(86400)), tolerance=60)

        crowd.clock.run(crowd.calls("first", is_start=True), crowd.calls("second", at=1, is_start=True))

        assert isinstance(crowd.ended["first"][1], Unavailable)
        assert crowd.ended["second"] == (pytest.approx(61, abs=1), None)

    def test_a_start_that_was_parked_makes_one_attempt_at_the_end(self) -> None:
        def reply(name: str, _at: float) -> Trouble:
            return later(86400) if name == "first" else ConnectionRefusedError()

        crowd = Crowd(reply, tolerance=60)

        crowd.clock.run(crowd.calls("first", is_start=True), crowd.calls("second", at=1, is_start=True))

        assert [round(at) for at in crowd.begun["second"]] == [61, 121]


class TestRoom:
    """A 429 to a start may only mean that another job of the run must end first."""

    @pytest.mark.parametrize("full", [FULL, later(7), later(86400)])
    def test_a_start_waits_while_the_platform_works_on_another_job_and_then_for_the_tolerance(self, full: Fault) -> None:
        other = Job(mode=Mode.EXPORT, job_id="se_2")
        crowd = Crowd(only("more", full), tolerance=60, others=(other,))

        def complete() -> None:
            crowd.clock.sleep(1000)
            other.reading = ExportJob(status="completed")  # its download goes on

        crowd.clock.run(crowd.calls("more", is_start=True), complete)

        assert isinstance(crowd.ended["more"][1], Unavailable)
        assert crowd.ended["more"][0] == pytest.approx(1060, abs=5)

    def test_it_succeeds_once_there_is_room(self) -> None:
        crowd = Crowd(only("more", FULL, until=500), tolerance=60, others=(Job(mode=Mode.EXPORT, job_id="se_2"),))

        crowd.clock.run(crowd.calls("more", is_start=True))

        assert crowd.ended["more"] == (pytest.approx(515, abs=20), None)

    def test_that_it_waits_is_announced_without_an_end(self) -> None:
        talk = Talk(*[FULL] * 30, None, others=[Job(mode=Mode.EXPORT, job_id="se_2")])

        talk.call(Operation.START)

        assert talk.clock.elapsed > 300
        assert talk.retries == [(math.inf, 1)]

    @pytest.mark.parametrize(
        "other",
        [
            Job(mode=Mode.EXPORT),
            Job(mode=Mode.EXPORT, job_id="se_2", reading=ExportJob(status="completed")),
            Job(mode=Mode.EXPORT, job_id="se_2", reading=ExportJob(status="failed")),
            Job(mode=Mode.EXPORT, job_id="se_2", ended_at=1.0),
        ],
        ids=["not started", "completed", "failed", "given up"],
    )
    def test_a_job_that_takes_no_room_keeps_no_start_waiting(self, other: Job) -> None:
        crowd = Crowd(only("more", FULL), tolerance=60, others=(other,))

        crowd.clock.run(crowd.calls("more", is_start=True))

        assert crowd.ended["more"][0] == pytest.approx(60, abs=1)

    def test_another_error_than_a_refusal_is_an_outage(self) -> None:
        crowd = Crowd(only("more", later(20, 503)), tolerance=60, others=(Job(mode=Mode.EXPORT, job_id="se_2"),))

        crowd.clock.run(crowd.calls("more", is_start=True))

        assert crowd.ended["more"][0] == pytest.approx(60, abs=1)
