"""What is told of a job that has not ended within `timeout`."""

import pytest

from docs_platform_action.errors import Unavailable
from docs_platform_action.inputs.settings import WaitSettings
from docs_platform_action.job import Job
from docs_platform_action.jobs.timeout import still_going, wait_within_timeout
from docs_platform_action.models import ExportJob
from tests.unit.fakes import HOST, FakeClock


class TestStillGoing:
    @pytest.mark.parametrize(
        ("record", "fact"),
        [
            (Job(mode="export", status="running", progress=0.0), "It was last seen at 0 %."),
            (Job(mode="export", status="polishing"), "It was last seen as 'polishing'."),
            (Job(mode="export", status="done", progress=100.0), "It was last seen as 'done', at 100 %."),
            (Job(mode="export", status="running", page_count=7), "It was last seen as 'running', 7 pages."),
            (Job(mode="export", status="running", page_count=1), "It was last seen as 'running', 1 page."),
            (Job(mode="export"), "No reading of it succeeded."),
        ],
    )
    def test_it_tells_how_far_the_job_has_come(self, record: Job, fact: str) -> None:
        assert still_going(record, 60, None).facts == (fact,)

    def test_it_does_not_claim_to_know_a_job_that_was_never_read(self) -> None:
        assert still_going(Job(mode="export"), 60, None).happened == "its state could not be read after 1:00"

    def test_it_tells_of_an_outage_that_lasted_to_the_end(self) -> None:
        outage = Unavailable(f"the API at {HOST} stayed unavailable", facts=("No good answer came for 60 s.",))

        error = still_going(Job(mode="export", status="running"), 60, outage)

        assert error.facts == (
            "It was last seen as 'running'.",
            f"At the end the API at {HOST} stayed unavailable.",
            "No good answer came for 60 s.",
        )

    def test_it_passes_on_the_cause_and_the_request_id_of_the_outage(self) -> None:
        outage = Unavailable("x", cause="The moon.", request_id="r-1")

        error = still_going(Job(mode="export"), 60, outage)

        assert (error.because, error.request_id) == ("The moon.", "r-1")

    @pytest.mark.parametrize(("status", "remedy"), [(None, "Check `base-url`."), ("running", "Give it longer")])
    def test_what_to_do_fits_whether_the_job_was_ever_read(self, status: str | None, remedy: str) -> None:
        outage = Unavailable("x", remedy="Check `base-url`.")

        error = still_going(Job(mode="export", status=status), 60, outage)

        assert error.way_out.startswith(remedy)

    def test_without_an_outage_the_time_was_too_short(self) -> None:
        assert still_going(Job(mode="export", status="running"), 60, None).because == (
            "The job takes longer than `timeout` allows."
        )

    def test_a_percentage_is_never_rounded_up(self) -> None:
        assert still_going(Job(mode="export", status="running", progress=99.9), 60, None).facts == ("It was last seen at 99 %.",)


@pytest.mark.parametrize(("status", "first_after"), [("completed", 0), ("failed", 0), ("queued", 3), (None, 3)])
def test_a_job_that_ended_as_it_started_is_read_at_once(status: str | None, first_after: float) -> None:
    clock = FakeClock()
    record = Job(mode="export", domain="docs.example.com", job_id="se_1", status=status, started_at=0.0)
    settings = WaitSettings(timeout_seconds=60, shortest_pause_seconds=1, longest_pause_seconds=30)

    wait_within_timeout(lambda _: ExportJob(status="completed"), settings, clock=clock, record=record, on_reading=lambda _: None)

    assert clock.elapsed == first_after
