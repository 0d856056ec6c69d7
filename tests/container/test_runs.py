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

RUNNER_UID, RUNNER_GID = 1001, 118
"""The user ID on GitHub's Linux runners."""

EXITING_MODULE = "raise SystemExit('a file of the workspace ran')\n"


def export_of(domain: str, platform: Simulator, **more: str) -> dict[str, str]:
    further = {name.replace("_", "-"): value for name, value in more.items()}
    return {
        "base-url": platform.base_url,
        "admin-key": ADMIN_KEY,
        "domain": domain,
        "poll-interval": "100ms",
        **further,
    }


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

    step = runner.start(
        export_of("docs.example.com", platform, **files, export_version="1"), keep=True
    )
    ended = step.wait()
    changes = docker("diff", step.name).splitlines()

    assert ended.end == (0, None), ended.stdout
    assert [ended.outputs[name] for name in ("bundlePath", "sitePath", "valuesFile")] == [
        *files.values()
    ]
    assert (ended.outputs["pageCount"], "docs.example.com" in ended.summary) == ("12", True)
    owner, found = runner.workspace.stat(), [*runner.workspace.rglob("*")]
    assert len(found) > 15
    assert {(path.lstat().st_uid, path.lstat().st_gid) for path in found} == {
        (owner.st_uid, owner.st_gid)
    }
    assert {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in found} == {
        (True, 0o755),
        (False, 0o644),
    }
    assert any("/github" in change for change in changes), (
        "the list shows what there is beside the image"
    )
    # byte code, for example, which Python would compile in each container
    assert [change for change in changes if "/github" not in change] == []


def test_one_container_exports_several_domains_and_reports_the_one_that_failed(
    runner: Runner, platform: Simulator
) -> None:
    expected = {
        "docs.example.com": None,
        "failing.example.com": "job-failed",
        "api.example.com": None,
    }

    ended = runner.start(
        export_of("\n".join(expected), platform, site_path="sites/{domain}")
    ).wait()

    assert ended.end == (1, "job-failed"), ended.stdout
    assert {row["domain"]: row["failureReason"] for row in ended.results} == expected
    assert "failing.example.com" in ended.error
    assert {site.name for site in runner.workspace.glob("sites/*")} == {
        "docs.example.com",
        "api.example.com",
    }
    masked = [
        number
        for number, line in enumerate(ended.stdout.splitlines())
        if line == f"::add-mask::{ADMIN_KEY}"
    ]
    assert masked == [0], "the runner learns the key before it could be shown"


def test_files_and_variables_of_the_workflow_have_no_effect(runner: Runner) -> None:
    for name in ("requests", "sitecustomize", "docs_platform_action", "json", "startup"):
        (runner.workspace / f"{name}.py").write_text(EXITING_MODULE)
    netrc = runner.home / ".netrc"
    netrc.write_text(
        "machine 127.0.0.1 login somebody password else\ndefault login somebody password else\n"
    )
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
        env |= {"GITHUB_API_URL": platform.github_url}
        commit = {"commit": COMMIT, "github_token": platform.token, "deployment_creator": CREATOR}
        ended = runner.start(
            export_of("docs.example.com", platform, ca_bundle="ca.pem", **commit), env=env
        ).wait()

    assert ended.end == (0, None), ended.stdout
    sent = {
        (request.operation in GITHUB_OPERATIONS, request.headers.get("Authorization"))
        for request in platform.requests
    }
    assert sent == {(False, f"Bearer {ADMIN_KEY}"), (True, f"Bearer {platform.token}")}


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
