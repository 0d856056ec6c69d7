"""Requests are checked against the OpenAPI description."""

from dataclasses import replace

import pytest
from multidict import CIMultiDict

from admin_api_simulator import RecordedRequest
from admin_api_simulator.contract import check_request, check_requests, operations

KEY = {"authorization": "Bearer key"}
START = RecordedRequest(
    operation="start_export",
    method="POST",
    path="/v1/static-export/jobs",
    headers=CIMultiDict({**KEY, "content-type": "application/json; charset=utf-8"}),
    body=b'{"domain": "docs.example.com", "version": "2"}',
)
READ = RecordedRequest(
    operation="read_export",
    method="GET",
    path="/api/v1/static-export/jobs/a%2Fb",
    headers=CIMultiDict(KEY),
    base_path="/api",
)


def test_good_requests_pass_and_downloads_are_passed_over() -> None:
    download = replace(READ, operation="download", path="/anything", headers={})

    check_requests([START, READ, download])


def test_the_description_has_the_four_operations() -> None:
    assert {operation.operation_id for operation in operations()} == {
        "start_export",
        "read_export",
        "make_bundle",
        "read_agent_job",
    }


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (replace(START, method="PUT"), "the contract has POST at this path"),
        (replace(START, path="/v1/elsewhere"), "the path is not in the contract"),
        (replace(READ, base_path="/other"), "not below the base path"),
        (replace(READ, path="/api/v1/static-export/jobs/a/b"), "the path is not in the contract"),
        (replace(READ, query="page=2"), "has no query"),
        (replace(READ, headers=CIMultiDict()), "Authorization .* not sent"),
        (replace(READ, headers=CIMultiDict({"Authorization": "Basic x"})), "Authorization must be"),
        (replace(READ, body=b"{}"), "has no body"),
        (replace(START, headers=CIMultiDict(KEY)), "Content-Type must be application/json"),
        (replace(START, body=b"{"), "not JSON"),
        (replace(START, body=b"{}"), "'domain' is a required property"),
        (replace(START, body=b'{"domain": 1}'), "is not of type 'string'"),
    ],
)
def test_a_request_outside_the_contract_is_reported(request_: RecordedRequest, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_request(request_)
