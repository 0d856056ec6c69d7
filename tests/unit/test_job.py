"""A job's verdict, its phases, and its object in `results`."""

from collections.abc import Mapping
from typing import Any

import pytest

from docs_platform_action.errors import Cancelled, DownloadFailed, InvalidBundle, InvalidInput, JobFailed, Unauthorized
from docs_platform_action.http.transport import Request
from docs_platform_action.job import BUNDLE, MAX_PHASES, QUEUE, RUN, Job, Phase
from docs_platform_action.models import AgentJob, Bundle, Downloaded, ExportJob

URL = "https://storage.example.com/bundle.tar.gz?X-Signature=abc"


def exported(**changes: object) -> Job:
    known = {
        "mode": "export",
        "domain": "docs.example.com",
        "job_id": "se_1",
        "status": "completed",
        "page_count": 412,
        "bundle": Bundle(url=URL, expires_at="2026-05-04T15:04:00Z"),
        "began_at": 100.0,
    }
    return Job(**{**known, **changes})  # type: ignore[arg-type]


class TestReadings:
    @pytest.mark.parametrize(
        ("status", "reported", "page_count"),
        [("completed", None, None), ("completed", 0, 0), ("completed", 412, 412), ("running", 401, None), ("failed", 401, None)],
    )
    def test_the_pages_are_those_of_the_completed_job(self, status: str, reported: int | None, page_count: int | None) -> None:
        job = Job(mode="export")

        job.update_export(ExportJob(status="running", progress=99.0, page_count=400), 101.0)
        job.update_export(ExportJob(status=status, page_count=reported), 102.0)

        assert (job.status, job.progress, job.page_count) == (status, None, page_count)
        assert job.result(102.0)["pageCount"] == page_count

    def test_pages_so_far_that_a_later_reading_leaves_out_stay_known(self) -> None:
        job = Job(mode="export")

        job.update_export(ExportJob(status="running", page_count=400), 101.0)
        job.update_export(ExportJob(status="completed"), 102.0)

        assert job.pages_so_far == 400

    @pytest.mark.parametrize(("status", "link"), [("completed", "x"), ("archived", "x"), ("active", None), ("failed", None)])
    def test_a_pull_request_counts_when_the_job_ended_well(self, status: str, link: str | None) -> None:
        job = Job(mode="agent")

        job.update_agent(AgentJob(status=status, pr_link="x"))

        assert job.pr_link == link

    @pytest.mark.parametrize(
        ("known", "is_under_way"),
        [
            ({"job_id": "se_1"}, True),
            ({"job_id": "se_1", "status": "running"}, True),
            ({"job_id": "se_1", "status": "polishing"}, True),
            ({"job_id": "se_1", "status": "completed"}, False),
            ({"job_id": "se_1", "status": "failed"}, False),
            ({"job_id": "se_1", "status": "running", "ended_at": 102.0}, False),
            ({}, False),
        ],
    )
    def test_a_job_is_under_way_from_its_id_to_its_end(self, known: Mapping[str, Any], is_under_way: bool) -> None:
        assert Job(mode="export", **known).is_under_way is is_under_way

    @pytest.mark.parametrize("maybe_processed", [True, False])
    def test_a_start_is_unconfirmed_while_its_request_may_have_been_processed(self, maybe_processed: bool) -> None:
        job = Job(mode="export", start_request=Request(method="POST", url="/", maybe_processed=maybe_processed))

        assert job.is_start_unconfirmed is maybe_processed
        assert not Job(mode="export").is_start_unconfirmed

    @pytest.mark.parametrize(
        ("mode", "status", "has_ended"),
        [
            *(("export", None, False), ("export", "running", False), ("export", "failed", True), ("export", "archived", False)),
            *(("agent", "active", False), ("agent", "archived", True)),
        ],
    )
    def test_a_job_has_ended_when_its_status_is_final(self, mode: str, status: str | None, has_ended: bool) -> None:
        assert Job(mode=mode, status=status).has_ended is has_ended

    def test_a_phase_ends_where_the_next_begins_and_is_not_entered_twice(self) -> None:
        job = Job(mode="export")

        job.start_phase(QUEUE, 1.0)
        job.start_phase(QUEUE, 2.0)
        job.start_phase(RUN, 3.0)
        job.end_phase(5.0)
        job.end_phase(6.0)

        assert job.phases == [Phase(name=QUEUE, began_at=1.0, ended_at=3.0), Phase(name=RUN, began_at=3.0, ended_at=5.0)]

    def test_a_job_that_flaps_keeps_a_limited_number_of_phases(self) -> None:
        job = Job(mode="export")

        for number in range(5000):
            job.update_export(ExportJob(status=("queued", "running")[number % 2]), float(number))
        job.start_phase(BUNDLE, 5000.0)

        assert len(job.phases) == MAX_PHASES + 1
        assert (job.phases[-2].ended_at, job.phases[-1].name) == (5000.0, BUNDLE)

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
    @pytest.mark.parametrize(("maybe_processed", "count"), [(True, 1), (False, 0)])
    def test_it_ends_the_job_and_its_phase_and_a_start_request_in_flight_is_reported(
        self, maybe_processed: bool, count: int
    ) -> None:
        job = exported(job_id=None, start_request=Request(method="POST", url="/", maybe_processed=maybe_processed))
        job.start_phase(BUNDLE, 120.0)

        job.cancel("SIGINT", 131.0)

        assert (job.ended_at, job.phases[-1].ended_at) == (131.0, 131.0)
        assert isinstance(job.failure, Cancelled)
        assert len(job.failure.details) == count


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
        job = Job(mode="agent", project_id="prj_1", job_id="aj_1")
        job.update_agent(
            AgentJob(
                status="archived", pr_link="p", repository="r", ref="main", model="m", created_at="then", archived_at="later"
            )
        )

        row = job.result(0.0)

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
        job = Job(mode="export", domain="docs.example.com", began_at=0.0, status="a\nb")
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

    DELIVERED: Mapping[str, object] = {
        "downloaded": Downloaded(size=40_000_000, sha256="9b1c" * 16),
        "bundle_path": "out/bundle.tar.gz",
        "site_path": "out/site",
        "site_files": 1904,
        "values_file": "values.yaml",
    }

    def test_what_was_delivered_is_reported_with_its_path(self) -> None:
        row = exported(**self.DELIVERED).result(100.0)

        assert {key: row[key] for key in row if key.startswith(("bundleP", "bundleS", "site", "values"))} == {
            "bundlePath": "out/bundle.tar.gz",
            "bundleSize": 40_000_000,
            "bundleSha256": "9b1c" * 16,
            "sitePath": "out/site",
            "valuesFile": "values.yaml",
        }

    def test_an_archive_of_no_bytes_has_a_size(self) -> None:
        assert exported(downloaded=Downloaded(size=0, sha256="e3b0")).result(100.0)["bundleSize"] == 0

    def test_a_failure_keeps_what_was_delivered_before_it(self) -> None:
        archive = {name: self.DELIVERED[name] for name in ("downloaded", "bundle_path")}

        row = exported(**archive, failure=InvalidBundle("it is damaged")).result(100.0)

        assert (row["bundlePath"], row["bundleSize"], row["sitePath"]) == ("out/bundle.tar.gz", 40_000_000, None)
        assert (row["failureReason"], row["bundleUrl"]) == ("invalid-bundle", None)

    def test_a_download_that_failed_left_nothing(self) -> None:
        row = exported(failure=DownloadFailed("it broke off")).result(100.0)

        assert [row[key] for key in ("bundlePath", "bundleSize", "bundleSha256", "sitePath", "valuesFile")] == [None] * 5
