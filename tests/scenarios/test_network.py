"""Proxies, certificates, redirects and cookies.

The key goes to the API that the workflow names, and nowhere else.
"""

import base64
import datetime
import functools
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
import trustme

from admin_api_simulator import Fault, Simulator
from admin_api_simulator.faults import Operation
from tests.action import Action
from tests.archives import KINDS, SMALL_SITE
from tests.keys import ADMIN_KEY
from tests.raw import RawServer, hold, read_request, tunnel

API = "https://api.docs.invalid"
COLLECT = {"mode": "collect", "job_id": "export-finished"}
PATIENT = {**COLLECT, "outage_tolerance": "1h"}
IMPATIENT = {**COLLECT, "outage_tolerance": "1ms"}
RUNNING = b'HTTP/1.1 200 OK\r\nContent-Length: 20\r\nConnection: close\r\n\r\n{"status":"running"}'
BUNDLE = KINDS["tar"](SMALL_SITE)
LONG_AGO = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


class Recorder:
    """A server that records its requests, and sends one response to each."""

    def __init__(self, response: bytes, *, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[str] = []
        self._response = response
        self.server = RawServer(self._respond, tls=tls)
        self.base_url = self.server.base_url

    def _respond(self, connection: socket.socket) -> None:
        self.requests.append(read_request(connection).decode("latin-1"))
        connection.sendall(self._response)
        connection.shutdown(socket.SHUT_WR)
        hold(connection)  # to close it before a byte is read would reset it


@pytest.fixture
def proxy() -> Iterator[Recorder]:
    """Run a proxy that refuses every request."""
    recorder = Recorder(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
    with recorder.server:
        yield recorder


class TestProxies:
    @pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
    def test_a_proxy_gets_its_own_credentials_and_the_host_but_not_the_key(
        self, action: Action, proxy: Recorder, variable: str
    ) -> None:
        address = proxy.base_url.replace("://", "://robot:proxy-word@")
        credentials = base64.b64encode(b"robot:proxy-word").decode()

        ended = action.run(API, env={variable: address}, **IMPATIENT)

        assert ended.end == (1, "unavailable")
        assert proxy.requests
        for request in proxy.requests:
            assert request.startswith("CONNECT api.docs.invalid:443 ")
            assert f"Proxy-Authorization: Basic {credentials}\r\n" in request
            assert ADMIN_KEY not in request
        assert "proxy-word" not in ended.stdout + ended.summary

    def test_a_loopback_host_is_reached_without_a_proxy(
        self, action: Action, platform: Simulator, proxy: Recorder
    ) -> None:
        env = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), proxy.base_url)

        ended = action.export(platform, env=env)

        assert ended.end == (0, None)
        assert proxy.requests == []

    @pytest.mark.parametrize(
        ("excluded", "is_proxied"),
        [("0.0.0.0", False), ("*", False), ("docs.example, 0.0.0.0/8", False), ("[", True)],
    )
    def test_hosts_in_no_proxy_are_reached_directly(
        self, action: Action, proxy: Recorder, excluded: str, is_proxied: bool
    ) -> None:
        env = {"HTTPS_PROXY": proxy.base_url, "NO_PROXY": excluded}

        with RawServer(socket.socket.close) as api:
            # an address of this machine outside the loopback network: it needs no name server
            ended = action.run(f"https://0.0.0.0:{api.port}", env=env, **IMPATIENT)

        assert ended.reason == "unavailable"
        assert bool(proxy.requests) == is_proxied
        assert bool(api.connections) == (not is_proxied)

    @pytest.mark.parametrize(
        "address", ["http://robot:x/proxy-word@127.0.0.1", "SOCKS4a://robot:proxy-word@127.0.0.1:9"]
    )
    def test_an_address_that_cannot_be_used_fails_the_run_at_once_and_is_not_shown(
        self, action: Action, address: str
    ) -> None:
        ended = action.run(API, env={"HTTPS_PROXY": address}, **PATIENT)

        assert ended.end == (1, "unavailable")
        assert "proxy-word" not in ended.stdout + ended.summary
        assert ("SOCKS" in ended.error) == address.lower().startswith("socks")


def serving(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


IMPOSTORS: dict[str, Callable[[trustme.CA], ssl.SSLContext]] = {
    "of an unknown authority": lambda _: serving(trustme.CA().issue_cert("127.0.0.1")),
    "of another host": lambda trusted: serving(trusted.issue_cert("api.example.com")),
    "of another address": lambda trusted: serving(trusted.issue_cert("127.0.0.2")),
    "out of date": lambda trusted: serving(
        trusted.issue_cert("127.0.0.1", not_before=LONG_AGO, not_after=LONG_AGO)
    ),
}

OPENSSL_CONFIG: Final = """
[req]
distinguished_name = subject
prompt = no
{options}
[subject]
CN = {name}
[extensions]
{extensions}
"""
NEW_KEY: Final = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
ROOTS: Final = {
    "no key usage": "basicConstraints = critical, CA:TRUE\nsubjectKeyIdentifier = hash\n",
    "key usage that is not critical": (
        "basicConstraints = CA:TRUE\nkeyUsage = keyCertSign\nsubjectKeyIdentifier = hash\n"
    ),
}
"""Extensions of roots that people make with openssl, and that curl trusts.

trustme's roots have all that Python 3.13 requires.
"""


def openssl(*arguments: str | Path) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def make_root(folder: Path, extensions: str) -> None:
    """Make `root.pem` and `root.key` with only the given extensions."""
    config = folder / "root.cnf"
    options = "x509_extensions = extensions"
    config.write_text(OPENSSL_CONFIG.format(options=options, name="Root", extensions=extensions))
    created = ("-keyout", folder / "root.key", "-out", folder / "root.pem")
    openssl("req", "-x509", *NEW_KEY, *created, "-config", config, "-days", "30")


def issued(folder: Path, address: str) -> ssl.SSLContext:
    """Return the TLS context of a server at an IP address.

    The folder's root has signed its certificate.
    """
    config = folder / f"{address}.cnf"
    config.write_text(OPENSSL_CONFIG.format(options="", name="Server", extensions=""))
    extensions = folder / f"{address}.ext"
    extensions.write_text(f"subjectAltName = IP:{address}\n")
    request = folder / f"{address}.csr"
    key = folder / f"{address}.key"
    openssl("req", "-new", *NEW_KEY, "-keyout", key, "-out", request, "-config", config)
    certificate = folder / f"{address}.pem"
    signer = ("-CA", folder / "root.pem", "-CAkey", folder / "root.key", "-CAcreateserial")
    created = ("-out", certificate, "-days", "30", "-extfile", extensions)
    openssl("x509", "-req", "-in", request, *signer, *created)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


class TestCertificates:
    @pytest.fixture
    def trusted(self, action: Action) -> trustme.CA:
        """Return the authority in the workspace's `ca.pem`."""
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(action.workspace / "ca.pem"))
        return authority

    @pytest.mark.parametrize("target", ["api", "storage"])
    @pytest.mark.parametrize("name", IMPOSTORS)
    def test_a_server_that_does_not_prove_its_identity_gets_no_request(
        self, action: Action, platform: Simulator, trusted: trustme.CA, name: str, target: str
    ) -> None:
        impostor = Recorder(RUNNING, tls=IMPOSTORS[name](trusted))
        platform.override("make_bundle", {"bundleUrl": f"{impostor.base_url}/bundle"})
        server = impostor.base_url if target == "api" else platform

        with impostor.server:
            ended = action.run(server, **PATIENT, ca_bundle="ca.pem", bundle_path="bundle")

        assert ended.reason == ("unavailable" if target == "api" else "download-failed")
        assert impostor.server.connections > 0
        assert impostor.requests == []
        assert "`ca-bundle`" in ended.error or "host" in ended.error or "expired" in ended.error

    @pytest.mark.parametrize("form", ROOTS)
    def test_an_authority_made_with_openssl_is_trusted_for_the_api_and_behind_a_proxy(
        self, action: Action, tmp_path: Path, form: str
    ) -> None:
        make_root(tmp_path, ROOTS[form])
        shutil.copy(tmp_path / "root.pem", action.workspace)
        api = Recorder(RUNNING, tls=issued(tmp_path, "127.0.0.1"))
        behind = Recorder(RUNNING, tls=issued(tmp_path, "192.0.2.1"))
        inputs = {**COLLECT, "ca_bundle": "root.pem", "timeout": "1ms"}
        proxy = RawServer(functools.partial(tunnel, to=behind.server.port))
        env = {"HTTPS_PROXY": proxy.base_url}

        with api.server, behind.server, proxy:
            directly = action.run(api.base_url, **inputs)
            through_proxy = action.run("https://192.0.2.1", env=env, **inputs)

        assert directly.reason == "timeout", directly.stdout
        assert through_proxy.reason == "timeout", through_proxy.stdout
        for request in (*api.requests, *behind.requests):
            assert f"Bearer {ADMIN_KEY}" in request


class TestWhatIsSent:
    @pytest.mark.parametrize(
        ("operation", "status"), [("start_export", 307), ("read_export", 301), ("make_bundle", 308)]
    )
    def test_a_redirect_of_the_api_is_not_followed_and_its_host_is_named(
        self,
        action: Action,
        make_platform: Callable[..., Simulator],
        operation: Operation,
        status: int,
    ) -> None:
        platform = make_platform(export_seconds=0)
        elsewhere = make_platform()
        host = elsewhere.base_url.removeprefix("http://")
        location = f"http://user:secret-word@{host}/v1/elsewhere?token=secret-word#secret-word"
        platform.script(operation, Fault(status=status, headers={"Location": location}))

        ended = action.export(platform)

        assert ended.end == (1, "bad-response")
        assert platform.count(operation) == 1
        assert elsewhere.requests == []
        assert host in ended.error
        assert "secret-word" not in ended.stdout + ended.summary

    def test_no_netrc_and_no_cookie_is_sent_and_the_key_only_to_the_api(
        self, action: Action, platform: Simulator, tmp_path: Path
    ) -> None:
        netrc = tmp_path / ".netrc"
        netrc.write_text("default login somebody password else\n")
        netrc.chmod(0o600)
        for operation in ("start_export", "read_export", "make_bundle"):
            platform.script(operation, Fault(headers={"Set-Cookie": "session=abc; Path=/"}))

        env = {"NETRC": str(netrc), "HOME": str(tmp_path)}

        ended = action.run_process(platform, env=env, domain="docs.example.com", site_path="site")

        assert ended.end == (0, None)
        for request in platform.requests:
            assert "Cookie" not in request.headers
            assert request.headers["User-Agent"].startswith("docs-platform-action/")
            if request.operation == "download":
                assert "Authorization" not in request.headers
                assert ADMIN_KEY not in str(request)
            else:
                assert request.headers["Authorization"] == f"Bearer {ADMIN_KEY}"


def test_no_other_host_is_connected_to(
    action: Action, platform: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached: list[object] = []
    connect = socket.socket.connect

    def recorded(connection: socket.socket, address: object) -> None:
        reached.append(address)
        connect(connection, address)  # type: ignore[arg-type]  # any address

    monkeypatch.setattr(socket.socket, "connect", recorded)

    ended = action.export(platform, site_path="site")

    assert ended.end == (0, None)
    hosts = {f"{address[0]}:{address[1]}" for address in reached if isinstance(address, tuple)}
    assert hosts == {
        platform.base_url.removeprefix("http://"),
        platform.storage_url.removeprefix("http://"),
    }
