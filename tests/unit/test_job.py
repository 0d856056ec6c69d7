"""What is known of a job: its values, phases, names for people, and its object in `results`."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import PropertyMock

import pytest

from docs_platform_action.errors import JobFailed
from docs_platform_action.job import QUEUE, ROOM, RUN, Job
from docs_platform_action.jobs.agent import Agent
from docs_platform_action.jobs.export import Export
from docs_platform_action.models import AgentJob, BundleLink, ExportJob, Phase
from tests.virtual_time import NOON

LINK = BundleLink(
    url="https://s.example.com/b", expires_at="later", expires=NOON + timedelta(minutes=5)
)


def export(**known: Any) -> Job:
    return Job(kind=Export(), domain="docs.example.com", **known)


def phases(job: Job) -> list[tuple[str, float, float | None]]:
    return [(phase.name, phase.began_at, phase.ended_at) for phase in job.phases]


class TestReadings:
    @pytest.mark.parametrize(
        ("readings", "expected"),
        [
            (
                [(12.0, "queued"), (20.0, "queued"), (30.0, "running"), (50.0, "completed")],
                [(QUEUE, 10, 30), (RUN, 30, None)],
            ),
            ([(12.0, "queued"), (40.0, "completed")], [(QUEUE, 10, 12), (RUN, 12, None)]),
        ],
    )
    def test_a_job_ran_since_the_first_reading_that_allows_it(
        self, readings: Any, expected: list[Any]
    ) -> None:
        job = export(started_at=10.0)

        for at, status in readings:
            job.record(ExportJob(status=status), polled_at=at)

        assert phases(job) == expected
        assert job.last_read_at == readings[-1][0]
        assert job.has_ended

    def test_a_collected_job_begins_with_the_wait_and_an_agent_job_has_no_phases(self) -> None:
        collected = export(began_at=5.0)
        agent = Job(kind=Agent())

        collected.record(ExportJob(status="running"), polled_at=9.0)
        agent.record(AgentJob(status="active"), polled_at=9.0)

        assert phases(collected) == [(RUN, 5.0, None)]
        assert phases(agent) == []

    def test_a_wait_for_room_ends_when_the_start_is_accepted(self) -> None:
        job = export()
        job.start_phase(ROOM, 5.0)

        job.record_start("se_1", "queued", 9.0)

        assert phases(job) == [(ROOM, 5.0, 9.0)]
        assert not job.is_in(ROOM)

    def test_of_a_running_job_only_some_values_are_known(self) -> None:
        running = export(reading=ExportJob(status="running", progress=5.0, page_count=3))
        queued = export(reading=ExportJob(status="queued", progress=5.0))
        completed = export(reading=ExportJob(status="completed", page_count=3))

        assert running.progress == 5.0
        assert running.reported_pages == 3
        assert running.page_count is None
        assert queued.progress is None
        assert completed.page_count == 3
        assert export().status is None

    @pytest.mark.parametrize(
        ("status", "is_known"), [("running", True), (None, True), ("odd", False)]
    )
    def test_a_status_is_known_if_it_is_unread_or_described(
        self, status: str | None, is_known: bool
    ) -> None:
        reading = None if status is None else ExportJob(status=status)

        assert export(reading=reading).has_known_status == is_known

    @pytest.mark.parametrize(
        ("expected_end_at", "remaining"), [(None, None), (30.0, 10.0), (20.0, None), (10.0, None)]
    )
    def test_time_remains_until_the_expected_end_and_is_unknown_after_it(
        self, expected_end_at: float | None, remaining: float | None
    ) -> None:
        assert export(expected_end_at=expected_end_at).remaining_seconds(20.0) == remaining

    def test_a_new_reading_outdates_the_expected_end(self) -> None:
        job = export(expected_end_at=30.0)

        job.record(ExportJob(status="completed"))

        assert job.expected_end_at is None

    @pytest.mark.parametrize("status", [None, "queued"])
    def test_a_start_may_report_a_status(self, status: str | None) -> None:
        job = export()

        job.record_start("se_1", status, 9.0)

        assert job.job_id == "se_1"
        assert job.status == status

    @pytest.mark.parametrize(
        ("status", "is_shown"),
        [("completed", True), ("archived", True), ("active", False), ("failed", False)],
    )
    def test_a_pull_request_counts_only_at_a_good_end(self, status: str, is_shown: bool) -> None:
        reading = AgentJob(status=status, pr_link="https://git.example.com/7")
        job = Job(kind=Agent(), reading=reading)

        assert (job.pr_link is not None) == is_shown

    def test_a_phase_that_was_begun_again_goes_on_and_ends_once(self) -> None:
        job = export()

        job.start_phase(RUN, 1.0)
        job.start_phase(RUN, 2.0)
        assert job.is_in(RUN, QUEUE)
        assert not job.is_in(QUEUE)
        job.end_phase(3.0)
        job.end_phase(4.0)

        assert phases(job) == [(RUN, 1.0, 3.0)]
        assert not job.is_in(RUN)

    def test_a_phase_takes_time_until_its_end(self) -> None:
        assert Phase(name="x", began_at=1.0).seconds(4.0) == 3.0
        assert Phase(name="x", began_at=1.0, ended_at=3.0).seconds(9.0) == 2.0


class TestResult:
    @pytest.mark.parametrize(
        ("details", "message"),
        [
            ((), "Export of docs.example.com: it failed"),
            (
                ("It said so.", "Twice."),
                "Export of docs.example.com: it failed. It said so. Twice.",
            ),
        ],
    )
    def test_the_message_has_the_details(self, details: tuple[str, ...], message: str) -> None:
        job = export(failure=JobFailed("it failed", details=details))

        assert job.result(0.0)["message"] == message

    def test_an_agent_job_has_its_own_fields_on_one_line_each(self) -> None:
        known: dict[str, Any] = {
            "repository": "r",
            "ref": "main",
            "model": "m",
            "created_at": "c",
            "archived_at": "a",
        }
        reading = AgentJob(
            status="archived\n::error::x", pr_link="https://git.example.com/7", **known
        )

        result = Job(kind=Agent(), project_id="p", reading=reading).result(0.0)

        assert result["status"] == "archived ::error::x"
        names = ("projectId", "repository", "ref", "model", "createdAt", "archivedAt")
        assert [result[name] for name in names] == ["p", *known.values()]


@pytest.mark.parametrize("was_sent", [True, False])
def test_a_start_that_was_sent_is_unconfirmed_until_its_outcome_is_known(was_sent: bool) -> None:
    job = export()
    assert not job.is_start_unconfirmed

    job.start_attempt = SimpleNamespace(was_sent=was_sent)

    assert job.is_start_unconfirmed == was_sent


def test_a_start_whose_outcome_gets_known_meanwhile_is_asked_about_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = export()
    attempt = SimpleNamespace(was_sent=True)
    cleared_meanwhile = PropertyMock(side_effect=[attempt, None])
    monkeypatch.setattr(Job, "start_attempt", cleared_meanwhile)

    assert job.is_start_unconfirmed
