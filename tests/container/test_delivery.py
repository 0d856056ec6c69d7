"""The delivered files: they belong to the workspace's owner, have ordinary modes, and appear atomically."""

import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from admin_api_simulator import Fault, Simulator
from tests.archives import crowded
from tests.container.runner import Runner
from tests.engine import docker

pytestmark = pytest.mark.timeout(900)  # the first test of a session builds the image

RUNNER_UID, RUNNER_GID = 1001, 118
"""The user ID on GitHub's Linux runners."""

EVERYTHING = {
    "bundle-path": "dist/bundle.tar.gz",
    "site-path": "public/site",
    "values-file": "deploy/export.yaml",
    "export-version": "20240601",
}
MANY = 40_000


@pytest.fixture
def workspace(runner: Runner) -> Path:
    """Return a workspace that belongs to the runner's user, or to the current user if the tests do not run as root."""
    if os.geteuid() == 0:
        os.chown(runner.workspace, RUNNER_UID, RUNNER_GID)
    return runner.workspace


def inputs(platform: Simulator, **more: str) -> Mapping[str, str]:
    return {"base-url": platform.base_url, "admin-key": platform.key, "mode": "collect", "job-id": "export-finished", **more}


def test_all_files_belong_to_the_workspaces_owner_who_can_change_and_delete_them(
    runner: Runner, platform: Simulator, workspace: Path, image: str
) -> None:
    ended = runner.run(inputs(platform, **EVERYTHING))

    assert ended.exit_code == 0, ended.log
    owner = workspace.stat()
    found = [*workspace.rglob("*")]
    assert len(found) > 15
    assert {(path.lstat().st_uid, path.lstat().st_gid) for path in found} == {(owner.st_uid, owner.st_gid)}
    assert {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in found} == {(True, 0o755), (False, 0o644)}
    assert {name: ended.outputs[name] for name in ("bundlePath", "sitePath", "valuesFile")} == {
        "bundlePath": "dist/bundle.tar.gz",
        "sitePath": "public/site",
        "valuesFile": "deploy/export.yaml",
    }

    script = "echo changed > public/site/index.html && rm public/site/sitemap.xml && rm -r dist deploy && mv public/site site"
    docker(
        *("run", "--rm", "--network=host", "--user", f"{owner.st_uid}:{owner.st_gid}", "--workdir", "/github/workspace"),
        *("--volume", f"{workspace}:/github/workspace", "--entrypoint", "sh", image, "-ec", script),
    )

    assert (workspace / "site" / "index.html").read_text() == "changed\n"


def test_the_site_appears_atomically(runner: Runner, platform: Simulator, workspace: Path) -> None:
    platform.put_bundle("export-finished", crowded(MANY))
    site, parts = workspace / "site", set()

    step = runner.start(inputs(platform, **{"site-path": "site"}))
    while not site.exists():
        parts |= {(found.name.startswith(".site."), found.inode()) for found in os.scandir(workspace)}
        assert step.is_running() or site.exists(), step.log()
    counted = sum(len(files) for _, _, files in os.walk(site))
    ended = step.wait()

    assert ended.exit_code == 0, ended.log
    assert counted == MANY, "the first look at it sees all of it"
    assert (True, site.stat().st_ino) in parts, "it was made beside, and only renamed"
    assert [found.name for found in workspace.iterdir()] == ["site"]


@pytest.mark.parametrize(("signal", "exit_code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_cancellation_leaves_the_folder_unchanged(
    runner: Runner, platform: Simulator, workspace: Path, signal: str, exit_code: int
) -> None:
    platform.put_bundle("export-finished", crowded(MANY))
    (workspace / "site").mkdir()

    step = runner.start(inputs(platform, **{"site-path": "site"}))
    while not [*workspace.glob(".site.*.part/*")]:
        assert step.is_running(), step.log()
        time.sleep(0.002)
    step.signal(signal)
    ended = step.wait()

    assert (ended.exit_code, ended.outputs["failureReason"]) == (exit_code, "cancelled"), ended.log
    assert [found.name for found in workspace.rglob("*")] == ["site"]


def test_a_kill_leaves_nothing_under_a_final_name(runner: Runner, platform: Simulator, workspace: Path) -> None:
    platform.script_forever("download", Fault(stall_after_bytes=400))

    step = runner.start(inputs(platform, **EVERYTHING))
    while not platform.count("download"):
        assert step.is_running(), step.log()
        time.sleep(0.005)
    step.signal("SIGKILL")
    step.wait()

    left = [str(found.relative_to(workspace)) for found in workspace.rglob("*") if found.is_file()]
    assert [name for name in left if not name.endswith(".part")] == []


def test_a_folder_that_is_not_empty_is_reported_before_any_request(runner: Runner, platform: Simulator, workspace: Path) -> None:
    (workspace / "site").mkdir()
    (workspace / "site" / "mine").touch()

    ended = runner.run(inputs(platform, **{"site-path": "site"}))

    assert (ended.outputs["failureReason"], platform.requests) == ("invalid-input", [])
    assert "'site' is not empty (it contains 'mine')" in ended.errors[0]
