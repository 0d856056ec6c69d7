"""What people read about starts that wait for room: while they do, and when the run has ended."""

from datetime import UTC, datetime

import pytest

from docs_platform_action.errors import NoRoom
from docs_platform_action.job import Job
from docs_platform_action.jobs.export import Export
from docs_platform_action.models import RoomWait
from docs_platform_action.report.room import describe_ended_waits, describe_wait

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
NOW = 1000.0
BUSY = NoRoom(status=409, running_job_id="se_7")
LIMIT = NoRoom(status=429)


def waiting(
    domain: str,
    refusal: NoRoom,
    next_in: float,
    until_in: float = 3600.0,
    job_id: str | None = None,
) -> Job:
    room = RoomWait(
        refusal=refusal, refusals=1, since=NOW - 60, next_at=NOW + next_in, until=NOW + until_in
    )
    return Job(kind=Export(), domain=domain, job_id=job_id, room=room)


@pytest.mark.parametrize(
    ("next_in", "until_in", "expected"),
    [
        (30, 3600, "Trying again in 30 s, until 13:00 UTC (`start-timeout`)."),
        (300, 3600, "Trying again at 12:05 UTC, until 13:00 UTC (`start-timeout`)."),
        (3600, 3600, "The last attempt is at 13:00 UTC (`start-timeout`)."),
        (300, 86400, "Trying again at 12:05 UTC, until 2026-05-05 12:00 UTC (`start-timeout`)."),
        (-5, 3600, "Trying again now."),
    ],
)
def test_a_wait_says_when_it_tries_again_and_until_when(
    next_in: float, until_in: float, expected: str
) -> None:
    job = waiting("a.example", BUSY, next_in, until_in)

    text = describe_wait(job, now=NOON, monotonic=NOW)

    assert text == f"Another export of a.example is running (job se_7). {expected}"


def test_the_waits_of_an_ended_run_name_the_next_attempt_and_the_sites_that_were_busy() -> None:
    jobs = [
        waiting("a.example", LIMIT, 600),
        waiting("b.example", LIMIT, 300),
        waiting("c.example", BUSY, 30),
        waiting("d.example", BUSY, 30),
        waiting("in-flight.example", BUSY, -1),
        waiting("started.example", BUSY, 30, job_id="se_1"),
        Job(kind=Export(), domain="pending.example"),
    ]

    sentences = describe_ended_waits(jobs, now=NOON, monotonic=NOW)

    assert sentences == (
        "The platform allowed no more starts (429).",
        "The next attempt would have been at 12:05 UTC, the last one at 13:00 UTC.",
        "c.example was waiting for another export to end.",
        "The same holds for 1 more site.",
    )


def test_without_waits_nothing_is_said_about_them() -> None:
    assert describe_ended_waits([Job(kind=Export())], now=NOON, monotonic=NOW) == ()
