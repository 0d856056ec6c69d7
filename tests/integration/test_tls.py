"""Who is not proved to be the host that was named gets no request: neither the key nor the link goes out."""

import datetime
import socket
import ssl
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme

from admin_api_simulator import Simulator
from tests.inside import run_inside
from tests.integration.raw import RawServer, read_request
from tests.keys import ADMIN_KEY

LONG_AGO = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


def serving(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


def with_tls_1_1_alone(context: ssl.SSLContext) -> ssl.SSLContext:
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # what is out of date is what is tested
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_1
    return context


IMPOSTORS: dict[str, Callable[[trustme.CA], ssl.SSLContext]] = {
    "of an unknown authority": lambda _: serving(trustme.CA().issue_cert("127.0.0.1")),
    "of another host": lambda trusted: serving(trusted.issue_cert("api.example.com")),
    "of another address": lambda trusted: serving(trusted.issue_cert("127.0.0.2")),
    "out of date": lambda trusted: serving(trusted.issue_cert("127.0.0.1", not_before=LONG_AGO, not_after=LONG_AGO)),
    "with TLS 1.1 alone": lambda trusted: with_tls_1_1_alone(serving(trusted.issue_cert("127.0.0.1"))),
}


class Impostor:
    """A server of TLS, and the requests that came through to it."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.requests: list[bytes] = []
        self.server = RawServer(self._answer, tls=context)
        self.base_url = self.server.base_url

    def _answer(self, connection: socket.socket) -> None:
        self.requests.append(read_request(connection))
        connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 20\r\nConnection: close\r\n\r\n{"status":"running"}')


@pytest.fixture
def trusted() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def workspace(tmp_path: Path, trusted: trustme.CA) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    trusted.cert_pem.write_to_path(str(folder / "ca.pem"))
    return folder


@pytest.fixture(params=IMPOSTORS)
def impostor(request: pytest.FixtureRequest, trusted: trustme.CA) -> Iterator[Impostor]:
    impostor = Impostor(IMPOSTORS[request.param](trusted))
    with impostor.server:
        yield impostor


def test_an_api_that_is_not_proved_to_be_it_gets_no_request(workspace: Path, impostor: Impostor) -> None:
    inputs = {"base-url": impostor.base_url, "admin-key": ADMIN_KEY, "job-id": "j", "ca-bundle": "ca.pem"}

    ended = run_inside(inputs, workspace=workspace)

    assert (ended.exit_code, ended.reason) == (1, "unavailable"), ended.stdout
    assert impostor.server.connections > 0
    assert impostor.requests == []


def test_a_storage_that_is_not_proved_to_be_it_gets_no_request(
    workspace: Path, impostor: Impostor, make_platform: Callable[..., Simulator]
) -> None:
    platform = make_platform()
    platform.override("make_bundle", {"bundleUrl": f"{impostor.base_url}/bundle?signature=0123456789abcdef"})
    inputs = {"base-url": platform.base_url, "admin-key": ADMIN_KEY, "job-id": "export-finished", "ca-bundle": "ca.pem"}

    ended = run_inside({**inputs, "bundle-path": "bundle"}, workspace=workspace)

    assert (ended.exit_code, ended.reason) == (1, "download-failed"), ended.stdout
    assert impostor.server.connections > 0
    assert impostor.requests == []
    assert [found.name for found in workspace.iterdir()] == ["ca.pem"]


def test_one_that_is_gets_it(workspace: Path, trusted: trustme.CA) -> None:
    genuine = Impostor(serving(trusted.issue_cert("127.0.0.1")))
    inputs = {"base-url": genuine.base_url, "admin-key": ADMIN_KEY, "job-id": "j", "ca-bundle": "ca.pem", "timeout": "1ms"}

    with genuine.server:
        ended = run_inside(inputs, workspace=workspace)

    assert ended.reason == "timeout"
    assert genuine.requests[0].count(f"Authorization: Bearer {ADMIN_KEY}\r\n".encode()) == 1


def test_a_server_of_tls_1_1_is_there_for_who_asks_for_no_better(trusted: trustme.CA) -> None:
    lax = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusted.configure_trust(lax)
    server = Impostor(IMPOSTORS["with TLS 1.1 alone"](trusted)).server

    with (
        server,
        socket.create_connection(("127.0.0.1", server.port)) as connection,
        with_tls_1_1_alone(lax).wrap_socket(connection, server_hostname="127.0.0.1") as secured,
    ):
        assert secured.version() == "TLSv1.1"
