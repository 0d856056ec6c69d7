"""The container gets a workflow's whole environment, which must not change what the action does."""

import shutil

import pytest

from admin_api_simulator import Simulator
from tests.container.runner import Ended, Runner
from tests.keys import ADMIN_KEY

pytestmark = pytest.mark.timeout(900)

EXITING_MODULE = "raise SystemExit('a file of the workspace ran')\n"


@pytest.mark.parametrize("module", ["requests.py", "sitecustomize.py", "docs_platform_action.py", "json.py"])
def test_files_and_variables_of_the_workflow_have_no_effect(runner: Runner, platform: Simulator, module: str) -> None:
    (runner.workspace / module).write_text(EXITING_MODULE)
    (runner.workspace / "startup.py").write_text(EXITING_MODULE)
    netrc = runner.home / ".netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\ndefault login somebody password else\n")
    netrc.chmod(0o600)
    unused_port = "http://127.0.0.1:9"
    env = {
        "PYTHONPATH": "/github/workspace",
        "PYTHONSTARTUP": "/github/workspace/startup.py",
        "PYTHONHOME": "/github/workspace",
        "PYTHONINSPECT": "1",
        "NETRC": "/github/home/.netrc",
        # an API on this machine is reached without a proxy
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"), unused_port),
    }

    ended = export(runner, platform, env)

    assert ended.exit_code == 0, ended.log
    assert {request.headers.get("Authorization") for request in platform.requests} == {f"Bearer {platform.key}"}


def test_certificate_settings_of_the_workflow_are_ignored(runner: Runner) -> None:
    with Simulator(key=ADMIN_KEY, tls=True, export_seconds=0.3, host="127.0.0.1") as platform:
        assert platform.ca_path is not None
        shutil.copy(platform.ca_path, runner.workspace / "ca.pem")
        nowhere = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR")

        ended = export(runner, platform, dict.fromkeys(nowhere, "/nowhere/ca.pem"), {"ca-bundle": "ca.pem"})

    assert ended.exit_code == 0, ended.log


def export(runner: Runner, platform: Simulator, env: dict[str, str], further: dict[str, str] | None = None) -> Ended:
    return runner.run(
        {
            "base-url": platform.base_url,
            "admin-key": platform.key,
            "domain": "docs.example.com",
            "poll-interval": "100ms",
            **(further or {}),
        },
        env=env,
    )
