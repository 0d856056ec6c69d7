"""What the simulator records of requests, connections and jobs."""

import socket

import pytest
import requests

from admin_api_simulator import Fault, Simulator
from tests.simulator.sockets.client import bundle_url, call, eventually, start_export


def test_a_request_carries_the_domain_of_its_export(platform: Simulator) -> None:
    platform.add_export_job("a/b", domain="a.example.com")
    start_export(platform, "Docs.example.com")
    call(platform, "GET", "/v1/static-export/jobs/a%2Fb")
    url = bundle_url(platform, "a%2Fb")
    platform.move_bundle("a/b")
    requests.get(url, timeout=10)
    call(platform, "GET", "/v1/static-export/jobs/nowhere")
    call(platform, "GET", "/v2/agent/demo-project/job/agent-failed")
    call(platform, "GET", "/v3/anything")
    requests.get(f"{platform.storage_url}/elsewhere", timeout=10)

    assert [(request.operation, request.domain) for request in platform.requests] == [
        ("start_export", "Docs.example.com"),
        ("read_export", "a.example.com"),
        ("make_bundle", "a.example.com"),
        ("download", "a.example.com"),
        ("read_export", None),
        ("read_agent_job", None),
        ("unknown", None),
        ("download", None),
    ]


def test_a_download_by_a_redirect_is_about_its_domain_both_times() -> None:
    with Simulator(redirect_downloads=True) as platform:
        requests.get(bundle_url(platform), timeout=10)

        assert [request.domain for request in platform.requests_of("download")] == ["docs.example.com"] * 2


def test_requests_are_counted_by_what_they_are_about(platform: Simulator) -> None:
    platform.script("start_export", Fault(status=503), domain="a.example.com")
    for domain in ("a.example.com", "a.example.com", "b.example.com"):
        call(platform, "POST", "/v1/static-export/jobs", json={"domain": domain})
    call(platform, "GET", "/v1/static-export/jobs/export-finished")

    assert platform.count() == 4
    assert platform.count("start_export") == 3
    assert platform.count(domain="A.example.com") == 2
    assert platform.count("start_export", domain="a.example.com", status=503) == 1
    assert platform.count("read_export", domain="a.example.com") == 0
    assert [request.status for request in platform.requests_of("start_export", domain="a.example.com")] == [503, 202]


def test_each_connection_has_a_number(platform: Simulator) -> None:
    url = f"{platform.base_url}/v1/static-export/jobs/export-finished"
    with requests.Session() as first, requests.Session() as second:
        for session in (first, second, first):
            session.get(url, timeout=10)
    requests.get(bundle_url(platform), timeout=10)

    assert [request.connection for request in platform.requests] == [1, 2, 1, 3, 4]
    assert (platform.connections.api, platform.connections.storage) == (3, 1)


def test_a_connection_without_a_request_is_counted_too(platform: Simulator) -> None:
    host, port = platform.base_url.removeprefix("http://").split(":")

    with socket.create_connection((host, int(port)), timeout=10):
        eventually(lambda: str(platform.connections.api), "1")

    assert platform.requests == []


def test_connections_over_tls_are_counted() -> None:
    with Simulator(tls=True) as platform, requests.Session() as session:
        for _ in range(2):
            session.get(platform.base_url, timeout=10, verify=str(platform.ca_path))

        assert [request.connection for request in platform.requests] == [1, 1]
        assert platform.connections.api == 1


@pytest.mark.parametrize(("seconds", "most"), [(3600.0, 3), (0.0, 0)])
def test_jobs_at_once_are_those_not_ended_yet(seconds: float, most: int) -> None:
    with Simulator(export_seconds=seconds) as platform:
        for _ in range(3):
            start_export(platform)

        assert platform.max_concurrent_jobs == most


def test_the_most_requests_leave_the_storages_out(platform: Simulator) -> None:
    url = bundle_url(platform)
    for _ in range(3):
        requests.get(url, timeout=10)

    assert platform.max_requests() == platform.max_requests(within_seconds=3600) == 1
    call(platform, "GET", "/v3/anything")
    assert platform.max_requests(within_seconds=3600) == 2
