"""When the log of a job has a line, and what is hidden in it. `tests/wording/runs.md` has the lines."""

from typing import Any

import pytest

from docs_platform_action.job import DOWNLOAD, UNPACK
from docs_platform_action.models import STORAGE, Bundle
from docs_platform_action.report.log import LINE_SECONDS, MAX_STATUSES, STALL_SECONDS
from tests.unit.report.logs import MIB, LoggedJobs
from tests.virtual_time import BEGINNING

SECRET = "0123456789abcdef" * 4
LINK = f"https://s.example.com/b?X-Signature={SECRET}"


def logged(**known: Any) -> LoggedJobs:
    """Return the log of one job that has begun."""
    return LoggedJobs("docs.example.com", **{"job_id": "se_1", "began_at": BEGINNING, **known})


def annotated(job: LoggedJobs) -> list[str]:
    return [line for line in job.lines if line.startswith("::warning")]


def test_nothing_is_logged_after_the_end() -> None:
    job = logged(debugging=True)
    job.log.close()

    job.read(0, "running", 12, 48)
    job.log.warning(job.jobs[0], ["It is odd"])
    job.log.request_ended(job.jobs[0], "GET /x", outcome="200", milliseconds=1.0, request_id=None)
    job.heartbeat()

    assert job.lines == []


@pytest.mark.parametrize("event", ["link_made", "link_renewed", "storage_responded"])
def test_a_link_is_shown_without_its_query(event: str) -> None:
    job = logged(link=Bundle(url=LINK), debugging=True)

    if event == "storage_responded":
        getattr(job.log, event)(job.jobs[0], LINK, status=200, requested=None, request_id=None)
    else:
        getattr(job.log, event)(job.jobs[0])

    assert "s.example.com/b" in job.stream.getvalue()
    assert "X-Signature" not in job.stream.getvalue()


@pytest.mark.parametrize(
    ("readings", "count"),
    [
        ([("running", 12.0, 48)] * 5, 1),
        ([("running", 12.1, 48), ("running", 12.9, 48)], 1),
        ([("running", 12.9, 48), ("running", 13.0, 48)], 2),
        ([("running", 12.0, 48), ("failed", 12.0, 48)], 2),
        ([("running", 12.0, 48), ("running", 12.0, 49)], 2),
        ([("polishing", None, None), ("queued", None, None), ("polishing", None, None)], 4),
        ([(f"step {number}", None, None) for number in range(1000)], 1000 + MAX_STATUSES),
    ],
    ids=["same", "under a percent", "a percent", "status", "pages", "unknown status", "unknown statuses"],
)
def test_each_change_of_a_reading_has_a_line_and_few_unknown_statuses_are_explained(
    readings: list[tuple[str, float | None, int | None]], count: int
) -> None:
    job = logged()

    for reading in readings:
        job.clock.advance(0.01)
        job.read(0, *reading)

    assert len(job.lines) == count


class TestStall:
    def stalled(self, seconds: float) -> LoggedJobs:
        """Return a job that has been at 57 % for this long, read every 30 s."""
        job = logged()
        job.read(0, "queued")
        job.wait(240)
        job.read(0, "running", 57, 231)
        for _ in range(int(seconds // 30)):
            job.wait(30)
            job.read(0, "running", 57, 231)
        return job

    @pytest.mark.parametrize(("seconds", "count"), [(STALL_SECONDS - 30, 0), (STALL_SECONDS, 1), (STALL_SECONDS * 2, 1)])
    def test_the_log_warns_once_after_ten_minutes(self, seconds: float, count: int) -> None:
        assert len(annotated(self.stalled(seconds))) == count

    def test_there_is_no_warning_during_an_outage_of_the_api(self) -> None:
        job = self.stalled(60)
        job.retry(0)
        job.heartbeat(STALL_SECONDS)
        assert annotated(job) == []

        job.recover(0, STALL_SECONDS)
        job.read(0, "running", 57, 231)

        assert len(annotated(job)) == 1


class TestStorage:
    def test_connections_that_keep_breaking_are_logged_every_ten_seconds(self) -> None:
        job = logged()

        for _ in range(90):
            job.retry(0, STORAGE)
            job.clock.advance(0.25)

        assert len(job.lines) == 3

    @pytest.mark.parametrize(("phase", "event"), [(DOWNLOAD, "download_progressed"), (UNPACK, "unpack_progressed")])
    def test_progress_is_logged_every_ten_seconds(self, phase: str, event: str) -> None:
        job = logged()
        job.clock.advance(1000)
        job.jobs[0].start_phase(phase, job.clock.monotonic())

        for second in range(1, int(2.5 * LINE_SECONDS) + 1):
            job.clock.advance(1)
            getattr(job.log, event)(job.jobs[0], second * 4 * MIB, 400 * MIB)

        assert len(job.lines) == 2
