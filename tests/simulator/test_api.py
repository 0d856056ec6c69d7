"""The administrative API and the storage over real HTTP."""

from typing import Any

import pytest
import requests

from admin_api_simulator import Simulator
from tests.simulator.client import FINISHED, JOBS, bundle_url, call, raw_exchange

PROJECT_JOBS = "/v1/static-export/docs/jobs"


@pytest.mark.parametrize(
    ("method", "path", "options", "status"),
    [
        ("GET", FINISHED, {"headers": {"Authorization": ""}}, 401),
        ("GET", FINISHED, {"headers": {"Authorization": "Bearer wrong"}}, 401),
        ("GET", FINISHED, {"headers": {"Authorization": "Basic eA=="}}, 401),
        ("POST", JOBS, {"json": {"domain": "no-plan.example.com"}}, 403),
        ("POST", JOBS, {"json": {"domain": "unknown.example.com:8443"}}, 404),
        ("POST", JOBS, {"json": []}, 400),
        ("POST", JOBS, {"json": {}}, 400),
        ("POST", JOBS, {"json": {"domain": 7}}, 400),
        ("POST", JOBS, {"json": {"domain": ""}}, 400),
        ("POST", JOBS, {"data": '{"domain": "docs.example.com"}'}, 415),
        ("POST", PROJECT_JOBS, {"json": []}, 400),
        ("POST", PROJECT_JOBS, {"json": {"basePath": "/other"}}, 400),
        ("POST", PROJECT_JOBS, {"json": {"basePath": ["/docs"]}}, 400),
        ("POST", f"{JOBS}/slow/bundle", {}, 409),
        ("GET", f"{JOBS}/nowhere", {}, 404),
        ("POST", f"{JOBS}/nowhere/bundle", {}, 404),
        ("GET", "/v2/agent/other-project/job/agent-failed", {}, 404),
        ("GET", "/v3/anything", {}, 404),
        ("DELETE", FINISHED, {}, 405),
    ],
)
def test_what_the_platform_refuses_is_an_error_with_a_reason(
    platform: Simulator, method: str, path: str, options: dict[str, Any], status: int
) -> None:
    platform.add_export_job("slow", seconds=3600)

    response = call(platform, method, path, **options)

    assert (response.status_code, bool(response.json()["error"])) == (status, True)


@pytest.mark.parametrize("job_id", [".", "..", "a/../b", "%2F", "ü"])
def test_ids_are_routed_on_the_raw_path(job_id: str) -> None:
    with Simulator(job_ids=[job_id], export_seconds=0) as platform:
        platform.script("read_export", None)
        call(platform, "POST", JOBS, json={"domain": "docs.example.com"})
        encoded_id = "".join(f"%{byte:02X}" for byte in job_id.encode())
        path = f"{JOBS}/{encoded_id}"
        platform.override("read_export", {"status": "found"})

        assert b"found" in raw_exchange(platform, f"{path}?c=%2F")
        (request,) = platform.requests_of("read_export")
        assert (request.path, request.query, request.status) == (path, "c=%2F", 200)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("/exports/export-finished/", "/exports/export-failed/", "SignatureDoesNotMatch"),
        ("X-Amz-Security-Token=session", "X-Amz-Security-Token=other", "SignatureDoesNotMatch"),
        ("X-Amz-Signature=", "X-Amz-Other=", "AccessDenied"),
        ("X-Amz-Date=", "X-Amz-Date=x", "AccessDenied"),
    ],
)
def test_a_changed_link_is_refused(platform: Simulator, old: str, new: str, code: str) -> None:
    response = requests.get(bundle_url(platform).replace(old, new), timeout=10)

    assert (response.status_code, f"<Code>{code}</Code>" in response.text) == (403, True)


@pytest.mark.parametrize(
    ("job_id", "status", "has_pull_request", "is_archived"),
    [
        ("agent-pull-request", "completed", True, False),
        ("agent-no-change", "completed", False, False),
        ("agent-archived", "archived", False, True),
        ("agent-failed", "failed", False, False),
    ],
)
def test_an_agent_job_ends_as_its_name_says(
    job_id: str, status: str, has_pull_request: bool, is_archived: bool
) -> None:
    with Simulator(agent_seconds=0.0) as platform:
        job = call(platform, "GET", f"/v2/agent/demo-project/job/{job_id}").json()

    assert job["status"] == status
    assert (job["prLink"] is not None) == has_pull_request
    assert (job["archivedAt"] is not None) == is_archived


@pytest.mark.parametrize(
    ("given", "status", "content"),
    [
        ("", 200, b"0123456789"),
        ("bytes=2-4", 206, b"234"),
        ("bytes=7-", 206, b"789"),
        ("bytes=7-99", 206, b"789"),
        ("bytes=-3", 206, b"789"),
        ("bytes=-99", 206, b"0123456789"),
        ("bytes=10-", 416, None),
        ("bytes=4-2", 200, b"0123456789"),
        ("bytes=-", 200, b"0123456789"),
        ("lines=1-2", 200, b"0123456789"),
    ],
)
def test_a_range_selects_bytes_of_a_bundle(
    platform: Simulator, given: str, status: int, content: bytes | None
) -> None:
    platform.put_bundle("export-finished", b"0123456789")

    response = requests.get(bundle_url(platform), headers={"Range": given}, timeout=10)

    assert response.status_code == status
    assert content is None or response.content == content


def test_a_range_of_another_version_is_ignored(platform: Simulator) -> None:
    platform.put_bundle("export-finished", b"0123456789")
    url = bundle_url(platform)
    etag = requests.get(url, timeout=10).headers["ETag"]

    same = requests.get(url, headers={"Range": "bytes=7-", "If-Range": etag}, timeout=10)
    other = requests.get(url, headers={"Range": "bytes=7-", "If-Range": '"other"'}, timeout=10)

    assert (same.status_code, same.content) == (206, b"789")
    assert (other.status_code, other.content) == (200, b"0123456789")
