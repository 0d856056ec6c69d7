"""Every kind of fault as a client sees it, and a simulator that stops during one."""

import re
import socket
import threading
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
import requests

from admin_api_simulator import Fault, Simulator
from admin_api_simulator.responses import Framing
from tests.simulator.client import bundle_url, call, eventually, raw_exchange

PATH = "/v1/static-export/jobs/export-finished"


def read_until_it_fails(url: str) -> tuple[bytes, requests.RequestException]:
    received = b""
    with requests.get(url, timeout=10, stream=True) as response:
        try:
            for part in response.iter_content(1):
                received += part
        except requests.RequestException as error:
            return received, error
    raise AssertionError(f"all {len(received)} bytes came")


def test_turns_come_in_order_and_then_all_is_normal(platform: Simulator) -> None:
    platform.script("read_export", Fault(status=503, headers={"Retry-After": "1"}), None, Fault(status=500))

    responses = [call(platform, "GET", PATH) for _ in range(4)]

    assert [response.status_code for response in responses] == [503, 200, 500, 200]
    assert responses[0].headers["Retry-After"] == "1"
    assert responses[0].json() == {"error": "Service Unavailable"}
    assert [request.status for request in platform.requests] == [503, 200, 500, 200]


def test_a_domain_has_turns_of_its_own_in_every_operation(platform: Simulator) -> None:
    for operation, status in (("start_export", 500), ("read_export", 501), ("make_bundle", 502), ("download", 503)):
        platform.script(operation, Fault(status=status), domain="Bad.example.com")  # type: ignore[arg-type]

    seen = {}
    for domain in ("good.example.com", "bad.example.com"):
        refused = call(platform, "POST", "/v1/static-export/jobs", json={"domain": domain}).status_code
        platform.add_export_job(domain, domain=domain)
        read = call(platform, "GET", f"/v1/static-export/jobs/{domain}").status_code
        bundle = call(platform, "POST", f"/v1/static-export/jobs/{domain}/bundle").status_code
        download = requests.get(bundle_url(platform, domain), timeout=10).status_code
        seen[domain] = [refused, read, bundle, download]

    assert seen == {"good.example.com": [202, 200, 200, 200], "bad.example.com": [500, 501, 502, 503]}


@pytest.mark.parametrize(
    ("fault", "status", "text"),
    [
        (Fault(status=429, body="slow down"), 429, "slow down"),
        (Fault(body="<html>"), 200, "<html>"),
        (Fault(body=b"\xff", headers={"Content-Type": "text/plain; charset=latin-1"}), 200, "ÿ"),
        (Fault(status=400, json={"error": "no"}), 400, '{"error": "no"}'),
        (Fault(json=[]), 200, "[]"),
        (Fault(status=204), 204, ""),
    ],
)
def test_a_fault_replaces_the_operation(fault: Fault, status: int, text: str, platform: Simulator) -> None:
    platform.script("read_export", fault)

    response = call(platform, "GET", PATH)

    assert (response.status_code, response.text) == (status, text)


def test_a_cut_in_the_headers(platform: Simulator) -> None:
    platform.script("read_export", Fault(cut="in_headers"))

    received = raw_exchange(platform, PATH)

    assert received.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\n\r\n" not in received


def test_a_cut_in_the_body(platform: Simulator) -> None:
    platform.script("read_export", Fault(cut="in_body"), Fault(cut="in_body", cut_after_bytes=3))

    halved, three = (raw_exchange(platform, PATH).partition(b"\r\n\r\n") for _ in range(2))

    (length,) = re.findall(rb"Content-Length: (\d+)", halved[0])
    assert len(halved[2]) == int(length) // 2
    assert len(three[2]) == 3


@pytest.mark.parametrize("kept", [0, 100, 16_384, 39_999, 40_000])
def test_a_chunked_body_can_be_cut_anywhere(kept: int, platform: Simulator) -> None:
    platform.add_export_job("large", bundle=bytes(40_000))
    platform.script("download", Fault(framing="chunked", cut="in_body", cut_after_bytes=kept))

    received, end = read_until_it_fails(bundle_url(platform, "large"))

    assert received == bytes(kept)
    assert isinstance(end, requests.exceptions.ChunkedEncodingError)


def test_a_body_may_end_with_the_connection(platform: Simulator) -> None:
    whole = requests.get(bundle_url(platform), timeout=10).content
    platform.script("download", Fault(framing="close"), Fault(framing="close", cut="in_body", cut_after_bytes=100))

    all_of_it, cut = (requests.get(bundle_url(platform), timeout=10) for _ in range(2))

    assert not {"Content-Length", "Transfer-Encoding"} & set(all_of_it.headers)
    assert (all_of_it.content, cut.content) == (whole, whole[:100])


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_a_stalled_body_is_silent_on_an_open_connection(framing: Framing, platform: Simulator) -> None:
    platform.script("download", Fault(stall_after_bytes=100, framing=framing))

    url = urlsplit(bundle_url(platform))
    connection = HTTPConnection(url.netloc, timeout=10)
    with closing(connection):
        connection.connect()
        wire = connection.sock
        connection.request("GET", f"{url.path}?{url.query}")
        with connection.getresponse() as response:
            received = response.read(100)
            wire.settimeout(0.2)  # only now, since the bytes may be late on a loaded machine
            with pytest.raises(TimeoutError):
                response.read(1)

    assert len(received) == 100
    assert requests.get(bundle_url(platform), timeout=10).status_code == 200


def test_raw_bytes_go_out_as_they_are(platform: Simulator) -> None:
    platform.script("read_export", Fault(raw=b"\x00SSH-2.0-x\r\n"))

    assert raw_exchange(platform, PATH) == b"\x00SSH-2.0-x\r\n"


def test_a_dripped_response_comes_in_single_bytes(platform: Simulator) -> None:
    platform.script("read_export", Fault(drip_seconds=0.0001))

    response = call(platform, "GET", PATH)

    assert response.json()["status"] == "completed"
    assert response.headers["Connection"] == "close"


@pytest.mark.parametrize(("processed", "jobs"), [(False, 0), (True, 1)])
def test_a_start_may_be_processed_although_its_response_is_lost(processed: bool, jobs: int) -> None:
    with Simulator(job_ids=["lost"], export_seconds=0) as platform:
        platform.script("start_export", Fault(cut="before_response", processed=processed))

        with pytest.raises(requests.exceptions.ConnectionError):
            call(platform, "POST", "/v1/static-export/jobs", json={"domain": "docs.example.com"})

        assert call(platform, "GET", "/v1/static-export/jobs/lost").status_code == (200 if jobs else 404)


@pytest.mark.parametrize(
    "fault", [Fault(delay_seconds=3600), Fault(drip_seconds=3600), Fault(drip_seconds=0.001), Fault(stall_after_bytes=3)]
)
def test_stopping_waits_for_no_fault(fault: Fault) -> None:
    platform = Simulator().start()
    platform.script_forever("read_export", fault)
    host, port = platform.base_url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(f"GET {PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {platform.key}\r\n\r\n".encode())
        eventually(lambda: str(platform.count("read_export")), "1")

        stopper = threading.Thread(target=platform.stop)
        stopper.start()
        stopper.join(timeout=10)

        assert not stopper.is_alive()
        while connection.recv(65536):
            pass
