"""A job's verdict, its phases, and its object in `results`."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from docs_platform_action.errors import Cancelled, InvalidBundle, InvalidInput, JobFailed, Unauthorized
from docs_platform_action.job import BUNDLE, QUEUE, RUN, Delivered, Job, Phase
from docs_platform_action.models import AgentJob, Bundle, Downloaded, ExportJob

URL = "https://storage.example.com/bundle.tar.gz?X-Signature=abc"


def exported(**changes: Any) -> Job:
    known: dict[str, Any] = {
        "mode": "export",
        "domain": "docs.example.com",
        "job_id": "se_1",
        "reading": ExportJob(status="completed", page_count=412),
        "link": Bundle(url=URL, expires_at="2026-05-04T15:04:00Z"),
        "began_at": 100.0,
    }
    return Job(**{**known, **changes})


class TestReadings:
    @pytest.mark.parametrize(
        ("status", "reported", "page_count"),
        [("completed", None, None), ("completed", 0, 0), ("completed", 412, 412), ("running", 401, None), ("failed", 401, None)],
    )
    def test_the_page_count_is_that_of_the_completed_job(self, status: str, reported: int | None, page_count: int | None) -> None:
        job = Job(mode="export")

        job.record(ExportJob(status="running", progress=99.0, page_count=400), 101.0)
        job.record(ExportJob(status=status, page_count=reported), 102.0)

        assert (job.status, job.progress, job.pages, job.page_count) == (status, None, reported, page_count)
        assert job.result(102.0)["pageCount"] == page_count

    @pytest.mark.parametrize(("status", "progress"), [("queued", None), ("running", 40.0), ("polishing", 40.0)])
    def test_what_a_queued_job_reports_is_not_its_progress(self, status: str, progress: float | None) -> None:
        assert Job(mode="export", reading=ExportJob(status=status, progress=40.0)).progress == progress

    @pytest.mark.parametrize(("status", "link"), [("completed", "x"), ("archived", "x"), ("active", None), ("failed", None)])
    def test_a_pull_request_counts_when_the_job_ended_well(self, status: str, link: str | None) -> None:
        job = Job(mode="agent")

        job.record(AgentJob(status=status, pr_link="x"), 101.0)

        assert job.pr_link == link

    @pytest.mark.parametrize(
        ("known", "is_under_way"),
        [
            ({"job_id": "se_1"}, True),
            ({"job_id": "se_1", "reading": ExportJob(status="running")}, True),
            ({"job_id": "se_1", "reading": ExportJob(status="polishing")}, True),
            ({"job_id": "se_1", "reading": ExportJob(status="completed")}, False),
            ({"job_id": "se_1", "reading": ExportJob(status="failed")}, False),
            ({"job_id": "se_1", "reading": ExportJob(status="running"), "ended_at": 102.0}, False),
            ({}, False),
        ],
    )
    def test_a_job_is_under_way_from_its_id_to_its_end(self, known: Mapping[str, Any], is_under_way: bool) -> None:
        assert Job(mode="export", **known).is_under_way is is_under_way

    @pytest.mark.parametrize(
        ("reading", "has_ended"),
        [
            *((None, False), (ExportJob(status="running"), False), (ExportJob(status="failed"), True)),
            *((ExportJob(status="archived"), False), (AgentJob(status="active"), False), (AgentJob(status="archived"), True)),
        ],
    )
    def test_a_job_has_ended_when_its_status_is_final(self, reading: ExportJob | AgentJob | None, has_ended: bool) -> None:
        assert Job(mode=None, reading=reading).has_ended is has_ended


class TestPhases:
    def test_a_phase_ends_where_the_next_begins_and_is_not_entered_twice(self) -> None:
        job = Job(mode="export")

        job.start_phase(QUEUE, 1.0)
        job.start_phase(QUEUE, 2.0)
        job.start_phase(RUN, 3.0)
        job.end_phase(5.0)
        job.end_phase(6.0)

        assert job.phases == [Phase(name=QUEUE, began_at=1.0, ended_at=3.0), Phase(name=RUN, began_at=3.0, ended_at=5.0)]

    def test_its_current_phase_is_the_last_until_that_ends(self) -> None:
        job = Job(mode="export")
        assert not job.is_in(QUEUE)

        job.start_phase(QUEUE, 1.0)
        job.start_phase(RUN, 2.0)
        assert (job.is_in(QUEUE), job.is_in(QUEUE, RUN)) == (False, True)

        job.end_phase(3.0)
        assert not job.is_in(RUN)

    @pytest.mark.parametrize(
        ("readings", "expected"),
        [
            ([("queued", 3.0), ("running", 5.0), ("completed", 9.0)], [(QUEUE, 1.0, 5.0), (RUN, 5.0, None)]),
            ([("queued", 3.0), ("completed", 9.0)], [(QUEUE, 1.0, 3.0), (RUN, 3.0, None)]),
            ([("completed", 9.0)], [(RUN, 1.0, None)]),
            ([("running", 3.0), ("queued", 5.0)], [(RUN, 1.0, 5.0), (QUEUE, 5.0, None)]),
        ],
    )
    def test_the_first_begins_with_the_wait_and_one_of_which_only_the_end_was_seen_after_the_reading_before(
        self, readings: Sequence[tuple[str, float]], expected: Sequence[tuple[str, float, float | None]]
    ) -> None:
        job = Job(mode="export", began_at=0.0, started_at=1.0)

        for status, now in readings:
            job.record(ExportJob(status=status), now)

        assert [(phase.name, phase.began_at, phase.ended_at) for phase in job.phases] == expected

    def test_an_agent_job_has_none(self) -> None:
        job = Job(mode="agent", began_at=0.0)

        job.record(AgentJob(status="completed"), 9.0)

        assert job.phases == []


class TestEnd:
    @pytest.mark.parametrize(
        ("job", "verdict"),
        [
            (Job(mode="export"), "not started"),
            (Job(mode="export", failure=Cancelled("cancelled")), "not started"),
            (Job(mode="export", failure=Unauthorized("refused")), "not started"),
            (Job(mode=None, failure=InvalidInput("Invalid input")), "failed"),
            (Job(mode="export", began_at=1.0, failure=Unauthorized("refused")), "failed"),
            (Job(mode="export", began_at=1.0, failure=Cancelled("cancelled")), "cancelled"),
            (Job(mode="export", job_id="se_1", started_at=0.0), "started"),
            (Job(mode="export", job_id="se_1"), "done"),
            (Job(mode="export", began_at=1.0, ended_at=2.0), "done"),
            (Job(mode="agent", job_id="aj_1"), "done"),
        ],
    )
    def test_its_verdict_is_one_of_five(self, job: Job, verdict: str) -> None:
        assert job.verdict == verdict

    @pytest.mark.parametrize(
        ("details", "message"),
        [
            ((), "Export of docs.example.com: refused"),
            (("It said no.", "Twice."), "Export of docs.example.com: refused. It said no. Twice."),
        ],
    )
    def test_a_message_has_the_headline_and_the_details(self, details: tuple[str, ...], message: str) -> None:
        job = Job(mode="export", domain="docs.example.com", failure=Unauthorized("refused", details=details))

        assert job.result(0.0)["message"] == message

    def test_a_job_that_was_not_begun_took_no_time(self) -> None:
        assert Job(mode="export", ended_at=5.0).duration_seconds(9.0) == 0

    def test_time_is_counted_until_the_end_once_there_is_one(self) -> None:
        job = exported()

        assert job.duration_seconds(130.0) == 30
        job.ended_at = 150.0
        assert job.duration_seconds(1000.0) == 50


class TestCancel:
    @pytest.mark.parametrize(
        ("known", "is_start_unconfirmed", "count"),
        [({"job_id": None}, True, 1), ({"job_id": None}, False, 1), ({}, False, 0)],
    )
    def test_it_ends_the_job_and_its_phase_and_says_whether_something_was_started(
        self, known: Mapping[str, Any], is_start_unconfirmed: bool, count: int
    ) -> None:
        job = exported(**known)
        job.start_phase(BUNDLE, 120.0)

        job.cancel("SIGINT", 131.0, is_start_unconfirmed=is_start_unconfirmed)

        assert (job.ended_at, job.phases[-1].ended_at) == (131.0, 131.0)
        assert isinstance(job.failure, Cancelled)
        assert len(job.failure.details) == count
        assert "SIGINT" in job.failure.cause


class TestResult:
    def test_what_is_unknown_is_none(self) -> None:
        row = Job(mode=None, began_at=0.0).result(7.9)

        assert {key: value for key, value in row.items() if value is not None} == {"durationSeconds": 7}

    def test_a_finished_export_is_shown_in_full(self) -> None:
        row = exported().result(353.0)

        assert {key: value for key, value in row.items() if value is not None} == {
            "mode": "export",
            "domain": "docs.example.com",
            "jobId": "se_1",
            "status": "completed",
            "bundleUrl": URL,
            "expiresAt": "2026-05-04T15:04:00Z",
            "pageCount": 412,
            "durationSeconds": 253,
        }

    def test_a_finished_agent_job_is_shown_in_full(self) -> None:
        reading = AgentJob(
            status="archived", pr_link="p", repository="r", ref="main", model="m", created_at="then", archived_at="later"
        )

        row = Job(mode="agent", project_id="prj_1", job_id="aj_1", reading=reading).result(0.0)

        assert {key: value for key, value in row.items() if value is not None} == {
            "mode": "agent",
            "projectId": "prj_1",
            "jobId": "aj_1",
            "status": "archived",
            "prLink": "p",
            "repository": "r",
            "ref": "main",
            "model": "m",
            "createdAt": "then",
            "archivedAt": "later",
            "durationSeconds": 0,
        }

    def test_no_text_has_a_second_line(self) -> None:
        job = Job(mode="export", domain="docs.example.com", began_at=0.0, reading=ExportJob(status="a\nb"))
        job.failure = JobFailed("it failed", details=('The API said: "one\n::add-mask::two\x1b[0m"',))

        row = job.result(7.9)

        assert (row["status"], row["message"]) == (
            "a b",
            'Export of docs.example.com: it failed. The API said: "one ::add-mask::two [0m"',
        )

    def test_a_failure_has_its_reason_and_message_and_no_link(self) -> None:
        row = exported(failure=JobFailed("it broke")).result(100.0)

        assert (row["failureReason"], row["message"]) == ("job-failed", "Export of docs.example.com: it broke")
        assert (row["bundleUrl"], row["expiresAt"]) == (None, None)

    def test_what_was_delivered_is_reported_with_its_path(self) -> None:
        delivered = Delivered(
            downloaded=Downloaded(size=40_000_000, sha256="9b1c" * 16),
            bundle_path="out/bundle.tar.gz",
            site_path="out/site",
            site_files=1904,
            values_file="values.yaml",
        )

        row = exported(delivered=delivered).result(100.0)

        assert {key: row[key] for key in row if key.startswith(("bundleP", "bundleS", "site", "values"))} == {
            "bundlePath": "out/bundle.tar.gz",
            "bundleSize": 40_000_000,
            "bundleSha256": "9b1c" * 16,
            "sitePath": "out/site",
            "valuesFile": "values.yaml",
        }

    def test_an_archive_of_no_bytes_has_a_size(self) -> None:
        delivered = Delivered(downloaded=Downloaded(size=0, sha256="e3b0"))

        assert exported(delivered=delivered).result(100.0)["bundleSize"] == 0

    def test_a_failure_keeps_what_was_delivered_before_it(self) -> None:
        delivered = Delivered(downloaded=Downloaded(size=3, sha256="ab"), bundle_path="out/bundle.tar.gz")

        row = exported(delivered=delivered, failure=InvalidBundle("it is damaged")).result(100.0)

        assert (row["bundlePath"], row["bundleSize"], row["sitePath"]) == ("out/bundle.tar.gz", 3, None)
        assert (row["failureReason"], row["bundleUrl"]) == ("invalid-bundle", None)
