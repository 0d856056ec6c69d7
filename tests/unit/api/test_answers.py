"""What a response of the API means: a result, an error that no retry can fix, or a reason to try again."""

from typing import Any, Final

import pytest

from admin_api_simulator import Fault
from docs_platform_action.api.answers import reports_missing_endpoint
from docs_platform_action.errors import ActionError
from docs_platform_action.job import Job
from tests.faults import Operation
from tests.keys import ADMIN_KEY
from tests.unit.api.talk import Talk, agent_job, collected_job, started_job

PAGE: Final = {"body": "<!doctype html><title>Log in</title>", "headers": {"Content-Type": "text/html"}}
RUNNING: Final = Fault(json={"status": "running"})
START, READ, BUNDLE, AGENT = Operation.START, Operation.READ_EXPORT, Operation.BUNDLE, Operation.READ_AGENT


def talk_of(operation: Operation, *script: Any, **options: Any) -> Talk:
    job = {START: Job(mode="export", domain="docs.example.com"), AGENT: agent_job()}.get(operation) or collected_job()
    return Talk(*script, job=job, **{"tolerance": 0.0, **options})


def failed(operation: Operation, *, after_success: bool = False, **fault: Any) -> ActionError:
    talk = talk_of(operation, *([RUNNING] if after_success else []), Fault(**fault))
    if after_success:
        talk.read()
    return talk.failure(operation)


def text_of(error: ActionError) -> str:
    return "\n".join([error.summary, *error.details, error.cause, error.remedy])


@pytest.mark.parametrize(
    ("operation", "status", "reason", "requests"),
    [
        (READ, 400, "rejected", 1),
        (READ, 401, "unauthorized", 1),
        (START, 403, "forbidden", 1),
        (START, 404, "not-found", 1),
        (START, 409, "rejected", 1),
        (READ, 410, "rejected", 1),
        (BUNDLE, 422, "rejected", 1),
        (AGENT, 499, "rejected", 1),
        (READ, 302, "bad-response", 1),
        (READ, 404, "not-found", 6),
        (AGENT, 404, "not-found", 6),
        (BUNDLE, 404, "not-found", 6),
        (BUNDLE, 409, "unavailable", 7),
        (BUNDLE, 202, "unavailable", 7),
        (READ, 408, "unavailable", 7),
        (READ, 425, "unavailable", 7),
        (READ, 429, "unavailable", 7),
        (READ, 500, "unavailable", 7),
        (READ, 599, "unavailable", 7),
        (START, 429, "unavailable", 7),
        (START, 500, "start-unconfirmed", 1),
        (START, 503, "start-unconfirmed", 1),
    ],
)
def test_a_status_is_final_or_retried(operation: Operation, status: int, reason: str, requests: int) -> None:
    talk = talk_of(operation, Fault(status=status, json={"error": "no theme"}), tolerance=60.0)

    error = talk.failure(operation)

    assert (error.failure_reason, len(talk.sent)) == (reason, requests)
    assert status == 302 or '"no theme."' in text_of(error).replace('theme"', 'theme."')


def test_a_start_with_503_is_retried_if_the_platform_says_when() -> None:
    talk = talk_of(START, Fault(status=503, headers={"Retry-After": "5"}), None, tolerance=60.0)

    talk.call(START)

    assert talk.times == [0, 5]


class TestNotFound:
    @pytest.mark.parametrize("job", [started_job(), collected_job()], ids=["started", "collected"])
    def test_a_job_may_be_unknown_for_30_s(self, job: Job) -> None:
        talk = Talk(Fault(status=404), job=job, tolerance=300.0)

        talk.failure(READ)
        first = talk.times[-1]
        talk.failure(READ)

        assert (first, talk.times[-1] - first) == (30, pytest.approx(0.1, abs=0.2))

    def test_a_job_that_was_known_in_this_run_was_lost(self) -> None:
        assert "mode: collect" in text_of(failed(READ, after_success=True, status=404))


class TestWebPages:
    @pytest.mark.parametrize(
        ("operation", "status", "after_success", "reason", "blames_base_url"),
        [
            (READ, 403, False, "forbidden", True),
            (READ, 404, False, "not-found", True),
            (READ, 403, True, "unavailable", False),
            (START, 403, True, "forbidden", False),
            (READ, 200, False, "bad-response", True),
            (READ, 200, True, "unavailable", False),
            (START, 200, False, "bad-response", True),
            (START, 200, True, "start-unconfirmed", False),
            (READ, 502, False, "unavailable", False),
        ],
    )
    def test_only_before_a_successful_response_base_url_may_be_wrong(
        self, operation: Operation, status: int, after_success: bool, reason: str, blames_base_url: bool
    ) -> None:
        error = failed(operation, after_success=after_success, status=status, **PAGE)

        assert (error.failure_reason, "`base-url`" in text_of(error)) == (reason, blames_base_url)


class TestMissingEndpoint:
    @pytest.mark.parametrize(
        "body",
        [
            *({"detail": "Not Found"}, {"message": "Cannot POST /v1/static-export/jobs"}, {"error": "no such route"}),
            *(
                {"error": "Not Found", "path": "/v1/x", "status": 404},
                {"message": "The requested URL was not found"},
                None,
                [],
                {},
            ),
        ],
    )
    def test_a_server_without_it_is_recognized(self, body: object) -> None:
        assert reports_missing_endpoint(body)
        assert failed(START, status=404, json=body if body is not None else []).summary.startswith("`base-url`")

    @pytest.mark.parametrize(
        "body",
        [
            *({"error": "Not Found"}, {"error": "no such domain"}, {"detail": "Deployment not found on this route"}),
            *({"error": "unknown"}, {"error": "project not found", "path": "/v1/x"}, {"message": "no pathway"}),
        ],
    )
    def test_the_api_that_does_not_know_a_name_has_it(self, body: object) -> None:
        assert not reports_missing_endpoint(body)
        assert not failed(START, status=404, json=body).summary.startswith("`base-url`")


class TestBodies:
    @pytest.mark.parametrize(
        ("operation", "body", "field"),
        [
            (START, {"jobId": f"a{ADMIN_KEY}"}, "jobId"),
            (BUNDLE, {"bundleUrl": f"https://s.example.com/{ADMIN_KEY}"}, "bundleUrl"),
            (AGENT, {"status": "active", "prLink": ADMIN_KEY}, "prLink"),
        ],
    )
    def test_the_key_in_a_field_that_is_used_as_it_is_is_final(
        self, operation: Operation, body: dict[str, str], field: str
    ) -> None:
        error = failed(operation, json=body)

        assert (error.failure_reason, f"`{field}`" in text_of(error), ADMIN_KEY in text_of(error)) == (
            "bad-response",
            True,
            False,
        )

    @pytest.mark.parametrize(
        ("operation", "fault", "reason"),
        [
            (START, {"json": {"status": "queued"}}, "bad-response"),
            (START, {"json": []}, "start-unconfirmed"),
            (START, {"body": ""}, "start-unconfirmed"),
            (BUNDLE, {"json": {"bundleUrl": "x"}}, "bad-response"),
            (BUNDLE, {"json": []}, "unavailable"),
            (READ, {"json": {"progress": 5}}, "unavailable"),
            (AGENT, {"json": {"id": "another", "status": "active"}}, "bad-response"),
        ],
    )
    def test_an_invalid_one_is_final_where_a_retry_could_start_a_second_job(
        self, operation: Operation, fault: dict[str, Any], reason: str
    ) -> None:
        assert failed(operation, **fault).failure_reason == reason
