"""The request target on the wire: a signed link unchanged, byte for byte, and a job's path as the action encodes it."""

import socket
import ssl
import string
from pathlib import Path

import pytest
import trustme

from admin_api_simulator import Simulator
from docs_platform_action.bundle.storage import request_bundle
from docs_platform_action.http.transport import Request, Timeouts, Transport
from docs_platform_action.http.trust import create_ssl_context
from tests.inside import run_inside
from tests.integration.parts import api_client_to
from tests.integration.raw import RawServer, read_request, tunnel
from tests.keys import ADMIN_KEY
from tests.unit.fakes import RecordedEvents, context, http_client
from tests.virtual_time import VirtualClock

PUNCTUATION = string.punctuation.replace("#", "").replace("?", "")
AWKWARD = {
    "lower-case escapes": "/a%2fb%c3%bc?sig=%2f%2b%3d",
    "upper-case escapes": "/a%2Fb%C3%BC?sig=%2F%2B%3D",
    "escapes of what needs none": "/%61%2e%7e?%73ig=%41",
    "percent signs that escape nothing": "/100%/%zz?a=%&b=%1",
    "all punctuation": f"/{PUNCTUATION}?{PUNCTUATION}?",
    "brackets and braces": '/a[1]/{b}|"^`<c>?d[]={e}|"^`<f>',
    "backslashes": "/a\\b\\..\\c?d\\e",
    "dot segments": "/a/./b/../c/..?d=/../e",
    "escaped dot segments": "/a/%2e%2e/%2E/b",
    "slashes at the beginning": "//a//b///c",
    "only slashes": "//",
    "an empty query": "/a?",
    "several question marks": "/a??b=c?d",
    "parameters": "/a;b=1;/c;?d;e",
    "quotes": "/it's?a='b'",
    "plus, comma and at sign": "/a+b,c@d:e?f+g,h@i:j",
    "an address within": "/fetch/https://other.example.com:80/x?url=http://me:pw@third.example.com/y",
}


class Recorder:
    """A server that records request targets, and redirects to the next `location` if there is one."""

    def __init__(self, *locations: bytes) -> None:
        self.targets: list[bytes] = []
        self.heads: list[bytes] = []
        self._locations = [*locations]

    def __call__(self, connection: socket.socket) -> None:
        self.heads.append(read_request(connection))
        self.targets.append(self.heads[-1].partition(b"\r\n")[0].removeprefix(b"GET ").removesuffix(b" HTTP/1.1"))
        head = b"302 Found\r\nLocation: " + self._locations.pop(0) if self._locations else b"200 OK"
        connection.sendall(b"HTTP/1.1 " + head + b"\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")


def fetch(url: str, *, transport: Transport | None = None, proxy: str | None = None) -> None:
    """Fetch a link as in a run."""
    client = http_client(transport or Transport(create_ssl_context(None)), proxies={"https": proxy} if proxy else None)
    shared = context(VirtualClock(), RecordedEvents(), client=client)
    with request_bundle(url, {}, shared, within_seconds=60) as (response, _):
        assert b"".join(response.pieces) == b"{}"


@pytest.mark.parametrize("target", AWKWARD.values(), ids=AWKWARD)
def test_a_link_is_requested_byte_for_byte(target: str) -> None:
    recorder = Recorder()

    with RawServer(recorder) as server:
        fetch(f"{server.base_url}{target}")

    assert recorder.targets == [target.encode()]


@pytest.mark.parametrize("target", [AWKWARD[name] for name in ("lower-case escapes", "brackets and braces", "backslashes")])
def test_a_redirect_is_requested_byte_for_byte(target: str) -> None:
    recorder = Recorder(target.encode())

    with RawServer(recorder) as server:
        fetch(f"{server.base_url}/a%2fb")

    assert recorder.targets == [b"/a%2fb", target.encode()]


def test_a_link_through_a_proxy_is_requested_byte_for_byte() -> None:
    target, authority, recorder = AWKWARD["brackets and braces"], trustme.CA(), Recorder()
    transport, context = (
        Transport(create_ssl_context(authority.cert_pem.bytes().decode())),
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER),
    )
    authority.issue_cert("192.0.2.1").configure_cert(context)

    with (
        RawServer(recorder, tls=context) as server,
        RawServer(lambda client: tunnel(client, to=server.port)) as proxy,
    ):
        fetch(f"https://192.0.2.1{target}", transport=transport, proxy=proxy.base_url)

    assert recorder.targets == [target.encode()]


@pytest.mark.parametrize(
    "path", ["/v1/static-export/jobs/%2E%2E", "/v1/static-export/jobs/a%2Fb", "/v1/static-export/jobs/%C3%BC/bundle", "//v1"]
)
@pytest.mark.parametrize("prefix", ["", "/prefix", "/a%2fb"])
def test_an_api_path_is_sent_unchanged(prefix: str, path: str) -> None:
    recorder = Recorder()

    with RawServer(recorder) as server:
        api_client_to(f"{server.base_url}{prefix}").send(Request(method="GET", url=path), Timeouts())

    assert recorder.targets == [f"{prefix}{path}".encode()]


def test_a_run_works_with_a_storage_that_signs_the_raw_target(platform: Simulator, tmp_path: Path) -> None:
    target = "/bucket/{site}[1]%2fbundle.tar.gz?X-Signature=ab%2fcd|0123456789abcdef"

    def serve(connection: socket.socket) -> None:
        good = read_request(connection).startswith(f"GET {target} HTTP/1.1\r\n".encode())
        head, body = ("200 OK", archive) if good else ("403 Forbidden", b"<Code>SignatureDoesNotMatch</Code>")
        connection.sendall(f"HTTP/1.1 {head}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)

    archive = b"PK\x05\x06" + bytes(18)
    with RawServer(serve) as storage:
        platform.override("make_bundle", {"bundleUrl": f"{storage.base_url}{target}"})
        inputs = {
            "base-url": platform.base_url,
            "admin-key": ADMIN_KEY,
            "mode": "collect",
            "job-id": "export-finished",
            "bundle-path": "b.zip",
        }
        ended = run_inside(inputs, workspace=tmp_path)

    assert ended.exit_code == 0, ended.error
    assert (tmp_path / "b.zip").read_bytes() == archive
