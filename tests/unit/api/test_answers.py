"""What each answer means: a result, an error of its own, or a reason to try again."""

from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admin_api_simulator import Fault
from docs_platform_action.api.answers import reports_missing_endpoint
from docs_platform_action.errors import (
    ActionError,
    BadResponse,
    Forbidden,
    NotFound,
    Rejected,
    StartUnconfirmed,
    Unauthorized,
    Unavailable,
)
from docs_platform_action.inputs.settings import Mode
from docs_platform_action.job import Job
from docs_platform_action.models import ExportJob, read_error
from tests.faults import BY_NAME, HTML, Operation
from tests.keys import ADMIN_KEY
from tests.unit.api.talk import Talk, agent_job, collected_job, started_job
from tests.unit.test_models import anything, bodies
from tests.virtual_platform import API_URL, Trouble
from tests.virtual_time import BEGINNING

READS: Final = (Operation.READ_EXPORT, Operation.READ_AGENT)
API_OPERATIONS: Final = (*READS, Operation.START, Operation.BUNDLE)
UNTRUSTED: Final = BY_NAME["certificate not trusted"].trouble


def web_page(status: int, body: str = "<!DOCTYPE html><title>Attention</title>", headers: Mapping[str, str] = HTML) -> Fault:
    return Fault(status=status, body=body, headers={"X-Request-Id": "r-1", **headers})


def texts(error: ActionError) -> str:
    return " ".join([error.summary, *error.details, error.cause, error.remedy])


def job_for(operation: Operation) -> Job:
    return agent_job() if operation is Operation.READ_AGENT else started_job()


def answered(*script: Trouble, operation: Operation = Operation.READ_EXPORT, **options: Any) -> Talk:
    """Return a talk with an API that has given a successful response before."""
    talk = Talk(*script, job=job_for(operation), **options)
    talk.api.has_answered = True
    return talk


class TestFinalErrors:
    @pytest.mark.parametrize("operation", [Operation.READ_EXPORT, Operation.START])
    @pytest.mark.parametrize(
        ("number", "kind"),
        [
            *((number, Rejected) for number in (400, 402, 405, 409, 410, 422, 451, 499)),
            *((401, Unauthorized), (403, Forbidden), (404, NotFound), (300, BadResponse), (399, BadResponse)),
        ],
    )
    def test_any_other_4xx_fails_at_once(self, number: int, kind: type[ActionError], operation: Operation) -> None:
        talk = Talk(Fault(status=number, json={"error": "no"}, headers={"X-Request-Id": "r-1"}))

        error = talk.failure(operation)

        assert (type(error), error.request_id, len(talk.sent)) == (kind, "r-1", 1)

    def test_a_final_error_after_temporary_ones_is_final(self) -> None:
        talk = Talk(Fault(status=502), Fault(status=401))

        assert isinstance(talk.failure(), Unauthorized)
        assert len(talk.sent) == 2

    @pytest.mark.parametrize("trouble", [Fault(status=401), Fault(status=404), Fault(status=301), UNTRUSTED])
    def test_it_is_reported_as_such_after_the_deadline(self, trouble: Trouble) -> None:
        assert "remained unavailable" not in Talk(trouble).failure(deadline=-5).summary


REASONS: Final[tuple[tuple[dict[str, object], str], ...]] = (
    ({"error": "x y"}, "x y"),
    ({"detail": [{"loc": ["body", "domain"], "msg": "x y", "type": "missing"}]}, "body.domain: x y"),
    ({"errors": [{"message": "x y"}]}, "x y"),
    ({"errors": {"domain": ["x y"]}}, "domain: x y"),
    ({"title": "x y", "status": 422}, "x y"),
    ({"error": {"code": 7, "message": "x y"}}, "x y"),
    ({"statusCode": 422, "error": "Unprocessable Entity", "message": "x y"}, "x y"),
)


class TestReasons:
    @pytest.mark.parametrize("operation", API_OPERATIONS)
    @pytest.mark.parametrize(("body", "reason"), REASONS)
    def test_the_reason_is_shown_wherever_it_stands(self, body: dict[str, object], reason: str, operation: Operation) -> None:
        error = Talk(Fault(status=422, json=body), job=job_for(operation)).failure(operation)

        assert error.details == (f'The API at api.example.com said: "{reason}".',)

    @pytest.mark.parametrize("body", [{}, {"code": 7}, {"errors": []}])
    def test_without_one_no_message_refers_to_it(self, body: dict[str, object]) -> None:
        error = Talk(Fault(status=422, json=body)).failure()

        assert error.details == ()
        assert "message" not in texts(error)


class TestAnExportThatRunsAlready:
    @pytest.mark.parametrize(
        "body",
        [
            {"error": "another export is in progress", "jobId": "se_9"},
            {"error": {"message": "another export is in progress", "jobId": "se_9"}},
        ],
    )
    def test_its_id_and_how_to_collect_it_are_shown(self, body: dict[str, object]) -> None:
        talk = Talk(Fault(status=409, json=body), job=Job(mode=Mode.EXPORT, domain="docs.example.com"))

        error = talk.failure(Operation.START)

        assert (type(error), talk.job.job_id, len(talk.sent)) == (Rejected, None, 1)
        assert "another export is in progress" in error.details[0]
        assert "`mode: collect, job-id: se_9`" in error.remedy

    def test_without_an_id_the_dashboard_has_it(self) -> None:
        error = Talk(Fault(status=409, json={"error": "busy"})).failure(Operation.START)

        assert "dashboard" in error.remedy
        assert "se_" not in error.remedy


class TestJobIds:
    def test_a_whole_number_is_an_id(self) -> None:
        assert Talk(Fault(json={"jobId": 123})).call(Operation.START).job_id == "123"

    @pytest.mark.parametrize("body", [{"jobId": 1.5}, {"jobId": ""}, {"jobId": None}, {"id": "se_1"}, {"jobId": "a\nb"}, {}])
    def test_where_none_can_be_used_what_came_is_shown(self, body: dict[str, object]) -> None:
        talk = Talk(Fault(json=body), None)

        error = talk.failure(Operation.START)

        assert (type(error), len(talk.sent)) == (BadResponse, 1)
        shown = str(next(iter(body.values()), "{}"))
        assert shown.encode("unicode_escape").decode() in texts(error) or "null" in texts(error)


class TestABundleThatIsNotPacked:
    @pytest.mark.parametrize("status", [202, 409])
    def test_it_is_requested_again(self, status: int) -> None:
        unfinished = Fault(status=status, json={"status": "packing"}, headers={"Retry-After": "7"})
        talk = answered(unfinished, None)

        assert talk.call(Operation.BUNDLE).url.startswith("https://")
        assert talk.times == [0, 7]

    @pytest.mark.parametrize("status", [202, 204, 200, 302, 404, 403, 418])
    @pytest.mark.parametrize("body", ["", "<html>", "{}", "[]"])
    def test_after_a_successful_response_base_url_is_never_blamed(self, status: int, body: str) -> None:
        talk = answered(Fault(status=status, body=body), tolerance=60)

        assert "`base-url`" not in texts(talk.failure(Operation.BUNDLE)).replace("the address in `base-url`", "")


class TestWebPages:
    @pytest.mark.parametrize("operation", API_OPERATIONS)
    @pytest.mark.parametrize("status", [400, 401, 403, 418])
    def test_with_a_4xx_before_a_successful_response_something_in_front_of_the_api_answered(
        self, status: int, operation: Operation
    ) -> None:
        talk = Talk(web_page(status), None, job=job_for(operation))

        error = talk.failure(operation)

        assert (error.failure_reason, error.request_id) == (
            {401: "unauthorized", 403: "forbidden"}.get(status, "rejected"),
            "r-1",
        )
        assert "in front of the API" in error.cause
        assert "`base-url`" in error.cause
        assert len(talk.sent) == 1

    @pytest.mark.parametrize("operation", [*READS, Operation.BUNDLE])
    @pytest.mark.parametrize("status", [401, 403, 404, 405])
    def test_after_one_it_is_temporary(self, status: int, operation: Operation) -> None:
        talk = answered(web_page(status), None, operation=operation)

        talk.call(operation)

        assert len(talk.sent) == 2

    def test_that_lasts_it_is_an_outage(self) -> None:
        error = answered(web_page(403), tolerance=60).failure()

        assert isinstance(error, Unavailable)
        assert "in front of the API" in error.cause

    @pytest.mark.parametrize("status", [401, 403, 404, 405])
    def test_to_a_start_it_is_final_even_then(self, status: int) -> None:
        talk = answered(web_page(status), None)

        error = talk.failure(Operation.START)

        assert not isinstance(error, StartUnconfirmed | Unavailable)
        assert (len(talk.sent), talk.api.is_start_unconfirmed(talk.job)) == (1, False)

    @pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503])
    def test_of_temporary_statuses_it_says_nothing(self, status: int) -> None:
        error = Talk(web_page(status), tolerance=60).failure()

        assert isinstance(error, Unavailable)
        assert "in front of" not in texts(error)
        assert "page" not in texts(error).replace("status page", "")

    @pytest.mark.parametrize("operation", API_OPERATIONS)
    @pytest.mark.parametrize(
        "page", [web_page(200), web_page(200, "<html>", {}), web_page(203, "\n <!doctype HTML>", {"Content-Type": "text/plain"})]
    )
    def test_with_200_before_a_successful_response_base_url_is_wrong(self, page: Fault, operation: Operation) -> None:
        talk = Talk(page, None, job=job_for(operation))

        error = talk.failure(operation)

        assert (type(error), len(talk.sent)) == (BadResponse, 1)
        assert error.summary.startswith("`base-url`")
        assert "web page" in error.summary
        assert "dashboard" in error.cause
        assert "started" not in texts(error)

    def test_with_200_after_one_it_is_temporary_but_a_start_is_unconfirmed(self) -> None:
        assert answered(web_page(200), None).read().status == "completed"
        assert isinstance(answered(web_page(200), None).failure(Operation.START), StartUnconfirmed)


class TestNotFound:
    @pytest.mark.parametrize("operation", [Operation.READ_EXPORT, Operation.BUNDLE, Operation.READ_AGENT])
    @pytest.mark.parametrize("job", [started_job, collected_job])
    def test_it_is_retried_for_30_s_after_the_start_or_the_beginning_of_the_wait(self, job: Any, operation: Operation) -> None:
        unknown = Fault(status=404, json={"error": "job not found"})
        talk = Talk(unknown, job=job_for(operation) if operation is Operation.READ_AGENT else job(), jitter=lambda _: 100)
        talk.clock.advance(10)

        assert isinstance(talk.failure(operation), NotFound)
        assert (talk.times, talk.retries) == ([10, 30], [(20, 20)])

    def test_it_is_reported_as_such_after_a_shorter_tolerance(self) -> None:
        unknown = Fault(status=404, json={"error": "job not found"}, headers={"X-Request-Id": "r-1"})
        talk = Talk(unknown, job=collected_job(), tolerance=10)

        error = talk.failure()

        assert (type(error), error.request_id, talk.times[-1]) == (NotFound, "r-1", 10)

    @pytest.mark.parametrize("operation", [Operation.READ_EXPORT, Operation.BUNDLE])
    def test_later_it_is_final_at_once(self, operation: Operation) -> None:
        talk = Talk(Fault(status=404), job=Job(mode=Mode.EXPORT, job_id="se_1", began_at=BEGINNING - 30))

        assert isinstance(talk.failure(operation), NotFound)
        assert len(talk.sent) == 1

    @pytest.mark.parametrize(("status", "is_deleted"), [("completed", True), ("running", False), (None, False)])
    def test_of_a_job_that_was_completed_the_message_names_the_deletion(self, status: str | None, is_deleted: bool) -> None:
        job = Job(mode=Mode.COLLECT, job_id="se_1", began_at=BEGINNING - 30, reading=ExportJob(status=status) if status else None)
        talk = Talk(Fault(status=404), job=job)
        talk.api.has_answered = True

        error = talk.failure(Operation.BUNDLE)

        assert (type(error), len(talk.sent)) == (NotFound, 1)
        assert ("deleted" in error.summary, "`mode: collect, job-id: se_1`" in error.remedy) == (is_deleted, not is_deleted)

    @pytest.mark.parametrize("body", ["<html>", '{"error": "no such endpoint"}', '{"detail": "Not Found"}', ""])
    def test_of_a_start_without_the_apis_words_the_message_starts_with_base_url(self, body: str) -> None:
        error = Talk(Fault(status=404, body=body)).failure(Operation.START)

        assert (type(error), error.summary.split(" ")[0]) == (NotFound, "`base-url`")

    def test_of_a_start_in_the_apis_words_it_is_the_domain(self) -> None:
        error = Talk(Fault(status=404, json={"error": "Not Found"})).failure(Operation.START)

        assert "`base-url`" not in error.summary

    @pytest.mark.parametrize("operation", [Operation.START, Operation.READ_EXPORT, Operation.READ_AGENT])
    @pytest.mark.parametrize("version", ["/v1", "/api/v2"])
    def test_a_version_in_base_url_is_too_many(self, version: str, operation: Operation) -> None:
        job = agent_job() if operation is Operation.READ_AGENT else collected_job()
        talk = Talk(Fault(status=404, json={"error": "Not Found"}), base_url=f"{API_URL}{version}", job=job)

        error = talk.failure(operation)

        assert (type(error), len(talk.sent)) == (NotFound, 1)
        assert f"Remove `/{version.split('/')[-1]}` from `base-url`" in error.remedy

    def test_unless_the_api_knows_the_path_but_not_the_domain(self) -> None:
        talk = Talk(Fault(status=404, json={"error": "domain not found"}), base_url=f"{API_URL}/v1")

        assert "Remove" not in talk.failure(Operation.START).remedy


class TestBodies:
    @pytest.mark.parametrize("operation", [Operation.START, Operation.READ_EXPORT, Operation.BUNDLE])
    @pytest.mark.parametrize("name", ["jobId", "bundleUrl", "prLink"])
    def test_one_with_the_key_where_it_cannot_be_hidden_is_a_bad_response(self, name: str, operation: Operation) -> None:
        talk = Talk(Fault(json={"status": "running", name: f"https://x.example/{ADMIN_KEY}"}), None)

        error = talk.failure(operation)

        assert (type(error), len(talk.sent)) == (BadResponse, 1)
        assert ADMIN_KEY not in texts(error)

    @pytest.mark.parametrize(
        "fault",
        [
            Fault(status=409, json={"error": "busy", "jobId": f"se_{ADMIN_KEY}"}),
            Fault(status=409, json={"error": {"message": "busy", "jobId": f"se_{ADMIN_KEY}"}}),
            Fault(status=422, json={"errors": {"jobId": f"no {ADMIN_KEY}"}}),
            Fault(status=422, json={"errors": [{"prLink": [ADMIN_KEY]}]}),
        ],
    )
    def test_no_error_shows_the_key_wherever_it_is_echoed(self, fault: Fault) -> None:
        assert ADMIN_KEY not in texts(Talk(fault).failure(Operation.START))

    @pytest.mark.parametrize("body", [{"jobId": [ADMIN_KEY]}, {"prLink": ADMIN_KEY[1:]}, {"bundleUrl": None}])
    def test_part_of_the_key_or_another_type_does_not_fail_it(self, body: dict[str, object]) -> None:
        assert Talk(Fault(json={"status": "running", **body})).read().status == "running"

    def test_an_unknown_coding_of_a_body_that_can_be_read_anyway_is_ignored(self) -> None:
        assert Talk(Fault(json={"status": "running"}, headers={"Content-Encoding": "br"})).read().status == "running"

    def test_a_status_does_not_need_a_body(self) -> None:
        assert isinstance(Talk(Fault(status=401, body=b"\x1b", headers={"Content-Encoding": "br"})).failure(), Unauthorized)

    @pytest.mark.parametrize("operation", [Operation.START, Operation.BUNDLE])
    def test_the_request_id_of_an_invalid_one_is_reported(self, operation: Operation) -> None:
        assert Talk(Fault(json={"jobId": [7]}, headers={"X-Request-Id": "r-1"})).failure(operation).request_id == "r-1"

    @pytest.mark.parametrize("body", ["", "[]", '{"jobId": "se_'])
    def test_a_2xx_to_a_start_that_is_not_the_apis_json_leaves_it_unconfirmed(self, body: str) -> None:
        talk = Talk(Fault(status=200, body=body), None)

        assert isinstance(talk.failure(Operation.START), StartUnconfirmed)
        assert (len(talk.sent), talk.api.is_start_unconfirmed(talk.job)) == (1, True)


class TestMissingEndpoint:
    @pytest.mark.parametrize(
        "body",
        [
            *(None, "404 page not found", [], {}, {"error": ""}, {"status": 404, "title": "Not Found"}),
            {"error": "no such endpoint"},
            {"error": "Unknown path"},
            {"error": "Path not found: /api/v1/static-export/jobs"},
            {"message": "no Route matched with those values"},
            {"message": "Route POST:/v1.0/static-export/jobs not found", "error": "Not Found", "statusCode": 404},
            {"message": "The route v1/static-export/jobs could not be found."},
            {"statusCode": 404, "message": "Cannot POST /v1/static-export/jobs", "error": "Not Found"},
            {"timestamp": "2026-05-04T12:00:00Z", "status": 404, "error": "Not Found", "path": "/v1/static-export/jobs"},
            {"detail": "Not Found"},
            {"message": "Not Found"},
            {"error": {"code": 404, "message": "The requested URL was not found on this server."}},
            {"detail": "Method Not Allowed"},
        ],
    )
    def test_a_server_without_the_endpoint_is_recognized(self, body: object) -> None:
        assert reports_missing_endpoint(body)

    @pytest.mark.parametrize(
        "body",
        [
            {"error": "not found"},
            {"error": "Not Found", "requestId": "r-1"},
            {"error": "domain not found"},
            {"error": "Site URL docs.example.com not found"},
            {"error": "No page tree was published for docs.example.com"},
            {"error": "Check the dashboard's domains page: domain not found"},
            {"error": "Unknown URL"},
            {"error": "there is no deployment at route.example.com"},
            {"error": "endpoint.example.com is not found"},
            {"error": "unknown domain docs-page.example.com"},
            {"message": "Domain docs.example.com not found"},
            {"error": {"message": "no such deployment"}},
        ],
    )
    def test_the_api_that_does_not_know_a_name_has_the_endpoint(self, body: object) -> None:
        assert not reports_missing_endpoint(body)

    @given(st.one_of(anything, bodies("error", "message", "detail", "path")))
    def test_any_body_either_reports_a_missing_endpoint_or_holds_a_text(self, body: object) -> None:
        assert reports_missing_endpoint(body) or read_error(body)
