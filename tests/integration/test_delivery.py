"""The delivery of a finished job's files to the workspace, through the real entry point: all files of a job, or none."""

import hashlib
import io
import os
import signal
import stat
import tarfile
import time
import zipfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from admin_api_simulator import Fault, Simulator
from tests.action import Action
from tests.archives import HOSTILE, NOT_ARCHIVES, Site, tar, zipped
from tests.ended import Ended
from tests.folders import read_tree
from tests.integration.parts import expiring_links, link_in
from tests.ports import unresponsive_port

EVERYTHING = {
    "bundle_path": "dist/bundle.tar.gz",
    "site_path": "public/site",
    "values_file": "deploy/export.yaml",
    "export_version": "20240601",
}


def deliver_files(action: Action, platform: Simulator, **inputs: str) -> Ended:
    return action.run(platform, **{"mode": "collect", "job_id": "export-finished", "domain": "docs.example.com", **inputs})


def members(content: bytes) -> dict[str, bytes]:
    """Return the files of an archive as Python's library reads them."""
    if zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        files = {member.name: archive.extractfile(member) for member in archive if member.isfile()}
        return {name: file.read() for name, file in files.items() if file is not None}


class TestAll:
    def test_bundle_site_and_values_are_delivered_and_consistent(self, action: Action, platform: Simulator) -> None:
        ended = deliver_files(action, platform, **EVERYTHING)

        content = (action.workspace / "dist" / "bundle.tar.gz").read_bytes()
        site = action.workspace / "public" / "site"
        files = {name: found for name, found in read_tree(site).items() if found is not None}
        assert ended.exit_code == 0, ended.stdout
        assert files == members(content)
        assert {name: ended.outputs[name] for name in ("bundlePath", "sitePath", "valuesFile")} == {
            "bundlePath": "dist/bundle.tar.gz",
            "sitePath": "public/site",
            "valuesFile": "deploy/export.yaml",
        }
        assert ended.outputs["bundleSha256"] == hashlib.sha256(content).hexdigest()
        values = yaml.safe_load((action.workspace / "deploy" / "export.yaml").read_text())
        assert values == {"staticExport": {"enabled": True, "bundleUrl": ended.outputs["bundleUrl"], "version": "20240601"}}
        assert "," in values["staticExport"]["bundleUrl"]

    @pytest.mark.parametrize(
        ("inputs", "outputs"),
        [
            ({"bundle_path": "b"}, {"bundlePath", "bundleSize", "bundleSha256"}),
            ({"site_path": "s"}, {"sitePath", "bundleSize", "bundleSha256"}),
            ({"values_file": "v"}, {"valuesFile"}),
            ({}, set()),
        ],
    )
    def test_each_works_alone(self, action: Action, platform: Simulator, inputs: dict[str, str], outputs: set[str]) -> None:
        ended = deliver_files(action, platform, **inputs)

        known = {"bundlePath", "bundleSize", "bundleSha256", "sitePath", "valuesFile"}
        assert ended.exit_code == 0, ended.stdout
        assert known & {*ended.outputs} == outputs
        assert {name for name in known if ended.result[name] is not None} == outputs
        assert {found.name for found in action.workspace.iterdir()} == {*inputs.values()}

    def test_without_waiting_nothing_is_delivered(self, action: Action, platform: Simulator) -> None:
        ended = action.export(platform, wait="false", **EVERYTHING)

        assert (ended.exit_code, read_tree(action.workspace)) == (0, {})
        assert len(ended.warnings) == len(EVERYTHING)

    def test_the_runners_temporary_folder_is_allowed(self, action: Action, platform: Simulator, tmp_path: Path) -> None:
        temporary = tmp_path / "temporary"
        temporary.mkdir()

        ended = action.run(
            platform, mode="collect", job_id="export-finished", site_path=f"{temporary}/site", env={"RUNNER_TEMP": str(temporary)}
        )

        assert (ended.exit_code, ended.outputs["sitePath"]) == (0, f"{temporary}/site")
        assert [found.name for found in temporary.iterdir()] == ["site"]

    def test_modes_do_not_depend_on_the_archive_or_the_umask(self, action: Action, platform: Simulator) -> None:
        deliver_files(action, platform, **EVERYTHING)

        modes = {(found.is_dir(), stat.S_IMODE(found.stat().st_mode)) for found in action.workspace.rglob("*")}
        assert modes == {(True, 0o755), (False, 0o644)}


class TestExpiringLink:
    """The link is renewed before it is written anywhere, if it has less than a minute left."""

    @pytest.mark.parametrize(
        ("inputs", "seconds"), [({}, 30), ({"bundle_path": "b"}, -5), ({"site_path": "s"}, 30), (EVERYTHING, -5)]
    )
    def test_it_is_renewed(self, action: Action, platform: Simulator, inputs: dict[str, str], seconds: float) -> None:
        platform.override("make_bundle", expiring_links(seconds, 3600))

        ended = deliver_files(action, platform, mask_bundle_url="true", **inputs)

        assert (ended.exit_code, platform.count("make_bundle"), ended.warnings) == (0, 2, []), ended.stdout
        *_, masked = [command.value for command in ended.commands if command.name == "add-mask"]
        assert masked == ended.outputs["bundleUrl"] == ended.result["bundleUrl"]
        assert "session%2B2" in masked, "the second link"
        assert ended.outputs["expiresAt"] == ended.result["expiresAt"] > datetime.now(UTC).isoformat()
        if "values_file" in inputs:
            assert link_in(action.workspace / inputs["values_file"]) == masked

    def test_if_that_fails_the_old_one_is_kept_with_a_warning(self, action: Action, platform: Simulator) -> None:
        platform.override("make_bundle", expiring_links(-5))
        platform.script("make_bundle", None, *[Fault(status=503)] * 100)

        ended = deliver_files(action, platform, **EVERYTHING)

        assert (ended.exit_code, ended.reason, len(ended.warnings)) == (0, None, 1), ended.stdout
        assert "session%2B1" in ended.outputs["bundleUrl"], "the first link"
        assert link_in(action.workspace / EVERYTHING["values_file"]) == ended.outputs["bundleUrl"]

    def test_a_cancel_ends_it_and_what_was_delivered_before_is_an_output(self, action: Action, platform: Simulator) -> None:
        platform.override("make_bundle", expiring_links(-5))
        platform.script("make_bundle", None, Fault(delay_seconds=3600))

        with action.start(platform, mode="collect", job_id="export-finished", **EVERYTHING) as running:
            while platform.count("make_bundle") < 2:
                time.sleep(0.005)
            running.signal(signal.SIGTERM)
            ended = running.wait()

        assert (ended.exit_code, ended.reason) == (143, "cancelled")
        assert (ended.outputs["bundlePath"], ended.outputs["sitePath"]) == ("dist/bundle.tar.gz", "public/site")
        assert "valuesFile" not in ended.outputs
        assert {found.name for found in action.workspace.iterdir()} == {"dist", "public"}


def test_a_file_system_that_reports_no_sizes_is_not_full(action: Action, platform: Simulator) -> None:
    nothing = "os.statvfs_result([4096, 4096, 0, 0, 0, 0, 0, 0, 0, 255])"  # as of ramfs
    action.begin_with(f"import os; os.statvfs = os.fstatvfs = lambda place: {nothing}")

    ended = action.run(
        platform,
        mode="collect",
        job_id="export-finished",
        bundle_path="bundle.tar.gz",
        site_path="site",
        values_file="values.yaml",
    )

    assert (ended.exit_code, ended.commands) == (0, [])
    assert (action.workspace / "site" / "index.html").is_file()


def snapshot(folder: Path) -> dict[Path, tuple[int, ...]]:
    """Return mode, inode, size and modification time of everything in a folder."""
    found = {path: path.lstat() for path in folder.rglob("*")}
    return {path: (status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns) for path, status in found.items()}


@pytest.mark.parametrize(
    "inputs",
    [
        {"site_path": "full"},
        {"site_path": "away/site"},
        {"bundle_path": "pipe"},
        {"site_path": "pipe"},
        {"bundle_path": "same", "values_file": "./same"},
        {"values_file": "../values.yaml"},
    ],
)
def test_invalid_paths_are_reported_before_any_request(action: Action, platform: Simulator, inputs: Mapping[str, str]) -> None:
    (action.workspace / "full").mkdir()
    (action.workspace / "full" / "index.html").touch()
    (action.workspace / "away").symlink_to("/var")
    os.mkfifo(action.workspace / "pipe")
    before = snapshot(action.workspace)

    ended = action.export(platform, **inputs)

    assert (ended.exit_code, ended.reason, platform.requests) == (1, "invalid-input", [])
    assert snapshot(action.workspace) == before


@pytest.mark.parametrize("value", ["../site", "a/../../site"])
def test_without_a_workspace_paths_outside_of_the_working_directory_are_invalid(
    action: Action, platform: Simulator, value: str
) -> None:
    ended = action.export(platform, env={"GITHUB_WORKSPACE": None}, site_path=value)

    assert (ended.exit_code, ended.reason, platform.requests) == (1, "invalid-input", [])


REFUSED = [name for name in HOSTILE if name not in NOT_ARCHIVES]


@pytest.mark.parametrize("name", REFUSED[:: len(REFUSED) // 6])
def test_a_hostile_archive_fails_the_run_and_leaves_nothing(
    action: Action, platform: Simulator, name: str, tmp_path: Path
) -> None:
    platform.put_bundle("export-finished", HOSTILE[name][0])
    before = read_tree(tmp_path)

    ended = deliver_files(action, platform, site_path="public/site", values_file="values.yaml")

    assert (ended.exit_code, ended.reason) == (1, "invalid-bundle"), ended.stdout
    assert read_tree(tmp_path) == before
    assert not {"sitePath", "valuesFile", "bundleUrl"} & {*ended.outputs}
    assert "Traceback" not in ended.stdout + ended.stderr


def cancel_during_download(action: Action, platform: Simulator, number: signal.Signals) -> Ended:
    """Start a delivery of all files, and cancel it during the download."""
    with action.start(platform, mode="collect", job_id="export-finished", **EVERYTHING) as running:
        while not [*action.workspace.rglob(".*.part")]:
            time.sleep(0.005)
        time.sleep(0.2)
        running.signal(number)
        return running.wait()


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
class TestCancel:
    def test_during_a_download_leaves_nothing(
        self, action: Action, make_platform: Callable[..., Simulator], number: signal.Signals, exit_code: int
    ) -> None:
        platform = make_platform(asset_bytes=1_000_000)
        platform.script_forever("download", Fault(stall_after_bytes=400_000))

        with action.start(platform, mode="collect", job_id="export-finished", **EVERYTHING) as running:
            while not platform.count("download"):
                time.sleep(0.005)
            running.signal(number)
            ended = running.wait()

        assert (ended.exit_code, ended.reason) == (exit_code, "cancelled")
        assert read_tree(action.workspace) == {}
        assert ended.outputs["jobId"] == "export-finished"

    def test_in_a_pause_between_two_attempts_leaves_nothing(
        self, action: Action, platform: Simulator, number: signal.Signals, exit_code: int
    ) -> None:
        platform.script_forever("download", Fault(status=503, headers={"Retry-After": "3000"}))

        with action.start(platform, mode="collect", job_id="export-finished", outage_tolerance="1h", **EVERYTHING) as running:
            while not platform.count("download"):
                time.sleep(0.005)
            running.signal(number)
            ended = running.wait()

        assert (ended.exit_code, ended.reason, read_tree(action.workspace)) == (exit_code, "cancelled", {})

    def test_in_a_body_of_unknown_length_delivers_no_partial_bundle(
        self, action: Action, platform: Simulator, number: signal.Signals, exit_code: int
    ) -> None:
        platform.override("make_bundle", lambda normal: {**normal, "sizeBytes": None})
        platform.script_forever("download", Fault(framing="close", stall_after_bytes=400))

        ended = cancel_during_download(action, platform, number)

        assert (ended.exit_code, ended.reason, read_tree(action.workspace)) == (exit_code, "cancelled", {})
        assert not {"bundlePath", "bundleSize", "valuesFile"} & {*ended.outputs}

    def test_while_a_connection_is_made_leaves_nothing(
        self, action: Action, platform: Simulator, number: signal.Signals, exit_code: int
    ) -> None:
        with unresponsive_port() as (host, port):
            platform.override("make_bundle", {"bundleUrl": f"http://{host}:{port}/bundle"})
            ended = cancel_during_download(action, platform, number)

        assert (ended.exit_code, ended.reason, read_tree(action.workspace)) == (exit_code, "cancelled", {})

    @pytest.mark.parametrize("pack", [tar, zipped])
    def test_during_unpacking_leaves_the_folder_unchanged(
        self, action: Action, platform: Simulator, number: signal.Signals, exit_code: int, pack: Callable[[Site], bytes]
    ) -> None:
        platform.put_bundle("export-finished", pack(Site(files={f"{page}.html": b"" for page in range(20_000)})))
        (action.workspace / "site").mkdir()
        action.set_constants(jobs__runner__CLEANUP_GRACE_SECONDS=60.0)

        with action.start(platform, mode="collect", job_id="export-finished", site_path="site") as running:
            while not [*action.workspace.glob(".site.*.part/*.html")]:
                time.sleep(0.005)
            running.signal(number)
            ended = running.wait()

        assert (ended.exit_code, ended.reason) == (exit_code, "cancelled")
        assert read_tree(action.workspace) == {"site": None}
