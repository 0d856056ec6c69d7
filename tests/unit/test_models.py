"""The API's JSON is read, whatever it holds."""

import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.errors import BadResponse
from docs_platform_action.models import (
    MAX_TEXT_LENGTH,
    UNUSABLE,
    AgentJob,
    Bundle,
    ExportJob,
    StartedExport,
    is_bundle_url,
    is_loopback,
    is_web_address,
    read_error,
    read_job_id,
)
from tests.unit.fakes import AGENT_JOB

URL = "https://storage.example.com/se_1/bundle.tar.gz?X-Signature=abc"

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
anything = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=6)


def bodies(*names: str) -> st.SearchStrategy[dict[str, object]]:
    """Objects in which each of these names may be missing or have any value."""
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names, anything))


class TestStartedExport:
    def test_the_job_is_read_with_its_status(self) -> None:
        started = StartedExport.from_json({"jobId": "se_1", "status": "queued", "createdAt": "x"})

        assert (started.job_id, started.status) == ("se_1", "queued")

    @pytest.mark.parametrize("job_id", [" a b ", "a/b", "..", "ü", "0"])
    def test_any_text_without_control_characters_names_a_job(self, job_id: str) -> None:
        assert StartedExport.from_json({"jobId": job_id}).job_id == job_id

    @pytest.mark.parametrize("number", [7, 0, -1, 2**70])
    def test_a_whole_number_names_a_job(self, number: int) -> None:
        assert StartedExport.from_json({"jobId": number}).job_id == str(number)

    @pytest.mark.parametrize("bad", [None, "", True, False, 7.0, [], {}, "a\nb", "\x85", "\ud800"])
    def test_without_a_job_id_it_is_invalid(self, bad: object) -> None:
        with pytest.raises(ValueError, match="jobId"):
            StartedExport.from_json({"jobId": bad})

    @pytest.mark.parametrize("body", [{}, [], "se_1", 7, None, {"id": "se_1"}])
    def test_no_job_id_is_read_from_anything_else(self, body: object) -> None:
        assert read_job_id(body) is None


class TestExportJob:
    def test_all_fields_are_read(self) -> None:
        job = ExportJob.from_json({"status": "running", "progress": 57.5, "pageCount": 231, "error": "slow"})

        assert job == ExportJob(status="running", progress=57.5, page_count=231, error="slow")

    def test_the_error_of_a_failed_job_may_be_an_object(self) -> None:
        job = ExportJob.from_json({"status": "failed", "error": {"message": "page /a does not render", "code": 7}})

        assert job.error == "page /a does not render"

    def test_a_long_error_is_cut(self) -> None:
        job = ExportJob.from_json({"status": "failed", "error": {"message": "a" * 100_000}})

        assert job.error == "a" * MAX_TEXT_LENGTH

    def test_only_the_status_is_required(self) -> None:
        assert ExportJob.from_json({"status": " queued\n"}) == ExportJob(status="queued")

    def test_a_long_status_is_cut(self) -> None:
        assert ExportJob.from_json({"status": "a" * 100_000}).status == "a" * MAX_TEXT_LENGTH

    @pytest.mark.parametrize("body", [{}, *({"status": bad} for bad in (None, "", " ", 7, ["running"]))])
    def test_without_a_status_it_is_invalid(self, body: dict[str, object]) -> None:
        with pytest.raises(ValueError, match="status"):
            ExportJob.from_json(body)

    @pytest.mark.parametrize("progress", ["57", -1, 100.5, True, float("nan"), float("inf"), 10**400, [], None])
    def test_progress_that_is_not_a_percentage_is_unknown(self, progress: object) -> None:
        assert ExportJob.from_json({"status": "running", "progress": progress}).progress is None

    @pytest.mark.parametrize(("pages", "count"), [(0, 0), (12.0, 12), (2**53 - 1, 2**53 - 1)])
    def test_a_page_count_is_a_whole_number(self, pages: object, count: int) -> None:
        assert ExportJob.from_json({"status": "running", "pageCount": pages}).page_count == count

    @pytest.mark.parametrize("pages", ["12", -1, 1.5, True, float("nan"), float("inf"), 2**53, 10**400, {}, None])
    def test_an_invalid_page_count_is_unknown(self, pages: object) -> None:
        assert ExportJob.from_json({"status": "running", "pageCount": pages}).page_count is None

    @pytest.mark.parametrize(
        ("status", "ended"), [("completed", True), ("failed", True), ("queued", False), ("paused", False), ("Completed", False)]
    )
    def test_a_job_ends_with_two_statuses_only(self, status: str, ended: bool) -> None:
        assert ExportJob.from_json({"status": status}).has_ended is ended


class TestBundle:
    def test_the_link_is_read_with_its_expiry(self) -> None:
        bundle = Bundle.from_json({"bundleUrl": URL, "expiresAt": "2026-05-04T15:04:00Z"})

        assert (bundle.url, bundle.expires_at) == (URL, "2026-05-04T15:04:00Z")
        assert bundle.expires == datetime(2026, 5, 4, 15, 4, tzinfo=UTC)

    @pytest.mark.parametrize(
        ("raw", "text", "moment"),
        [
            ("2026-05-04T17:04:00+02:00", "2026-05-04T17:04:00+02:00", datetime(2026, 5, 4, 15, 4, tzinfo=UTC)),
            ("2026-05-04 15:04:00", "2026-05-04 15:04:00", datetime(2026, 5, 4, 15, 4, tzinfo=UTC)),
            (1777907040, "1777907040", datetime(2026, 5, 4, 15, 4, tzinfo=UTC)),
            (1777907040000, "1777907040000", datetime(2026, 5, 4, 15, 4, tzinfo=UTC)),
            ("in an hour", "in an hour", None),
            ("9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59-14:00", None),
            (10**30, str(10**30), None),
            (" ", None, None),
            (None, None, None),
            (True, None, None),
            ({}, None, None),
            (float("nan"), None, None),
            (float("inf"), None, None),
        ],
    )
    def test_an_expiry_is_kept_as_text_and_parsed_if_possible(
        self, raw: object, text: str | None, moment: datetime | None
    ) -> None:
        bundle = Bundle.from_json({"bundleUrl": URL, "expiresAt": raw})

        assert (bundle.expires_at, bundle.expires) == (text, moment)

    @pytest.mark.parametrize(
        "url",
        [
            None,
            "",
            7,
            "storage.example.com/x",
            "/x",
            "//storage.example.com/x",
            "http://storage.example.com/x",
            "ftp://storage.example.com/x",
            "https://",
            "https:///x",
            "https://storage.example.com/a b",
            "https://storage.example.com/a\nb",
            " https://storage.example.com/x",
            "https://storage.example.com/\x7f",
            "https://storage.example.com/\ud800",
            "https://storage.example.com/\u2028",
            "https://storage.example.com:port/x",
            "https://storage.example.com:0/x",
            "https://evil.example.com\\.storage.example.com/x",
            "https://evil.example.com\\@storage.example.com/x",
            "https://storage.example.com%2eevil.example.com/x",
            "https://storage.example.com|evil.example.com/x",
            "https://[::1/x",
            "javascript:alert(1)",
        ],
    )
    def test_without_a_usable_link_it_cannot_be_used(self, url: object) -> None:
        with pytest.raises(ValueError, match="bundleUrl"):
            Bundle.from_json({"bundleUrl": url})

    @pytest.mark.parametrize("url", ["http://localhost:9000/x", "http://127.0.0.1/x", "http://[::1]/x", "HTTPS://storage/x"])
    def test_http_is_allowed_from_this_machine(self, url: str) -> None:
        assert Bundle.from_json({"bundleUrl": url}).url == url


class TestAgentJob:
    BODY = AGENT_JOB

    def test_all_fields_are_read(self) -> None:
        assert AgentJob.from_json(self.BODY) == AgentJob(
            status="completed",
            pr_link="https://git.example.com/docs/pull/7",
            repository="https://git.example.com/docs.git",
            ref="main",
            model="m-1",
            created_at="2026-05-04T12:00:00Z",
            archived_at=None,
        )

    @pytest.mark.parametrize(
        ("given", "is_other"),
        [("aj_1", False), ("AJ_1", False), ("", False), (None, False), (7, False), ({}, False), ("aj_2", True)],
    )
    def test_a_job_with_another_id_is_refused(self, given: object, is_other: bool) -> None:
        with pytest.raises(BadResponse) if is_other else contextlib.nullcontext():
            AgentJob.from_json({**self.BODY, "id": given}, "aj_1")

    @pytest.mark.parametrize(("given", "is_other"), [(7, False), ("7", False), (8, True)])
    def test_a_numeric_id_is_compared_with_a_numeric_id(self, given: object, is_other: bool) -> None:
        with pytest.raises(BadResponse) if is_other else contextlib.nullcontext():
            AgentJob.from_json({**self.BODY, "id": given}, "7")

    @pytest.mark.parametrize("source", [None, "x", [], {"repository": 7, "ref": None}])
    def test_a_source_of_another_type_is_unknown(self, source: object) -> None:
        job = AgentJob.from_json({"status": "active", "source": source})

        assert (job.repository, job.ref) == (None, None)

    @pytest.mark.parametrize(
        ("given", "link"),
        [
            ("http://git.internal/1", "http://git.internal/1"),
            (" https://git.example.com/1\r\n", "https://git.example.com/1"),
            ("https://git.example.com/my docs/1", "https://git.example.com/my%20docs/1"),
            ("https://git.example.com/a\n\tb", "https://git.example.com/a%0A%09b"),
            ("https://git.example.com/a\u2028b", "https://git.example.com/a%E2%80%A8b"),
            ("https://git.example.com/%20ü", "https://git.example.com/%20ü"),
        ],
    )
    def test_white_space_around_a_pull_request_is_removed_and_inside_it_encoded(self, given: str, link: str) -> None:
        job = AgentJob.from_json({**self.BODY, "prLink": given})

        assert (job.pr_link, job.unusable_pr_link) == (link, None)

    @pytest.mark.parametrize(
        ("given", "shown"),
        [
            ("javascript:alert(1)", "javascript:alert(1)"),
            (" git.example.com/1\n", "git.example.com/1"),
            ("https://a b", "https://a b"),
            ("https://git.example.com/\x00", "https://git.example.com/\x00"),
            ("https:///1", "https:///1"),
            (7, "7"),
            ("x" * 2000, "x" * MAX_TEXT_LENGTH),
        ],
    )
    def test_a_pull_request_that_is_not_a_web_address_is_unusable(self, given: object, shown: str) -> None:
        job = AgentJob.from_json({**self.BODY, "prLink": given})

        assert (job.pr_link, job.unusable_pr_link) == (None, shown)

    @pytest.mark.parametrize("given", [None, "", " \n"])
    def test_a_pull_request_may_be_absent(self, given: object) -> None:
        job = AgentJob.from_json({**self.BODY, "prLink": given})

        assert (job.pr_link, job.unusable_pr_link) == (None, None)

    @pytest.mark.parametrize(
        ("status", "ended"), [("completed", True), ("archived", True), ("failed", True), ("active", False), ("waiting", False)]
    )
    def test_a_job_ends_with_three_statuses_only(self, status: str, ended: bool) -> None:
        assert AgentJob.from_json({"status": status}).has_ended is ended


def nested(depth: int) -> object:
    """Return a reason within as many objects."""
    return {"error": nested(depth - 1)} if depth else "x"


def lists(depth: int) -> object:
    return [lists(depth - 1)] if depth else []


NO_REASONS: Sequence[object] = (
    *({}, [], "text", None, 7, {"status": "failed"}, {"error": 7}, {"error": [{}, [], None]}),
    *({"error": deep} for deep in (nested(6), nested(500), lists(500), {"message": lists(500)})),
)


class TestError:
    @pytest.mark.parametrize(
        ("body", "text"),
        [
            ({"error": "job not found"}, "job not found"),
            ({"error": {"message": "no such job", "code": 4}}, "no such job"),
            ({"message": "Forbidden"}, "Forbidden"),
            ({"detail": "nope"}, "nope"),
            ({"title": "x"}, "x"),
            ({"error": "", "message": "second"}, "second"),
            ({"error": "Bad Request", "message": "y"}, "y"),
            ({"error": "Bad Request", "message": "BAD REQUEST"}, "Bad Request; BAD REQUEST"),
            ({"error": "no", "message": "no"}, "no"),
            ({"title": "Quota", "detail": "used up"}, "used up; Quota"),
            ({"detail": [{"loc": ["body", "domain"], "msg": "x"}]}, "body.domain: x"),
            ({"detail": [{"loc": ["body", 0], "msg": "x"}, {"msg": "y"}]}, "body.0: x; y"),
            ({"errors": [{"message": "x"}]}, "x"),
            ({"errors": {"domain": ["is invalid", "is long"]}}, "domain: is invalid; domain: is long"),
            ({"errors": ["a", "b", "c", "d"]}, "a; b; c"),
            ({"error": ["x"]}, "x"),
            ({"error": {"code": 4, "reason": "quota"}}, "reason: quota"),
            ({"error": "x" * 2000}, "x" * MAX_TEXT_LENGTH),
            (nested(5), "x"),
            *((no_reason, None) for no_reason in NO_REASONS),
        ],
    )
    def test_the_reason_is_found_wherever_it_stands(self, body: object, text: str | None) -> None:
        assert read_error(body) == text

    def test_a_jobs_title_is_not_its_error(self) -> None:
        assert ExportJob.from_json({"status": "failed", "title": "Docs"}).error is None


class TestAnyJson:
    @given(bodies("status", "progress", "pageCount"))
    def test_an_export_job_has_only_valid_numbers(self, body: dict[str, object]) -> None:
        job = ExportJob.from_json({"status": "running", **{name: value for name, value in body.items() if name != "status"}})

        assert job.progress is None or 0 <= job.progress <= 100
        assert job.page_count is None or 0 <= job.page_count < 2**53

    @given(st.one_of(anything, st.integers(), st.floats(), st.datetimes().map(str)))
    def test_an_expiry_is_a_moment_in_utc_or_none(self, raw: object) -> None:
        bundle = Bundle.from_json({"bundleUrl": URL, "expiresAt": raw})

        assert bundle.expires is None or bundle.expires.utcoffset() == timedelta(0)
        assert bundle.expires_at != ""

    @given(st.integers(0, 4_000_000_000))
    def test_an_expiry_in_another_zone_means_the_same_moment(self, seconds: int) -> None:
        moment = datetime.fromtimestamp(seconds, timezone(timedelta(hours=5, minutes=30)))

        bundle = Bundle.from_json({"bundleUrl": URL, "expiresAt": moment.isoformat()})

        assert bundle.expires == moment

    @given(anything)
    def test_an_error_text_is_a_text_or_none(self, body: object) -> None:
        text = read_error(body)

        assert text is None or text.strip() == text != ""

    @given(st.one_of(st.text(), st.text("htps:/@.a[]?#% \\", max_size=20).map("https://{}".format)))
    def test_an_accepted_address_has_a_host_and_no_line_breaks(self, url: str) -> None:
        if not is_web_address(url):
            return

        assert urlsplit(url).hostname
        assert not UNUSABLE.search(url)
        assert not any(character.isspace() for character in url)
        assert is_bundle_url(url) or url.lower().startswith("http:")


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("localhost", True),
        ("LOCALHOST", True),
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("localhost.example.com", False),
        ("127.0.0.1.example.com", False),
        ("10.0.0.1", False),
        ("", False),
    ],
)
def test_loopback_hosts_are_recognized(host: str, here: bool) -> None:
    assert is_loopback(host) is here
