"""Limits of requests per second and of unfinished jobs."""

import requests

from admin_api_simulator import Fault, Simulator
from tests.simulator.sockets.client import bundle_url, call, eventually, start_export

PATH = "/v1/static-export/jobs/export-finished"


def test_a_request_too_many_in_a_second_is_refused_for_a_while() -> None:
    with Simulator(max_requests_per_second=2, retry_after_seconds=7) as platform:
        responses = [call(platform, "GET", PATH) for _ in range(2)]
        while (response := call(platform, "GET", PATH)).status_code != 429:
            responses.append(response)  # only where the machine takes a second for two requests
        eventually(lambda: str(call(platform, "GET", PATH).status_code), "200")

    assert {one.status_code for one in responses} == {200}
    assert response.headers["Retry-After"] == "7"
    assert response.headers["X-Request-Id"]
    assert response.json()["error"] == "too many requests"


def test_a_refused_request_takes_no_turn() -> None:
    with Simulator(max_requests_per_second=1) as platform:
        url = platform.base_url + PATH
        with requests.Session() as session:
            session.headers["Authorization"] = f"Bearer {platform.key}"
            while session.get(url, timeout=10).status_code != 429:
                pass
            platform.script("read_export", Fault(status=503))
            statuses = [session.get(url, timeout=10).status_code]
            while statuses[-1] == 429:
                statuses.append(session.get(url, timeout=10).status_code)

    assert statuses[-1] == 503


def test_the_storage_has_no_bound() -> None:
    with Simulator(max_requests_per_second=1) as platform:
        url = bundle_url(platform)

        assert [requests.get(url, timeout=10).status_code for _ in range(3)] == [200] * 3


def test_a_start_beyond_the_unfinished_jobs_is_refused() -> None:
    with Simulator(max_jobs=2, export_seconds=3600) as platform:
        for _ in range(2):
            start_export(platform)
        refused = call(platform, "POST", "/v1/static-export/jobs", json={"domain": "docs.example.com"})

        assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
        assert refused.json()["error"] == "2 exports are running already"
        assert call(platform, "GET", PATH).status_code == 200
        assert platform.max_concurrent_jobs == 2


def test_a_job_that_has_ended_makes_room() -> None:
    with Simulator(max_jobs=1, export_seconds=0.1) as platform:
        start_export(platform)
        body = {"domain": "docs.example.com"}
        eventually(lambda: str(call(platform, "POST", "/v1/static-export/jobs", json=body).status_code), "202")

        assert platform.max_concurrent_jobs == 1
