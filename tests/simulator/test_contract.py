"""The simulator keeps to the OpenAPI description, even with generated requests."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from admin_api_simulator import Simulator, StartQuota
from admin_api_simulator.contract import DESCRIPTION
from tests.simulator.client import call

STARTS = ("/v1/static-export/jobs", "/v1/static-export/{projectId}/jobs")
OPERATIONS = [
    found.ok() for found in schemathesis.openapi.from_path(DESCRIPTION).get_all_operations()
]


@pytest.fixture(scope="module")
def platform() -> Iterator[Simulator]:
    with Simulator(export_seconds=0.0, agent_seconds=0.0, pages=2) as running:
        running.add_export_job("0")
        running.add_agent_job("0", project_id="0")
        yield running


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
@settings(
    max_examples=15,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(data=st.data())
def test_every_response_is_as_described(
    operation: schemathesis.APIOperation[Any, Any, Any, Any],
    data: st.DataObject,
    platform: Simulator,
) -> None:
    case = data.draw(operation.as_strategy())

    case.call_and_validate(
        base_url=platform.base_url, headers={"Authorization": f"Bearer {platform.key}"}
    )


@pytest.mark.parametrize("path", STARTS)
@pytest.mark.parametrize(("name", "status"), [("busy", 409), ("docs", 429)])
def test_a_start_beyond_the_limits_is_as_described(path: str, name: str, status: int) -> None:
    (operation,) = (one for one in OPERATIONS if one.path == path and one.method == "post")
    by_project = {"path_parameters": {"projectId": name}}
    by_domain = {"body": {"domain": f"{name}.example.com"}, "media_type": "application/json"}
    case = operation.Case(**(by_project if "{" in path else by_domain))
    quota = StartQuota(starts=1, sends_retry_after=True)

    with Simulator(export_seconds=3600, start_quota=quota) as platform:
        call(platform, "POST", STARTS[0], json={"domain": "other.example.com"})
        headers = {"Authorization": f"Bearer {platform.key}"}
        response = case.call_and_validate(base_url=platform.base_url, headers=headers)

    assert response.status_code == status
