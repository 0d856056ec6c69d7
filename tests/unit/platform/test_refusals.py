"""Whom a refusal blames: `base-url`, the key, a name in the request, or what stands in front."""

from dataclasses import replace
from typing import Any, Final

import pytest

from admin_api_simulator.faults import Operation
from docs_platform_action.errors import (
    ActionError,
    Advice,
    Forbidden,
    ForbiddenSite,
    NotFound,
    Rejected,
    Unauthorized,
    UnauthorizedSite,
)
from docs_platform_action.job import Job
from docs_platform_action.jobs.collect import Collect
from docs_platform_action.models import ExportJob
from docs_platform_action.platform.advice import EXPLAINED, IN_FRONT, MOVED, WRONG_ADDRESS
from docs_platform_action.platform.calls import ExportForm
from docs_platform_action.platform.forms import ByProject
from docs_platform_action.platform.refusals import final_error, reports_missing_endpoint
from tests.unit.platform.talk import AGENT, BY_DOMAIN, READ, START, agent_job, answer_of, failed

PAGE: Final[dict[str, Any]] = {
    "body": "<!doctype html><title>Log in</title>",
    "headers": {"Content-Type": "text/html"},
}


BY_PROJECT: Final = ByProject()


def text_of(error: ActionError) -> str:
    return "\n".join([error.summary, *error.details, error.cause, error.remedy])


@pytest.mark.parametrize(
    ("form", "is_start", "status", "kind"),
    [
        (BY_DOMAIN, True, 401, Unauthorized),
        (BY_PROJECT, True, 401, UnauthorizedSite),
        (BY_DOMAIN, True, 403, Forbidden),
        (BY_PROJECT, True, 403, ForbiddenSite),
        (BY_PROJECT, True, 404, NotFound),
        (BY_PROJECT, True, 422, Rejected),
        (BY_PROJECT, False, 401, Unauthorized),
        (BY_PROJECT, False, 403, Forbidden),
        (BY_PROJECT, False, 404, NotFound),
        (BY_PROJECT, False, 422, Rejected),
        (None, False, 403, Forbidden),
    ],
)
def test_a_refusal_of_a_start_by_project_may_be_about_the_site_alone(
    form: ExportForm | None, is_start: bool, status: int, kind: type[ActionError]
) -> None:
    answer = answer_of(status, {"error": "no"}, form=form, is_start=is_start)

    assert type(final_error(answer)) is kind


@pytest.mark.parametrize(
    ("method", "is_start", "scope"),
    [("GET", False, "read"), ("POST", False, "write"), ("POST", True, "write")],
)
def test_a_403_names_the_scope_that_the_request_needs(
    method: str, is_start: bool, scope: str
) -> None:
    answer = answer_of(403, {"error": "no"}, method=method, is_start=is_start)

    assert f"the scope `{scope}`" in final_error(answer).cause


@pytest.mark.parametrize(
    ("form", "is_start", "status", "words", "disproved"),
    [
        (BY_DOMAIN, False, 401, "expired or was deleted", "mistyped"),
        (BY_PROJECT, True, 401, "not enabled for the project", "mistyped"),
        (BY_DOMAIN, True, 403, "static export is not enabled, or", "plan"),
        (BY_PROJECT, True, 403, "for this deployment, or", "key"),
        (BY_DOMAIN, False, 403, "were changed since", "lacks"),
    ],
)
def test_a_key_that_was_accepted_before_is_not_blamed_for_what_that_disproves(
    form: ExportForm, is_start: bool, status: int, words: str, disproved: str
) -> None:
    before = answer_of(status, form=form, method="POST", is_start=is_start, body={"error": "no"})
    accepted = replace(before, accepted_methods=frozenset({"POST"}))

    assert disproved in final_error(before).cause
    assert words in final_error(accepted).cause
    assert disproved not in final_error(accepted).cause


def test_a_success_shows_that_the_key_is_right() -> None:
    error = failed(READ, after_success=True, status=401, json={"error": "no"})

    assert "accepted earlier" in error.cause


COLLECTED: Final = Job(kind=Collect(), job_id="se_1")
COLLECTED_BY_PROJECT: Final = Job(kind=Collect(), project_id="docs", job_id="se_1")
COMPLETED: Final = Job(kind=Collect(), job_id="se_1", reading=ExportJob(status="completed"))


@pytest.mark.parametrize(
    ("job", "form", "is_api_known", "summary"),
    [
        (COLLECTED, BY_DOMAIN, False, "the platform does not know the job (404)"),
        (
            COLLECTED_BY_PROJECT,
            BY_PROJECT,
            False,
            "the platform does not know the job or the project (404)",
        ),
        (agent_job(), None, False, "the platform does not know the job or the project (404)"),
        (COLLECTED, BY_DOMAIN, True, "the platform no longer knows the job se_1 (404)"),
        (COMPLETED, BY_DOMAIN, True, "the completed export se_1 was deleted (404)"),
    ],
)
def test_a_job_is_unknown_or_was_lost_or_deleted(
    job: Job, form: ExportForm | None, is_api_known: bool, summary: str
) -> None:
    answer = answer_of(404, {"error": "no"}, job=job, form=form, is_api_known=is_api_known)

    assert final_error(answer).summary == summary


@pytest.mark.parametrize("is_api_known", [True, False])
def test_an_unknown_site_suggests_the_other_form_before_a_successful_response(
    is_api_known: bool,
) -> None:
    answer = answer_of(404, {"error": "no"}, is_start=True, is_api_known=is_api_known)

    assert ("set `project-id`" in final_error(answer).remedy) == (not is_api_known)


@pytest.mark.parametrize(
    ("base_url", "form", "blames_base_url", "suggests_other_form"),
    [
        ("https://api.example.com", BY_DOMAIN, False, True),
        ("https://api.example.com/v1", BY_DOMAIN, True, True),
        ("https://api.example.com", None, True, False),
        ("https://api.example.com/v1", None, True, False),
    ],
)
def test_a_missing_endpoint_may_be_the_other_form_unless_base_url_is_certainly_wrong(
    base_url: str, form: ExportForm | None, blames_base_url: bool, suggests_other_form: bool
) -> None:
    error = final_error(answer_of(404, base_url=base_url, form=form))

    assert error.summary.startswith("`base-url` is probably wrong") == blames_base_url
    assert ("set `project-id`" in error.remedy) == suggests_other_form
    assert ("Remove `/v1`" in error.remedy) == base_url.endswith("/v1")


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
    ("body", "is_api_known", "advice"),
    [
        (None, False, WRONG_ADDRESS),
        (None, True, IN_FRONT),
        ({"detail": "sign in first"}, False, MOVED),
        ({"detail": "sign in first"}, True, EXPLAINED),
    ],
)
def test_a_redirect_with_a_reason_shows_it_and_blames_nothing_in_front_of_the_api(
    body: object, is_api_known: bool, advice: Advice
) -> None:
    error = final_error(answer_of(307, body, is_api_known=is_api_known))

    assert ("sign in first" in text_of(error)) == (body is not None)
    assert (error.cause, error.remedy) == (advice["cause"], advice["remedy"])


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
def test_a_trusts_bare_status_if_base_url_ends_in_a_version(body: object, is_missing: bool) -> None:
    assert reports_missing_endpoint(body, trusts_bare_status=True) == is_missing
