"""A server whose certificate does not prove the host's identity gets no request, and so neither the key nor the link."""

import contextlib
import datetime
import functools
import shutil
import socket
import ssl
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme

from admin_api_simulator import Simulator
from tests.action import Action
from tests.authorities import ROOTS, Authority, make_root
from tests.ended import Ended
from tests.inside import run_inside
from tests.integration.raw import RawServer, cut, read_request, tunnel
from tests.keys import ADMIN_KEY

LONG_AGO = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


def serving(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


def with_tls_1_1_alone(context: ssl.SSLContext) -> ssl.SSLContext:
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the test needs the outdated version
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
    """A TLS server that records its requests."""

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


def test_an_api_without_a_valid_certificate_gets_no_request(workspace: Path, impostor: Impostor) -> None:
    inputs = {"base-url": impostor.base_url, "admin-key": ADMIN_KEY, "mode": "collect", "job-id": "j", "ca-bundle": "ca.pem"}

    ended = run_inside(inputs, workspace=workspace)

    assert (ended.exit_code, ended.reason) == (1, "unavailable"), ended.stdout
    assert impostor.server.connections > 0
    assert impostor.requests == []


def test_a_storage_without_a_valid_certificate_gets_no_request(
    workspace: Path, impostor: Impostor, make_platform: Callable[..., Simulator]
) -> None:
    platform = make_platform()
    platform.override("make_bundle", {"bundleUrl": f"{impostor.base_url}/bundle?signature=0123456789abcdef"})
    inputs = {
        "base-url": platform.base_url,
        "admin-key": ADMIN_KEY,
        "mode": "collect",
        "job-id": "export-finished",
        "ca-bundle": "ca.pem",
    }

    ended = run_inside({**inputs, "bundle-path": "bundle"}, workspace=workspace)

    assert (ended.exit_code, ended.reason) == (1, "download-failed"), ended.stdout
    assert impostor.server.connections > 0
    assert impostor.requests == []
    assert [found.name for found in workspace.iterdir()] == ["ca.pem"]


def test_a_server_with_a_valid_certificate_gets_the_request(workspace: Path, trusted: trustme.CA) -> None:
    genuine = Impostor(serving(trusted.issue_cert("127.0.0.1")))
    inputs = {
        "base-url": genuine.base_url,
        "admin-key": ADMIN_KEY,
        "mode": "collect",
        "job-id": "j",
        "ca-bundle": "ca.pem",
        "timeout": "1ms",
    }

    with genuine.server:
        ended = run_inside(inputs, workspace=workspace)

    assert ended.reason == "timeout"
    assert genuine.requests[0].count(f"Authorization: Bearer {ADMIN_KEY}\r\n".encode()) == 1


def test_the_tls_1_1_server_accepts_tls_1_1_clients(trusted: trustme.CA) -> None:
    lax = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusted.configure_trust(lax)
    server = Impostor(IMPOSTORS["with TLS 1.1 alone"](trusted)).server

    with (
        server,
        socket.create_connection(("127.0.0.1", server.port)) as connection,
        with_tls_1_1_alone(lax).wrap_socket(connection, server_hostname="127.0.0.1") as secured,
    ):
        assert secured.version() == "TLSv1.1"


class TestOpensslAuthorities:
    """Authorities made with `openssl req -x509`, which curl trusts but Python 3.13's default `VERIFY_X509_STRICT` rejects."""

    @pytest.fixture(params=ROOTS)
    def root(self, request: pytest.FixtureRequest, tmp_path: Path) -> Authority:
        return make_root(tmp_path, ROOTS[request.param])

    @pytest.fixture
    def inputs(self, workspace: Path, root: Authority) -> dict[str, str]:
        shutil.copy(root.certificate, workspace / "root.pem")
        return {"admin-key": ADMIN_KEY, "mode": "collect", "job-id": "export-finished", "ca-bundle": "root.pem"}

    def test_they_are_trusted_for_the_api(self, workspace: Path, root: Authority, inputs: dict[str, str]) -> None:
        api = Impostor(root.issue("127.0.0.1"))

        with api.server:
            ended = run_inside({**inputs, "base-url": api.base_url, "timeout": "1ms"}, workspace=workspace)

        assert ended.reason == "timeout", ended.stdout
        assert ADMIN_KEY.encode() in api.requests[0]

    def test_they_are_trusted_for_the_storage(
        self, workspace: Path, root: Authority, inputs: dict[str, str], make_platform: Callable[..., Simulator]
    ) -> None:
        storage, platform = Impostor(root.issue("127.0.0.1")), make_platform()
        platform.override("make_bundle", {"bundleUrl": f"{storage.base_url}/bundle?signature=0123456789abcdef"})

        with storage.server:
            run_inside({**inputs, "base-url": platform.base_url, "bundle-path": "bundle"}, workspace=workspace)

        assert storage.requests
        assert storage.requests[0].startswith(b"GET /bundle?signature=0123456789abcdef HTTP/1.1\r\n")

    def test_they_are_trusted_for_a_proxy_and_the_server_behind_it(
        self, monkeypatch: pytest.MonkeyPatch, workspace: Path, root: Authority, inputs: dict[str, str]
    ) -> None:
        context = root.issue("127.0.0.1")
        api = Impostor(root.issue("192.0.2.1"))
        with api.server, RawServer(functools.partial(tunnel, to=api.server.port), tls=context) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", proxy.base_url)
            ended = run_inside({**inputs, "base-url": "https://192.0.2.1", "timeout": "1ms"}, workspace=workspace)

        assert ended.reason == "timeout", ended.stdout
        assert ADMIN_KEY.encode() in api.requests[0]

    @pytest.mark.parametrize(
        ("make", "cause"),
        [
            (lambda root, _: root.issue("127.0.0.1", expired=True), "The certificate has expired"),
            (lambda root, _: root.issue("127.0.0.2"), "for another host"),
            (lambda _, other: other.issue("127.0.0.1"), "No trusted authority has signed the certificate"),
        ],
        ids=["expired", "of another address", "of another root of that name"],
    )
    def test_no_other_certificate_is_trusted(
        self,
        tmp_path: Path,
        workspace: Path,
        root: Authority,
        inputs: dict[str, str],
        make: Callable[[Authority, Authority], ssl.SSLContext],
        cause: str,
    ) -> None:
        (tmp_path / "other").mkdir()
        api = Impostor(make(root, make_root(tmp_path / "other", "basicConstraints = CA:TRUE")))

        with api.server:
            ended = run_inside({**inputs, "base-url": api.base_url}, workspace=workspace)

        assert (ended.reason, api.requests) == ("unavailable", []), ended.stdout
        assert api.server.connections > 0
        assert cause in ended.error

    @pytest.mark.parametrize("target", ["api", "storage"])
    def test_an_untrusted_proxy_is_named_as_the_cause(
        self, monkeypatch: pytest.MonkeyPatch, workspace: Path, make_platform: Callable[..., Simulator], target: str
    ) -> None:
        platform, proxy = make_platform(), Impostor(serving(trustme.CA().issue_cert("127.0.0.1")))
        platform.override("make_bundle", {"bundleUrl": "https://192.0.2.1/bundle"})
        base_url = "https://192.0.2.1" if target == "api" else platform.base_url
        inputs = {
            "base-url": base_url,
            "admin-key": ADMIN_KEY,
            "mode": "collect",
            "job-id": "export-finished",
            "bundle-path": "bundle",
        }

        with proxy.server:
            monkeypatch.setenv("HTTPS_PROXY", proxy.base_url)
            ended = run_inside({**inputs, "ca-bundle": "ca.pem"}, workspace=workspace)

        assert (ended.reason, proxy.requests) == ("unavailable" if target == "api" else "download-failed", [])
        assert "the proxy for" in ended.error

    def test_an_intermediate_authority_is_sufficient(self, tmp_path: Path, workspace: Path) -> None:
        intermediate = make_root(tmp_path, "basicConstraints = CA:TRUE").intermediate()
        shutil.copy(intermediate.certificate, workspace / "intermediate.pem")
        api = Impostor(intermediate.issue("127.0.0.1"))
        inputs = {"admin-key": ADMIN_KEY, "mode": "collect", "job-id": "j", "ca-bundle": "intermediate.pem", "timeout": "1ms"}

        with api.server:
            ended = run_inside({**inputs, "base-url": api.base_url}, workspace=workspace)

        assert ended.reason == "timeout", ended.stdout


def with_client_certificates(context: ssl.SSLContext, trusted: trustme.CA) -> ssl.SSLContext:
    context.verify_mode = ssl.CERT_REQUIRED
    trusted.configure_trust(context)
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # with 1.3, the client has sent its request before it is rejected
    return context


def with_another_cipher(context: ssl.SSLContext) -> ssl.SSLContext:
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("AES128-SHA:@SECLEVEL=0")
    return context


def that_rejects_the_name(context: ssl.SSLContext) -> ssl.SSLContext:
    context.sni_callback = lambda *_: ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME  # type: ignore[assignment]
    return context


def alert(description: int) -> bytes:
    """Return a fatal alert of TLS (RFC 8446, section 6)."""
    return bytes([21, 3, 3, 0, 2, 2, description])


NOT_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")
NO_HANDSHAKE = ("SSLV3_ALERT_HANDSHAKE_FAILURE", "SSL_TLS_ALERT_HANDSHAKE_FAILURE")
UNHELPFUL: dict[str, tuple[Callable[[trustme.CA], ssl.SSLContext] | bytes, tuple[str, ...]]] = {
    "plain HTTP": (b"HTTP/1.1 400 Bad Request\r\n\r\n", NOT_TLS),
    "another protocol": (b"SSH-2.0-OpenSSH_9.2\r\n", NOT_TLS),
    "a client certificate": (
        lambda trusted: with_client_certificates(serving(trusted.issue_cert("127.0.0.1")), trusted),
        NO_HANDSHAKE,
    ),
    "TLS 1.1": (
        lambda trusted: with_tls_1_1_alone(serving(trusted.issue_cert("127.0.0.1"))),
        ("TLSV1_ALERT_PROTOCOL_VERSION",),
    ),
    "another cipher": (
        lambda trusted: with_another_cipher(serving(trusted.issue_cert("127.0.0.1"))),
        NO_HANDSHAKE,
    ),
    "another name": (
        lambda trusted: that_rejects_the_name(serving(trusted.issue_cert("127.0.0.1"))),
        ("TLSV1_UNRECOGNIZED_NAME",),
    ),
    "an error of the server": (alert(80), ("TLSV1_ALERT_INTERNAL_ERROR",)),
    "an end of the connection": (b"", ("UNEXPECTED_EOF_WHILE_READING",)),
}


@pytest.mark.parametrize("problem", UNHELPFUL)
@pytest.mark.parametrize("target", ["api", "storage", "proxy"])
def test_the_reason_of_a_failed_handshake_is_named(
    action: Action, trusted: trustme.CA, make_platform: Callable[..., Simulator], target: str, problem: str
) -> None:
    behavior, reasons = UNHELPFUL[problem]

    def answer(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(behavior if isinstance(behavior, bytes) else b"")

    trusted.cert_pem.write_to_path(str(action.workspace / "ca.pem"))
    platform, context = make_platform(), None if isinstance(behavior, bytes) else behavior(trusted)
    with RawServer(answer, tls=context) as server:
        platform.override("make_bundle", {"bundleUrl": f"https://127.0.0.1:{server.port}/bundle"})
        base_url = {"api": f"https://127.0.0.1:{server.port}", "proxy": "https://192.0.2.1"}.get(target, platform.base_url)
        env = {"HTTPS_PROXY": f"https://127.0.0.1:{server.port}"} if target == "proxy" else {}
        inputs = {
            "mode": "collect",
            "job_id": "export-finished",
            "bundle_path": "bundle",
            "ca_bundle": "ca.pem",
            "outage_tolerance": "1ms",
        }
        ended = action.run(base_url, env=env, **inputs)

    assert ended.reason == ("download-failed" if target == "storage" else "unavailable"), ended.stdout
    assert any(f"({reason})" in ended.error for reason in reasons), ended.error
    if target == "proxy":
        assert "HTTPS_PROXY" in ended.error
    else:
        assert ("does not use TLS" in ended.error) == (reasons is NOT_TLS)


def test_a_start_without_a_client_certificate_is_not_unconfirmed(action: Action, trusted: trustme.CA) -> None:
    trusted.cert_pem.write_to_path(str(action.workspace / "ca.pem"))
    context = with_client_certificates(serving(trusted.issue_cert("127.0.0.1")), trusted)

    with RawServer(lambda _connection: None, tls=context) as server:
        ended = action.export(server.base_url, ca_bundle="ca.pem", outage_tolerance="1ms")

    assert ended.reason == "unavailable", ended.error


class TestEnd:
    """A bundle without a length is complete only if the server ends the TLS connection, whatever it goes through."""

    BUNDLE = b"\x1f\x8b\x08".ljust(100_000, b"x")  # a download checks only the first bytes of gzip data

    @pytest.fixture(params=["directly", "through an HTTP proxy", "through an HTTPS proxy"])
    def save(
        self,
        request: pytest.FixtureRequest,
        monkeypatch: pytest.MonkeyPatch,
        workspace: Path,
        trusted: trustme.CA,
        make_platform: Callable[..., Simulator],
    ) -> Callable[..., Ended]:
        """Return a function that runs the action with `bundle-path` alone, and a storage that begins a response and ends it."""
        route, platform = request.param, make_platform()

        def save(version: ssl.TLSVersion, begin: bytes, end: Callable[[socket.socket], None]) -> Ended:
            def answer(connection: socket.socket) -> None:
                read_request(connection)
                connection.sendall(begin)
                end(connection)

            host = "127.0.0.1" if route == "directly" else "192.0.2.1"
            context = serving(trusted.issue_cert(host))
            context.minimum_version = context.maximum_version = version
            with contextlib.ExitStack() as stack:
                storage = stack.enter_context(RawServer(answer, tls=context))
                if route != "directly":
                    tls = serving(trusted.issue_cert("127.0.0.1")) if route == "through an HTTPS proxy" else None
                    proxy = stack.enter_context(RawServer(functools.partial(tunnel, to=storage.port), tls=tls))
                    monkeypatch.setenv("HTTPS_PROXY", proxy.base_url)
                platform.override("make_bundle", {"bundleUrl": f"https://{host}:{storage.port}/bundle"})
                inputs = {"base-url": platform.base_url, "admin-key": ADMIN_KEY, "mode": "collect", "job-id": "export-finished"}
                paths = {"ca-bundle": "ca.pem", "bundle-path": "bundle"}
                return run_inside({**inputs, **paths, "outage-tolerance": "1ms"}, workspace=workspace)

        return save

    @pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
    def test_half_a_bundle_is_not_saved(self, save: Callable[..., Ended], workspace: Path, version: ssl.TLSVersion) -> None:
        ended = save(version, b"HTTP/1.1 200 OK\r\n\r\n" + self.BUNDLE[: len(self.BUNDLE) // 2], cut)

        assert (ended.exit_code, ended.reason) == (1, "download-failed"), ended.stdout
        assert [found.name for found in workspace.iterdir()] == ["ca.pem"]

    @pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
    def test_a_bundle_that_the_server_ends_is_saved(
        self, save: Callable[..., Ended], workspace: Path, version: ssl.TLSVersion
    ) -> None:
        ended = save(version, b"HTTP/1.1 200 OK\r\n\r\n" + self.BUNDLE, lambda _connection: None)

        assert ended.exit_code == 0, ended.stdout
        assert (workspace / "bundle").read_bytes() == self.BUNDLE

    def test_a_bundle_of_known_length_needs_no_end_of_the_connection(self, save: Callable[..., Ended], workspace: Path) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(self.BUNDLE)

        ended = save(ssl.TLSVersion.TLSv1_3, head + self.BUNDLE, cut)

        assert ended.exit_code == 0, ended.stdout
        assert (workspace / "bundle").read_bytes() == self.BUNDLE
