"""The action gets a workflow's whole environment; only the documented variables have an effect."""

import base64
import shutil
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import trustme

from admin_api_simulator import Simulator
from docs_platform_action.http.transport import Timeouts
from tests.action import Action
from tests.integration.raw import RawServer, hold, read_request
from tests.keys import ADMIN_KEY
from tests.ports import refusing_port

PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
EXITING_MODULE = "raise SystemExit('a file of the workspace ran')\n"


@dataclass
class RecordingProxy:
    """A proxy that rejects every request, and records it."""

    url: str
    requests: list[str] = field(default_factory=list)


@pytest.fixture
def proxy() -> Iterator[RecordingProxy]:
    def refuse(connection: socket.socket) -> None:
        proxy.requests.append(read_request(connection).decode("latin-1"))
        connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    with RawServer(refuse) as server:
        proxy = RecordingProxy(server.base_url)
        yield proxy


def test_python_files_of_the_workspace_do_not_run(action: Action, platform: Simulator) -> None:
    for name in ("requests", "sitecustomize", "usercustomize", "docs_platform_action", "json", "signal", "startup"):
        (action.workspace / f"{name}.py").write_text(EXITING_MODULE)
    workspace = str(action.workspace)
    variables = {
        "PYTHONPATH": workspace,
        "PYTHONSTARTUP": f"{workspace}/startup.py",
        "PYTHONHOME": workspace,
        "PYTHONINSPECT": "1",
        "PYTHONWARNINGS": "error",
        "PYTHONIOENCODING": "ascii:strict",
        "PYTHONOPTIMIZE": "2",
    }

    ended = action.run(platform, mode="collect", job_id="export-finished", env=variables)

    assert (ended.exit_code, ended.stderr) == (0, "")


@pytest.mark.parametrize("place", ["NETRC", "HOME"])
def test_a_netrc_does_not_replace_the_key(action: Action, platform: Simulator, tmp_path: Path, place: str) -> None:
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\ndefault login somebody password else\n")
    netrc.chmod(0o600)

    ended = action.export(platform, env={place: str(netrc if place == "NETRC" else tmp_path)})

    assert ended.exit_code == 0
    assert {request.headers["Authorization"] for request in platform.requests} == {f"Bearer {ADMIN_KEY}"}


@pytest.mark.parametrize("tls", [False, True])
def test_requests_to_a_loopback_host_use_no_proxy(
    action: Action, make_platform: Callable[..., Simulator], proxy: RecordingProxy, tls: bool
) -> None:
    platform = make_platform(tls=tls)
    inputs = {"ca_bundle": "ca.pem"} if tls else {}
    if tls:
        shutil.copy(str(platform.ca_path), action.workspace / "ca.pem")

    ended = action.export(platform, env=dict.fromkeys(PROXY_VARIABLES, proxy.url), **inputs)

    assert (ended.exit_code, proxy.requests) == (0, [])


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_a_proxy_learns_the_host_but_not_the_key(action: Action, proxy: RecordingProxy, variable: str) -> None:
    ended = action.export("https://api.docs.invalid", env={variable: proxy.url}, outage_tolerance="50ms")

    assert (ended.exit_code, ended.reason) == (1, "unavailable")
    assert "api.docs.invalid" in ended.error
    assert {request.splitlines()[0].rpartition(" ")[0] for request in proxy.requests} == {"CONNECT api.docs.invalid:443"}
    for request in proxy.requests:
        assert ADMIN_KEY not in request
        assert "authorization" not in request.lower().replace("proxy-authorization", "")


@pytest.mark.parametrize("proxy_url", ["http://127.0.0.1:{port}", "127.0.0.1:{port}", "robot:word@127.0.0.1:{port}"])
def test_a_failing_proxy_is_named_as_the_cause(action: Action, proxy_url: str) -> None:
    with refusing_port() as (_, port):
        env = {"HTTPS_PROXY": proxy_url.format(port=port)}
        ended = action.export("https://api.docs.invalid", env=env, outage_tolerance="1ms")

    assert (ended.exit_code, ended.reason) == (1, "unavailable"), ended.error
    assert "HTTPS_PROXY" in ended.error
    assert "NO_PROXY" in ended.error


@dataclass
class AnsweringProxy:
    """Sends one response to each request, over TLS if the run trusts its authority, and closes the connection."""

    answer: bytes
    requests: list[bytes] = field(default_factory=list)

    def __call__(self, connection: socket.socket) -> None:
        self.requests.append(read_request(connection))
        connection.sendall(self.answer)
        connection.shutdown(socket.SHUT_WR)
        hold(connection)  # to close it before a byte is read would reset it


REQUIRED = b"HTTP/1.1 407 Proxy Authentication Required\r\n"


@pytest.mark.parametrize("target", ["api", "storage"])
@pytest.mark.parametrize(
    "answer",
    [
        REQUIRED + b"Proxy-Authenticate: Basic\r\nContent-Length: 5\r\n\r\nlogin",
        REQUIRED + b"Proxy-Authenticate: Negotiate\r\nRetry-After: 1\r\n\r\n",
        REQUIRED.replace(b"HTTP/1.1", b"HTTP/1.0") + b"\r\n",
    ],
    ids=["basic", "another scheme", "HTTP/1.0"],
)
def test_a_proxy_that_requires_credentials_fails_at_once(action: Action, platform: Simulator, target: str, answer: bytes) -> None:
    platform.override("make_bundle", {"bundleUrl": "https://storage.docs.invalid/bundle"})
    answering = AnsweringProxy(answer)

    with RawServer(answering) as proxy:
        env = {"HTTPS_PROXY": proxy.base_url.replace("://", "://robot:proxy-word@")}
        inputs = {"mode": "collect", "job_id": "export-finished", "bundle_path": "bundle", "outage_tolerance": "1h"}
        ended = action.run("https://api.docs.invalid" if target == "api" else platform, env=env, **inputs)

    host = f"{target}.docs.invalid"
    assert ended.reason == ("unavailable" if target == "api" else "download-failed"), ended.stdout
    assert f" {host}: 407 " in ended.error
    assert "http://user:password@host:port" in ended.error
    assert "Retrying" not in ended.log
    assert len(answering.requests) == 1
    assert "proxy-word" not in ended.stdout + ended.stderr + ended.summary


@pytest.mark.parametrize("status", ["403 Forbidden", "502 Bad Gateway", "503 Service Unavailable", "302 Found", "201 Created"])
def test_the_status_of_a_refusing_proxy_is_named_and_temporary(action: Action, status: str) -> None:
    answering = AnsweringProxy(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
    action.set_constants(http__retry__MAX_PAUSE_SECONDS=0.05)

    with RawServer(answering) as proxy:
        ended = action.run(
            "https://api.docs.invalid", mode="collect", job_id="j", env={"HTTPS_PROXY": proxy.base_url}, outage_tolerance="200ms"
        )

    assert ended.reason == "unavailable"
    assert f" api.docs.invalid: {status[:3]} ({status[4:].lower()})." in ended.error
    assert "NO_PROXY" in ended.error
    assert len(answering.requests) > 1


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "to the proxy"),
        (b"HTTP/1.1 200 Connection established\r\nX: y\r\n", "to api.docs.invalid failed"),
        (b"SSH-2.0-OpenSSH\r\n", "to the proxy"),
        (b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 400 Bad Request\r\n\r\n", "to api.docs.invalid failed"),
    ],
    ids=["nothing", "half a head", "not HTTP", "no tunnel"],
)
def test_a_proxy_that_breaks_the_protocol_is_named(action: Action, answer: bytes, message: str) -> None:
    with RawServer(AnsweringProxy(answer)) as proxy:
        ended = action.run(
            "https://api.docs.invalid", mode="collect", job_id="j", env={"HTTPS_PROXY": proxy.base_url}, outage_tolerance="1ms"
        )

    assert ended.reason == "unavailable"
    assert message in ended.error


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 Connection established\r\n"])
def test_a_proxy_that_stops_responding_is_named(action: Action, monkeypatch: pytest.MonkeyPatch, answer: bytes) -> None:
    def stop(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(answer)
        hold(connection)

    short = {"connect_seconds": 0.2, "idle_seconds": 30.0, "total_seconds": 60.0}
    monkeypatch.setattr(Timeouts.__init__, "__kwdefaults__", short)
    with RawServer(stop) as proxy:
        ended = action.run(
            "https://api.docs.invalid", mode="collect", job_id="j", env={"HTTPS_PROXY": proxy.base_url}, outage_tolerance="1ms"
        )

    assert ended.reason == "unavailable"
    assert "The proxy did not" in ended.error


def test_proxy_credentials_are_sent_only_to_the_proxy(action: Action, proxy: RecordingProxy) -> None:
    with_credentials = proxy.url.replace("http://", "http://robot:proxy-word@")

    ended = action.export("https://api.docs.invalid", env={"HTTPS_PROXY": with_credentials}, outage_tolerance="50ms")

    expected = base64.b64encode(b"robot:proxy-word").decode()
    assert all(f"Proxy-Authorization: Basic {expected}" in request for request in proxy.requests)
    assert proxy.requests
    assert "proxy-word" not in ended.stdout + ended.stderr + ended.summary


@pytest.mark.parametrize("excluded", ["0.0.0.0", "*", "docs.example, 0.0.0.0", "0.0.0.0/8"])
def test_hosts_in_no_proxy_are_reached_directly(action: Action, proxy: RecordingProxy, excluded: str) -> None:
    env = {"HTTPS_PROXY": proxy.url, "NO_PROXY": excluded}

    # an address of this machine outside the loopback network, so that no name server is needed
    with RawServer(socket.socket.close) as api:
        ended = action.export(f"https://0.0.0.0:{api.port}", env=env, outage_tolerance="50ms")

    assert (ended.reason, proxy.requests) == ("unavailable", [])
    assert api.connections > 0


@pytest.mark.parametrize(
    ("excluded", "is_proxied"), [(".docs.invalid", False), ("docs.invalid", False), ("*.docs.invalid", True)]
)
def test_a_domain_in_no_proxy_has_no_asterisk(
    action: Action, proxy: RecordingProxy, monkeypatch: pytest.MonkeyPatch, excluded: str, is_proxied: bool
) -> None:
    real = socket.getaddrinfo

    def resolve(host: str, *arguments: Any, **more: Any) -> Any:
        if host == "api.docs.invalid":
            raise socket.gaierror(socket.EAI_NONAME, "no such host")
        return real(host, *arguments, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    env = {"HTTPS_PROXY": proxy.url, "NO_PROXY": excluded}

    ended = action.export("https://api.docs.invalid", env=env, outage_tolerance="50ms")

    assert (ended.reason, bool(proxy.requests)) == ("unavailable", is_proxied)


def test_a_no_proxy_that_cannot_be_read_fails_at_once(action: Action) -> None:
    env = {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "\udcff/8"}

    ended = action.export("https://192.0.2.1", env=env, outage_tolerance="1h")

    assert ended.reason == "unavailable", ended.error
    assert "NO_PROXY" in ended.error


MALFORMED = [
    *("http://robot:proxy-word@", "http://", "http://:8080", "http://[::1", "http://robot:proxy-word@127.0.0.1:99999", "://"),
    *("::", "http://robot:proxy-word@127.0.0.1:port", "https://", "htps://127.0.0.1", "nonsense://x", "http://127.0.0.1\n"),
    *("http://robot:x/proxy-word@127.0.0.1", "socks.example.com:1080x"),
]


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("address", MALFORMED)
def test_a_malformed_proxy_address_fails_at_once_and_is_not_shown(action: Action, address: str, variable: str) -> None:
    ended = action.export("https://api.docs.invalid", env={variable: address}, outage_tolerance="1h")

    assert (ended.exit_code, ended.reason) == (1, "unavailable"), ended.error
    assert "http://user:password@host:port" in ended.error
    assert "Retrying" not in ended.log
    for secret in ("proxy-word", "robot"):
        assert secret not in ended.stdout + ended.stderr + ended.summary


@pytest.mark.parametrize(
    "excluded",
    ["[", "]", "::", ",,,", "/", "1.2.3.4/", "1.2.3.4/99", "/8", "1.2.3/8", "http://[::1", "\udcff", "1.2.3.4/8/8", "*"],
)
def test_a_malformed_no_proxy_is_harmless(action: Action, proxy: RecordingProxy, excluded: str) -> None:
    with RawServer(socket.socket.close) as api:
        env = {"HTTPS_PROXY": proxy.url, "NO_PROXY": excluded}
        ended = action.export(f"https://0.0.0.0:{api.port}", env=env, outage_tolerance="1ms")

    assert ended.reason == "unavailable", ended.error
    assert bool(proxy.requests) != (excluded == "*")


SOCKS = [
    {variable: f"{scheme}://robot:proxy-word@127.0.0.1:9"}
    for variable in ("ALL_PROXY", "HTTPS_PROXY", "https_proxy")
    for scheme in ("socks5", "socks5h", "SOCKS4a")
]


@pytest.mark.parametrize("env", SOCKS)
def test_a_socks_proxy_fails_at_once(action: Action, env: Mapping[str, str]) -> None:
    ended = action.export("https://api.docs.invalid", env=env, outage_tolerance="1h")

    assert (ended.exit_code, ended.reason) == (1, "unavailable")
    assert "SOCKS" in ended.error
    assert "NO_PROXY" in ended.error
    assert "Retrying" not in ended.log
    assert "proxy-word" not in ended.stdout + ended.stderr + ended.summary


@pytest.mark.parametrize("env", [*({"HTTPS_PROXY": address} for address in MALFORMED[:2]), *SOCKS[:2]])
def test_an_unusable_proxy_for_the_storage_fails_at_once(action: Action, platform: Simulator, env: Mapping[str, str]) -> None:
    platform.override("make_bundle", {"bundleUrl": "https://storage.docs.invalid/bundle"})

    ended = action.run(platform, mode="collect", job_id="export-finished", bundle_path="bundle", env=env, outage_tolerance="1h")

    assert (ended.exit_code, ended.reason) == (1, "download-failed")
    assert "NO_PROXY" in ended.error
    assert "proxy-word" not in ended.stdout + ended.stderr + ended.summary


def test_a_socks_proxy_is_ignored_if_no_proxy_exempts_the_host(action: Action) -> None:
    env = {"ALL_PROXY": "socks5://127.0.0.1:9", "NO_PROXY": "0.0.0.0"}

    # an address of this machine outside the loopback network, so that no name server is needed
    with RawServer(socket.socket.close) as api:
        ended = action.export(f"https://0.0.0.0:{api.port}", env=env, outage_tolerance="50ms")

    assert api.connections > 0
    assert "SOCKS" not in ended.error


def test_a_socks_proxy_is_ignored_if_an_http_proxy_has_precedence(action: Action, proxy: RecordingProxy) -> None:
    env = {"ALL_PROXY": "socks5://127.0.0.1:9", "HTTPS_PROXY": proxy.url}

    ended = action.export("https://api.docs.invalid", env=env, outage_tolerance="50ms")

    assert "SOCKS" not in ended.error
    assert proxy.requests


def requests_to_tls_proxy(action: Action, *, env: Mapping[str, str], **inputs: str) -> list[bytes]:
    """Return the requests of a run to a proxy over TLS, whose authority is `ca.pem` in the workspace."""
    authority, requests = trustme.CA(), []
    authority.cert_pem.write_to_path(str(action.workspace / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    def refuse(connection: socket.socket) -> None:
        requests.append(read_request(connection))
        connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

    with RawServer(refuse, tls=context) as proxy:
        variables = {"HTTPS_PROXY": proxy.base_url, **env}
        action.export("https://api.docs.invalid", env=variables, outage_tolerance="50ms", **inputs)
    return requests


def test_no_variable_makes_the_certificate_of_a_proxy_trusted(action: Action) -> None:
    authorities = str(action.workspace / "ca.pem")

    assert requests_to_tls_proxy(action, env={"SSL_CERT_FILE": authorities, "REQUESTS_CA_BUNDLE": authorities}) == []


def test_ca_bundle_makes_the_certificate_of_a_proxy_trusted(action: Action) -> None:
    requests = requests_to_tls_proxy(action, env={}, ca_bundle="ca.pem")

    assert {request.split(b" HTTP/")[0] for request in requests} == {b"CONNECT api.docs.invalid:443"}


def test_certificate_settings_of_the_workflow_are_ignored(action: Action, make_platform: Callable[..., Simulator]) -> None:
    platform = make_platform(tls=True)
    shutil.copy(str(platform.ca_path), action.workspace / "ca.pem")
    names = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR", "OPENSSL_CONF")

    ended = action.export(platform, ca_bundle="ca.pem", env=dict.fromkeys(names, "/nowhere/ca.pem"))

    assert ended.exit_code == 0, ended.stdout


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"])
def test_no_variable_makes_a_certificate_trusted(action: Action, make_platform: Callable[..., Simulator], variable: str) -> None:
    platform = make_platform(tls=True)

    ended = action.export(platform, env={variable: str(platform.ca_path)})

    assert (ended.reason, platform.requests) == ("unavailable", [])
    assert "`ca-bundle`" in ended.error


def test_tls_keys_are_not_logged(action: Action, make_platform: Callable[..., Simulator], tmp_path: Path) -> None:
    platform = make_platform(tls=True)
    shutil.copy(str(platform.ca_path), action.workspace / "ca.pem")
    log = tmp_path / "tls-keys.log"

    ended = action.export(platform, ca_bundle="ca.pem", env={"SSLKEYLOGFILE": str(log)})

    assert ended.exit_code == 0
    assert not log.exists()


@pytest.mark.parametrize("locale", ["C", "POSIX", "en_US.ISO-8859-1", ""])
def test_the_locale_changes_no_text(action: Action, platform: Simulator, locale: str) -> None:
    platform.add_export_job("jöb-雪")
    env = {"LANG": locale, "LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

    ended = action.run(platform, mode="collect", job_id="jöb-雪", env=env)

    assert (ended.exit_code, ended.outputs["jobId"]) == (0, "jöb-雪")
    assert "jöb-雪" in ended.log
    assert "jöb-雪" in ended.summary


def test_a_run_needs_few_environment_variables(action: Action, platform: Simulator) -> None:
    emptied = dict.fromkeys(("PATH", "HOME", "LANG", "RUNNER_TEMP", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE", "CI"))

    ended = action.run(platform, mode="collect", job_id="export-finished", env=emptied)

    assert (ended.exit_code, ended.stderr) == (0, "")
