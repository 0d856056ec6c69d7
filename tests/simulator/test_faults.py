"""Every kind of fault as a client sees it, and a simulator that stops during one."""

import re
import socket
import threading
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
import requests

from admin_api_simulator import Fault, Simulator
from admin_api_simulator.responses import Framing
from tests.simulator.client import FINISHED, JOBS, bundle_url, call, raw_exchange


def test_turns_come_in_order_and_then_all_is_normal(platform: Simulator) -> None:
    platform.script(
        "read_export", Fault(status=503, headers={"Retry-After": "1"}), None, Fault(status=500)
    )

    responses = [call(platform, "GET", FINISHED) for _ in range(4)]

    assert [response.status_code for response in responses] == [503, 200, 500, 200]
    assert responses[0].headers["Retry-After"] == "1"
    assert responses[0].json() == {"error": "Service Unavailable"}
    assert [request.status for request in platform.requests] == [503, 200, 500, 200]


def test_a_domain_has_turns_of_its_own_in_every_operation(platform: Simulator) -> None:
    domain = "Bad.example.com"
    platform.script("start_export", Fault(status=500), domain=domain)
    platform.script("read_export", Fault(status=501), domain=domain)
    platform.script("make_bundle", Fault(status=502), domain=domain)
    platform.script("download", Fault(status=503), domain=domain)

    seen = {}
    for domain in ("good.example.com", "bad.example.com"):
        platform.add_export_job(domain, domain=domain)
        responses = [
            call(platform, "POST", JOBS, json={"domain": domain}),
            call(platform, "GET", f"{JOBS}/{domain}"),
            call(platform, "POST", f"{JOBS}/{domain}/bundle"),
            requests.get(bundle_url(platform, domain), timeout=10),
        ]
        seen[domain] = [response.status_code for response in responses]

    assert seen == {
        "good.example.com": [202, 200, 200, 200],
        "bad.example.com": [500, 501, 502, 503],
    }


@pytest.mark.parametrize(
    ("fault", "status", "text"),
    [
        (Fault(status=429, body="slow down"), 429, "slow down"),
        (Fault(body=b"\xff", headers={"Content-Type": "text/plain; charset=latin-1"}), 200, "ÿ"),
        (Fault(status=400, json={"error": "no"}), 400, '{"error": "no"}'),
        (Fault(status=204), 204, ""),
        (Fault(drip_seconds=0.0001, json=[]), 200, "[]"),
    ],
)
def test_a_fault_replaces_the_response(
    platform: Simulator, fault: Fault, status: int, text: str
) -> None:
    platform.script("read_export", fault)

    response = call(platform, "GET", FINISHED)

    assert (response.status_code, response.text) == (status, text)


@pytest.mark.parametrize("name", ["Content-Type", "content-type"])
def test_the_type_that_a_fault_gives_is_the_only_one(name: str) -> None:
    response = Fault(body="<p>", headers={name: "text/html"}).apply(None)

    assert response.headers == {name: "text/html"}


def test_a_response_is_cut_in_its_headers_or_its_body_or_is_no_response_at_all(
    platform: Simulator,
) -> None:
    cuts = (Fault(cut="in_headers"), Fault(cut="in_body"), Fault(cut="in_body", cut_after_bytes=3))
    platform.script("read_export", *cuts, Fault(raw=b"\x00SSH-2.0-x\r\n"))

    head, half, three, raw = (raw_exchange(platform) for _ in range(4))

    (length,) = re.findall(rb"Content-Length: (\d+)", half)
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\n\r\n" not in head
    assert len(half.partition(b"\r\n\r\n")[2]) == int(length) // 2
    assert len(three.partition(b"\r\n\r\n")[2]) == 3
    assert raw == b"\x00SSH-2.0-x\r\n"


@pytest.mark.parametrize("kept", [0, 100, 16_384, 40_000])
def test_a_chunked_body_can_be_cut_anywhere(platform: Simulator, kept: int) -> None:
    platform.put_bundle("export-finished", bytes(40_000))
    platform.script("download", Fault(framing="chunked", cut="in_body", cut_after_bytes=kept))

    received: list[bytes] = []
    with (
        requests.get(bundle_url(platform), timeout=10, stream=True) as response,
        pytest.raises(requests.exceptions.ChunkedEncodingError),
    ):
        received.extend(response.iter_content(1))

    assert b"".join(received) == bytes(kept)


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_a_stalled_body_is_silent_on_an_open_connection(
    platform: Simulator, framing: Framing
) -> None:
    platform.script("download", Fault(stall_after_bytes=100, framing=framing))
    url = urlsplit(bundle_url(platform))
    connection = HTTPConnection(url.netloc, timeout=10)
    connection.connect()
    wire = connection.sock

    connection.request("GET", f"{url.path}?{url.query}")
    with connection.getresponse() as response:
        assert len(response.read(100)) == 100
        wire.settimeout(0.2)  # only now, since the bytes may be late on a loaded machine
        with pytest.raises(TimeoutError):
            response.read(1)
    connection.close()


@pytest.mark.parametrize(("processed", "status"), [(False, 404), (True, 200)])
def test_a_start_may_be_processed_although_its_response_is_lost(
    processed: bool, status: int
) -> None:
    with Simulator(job_ids=["lost"], export_seconds=0) as platform:
        platform.script("start_export", Fault(cut="before_response", processed=processed))

        with pytest.raises(requests.exceptions.ConnectionError):
            call(platform, "POST", JOBS, json={"domain": "docs.example.com"})

        assert call(platform, "GET", f"{JOBS}/lost").status_code == status


@pytest.mark.parametrize(
    "fault", [Fault(delay_seconds=3600), Fault(drip_seconds=3600), Fault(stall_after_bytes=3)]
)
def test_stopping_waits_for_no_fault(fault: Fault) -> None:
    platform = Simulator().start()
    platform.script_forever("read_export", fault)
    host, port = platform.base_url.removeprefix("http://").split(":")
    request = f"GET {FINISHED} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {platform.key}\r\n\r\n"
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(request.encode())
        while not platform.count("read_export"):
            pass

        stopper = threading.Thread(target=platform.stop)
        stopper.start()
        stopper.join(timeout=10)

        assert not stopper.is_alive()
