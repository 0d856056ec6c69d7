"""The administrative API over real HTTP."""

from datetime import datetime
from urllib.parse import urlsplit

import pytest
import requests

from admin_api_simulator import Simulator
from tests.simulator.client import call, eventually, raw_exchange, start_export


@pytest.mark.parametrize("authorization", [None, "Bearer wrong", "Basic c2ltdWxhdGVk", "Bearer"])
def test_a_request_without_the_key_is_refused(authorization: str | None, platform: Simulator) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}

    response = requests.get(f"{platform.base_url}/v1/static-export/jobs/export-finished", headers=headers, timeout=10)

    assert response.status_code == 401
    assert "token" in response.json()["error"]


@pytest.mark.parametrize(("domain", "status"), [("no-plan.example.com", 403), ("unknown.example.com:8443", 404)])
def test_a_domain_chooses_a_refusal(domain: str, status: int, platform: Simulator) -> None:
    response = call(platform, "POST", "/v1/static-export/jobs", json={"domain": domain})

    assert response.status_code == status
    assert response.json()["error"]


@pytest.mark.parametrize(
    ("content_type", "body", "status"),
    [
        ("application/json", b"{", 400),
        ("application/json", b"[]", 400),
        ("application/json", b"{}", 400),
        ("application/json", b'{"domain": 7}', 400),
        ("application/json", b'{"domain": ""}', 400),
        ("application/json; charset=utf-8", b'{"domain": "docs.example.com", "version": 2}', 202),
        ("text/plain", b'{"domain": "docs.example.com"}', 415),
    ],
)
def test_the_start_body_is_checked(content_type: str, body: bytes, status: int, platform: Simulator) -> None:
    response = requests.post(
        f"{platform.base_url}/v1/static-export/jobs",
        data=body,
        headers={"Authorization": f"Bearer {platform.key}", "Content-Type": content_type},
        timeout=10,
    )

    assert response.status_code == status


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/static-export/jobs/nowhere", 404),
        ("POST", "/v1/static-export/jobs/nowhere/bundle", 404),
        ("GET", "/v2/agent/demo-project/job/nowhere", 404),
        ("GET", "/v2/agent/other-project/job/agent-failed", 404),
        ("GET", "/v3/anything", 404),
        ("GET", "/v1/static-export/jobs", 405),
        ("DELETE", "/v1/static-export/jobs/export-finished", 405),
    ],
)
def test_what_is_not_there_is_reported_as_an_error(method: str, path: str, status: int, platform: Simulator) -> None:
    response = call(platform, method, path)

    assert response.status_code == status
    assert response.json()["error"]


def test_a_running_export_has_no_bundle_yet(platform: Simulator) -> None:
    platform.add_export_job("slow", seconds=3600)

    response = call(platform, "POST", "/v1/static-export/jobs/slow/bundle")

    assert response.status_code == 409


def test_a_bundle_link_is_fresh_each_time(platform: Simulator) -> None:
    first = call(platform, "POST", "/v1/static-export/jobs/export-finished/bundle").json()
    second = call(platform, "POST", "/v1/static-export/jobs/export-finished/bundle").json()

    assert first["bundleUrl"] != second["bundleUrl"]
    assert datetime.fromisoformat(first["expiresAt"]).tzinfo is not None
    assert first["expiresAt"].endswith("Z")
    assert first["sizeBytes"] == len(requests.get(first["bundleUrl"], timeout=10).content)
    assert {",", "&", "%"} <= set(urlsplit(first["bundleUrl"]).query)


@pytest.mark.parametrize(
    ("job_id", "status", "has_pull_request", "is_archived"),
    [
        ("agent-pull-request", "completed", True, False),
        ("agent-no-change", "completed", False, False),
        ("agent-archived", "archived", False, True),
        ("agent-failed", "failed", False, False),
    ],
)
def test_an_agent_job_is_active_first_and_then_ends(
    job_id: str, status: str, has_pull_request: bool, is_archived: bool, platform: Simulator
) -> None:
    path = f"/v2/agent/demo-project/job/{job_id}"

    seen = eventually(lambda: str(call(platform, "GET", path).json()["status"]), status)
    job = call(platform, "GET", path).json()

    assert seen == ["active", status]
    assert set(job) == {"id", "status", "source", "model", "prLink", "createdAt", "archivedAt"}
    assert set(job["source"]) == {"repository", "ref"}
    assert (job["prLink"] is not None) is has_pull_request
    assert (job["archivedAt"] is not None) is is_archived


@pytest.mark.parametrize("job_id", [".", "..", "a/../b", "%2F", "ü"])
def test_ids_are_routed_on_the_raw_path(job_id: str) -> None:
    with Simulator(job_ids=[job_id], export_seconds=0) as platform:
        assert start_export(platform) == job_id
        encoded = "".join(f"%{byte:02X}" for byte in job_id.encode())

        response = raw_exchange(platform, f"/v1/static-export/jobs/{encoded}")

        assert response.startswith(b"HTTP/1.1 200 ")
        assert platform.requests[-1].path == f"/v1/static-export/jobs/{encoded}"
        assert platform.requests[-1].operation == "read_export"


def test_an_override_replaces_successful_responses_until_it_is_removed(platform: Simulator) -> None:
    path = "/v1/static-export/jobs/export-finished"

    platform.override("read_export", json={"status": "resting", "progress": "half"})
    replaced = call(platform, "GET", path)
    missing = call(platform, "GET", "/v1/static-export/jobs/nowhere")
    platform.override("read_export", json=lambda normal: {**normal, "pageCount": "many"})
    changed = call(platform, "GET", path)
    platform.override("read_export", None)
    normal = call(platform, "GET", path)

    assert (replaced.status_code, replaced.json()) == (200, {"status": "resting", "progress": "half"})
    assert missing.status_code == 404
    assert changed.json()["pageCount"] == "many"
    assert normal.json()["pageCount"] == 12


def test_every_request_is_recorded(platform: Simulator) -> None:
    call(platform, "POST", "/v1/static-export/jobs", json={"domain": "docs.example.com"}, headers={"X-Mine": "1"})
    call(platform, "GET", "/v1/static-export/jobs/a%20b?c=%2F")

    first, second = platform.requests

    assert (first.operation, first.method, first.path, first.status) == (
        "start_export",
        "POST",
        "/v1/static-export/jobs",
        202,
    )
    assert first.headers["x-mine"] == "1"
    assert first.body == b'{"domain": "docs.example.com"}'
    assert (second.path, second.query, second.status) == ("/v1/static-export/jobs/a%20b", "c=%2F", 404)
    assert first.at <= second.at
    assert platform.count("start_export") == 1
