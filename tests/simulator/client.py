"""Clients of the simulator: a plain one of the API, and one that sees every byte."""

import socket
from typing import Any
from urllib.parse import urlsplit

import requests

from admin_api_simulator import Simulator

JOBS = "/v1/static-export/jobs"
FINISHED = f"{JOBS}/export-finished"


def call(platform: Simulator, method: str, path: str, **options: Any) -> requests.Response:
    """Make one API request on a connection of its own.

    It has the right key, unless `headers` say otherwise.
    """
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
    request = (
        f"GET {target} HTTP/1.1\r\n"
        f"Host: {address.netloc}\r\n"
        f"Authorization: Bearer {platform.key}\r\n"
        "Connection: close\r\n"
        "\r\n"
    )
    host_and_port = (str(address.hostname), address.port or 0)
    with socket.create_connection(host_and_port, timeout=30) as connection:
        connection.sendall(request.encode())
        received = b""
        while part := connection.recv(65536):
            received += part
        return received
