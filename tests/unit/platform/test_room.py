"""The failure of a job for whose start there was no room.

`tests/unit/jobs/test_start_queue.py` shows when each start may be sent.
"""

import pytest

from docs_platform_action.errors import NoRoom, Rejected, Unavailable
from docs_platform_action.job import Job
from docs_platform_action.jobs.export import Export
from docs_platform_action.platform.room import Room, room_failure
from tests.virtual_time import VirtualClock

LIMIT = NoRoom(status=429)
BUSY = NoRoom(status=409, running_job_id="se_7")


@pytest.mark.parametrize(
    ("refusal", "kind", "words"),
    [
        (BUSY, Rejected, "job-id: se_7"),
        (NoRoom(status=409), Rejected, "job-id: ID"),
        (LIMIT, Unavailable, "start-timeout"),
        (
            NoRoom(status=429, is_web_page=True),
            Unavailable,
            "ask the platform's or network's operator",
        ),
    ],
)
def test_the_failure_at_the_end_says_what_to_do(
    refusal: NoRoom, kind: type[Exception], words: str
) -> None:
    clock = VirtualClock()
    room = Room(clock, start_timeout_seconds=1000.0)
    job = Job(kind=Export(), domain="a")
    room.begin(job)
    room.refuse(job, refusal)
    assert job.room is not None

    failure = room_failure(job, job.room, clock.monotonic() + 4500)

    assert type(failure) is kind
    assert words in failure.remedy
    assert any("1:15:00" in detail for detail in failure.details)
