"""When the log of a job has a line, and what is hidden in it. `tests/wording/runs.md` has the lines."""

import threading
from typing import Any

import pytest

from docs_platform_action.errors import JobFailed
from docs_platform_action.job import DOWNLOAD, UNPACK
from docs_platform_action.models import STORAGE, Bundle
from docs_platform_action.report.log import LINE_SECONDS, MAX_STATUSES, MIN_REPORTED_OUTAGE_SECONDS, STALL_SECONDS
from tests.unit.report.logs import MIB, LoggedJob

SECRET = "0123456789abcdef" * 4
LINK = f"https://s.example.com/b?X-Signature={SECRET}"


def annotated(job: LoggedJob) -> list[str]:
    return [line for line in job.lines if line.startswith("::warning")]


@pytest.mark.parametrize(
    ("known", "event"),
    [
        ({"mode": "agent"}, "job_known"),
        ({}, "job_ended"),
        ({"mode": "agent", "failure": JobFailed("no")}, "job_ended"),
        ({"debugging": False}, "request_ended"),
    ],
)
def test_an_event_without_news_has_no_line(known: dict[str, Any], event: str) -> None:
    job = LoggedJob(**known)

    options = {"outcome": "200", "milliseconds": 1.0, "request_id": None} if event == "request_ended" else {}
    job.announce(event, *(["GET /x"] if options else []), **options)

    assert job.lines == []


def test_nothing_is_logged_after_the_end() -> None:
    job = LoggedJob(debugging=True)
    job.log.close()

    job.read("running", 12, 48)
    job.announce("warning", ["It is odd"])
    job.announce("request_ended", "GET /x", outcome="200", milliseconds=1.0, request_id=None)
    job.heartbeat()

    assert job.lines == []


@pytest.mark.parametrize("event", ["link_made", "link_renewed", "storage_responded"])
def test_a_link_is_shown_without_its_query(event: str) -> None:
    job = LoggedJob(link=Bundle(url=LINK), debugging=True)

    if event == "storage_responded":
        job.announce(event, LINK, status=200, requested=None, request_id=None)
    else:
        job.announce(event)

    assert "s.example.com/b" in job.text
    assert "X-Signature" not in job.text


class TestReadings:
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
    def test_each_change_has_a_line_and_few_unknown_statuses_are_explained(
        self, readings: list[tuple[str, float | None, int | None]], count: int
    ) -> None:
        job = LoggedJob()

        for reading in readings:
            job.clock.advance(0.01)
            job.read(*reading)

        assert len(job.lines) == count

    @pytest.mark.parametrize("status", ["x" * 1000, f"{'x' * 40} {SECRET} {'y' * 900}"])
    def test_a_long_status_is_shortened_after_its_secrets_are_hidden(self, status: str) -> None:
        job = LoggedJob()
        job.console.redactor.add_link(LINK)

        job.read(status)

        assert all(len(line) < 130 for line in job.lines)
        assert "…" in job.lines[-1]
        assert SECRET[:8] not in job.text

    def test_a_status_of_a_words_length_is_shown_whole(self) -> None:
        job = LoggedJob()

        job.read("x" * 60)

        assert "…" not in job.text


class TestStall:
    def stalled(self, seconds: float) -> LoggedJob:
        """Return a job that has been at 57 % for this long, read every 30 s."""
        job = LoggedJob()
        job.read("queued")
        job.read("running", 57, 231, after_seconds=240)
        for _ in range(int(seconds // 30)):
            job.read("running", 57, 231, after_seconds=30)
        return job

    @pytest.mark.parametrize(("seconds", "count"), [(STALL_SECONDS - 30, 0), (STALL_SECONDS, 1), (STALL_SECONDS * 2, 1)])
    def test_the_log_warns_once_after_ten_minutes(self, seconds: float, count: int) -> None:
        assert len(annotated(self.stalled(seconds))) == count

    def test_a_second_stall_is_not_warned_of(self) -> None:
        job = self.stalled(STALL_SECONDS)
        job.read("running", 58, 231)

        job.read("running", 58, 231, after_seconds=STALL_SECONDS)

        assert len(annotated(job)) == 1

    def test_there_is_no_warning_during_an_outage_of_the_api(self) -> None:
        job = self.stalled(60)
        job.retry()
        job.heartbeat(STALL_SECONDS)
        assert annotated(job) == []

        job.recover(STALL_SECONDS)
        job.read("running", 57, 231)

        assert len(annotated(job)) == 1

    def test_a_job_that_the_run_gave_up_is_not_warned_of(self) -> None:
        job = self.stalled(60)
        job.job.ended_at = job.clock.monotonic()

        job.heartbeat(STALL_SECONDS)

        assert annotated(job) == []

    def test_the_estimate_is_left_out_until_it_moves_again(self) -> None:
        job = self.stalled(STALL_SECONDS - 30)
        job.heartbeat(30)
        assert not job.text.endswith("left")

        job.read("running", 58, 231)

        assert job.text.endswith("left")

    def test_concurrent_heartbeats_find_it_between_two_readings_and_warn_once(self) -> None:
        job = self.stalled(STALL_SECONDS - 30)
        job.clock.advance(30)
        barrier = threading.Barrier(4)

        def look() -> None:
            barrier.wait()
            job.log.heartbeat()

        threads = [threading.Thread(target=look) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len(annotated(job)) == 1


class TestHeartbeat:
    @pytest.mark.parametrize(("seconds", "count"), [(54, 0), (55, 1)])
    def test_it_comes_after_a_silence_which_any_line_breaks(self, seconds: float, count: int) -> None:
        job = LoggedJob()
        job.clock.advance(50)
        job.announce("values_written")

        job.heartbeat(seconds)

        assert len(job.lines) == 1 + count

    def test_it_comes_during_an_outage_too_and_says_so_until_the_api_responds(self) -> None:
        job = LoggedJob()
        job.retry()
        job.heartbeat()
        assert job.text.endswith("API)")

        job.recover(60)
        job.heartbeat()

        assert not job.text.endswith("API)")


class TestStorage:
    @pytest.mark.parametrize(("lasted", "count"), [(MIN_REPORTED_OUTAGE_SECONDS - 0.1, 0), (MIN_REPORTED_OUTAGE_SECONDS, 1)])
    def test_only_the_end_of_a_long_outage_is_logged(self, lasted: float, count: int) -> None:
        job = LoggedJob()

        job.recover(lasted, STORAGE)

        assert len(job.lines) == count

    def test_connections_that_keep_breaking_are_logged_every_ten_seconds(self) -> None:
        job = LoggedJob()

        for _ in range(90):
            job.retry(STORAGE)
            job.clock.advance(0.25)

        assert len(job.lines) == 3

    @pytest.mark.parametrize(("phase", "event"), [(DOWNLOAD, "download_progressed"), (UNPACK, "unpack_progressed")])
    def test_progress_is_logged_every_ten_seconds(self, phase: str, event: str) -> None:
        job = LoggedJob()
        job.clock.advance(1000)
        job.enter(phase)

        for second in range(1, int(2.5 * LINE_SECONDS) + 1):
            job.clock.advance(1)
            job.announce(event, second * 4 * MIB, 400 * MIB)

        assert len(job.lines) == 2
