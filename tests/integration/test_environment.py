"""A workflow's environment reaches the action whole; only what it documents has an effect."""

import base64
import shutil
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trustme

from admin_api_simulator import Simulator
from tests.action import Action
from tests.integration.raw import RawServer, read_request
from tests.keys import ADMIN_KEY

PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
ASIDE = "raise SystemExit('a file of the workspace ran')\n"


@dataclass
class RecordingProxy:
    """A proxy that lets nobody through, and what it was asked."""

    url: str
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def proxy() -> Iterator[RecordingProxy]:
    def refuse(connection: socket.socket) -> None:
        proxy.asked.append(read_request(connection).decode("latin-1"))
        connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    with RawServer(refuse) as server:
        proxy = RecordingProxy(server.base_url)
        yield proxy


def test_python_files_of_the_workspace_do_not_run(action: Action, platform: Simulator) -> None:
    for name in ("requests", "sitecustomize", "usercustomize", "docs_platform_action", "json", "signal", "startup"):
        (action.workspace / f"{name}.py").write_text(ASIDE)
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

    ended = action.run(platform, job_id="export-finished", env=variables)

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
def test_no_proxy_sees_what_goes_to_a_loopback_host(
    action: Action, make_platform: Callable[..., Simulator], proxy: RecordingProxy, tls: bool
) -> None:
    platform = make_platform(tls=tls)
    inputs = {"ca_bundle": "ca.pem"} if tls else {}
    if tls:
        shutil.copy(str(platform.ca_path), action.workspace / "ca.pem")

    ended = action.export(platform, env=dict.fromkeys(PROXY_VARIABLES, proxy.url), **inputs)

    assert (ended.exit_code, proxy.asked) == (0, [])


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_a_proxy_is_asked_for_the_host_and_learns_no_key(action: Action, proxy: RecordingProxy, variable: str) -> None:
    ended = action.export("https://api.docs.invalid", env={variable: proxy.url}, outage_tolerance="50ms")

    assert (ended.exit_code, ended.reason) == (1, "unavailable")
    assert "The proxy refused to forward the request to api.docs.invalid" in ended.error
    assert {request.splitlines()[0].rpartition(" ")[0] for request in proxy.asked} == {"CONNECT api.docs.invalid:443"}
    for request in proxy.asked:
        assert ADMIN_KEY not in request
        assert "authorization" not in request.lower().replace("proxy-authorization", "")


@pytest.mark.parametrize(
    ("proxy_url", "told"),
    [
        ("http://127.0.0.1:{port}", "The proxy refused the connection"),
        ("127.0.0.1:{port}", "The proxy refused the connection"),
        ("http://", "The proxy address in the environment is not valid"),
        ("http://127.0.0.1:99999", "The proxy address in the environment is not valid"),
    ],
)
def test_a_proxy_that_is_at_fault_is_told_as_such(action: Action, proxy_url: str, told: str) -> None:
    # bound, so that nobody else gets the port, but not listening
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        env = {"HTTPS_PROXY": proxy_url.format(port=reserved.getsockname()[1])}
        ended = action.export("https://api.docs.invalid", env=env, outage_tolerance="1ms")

    assert (ended.exit_code, ended.reason) == (1, "unavailable"), ended.error
    assert f"{told}." in ended.error
    assert "HTTPS_PROXY" in ended.error
    assert "NO_PROXY" in ended.error


def test_credentials_of_a_proxy_go_to_the_proxy_and_nowhere_else(action: Action, proxy: RecordingProxy) -> None:
    with_credentials = proxy.url.replace("http://", "http://robot:proxy-word@")

    ended = action.export("https://api.docs.invalid", env={"HTTPS_PROXY": with_credentials}, outage_tolerance="50ms")

    expected = base64.b64encode(b"robot:proxy-word").decode()
    assert all(f"Proxy-Authorization: Basic {expected}" in request for request in proxy.asked)
    assert proxy.asked
    assert "proxy-word" not in ended.stdout + ended.stderr + ended.summary


@pytest.mark.parametrize("excluded", ["0.0.0.0", "*", "docs.example, 0.0.0.0", "0.0.0.0/8"])
def test_no_proxy_is_asked_for_what_no_proxy_names(action: Action, proxy: RecordingProxy, excluded: str) -> None:
    env = {"HTTPS_PROXY": proxy.url, "NO_PROXY": excluded}

    # an address of this machine that is not the loopback one, so that it takes no name server to find it
    with RawServer(socket.socket.close) as api:
        ended = action.export(f"https://0.0.0.0:{api.port}", env=env, outage_tolerance="50ms")

    assert (ended.reason, proxy.asked) == ("unavailable", [])
    assert api.connections > 0


@pytest.mark.parametrize(
    "address", ["http://[", "nonsense://x", "http://127.0.0.1:99999", "http://", "::", "socks.example.com:1080x"]
)
def test_a_proxy_address_that_cannot_be_used_is_told(action: Action, address: str) -> None:
    ended = action.export("https://api.docs.invalid", env={"HTTPS_PROXY": address}, outage_tolerance="50ms")

    assert (ended.exit_code, ended.reason) == (1, "unavailable"), ended.error
    assert "proxy" in ended.error.lower()


SOCKS = [
    {variable: f"{scheme}://robot:proxy-word@127.0.0.1:9"}
    for variable in ("ALL_PROXY", "HTTPS_PROXY", "https_proxy")
    for scheme in ("socks5", "socks5h", "SOCKS4a")
]


@pytest.mark.parametrize("env", SOCKS)
def test_a_socks_proxy_fails_at_once(action: Action, env: Mapping[str, str]) -> None:
    ended = action.export("https://api.docs.invalid", env=env, outage_tolerance="1h")

    assert (ended.exit_code, ended.reason) == (1, "unavailable")
    assert "SOCKS proxies are not supported" in ended.error
    assert "NO_PROXY" in ended.error
    assert "Retrying" not in ended.log
    assert "proxy-word" not in ended.stdout + ended.stderr + ended.summary


@pytest.mark.parametrize("env", SOCKS[:2])
def test_a_socks_proxy_for_the_storage_fails_at_once(action: Action, platform: Simulator, env: Mapping[str, str]) -> None:
    platform.override("make_bundle", {"bundleUrl": "https://storage.docs.invalid/bundle"})

    ended = action.run(platform, job_id="export-finished", bundle_path="bundle", env=env, outage_tolerance="1h")

    assert (ended.exit_code, ended.reason) == (1, "download-failed")
    assert "SOCKS proxies are not supported" in ended.error
    assert "NO_PROXY" in ended.error
    assert "proxy-word" not in ended.stdout + ended.stderr + ended.summary


def test_a_socks_proxy_is_no_matter_where_no_proxy_exempts_the_host(action: Action) -> None:
    env = {"ALL_PROXY": "socks5://127.0.0.1:9", "NO_PROXY": "0.0.0.0"}

    # an address of this machine that is not the loopback one, so that it takes no name server to find it
    with RawServer(socket.socket.close) as api:
        ended = action.export(f"https://0.0.0.0:{api.port}", env=env, outage_tolerance="50ms")

    assert api.connections > 0
    assert "SOCKS" not in ended.error


def test_a_socks_proxy_is_no_matter_where_an_http_proxy_comes_first(action: Action, proxy: RecordingProxy) -> None:
    env = {"ALL_PROXY": "socks5://127.0.0.1:9", "HTTPS_PROXY": proxy.url}

    ended = action.export("https://api.docs.invalid", env=env, outage_tolerance="50ms")

    assert "The proxy refused to forward the request to api.docs.invalid" in ended.error
    assert proxy.asked


def asked_of_a_proxy_over_tls(action: Action, *, env: Mapping[str, str], **inputs: str) -> list[bytes]:
    """Give what a proxy is asked that has a certificate of its own authority, whose own is `ca.pem` in the workspace."""
    authority, asked = trustme.CA(), []
    authority.cert_pem.write_to_path(str(action.workspace / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    def refuse(connection: socket.socket) -> None:
        asked.append(read_request(connection))
        connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

    with RawServer(refuse, tls=context) as proxy:
        variables = {"HTTPS_PROXY": proxy.base_url, **env}
        action.export("https://api.docs.invalid", env=variables, outage_tolerance="50ms", **inputs)
    return asked


def test_no_variable_makes_the_certificate_of_a_proxy_trusted(action: Action) -> None:
    authorities = str(action.workspace / "ca.pem")

    assert asked_of_a_proxy_over_tls(action, env={"SSL_CERT_FILE": authorities, "REQUESTS_CA_BUNDLE": authorities}) == []


def test_ca_bundle_makes_the_certificate_of_a_proxy_trusted(action: Action) -> None:
    asked = asked_of_a_proxy_over_tls(action, env={}, ca_bundle="ca.pem")

    assert {request.split(b" HTTP/")[0] for request in asked} == {b"CONNECT api.docs.invalid:443"}


def test_certificate_settings_of_the_workflow_do_not_count(action: Action, make_platform: Callable[..., Simulator]) -> None:
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


def test_the_keys_of_tls_are_not_written_anywhere(
    action: Action, make_platform: Callable[..., Simulator], tmp_path: Path
) -> None:
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

    ended = action.run(platform, job_id="jöb-雪", env=env)

    assert (ended.exit_code, ended.outputs["jobId"]) == (0, "jöb-雪")
    assert "Attaching to job jöb-雪." in ended.log
    assert "jöb-雪" in ended.summary


def test_a_run_needs_next_to_nothing_of_its_environment(action: Action, platform: Simulator) -> None:
    emptied = dict.fromkeys(("PATH", "HOME", "LANG", "RUNNER_TEMP", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE", "CI"))

    ended = action.run(platform, job_id="export-finished", env=emptied)

    assert (ended.exit_code, ended.stderr) == (0, "")
