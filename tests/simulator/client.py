"""Clients of the simulator: a plain one of the API, and one that sees every byte."""

import socket
from typing import Any
from urllib.parse import urlsplit

import requests

from admin_api_simulator import Simulator

JOBS = "/v1/static-export/jobs"
FINISHED = f"{JOBS}/export-finished"


def call(platform: Simulator, method: str, path: str, **options: Any) -> requests.Response:
    """Make one API request with the right key, unless `headers` say otherwise, on a connection of its own."""
    options = {
        "headers": {"Authorization": f"Bearer {platform.key}"},
        "allow_redirects": False,
        **options,
    }
    return requests.request(method, platform.base_url + path, timeout=30, **options)


def bundle_url(platform: Simulator, job_id: str = "export-finished") -> str:
    """Return a new link to a finished job's bundle."""
    return str(call(platform, "POST", f"{JOBS}/{job_id}/bundle").json()["bundleUrl"])


def raw_exchange(platform: Simulator, target: str = FINISHED) -> bytes:
    """Send a request with a raw target; return all bytes of the response."""
    address = urlsplit(platform.base_url)
    with socket.create_connection(
        (str(address.hostname), address.port or 0), timeout=30
    ) as connection:
        connection.sendall(
            f"GET {target} HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {platform.key}\r\n"
            "Connection: close\r\n\r\n".encode()
        )
        received = b""
        while part := connection.recv(65536):
            received += part
        return received
