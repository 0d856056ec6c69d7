"""Whom a refusal blames: `base-url`, the key, a name in the request, or what stands in front."""

from typing import Any

import pytest

from admin_api_simulator.faults import Operation
from docs_platform_action.api.refusals import reports_missing_endpoint
from docs_platform_action.errors import ActionError, NotFound
from tests.unit.api.talk import AGENT, READ, START, failed

PAGE: dict[str, Any] = {
    "body": "<!doctype html><title>Log in</title>",
    "headers": {"Content-Type": "text/html"},
}


def text_of(error: ActionError) -> str:
    return "\n".join([error.summary, *error.details, error.cause, error.remedy])


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

    assert error.failure_reason == reason
    assert ("`base-url`" in text_of(error)) == blames_base_url


def test_of_agent_jobs_a_missing_endpoint_means_a_wrong_base_url() -> None:
    error = failed(AGENT, status=404, json={"error": "no such route"})

    assert error.summary.startswith("`base-url` is probably wrong")


def test_after_a_successful_response_a_missing_endpoint_means_a_missing_job() -> None:
    error = failed(READ, after_success=True, status=404, json={"error": "no such route"})

    assert isinstance(error, NotFound)
    assert "`base-url`" not in text_of(error)


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("https://login.example.com/?next=x", "login.example.com"),
        ("//user@login.example.com:8443/", "login.example.com:8443"),
        ("/login", "another path"),
        ("", "no address"),
    ],
)
def test_a_redirect_names_its_target(location: str, target: str) -> None:
    error = failed(READ, status=302, headers={"Location": location})

    assert error.summary == f"the API redirects to {target} (302)"


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


@pytest.mark.parametrize(
    ("body", "is_missing"),
    [({"error": "Not Found"}, True), ({"error": "unknown"}, False)],
)
def test_a_bare_status_counts_if_base_url_ends_in_a_version(body: object, is_missing: bool) -> None:
    assert reports_missing_endpoint(body, bare_status_counts=True) == is_missing
