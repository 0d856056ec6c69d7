"""Clients of the simulator: a plain one of the API, and one that sees every byte."""

import socket
import time
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import requests

from admin_api_simulator import Simulator

MAX_WAIT_SECONDS = 30.0


def call(
    platform: Simulator, method: str, path: str, *, json: object | None = None, headers: Mapping[str, str] | None = None
) -> requests.Response:
    """Make one API request with the right key, on a connection of its own."""
    given = {"Authorization": f"Bearer {platform.key}", **(headers or {})}
    return requests.request(
        method, platform.base_url + path, json=json, headers=given, timeout=MAX_WAIT_SECONDS, allow_redirects=False
    )


def start_export(platform: Simulator, domain: str = "docs.example.com") -> str:
    """Start an export and return its job id."""
    response = call(platform, "POST", "/v1/static-export/jobs", json={"domain": domain})
    assert response.status_code == 202
    return str(response.json()["jobId"])


def bundle_url(platform: Simulator, job_id: str = "export-finished") -> str:
    """Return a new link to a finished job's bundle."""
    response = call(platform, "POST", f"/v1/static-export/jobs/{job_id}/bundle")
    assert response.status_code == 200
    return str(response.json()["bundleUrl"])


def raw_exchange(platform: Simulator, target: str, *, method: str = "GET") -> bytes:
    """Send a request with a raw target; return all bytes of the response."""
    address = urlsplit(platform.base_url)
    assert address.hostname
    assert address.port
    with socket.create_connection((address.hostname, address.port), timeout=MAX_WAIT_SECONDS) as connection:
        connection.sendall(
            f"{method} {target} HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {platform.key}\r\n"
            "Content-Length: 0\r\nConnection: close\r\n\r\n".encode()
        )
        received = b""
        while part := connection.recv(65536):
            received += part
        return received


def eventually(read: Callable[[], str], expected: str) -> list[str]:
    """Read until the value is the expected one; return the different values on the way."""
    deadline = time.monotonic() + MAX_WAIT_SECONDS
    seen: list[str] = []
    while not seen or seen[-1] != expected:
        assert time.monotonic() < deadline, f"never {expected}, but {seen}"
        value = read()
        if not seen or seen[-1] != value:
            seen.append(value)
        time.sleep(0.005)
    return seen
