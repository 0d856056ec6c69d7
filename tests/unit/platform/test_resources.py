"""The API's JSON as values: required fields, and tolerant optional ones."""

from datetime import UTC, datetime

import pytest

from docs_platform_action.errors import BadResponse
from docs_platform_action.models import AgentJob, BundleLink, ExportJob
from docs_platform_action.platform.resources import (
    read_agent_job,
    read_bundle_link,
    read_export_job,
    read_job_id,
    read_started,
)
from tests.unit.fakes import AGENT_JOB

LINK = "https://s.example.com/b?sig=1"


class TestJobIds:
    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ("se_1", "se_1"),
            (" a/b ü ", " a/b ü "),
            (17, "17"),
            ("", None),
            ("a\nb", None),
            ("a\x85", None),
            ("\ud800", None),
            (True, None),
            (1.5, None),
            (None, None),
            ([], None),
        ],
    )
    def test_a_text_or_a_whole_number_is_one(self, value: object, expected: str | None) -> None:
        assert read_job_id({"jobId": value}) == expected

    @pytest.mark.parametrize("body", [None, "jobId", [], {}])
    def test_a_body_without_one_has_none(self, body: object) -> None:
        assert read_job_id(body) is None

    def test_a_start_needs_one_and_its_status_is_optional(self) -> None:
        assert read_started({"jobId": 7, "status": " queued "}) == ("7", "queued")
        assert read_started({"jobId": "a", "status": 3}) == ("a", None)
        with pytest.raises(ValueError, match="jobId"):
            read_started({"status": "queued"})


class TestExports:
    @pytest.mark.parametrize("status", [None, "", "  ", 7])
    def test_a_status_is_required(self, status: object) -> None:
        with pytest.raises(ValueError, match="status"):
            read_export_job({"status": status})

    def test_progress_number_of_pages_and_reason_are_read(self) -> None:
        body = {"status": "failed", "progress": 57.5, "pageCount": 231, "error": "no theme"}

        assert read_export_job(body) == ExportJob(
            status="failed", progress=57.5, page_count=231, error="no theme"
        )

    def test_the_title_of_a_job_is_not_a_reason(self) -> None:
        assert read_export_job({"status": "failed", "title": "Our docs"}).error is None


class TestBundles:
    @pytest.mark.parametrize("url", ["http://s.example.com/b", "/b", None, 7])
    def test_an_address_for_the_download_is_required(self, url: object) -> None:
        with pytest.raises(ValueError, match="bundleUrl"):
            read_bundle_link({"bundleUrl": url})

    @pytest.mark.parametrize(
        ("value", "text", "hour"),
        [
            ("2026-05-04T15:04:00Z", "2026-05-04T15:04:00Z", 15),
            (" 2026-05-04T17:04:00+02:00 ", "2026-05-04T17:04:00+02:00", 15),
            (1777907040, "1777907040", 15),
            (1777907040000.0, "1777907040000.0", 15),
            ("tomorrow", "tomorrow", None),
            (" ", None, None),
            (True, None, None),
        ],
    )
    def test_an_expiry_of_any_form_is_kept_and_read_if_possible(
        self, value: object, text: str | None, hour: int | None
    ) -> None:
        expires = None if hour is None else datetime(2026, 5, 4, hour, 4, tzinfo=UTC)

        found = read_bundle_link({"bundleUrl": LINK, "expiresAt": value})

        assert found == BundleLink(url=LINK, expires_at=text, expires=expires)


class TestAgentJobs:
    def test_all_fields_are_read_and_blanks_in_the_link_encoded(self) -> None:
        body = {**AGENT_JOB, "prLink": " https://git.example.com/docs pull/7 "}

        assert read_agent_job(body, "aj_1") == AgentJob(
            status="completed",
            pr_link="https://git.example.com/docs%20pull/7",
            repository="https://git.example.com/docs.git",
            ref="main",
            model="m-1",
            created_at="2026-05-04T12:00:00Z",
        )

    @pytest.mark.parametrize("link", ["javascript:alert(1)", "git.example.com/7", "https://[x", 7])
    def test_a_link_that_cannot_be_used_is_absent_and_known_for_a_warning(
        self, link: object
    ) -> None:
        job = read_agent_job({**AGENT_JOB, "prLink": link})

        assert job.pr_link is None
        assert job.unusable_pr_link == str(link)

    def test_the_reason_is_read_and_the_title_is_not_one(self) -> None:
        body = {"status": "paused", "title": "Fix typos", "error": "no credits"}

        assert read_agent_job(body) == AgentJob(status="paused", error="no credits")

    def test_a_job_without_a_link_has_neither(self) -> None:
        job = read_agent_job({**AGENT_JOB, "prLink": None})

        assert job.pr_link is None
        assert job.unusable_pr_link is None

    @pytest.mark.parametrize(("found", "asked"), [("aj_2", "aj_1"), (8, "7"), (True, "1")])
    def test_the_job_of_another_id_is_refused(self, found: object, asked: str) -> None:
        with pytest.raises(BadResponse) as caught:
            read_agent_job({**AGENT_JOB, "id": found}, asked)

        assert f"'{found}'" in caught.value.details[0]

    @pytest.mark.parametrize(
        ("found", "asked"),
        [("aj_1", "AJ_1"), (7, "7"), (7, "aj_7"), ("", "a"), (None, "a"), (1.5, "7")],
    )
    def test_the_same_id_or_one_that_cannot_be_compared_is_accepted(
        self, found: object, asked: str
    ) -> None:
        assert read_agent_job({**AGENT_JOB, "id": found}, asked).status == "completed"

    @pytest.mark.parametrize("source", [None, "x", [], {"repository": 7, "ref": " "}])
    def test_a_source_of_another_type_is_unknown(self, source: object) -> None:
        job = read_agent_job({**AGENT_JOB, "source": source})

        assert job.repository is None
        assert job.ref is None
