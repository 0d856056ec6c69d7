"""Which job starts next, and when a start that was refused for lack of room is sent again."""

import pytest

from docs_platform_action.errors import NoRoom
from docs_platform_action.job import ROOM, Job
from docs_platform_action.jobs.export import Export
from docs_platform_action.jobs.start_queue import StartQueue
from docs_platform_action.models import RoomWait
from docs_platform_action.platform.room import Room, pause_seconds
from tests.virtual_time import VirtualClock

LIMIT = NoRoom(status=429)
BUSY = NoRoom(status=409, running_job_id="se_7")


class Queue:
    """A queue of the sites a, b, c …, whose starts wait for room for 1,000 s."""

    def __init__(self, count: int) -> None:
        self.clock = VirtualClock()
        self.jobs = [Job(kind=Export(), domain=letter) for letter in "abcdefgh"[:count]]
        self.room = Room(self.clock, start_timeout_seconds=1000.0)
        self.queue = StartQueue(self.jobs, self.room, self.clock)

    def take(self) -> tuple[str | None, float]:
        """Take a job. Return its site, and the time."""
        job = self.queue.take()
        return (job.domain if job is not None else None), round(self.clock.elapsed, 3)

    def take_all(self) -> None:
        for _ in self.jobs:
            self.queue.take()

    def refuse(self, site: str, refusal: NoRoom) -> list[str | None]:
        """Put a job back, as the runner does. Return the sites that no longer wait."""
        job = self.job(site)
        self.room.refuse(job, refusal)
        if self.wait_of(site).is_over:
            over = [job]
            if refusal is LIMIT:
                over += self.queue.take_outlasted(refusal)
            return [ended.domain for ended in over]
        if refusal.status == 429:
            self.queue.put_behind(job)
        else:
            self.queue.put_back(job)
        return []

    def accept(self, site: str) -> None:
        self.room.accept(self.job(site))

    def job(self, site: str) -> Job:
        return next(job for job in self.jobs if job.domain == site)

    def wait_of(self, site: str) -> RoomWait:
        wait = self.job(site).room
        assert wait is not None
        return wait

    def since(self, at: float) -> float:
        """Return a time of the clock in seconds since its beginning."""
        return round(at - self.clock.monotonic() + self.clock.elapsed, 3)


def test_without_refusals_the_jobs_start_in_their_order_and_at_once() -> None:
    queue = Queue(2)

    assert [queue.take() for _ in range(3)] == [("a", 0), ("b", 0), (None, 0)]


@pytest.mark.parametrize(
    ("asked", "pauses"),
    [
        (0, [30, 60, 120, 240, 300, 300, 300]),
        (7, [7, 30, 60, 120, 240, 300, 300]),
        (100, [100, 100, 100, 120, 240, 300, 300]),
        (1800, [1800] * 7),
    ],
)
def test_pauses_double_and_are_never_shorter_than_asked_for(
    asked: float, pauses: list[float]
) -> None:
    assert [pause_seconds(refusals, asked) for refusals in range(1, 8)] == pauses
    assert pause_seconds(10_000, 0) == 300


def test_a_busy_site_is_passed_over_until_its_pause_is_over_and_then_comes_first() -> None:
    queue = Queue(3)
    queue.take()

    over = queue.refuse("a", BUSY)

    assert (over, queue.take()) == ([], ("b", 0))
    queue.clock.advance(30)
    assert [queue.take(), queue.take()] == [("a", 30), ("c", 30)]


def test_a_limit_delays_all_sites_which_are_then_tried_in_turn() -> None:
    queue = Queue(3)
    queue.take()

    queue.refuse("a", LIMIT)

    assert queue.take() == ("b", 30)
    queue.refuse("b", LIMIT)
    assert queue.take() == ("c", 90)
    queue.refuse("c", LIMIT)
    assert queue.take() == ("a", 210)


def test_after_a_limit_for_each_site_another_round_begins() -> None:
    queue = Queue(2)
    for site in ("a", "b"):
        queue.take()
        queue.refuse(site, LIMIT)
        queue.clock.advance(300)
    queue.take()

    queue.refuse("a", LIMIT)
    queue.clock.advance(300)

    assert queue.take()[0] == "b"


def test_a_start_that_is_not_sent_for_now_holds_back_no_other_and_waits_for_its_answer() -> None:
    queue = Queue(3)
    queue.take()
    queue.refuse("a", LIMIT)
    queue.take()

    queue.room.end(queue.job("b"))

    assert queue.take() == ("c", 30)
    assert not queue.room.begin(queue.job("b"))
    queue.accept("c")
    assert queue.room.begin(queue.job("b"))


def test_the_pauses_of_a_busy_site_and_of_a_limit_grow_apart() -> None:
    queue = Queue(2)
    queue.take_all()
    queue.refuse("a", BUSY)
    queue.take()
    queue.refuse("a", BUSY)

    queue.refuse("b", LIMIT)

    assert queue.since(queue.wait_of("b").next_at) == 60  # 30 s after the second refusal
    assert queue.since(queue.wait_of("a").next_at) == 90


def test_of_refusals_that_arrive_together_one_counts() -> None:
    queue = Queue(4)
    queue.take_all()

    for site in "abcd":
        queue.refuse(site, LIMIT)

    assert queue.take() == ("a", 30)


def test_after_a_limit_the_next_start_waits_for_the_answer_to_the_last_one() -> None:
    queue = Queue(3)
    queue.take()
    queue.refuse("a", LIMIT)
    queue.take()
    taken: list[tuple[str | None, float]] = []

    def answer() -> None:
        queue.clock.sleep(5)
        queue.accept("b")

    queue.clock.run(answer, lambda: taken.append(queue.take()))

    ((site, at),) = taken
    assert site == "c"
    assert at == pytest.approx(35, abs=0.3)


def test_a_start_that_was_sent_before_the_limit_does_not_end_it_when_it_is_accepted() -> None:
    queue = Queue(3)
    queue.take()
    queue.take()
    queue.clock.advance(1)
    queue.refuse("a", LIMIT)

    queue.accept("b")

    assert queue.take() == ("c", 31)


class TestTimeout:
    def test_the_last_attempt_is_made_at_its_end_however_long_the_pause(self) -> None:
        queue = Queue(1)
        queue.take()
        assert queue.refuse("a", NoRoom(status=429, retry_after_seconds=9999)) == []

        assert queue.take() == ("a", 1000)
        assert queue.refuse("a", LIMIT) == ["a"]
        assert queue.take() == (None, 1000)

    def test_it_begins_anew_when_another_start_is_accepted(self) -> None:
        queue = Queue(2)
        queue.take_all()
        queue.refuse("a", BUSY)
        queue.clock.advance(400)

        queue.accept("b")

        assert queue.since(queue.wait_of("a").until) == 1400
        assert (queue.since(queue.wait_of("a").since), queue.since(queue.wait_of("a").next_at)) == (
            0,
            30,
        )

    def test_one_last_attempt_of_a_limit_is_for_all_but_busy_sites(self) -> None:
        queue = Queue(4)
        queue.take_all()
        queue.refuse("a", BUSY)
        for site in "bcd":
            queue.refuse(site, LIMIT)
        queue.clock.advance(1000)
        queue.take()
        queue.refuse("a", BUSY)  # its own last attempt
        queue.take()

        over = queue.refuse("b", LIMIT)

        assert over == ["b", "c", "d"]
        assert [queue.wait_of(site).refusals for site in "abcd"] == [2, 2, 1, 1]

    def test_a_site_that_was_only_held_back_has_waited_since_the_limit_began(self) -> None:
        queue = Queue(3)
        queue.take()
        queue.refuse("a", NoRoom(status=429, retry_after_seconds=9999))
        queue.take()

        assert queue.refuse("b", LIMIT) == ["b", "a", "c"]
        assert [queue.since(queue.wait_of(site).since) for site in "bc"] == [0, 0]
        assert [queue.wait_of(site).refusals for site in "bc"] == [1, 0]

    def test_another_export_is_waited_for_even_if_the_limit_took_all_the_time(self) -> None:
        queue = Queue(2)
        queue.take()
        queue.refuse("a", NoRoom(status=429, retry_after_seconds=9999))
        queue.take()

        assert queue.refuse("b", BUSY) == []
        assert queue.since(queue.wait_of("b").until) == 2000


def test_the_last_attempt_of_a_limit_ends_no_site_whose_time_is_not_up() -> None:
    queue = Queue(2)
    queue.take()
    queue.refuse("a", BUSY)
    queue.clock.advance(500)
    queue.take()
    queue.take()
    queue.refuse("b", LIMIT)
    queue.refuse("a", NoRoom(status=429, retry_after_seconds=9999))
    assert queue.take() == ("a", 1000)

    assert queue.refuse("a", LIMIT) == ["a"]


def test_a_job_that_waits_is_in_that_phase_and_knows_since_when() -> None:
    queue = Queue(1)
    queue.take()
    queue.clock.advance(2)
    queue.refuse("a", BUSY)
    queue.take()
    queue.refuse("a", LIMIT)

    job = queue.job("a")
    room = queue.wait_of("a")
    assert job.is_in(ROOM)
    assert (room.refusal, room.refusals, queue.since(room.since)) == (LIMIT, 2, 2)
