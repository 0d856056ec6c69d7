"""The API's JSON: required fields, tolerant optional ones, and what an address or a reason is."""

from contextlib import nullcontext
from datetime import UTC, datetime

import pytest

from docs_platform_action.errors import BadResponse
from docs_platform_action.models import (
    MAX_TEXT_LENGTH,
    AgentJob,
    BundleLink,
    ExportJob,
    read_error,
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
            *((bad, None) for bad in ("", "a\nb", "a\x85", "\ud800", True, 1.5, None, [])),
        ],
    )
    def test_a_text_or_a_whole_number_is_one(self, value: object, expected: str | None) -> None:
        assert read_job_id({"jobId": value}) == expected

    def test_a_start_needs_one_and_its_status_is_optional(self) -> None:
        assert read_started({"jobId": 7, "status": " queued "}) == ("7", "queued")
        assert read_started({"jobId": "a", "status": 3}) == ("a", None)
        with pytest.raises(ValueError, match="jobId"):
            read_started({"status": "queued"})


class TestExports:
    @pytest.mark.parametrize("status", [None, "", "  ", 7])
    def test_a_status_is_required(self, status: object) -> None:
        with pytest.raises(ValueError, match="status"):
            ExportJob.from_json({"status": status})

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (0, 0.0),
            (57.5, 57.5),
            (100, 100.0),
            *((bad, None) for bad in (-1, 100.1, True, "57", 1e999, None)),
        ],
    )
    def test_progress_is_a_percentage_or_unknown(
        self, value: object, expected: float | None
    ) -> None:
        assert ExportJob.from_json({"status": "running", "progress": value}).progress == expected

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (0, 0),
            (412, 412),
            (3.0, 3),
            *((bad, None) for bad in (-1, 1.5, 2**53, True, "412", float("nan"))),
        ],
    )
    def test_a_page_count_is_a_whole_number_or_unknown(
        self, value: object, expected: int | None
    ) -> None:
        assert ExportJob.from_json({"status": "running", "pageCount": value}).page_count == expected


class TestBundles:
    @pytest.mark.parametrize(
        "url",
        [
            *(LINK, "HTTPS://s.example.com:8443", "https://me:pw@s.example.com/%zz"),
            *(
                "http://127.0.0.1:9000/b",
                "http://[::1]/b",
                "http://localhost/b",
                "http://LOCALHOST/b",
                "http://127.9.9.9/b",
            ),
        ],
    )
    def test_a_link_is_https_or_to_this_machine(self, url: str) -> None:
        assert BundleLink.from_json({"bundleUrl": url}).url == url

    @pytest.mark.parametrize(
        "url",
        [
            *(
                "http://s.example.com/b",
                "ftp://s.example.com",
                "//s.example.com/b",
                "/b",
                "",
                "https://",
                "http://10.0.0.1/b",
            ),
            *(
                " https://s.example.com/b",
                "https://s.example.com/a b",
                "https://s.example.com/\x7f",
                "http://a.localhost/b",
            ),
            *(
                "https://s.example.com:0/b",
                "https://s.example.com:65536/b",
                "https://s.example.com:x/",
                "https://[fe80::1/",
            ),
            *(
                "https://evil\\@s.example.com/",
                "https://a%2eb/",
                "https://a|b/",
                "https://bad\ud800.example.com",
                None,
                7,
            ),
        ],
    )
    def test_any_other_or_ambiguous_link_is_refused(self, url: object) -> None:
        with pytest.raises(ValueError, match="bundleUrl"):
            BundleLink.from_json({"bundleUrl": url})

    @pytest.mark.parametrize(
        ("value", "text", "hour"),
        [
            ("2026-05-04T15:04:00Z", "2026-05-04T15:04:00Z", 15),
            (" 2026-05-04T17:04:00+02:00 ", "2026-05-04T17:04:00+02:00", 15),
            (1777907040, "1777907040", 15),
            (1777907040000.0, "1777907040000.0", 15),
            ("tomorrow", "tomorrow", None),
            (True, None, None),
        ],
    )
    def test_an_expiry_of_any_form_is_kept_and_read_if_possible(
        self, value: object, text: str | None, hour: int | None
    ) -> None:
        found = BundleLink.from_json({"bundleUrl": LINK, "expiresAt": value})

        assert found.expires_at == text
        assert found.expires == (
            None if hour is None else datetime(2026, 5, 4, hour, 4, tzinfo=UTC)
        )


class TestAgentJobs:
    def test_all_fields_are_read_and_blanks_in_the_link_encoded(self) -> None:
        assert AgentJob.from_json(
            {**AGENT_JOB, "prLink": " https://git.example.com/docs pull/7 "}, "aj_1"
        ) == AgentJob(
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
        job = AgentJob.from_json({**AGENT_JOB, "prLink": link})

        assert (job.pr_link, job.unusable_pr_link) == (None, str(link))

    @pytest.mark.parametrize(
        ("found", "asked", "is_other"),
        [
            *(("aj_1", "AJ_1", False), ("aj_2", "aj_1", True), (7, "7", False), (8, "7", True)),
            *((7, "aj_7", False), ("", "a", False), (None, "a", False)),
        ],
    )
    def test_the_job_of_another_id_is_refused(
        self, found: object, asked: str, is_other: bool
    ) -> None:
        with pytest.raises(BadResponse) if is_other else nullcontext():
            AgentJob.from_json({**AGENT_JOB, "id": found}, asked)

    @pytest.mark.parametrize("source", [None, "x", [], {"repository": 7, "ref": " "}])
    def test_a_source_of_another_type_is_unknown(self, source: object) -> None:
        job = AgentJob.from_json({**AGENT_JOB, "source": source})

        assert (job.repository, job.ref) == (None, None)

    def test_it_has_ended_unless_it_is_active_or_unknown(self) -> None:
        ended = [
            status
            for status in (*AgentJob.KNOWN_STATUSES, "odd")
            if AgentJob(status=status).has_ended
        ]

        assert ended == ["completed", "archived", "failed"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"error": "no theme"}, "no theme"),
        ({"message": " wait "}, "wait"),
        ({"msg": "a", "detail": "b"}, "a; b"),
        ({"error": {"message": "m", "code": 7}}, "m"),
        (
            {"errors": [{"msg": "missing", "loc": ["body", "domain"]}, {"message": "x"}]},
            "body.domain: missing; x",
        ),
        ({"errors": {"domain": ["is taken", "is long"]}}, "domain: is taken; domain: is long"),
        ({"error": "Not Found", "message": "no such job"}, "no such job"),
        ({"error": "Not Found"}, "Not Found"),
        ({"error": "a", "message": "a"}, "a"),
        ({"errors": ["1", "2", "3", "4"]}, "1; 2; 3"),
        ({"reason": "x"}, None),
        ({"error": "x" * 2000}, "x" * MAX_TEXT_LENGTH),
    ],
)
def test_the_reason_of_an_error_is_found_wherever_it_stands(
    body: object, expected: str | None
) -> None:
    assert read_error(body) == expected
