"""What a response of the API means: a result, an error that no retry can fix, or a reason to try again."""

from typing import Any, Final

import pytest

from admin_api_simulator import Fault
from admin_api_simulator.faults import Operation
from docs_platform_action.api.answers import reports_missing_endpoint
from docs_platform_action.errors import ActionError
from docs_platform_action.job import Job
from tests.unit.api.talk import EXPORT_ID, Talk, agent_job
from tests.virtual_time import BEGINNING

PAGE: Final = {
    "body": "<!doctype html><title>Log in</title>",
    "headers": {"Content-Type": "text/html"},
}
RUNNING: Final = Fault(json={"status": "running"})
START: Final = "start_export"
READ: Final = "read_export"
BUNDLE: Final = "make_bundle"
AGENT: Final = "read_agent_job"


def collected_job() -> Job:
    return Job(mode="collect", job_id=EXPORT_ID, began_at=BEGINNING)


def talk_of(operation: Operation, *script: Any, **options: Any) -> Talk:
    job = {START: Job(mode="export", domain="docs.example.com"), AGENT: agent_job()}.get(
        operation
    ) or collected_job()
    return Talk(*script, job=job, **{"tolerance": 0.0, **options})


def failed(operation: Operation, *, after_success: bool = False, **fault: Any) -> ActionError:
    talk = talk_of(operation, *[RUNNING] * after_success, Fault(**fault))
    if after_success:
        talk.call()
    return talk.failure(operation)


def text_of(error: ActionError) -> str:
    return "\n".join([error.summary, *error.details, error.cause, error.remedy])


@pytest.mark.parametrize(
    "job", [Job(mode="export", job_id="se_1", started_at=BEGINNING), collected_job()], ids=str
)
def test_a_job_that_was_started_or_collected_may_be_unknown_for_30_s(job: Job) -> None:
    talk = Talk(Fault(status=404), job=job)

    talk.failure(READ)
    first = talk.times[-1]
    talk.failure(READ)

    assert (first, talk.times[-1] - first) == (30, pytest.approx(0.1, abs=0.2))


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
def test_a_web_page_blames_base_url_only_before_a_successful_response(
    operation: Operation, status: int, after_success: bool, reason: str, blames_base_url: bool
) -> None:
    error = failed(operation, after_success=after_success, status=status, **PAGE)

    assert (error.failure_reason, "`base-url`" in text_of(error)) == (reason, blames_base_url)


def test_of_agent_jobs_a_missing_endpoint_means_a_wrong_base_url() -> None:
    assert failed(AGENT, status=404, json={"error": "no such route"}).summary.startswith(
        "`base-url` is probably wrong"
    )


@pytest.mark.parametrize(
    ("body", "is_missing"),
    [
        ({"detail": "Not Found"}, True),
        ({"message": "Cannot POST /v1/static-export/jobs"}, True),
        ({"error": "no such route"}, True),
        ({"error": "Not Found", "path": "/v1/x", "status": 404}, True),
        ({"message": "The requested URL was not found"}, True),
        ([], True),
        ({}, True),
        ({"error": "Not Found"}, False),
        ({"error": "no such domain"}, False),
        ({"detail": "Deployment not found on this route"}, False),
        ({"error": "unknown"}, False),
        ({"error": "project not found", "path": "/v1/x"}, False),
        ({"message": "no pathway"}, False),
    ],
)
def test_a_server_without_the_endpoint_differs_from_an_api_that_does_not_know_a_name(
    body: object, is_missing: bool
) -> None:
    assert reports_missing_endpoint(body) == is_missing
    assert ("`base-url`" in failed(START, status=404, json=body).cause) == is_missing
