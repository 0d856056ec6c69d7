"""Runs of the image, started like GitHub's runner starts it."""

import os
import shutil
import stat

import pytest

from admin_api_simulator import ExportPlan, Simulator
from admin_api_simulator.faults import GITHUB_OPERATIONS
from admin_api_simulator.github import COMMIT, CREATOR
from tests.container.runner import FIXED_VARIABLES, GRACE_SECONDS, Runner
from tests.engine import docker
from tests.keys import ADMIN_KEY

pytestmark = pytest.mark.timeout(900)  # the first test of a session builds the image

RUNNER_UID = 1001
"""The user ID on GitHub's Linux runners."""
RUNNER_GID = 118

EXITING_MODULE = "raise SystemExit('a file of the workspace ran')\n"


def export_of(domain: str, platform: Simulator, **more: str) -> dict[str, str]:
    inputs = {
        "base-url": platform.base_url,
        "admin-key": ADMIN_KEY,
        "domain": domain,
        "poll-interval": "100ms",
    }
    for name, value in more.items():
        inputs[name.replace("_", "-")] = value
    return inputs


def test_all_files_belong_to_the_workspaces_owner_and_none_is_written_into_the_container(
    runner: Runner, platform: Simulator
) -> None:
    if os.geteuid() == 0:
        os.chown(runner.workspace, RUNNER_UID, RUNNER_GID)
    files = {
        "bundle_path": "dist/bundle.tar.gz",
        "site_path": "public/site",
        "values_file": "deploy/export.yaml",
    }
    inputs = export_of("docs.example.com", platform, **files, export_version="1")

    step = runner.start(inputs, keep=True)
    ended = step.wait()
    changes = docker("diff", step.name).splitlines()

    assert ended.end == (0, None), ended.stdout
    assert ended.outputs["bundlePath"] == files["bundle_path"]
    assert ended.outputs["sitePath"] == files["site_path"]
    assert ended.outputs["valuesFile"] == files["values_file"]
    assert ended.outputs["pageCount"] == "12"
    assert "docs.example.com" in ended.summary

    found = [*runner.workspace.rglob("*")]
    assert len(found) > 15
    owner = runner.workspace.stat()
    owners = {(path.lstat().st_uid, path.lstat().st_gid) for path in found}
    assert owners == {(owner.st_uid, owner.st_gid)}
    modes = {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in found}
    assert modes == {(True, 0o755), (False, 0o644)}

    mounted = [change for change in changes if "/github" in change]
    assert mounted != [], "the list shows what there is beside the image"
    # byte code, for example, which Python would compile in each container
    written = [change for change in changes if "/github" not in change]
    assert written == []


def test_one_container_exports_several_domains_and_reports_the_one_that_failed(
    runner: Runner, platform: Simulator
) -> None:
    expected = {
        "docs.example.com": None,
        "failing.example.com": "job-failed",
        "api.example.com": None,
    }
    inputs = export_of("\n".join(expected), platform, site_path="sites/{domain}")

    ended = runner.start(inputs).wait()

    assert ended.end == (1, "job-failed"), ended.stdout
    assert {row["domain"]: row["failureReason"] for row in ended.results} == expected
    assert "failing.example.com" in ended.error
    sites = {site.name for site in runner.workspace.glob("sites/*")}
    assert sites == {"docs.example.com", "api.example.com"}
    mask = f"::add-mask::{ADMIN_KEY}"
    lines = ended.stdout.splitlines()
    assert lines[0] == mask, "the runner learns the key before it could be shown"
    assert lines.count(mask) == 1


def test_files_and_variables_of_the_workflow_have_no_effect(runner: Runner) -> None:
    for name in ("requests", "sitecustomize", "docs_platform_action", "json", "startup"):
        (runner.workspace / f"{name}.py").write_text(EXITING_MODULE)
    netrc = runner.home / ".netrc"
    login = "login somebody password else"
    netrc.write_text(f"machine 127.0.0.1 {login}\ndefault {login}\n")
    netrc.chmod(0o600)
    certificates = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR")
    proxies = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    env = {
        "PYTHONPATH": "/github/workspace",
        "PYTHONSTARTUP": "/github/workspace/startup.py",
        "PYTHONHOME": "/github/workspace",
        "PYTHONINSPECT": "1",
        "NETRC": "/github/home/.netrc",
        **dict.fromkeys(certificates, "/nowhere/ca.pem"),
        # an API on this machine is reached without a proxy
        **dict.fromkeys(proxies, "http://127.0.0.1:9"),
    }

    with Simulator(key=ADMIN_KEY, tls=True, export_seconds=0.3, host="127.0.0.1") as platform:
        assert platform.ca_path is not None
        shutil.copy(platform.ca_path, runner.workspace / "ca.pem")
        platform.github.add(COMMIT, repository=FIXED_VARIABLES["GITHUB_REPOSITORY"])
        env["GITHUB_API_URL"] = platform.github_url
        commit = {"commit": COMMIT, "github_token": platform.token, "deployment_creator": CREATOR}
        inputs = export_of("docs.example.com", platform, ca_bundle="ca.pem", **commit)

        ended = runner.start(inputs, env=env).wait()

    assert ended.end == (0, None), ended.stdout
    sent_to_github = set()
    sent_to_platform = set()
    for request in platform.requests:
        authorization = request.headers.get("Authorization")
        if request.operation in GITHUB_OPERATIONS:
            sent_to_github.add(authorization)
        else:
            sent_to_platform.add(authorization)
    assert sent_to_github == {f"Bearer {platform.token}"}
    assert sent_to_platform == {f"Bearer {ADMIN_KEY}"}


@pytest.mark.parametrize(("signal", "exit_code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_ends_the_wait_and_keeps_known_outputs(
    runner: Runner, platform: Simulator, signal: str, exit_code: int
) -> None:
    platform.plan_export("docs.example.com", ExportPlan(seconds=3600))
    # a pause that only a signal can end before the runner kills the container
    step = runner.start(export_of("docs.example.com", platform, poll_interval="30s"))
    step.wait_for_log("job-id: ")

    processes = docker("top", step.name, "-eo", "pid,args", "-ww")
    docker("kill", f"--signal={signal}", step.name)
    ended = step.wait(timeout_seconds=GRACE_SECONDS)

    assert ended.end == (exit_code, "cancelled"), ended.stdout
    assert f"job-id: {ended.outputs['jobId']}" in ended.stdout
    assert "/opt/action/entrypoint.py" in processes, "the list shows whole command lines"
    assert ADMIN_KEY not in processes
