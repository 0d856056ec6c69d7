"""The delivery of a finished job's files to the workspace, through the real entry point: all files of a job, or none."""

import hashlib
import io
import os
import signal
import socket
import stat
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
import yaml

from admin_api_simulator import Fault, Simulator
from docs_platform_action.bundle.deliver import deliver
from docs_platform_action.clock import Clock
from docs_platform_action.errors import InvalidBundle
from docs_platform_action.events import Events
from docs_platform_action.http.connection import AbortableAdapter, create_ssl_context
from docs_platform_action.inputs.settings import DeliverySettings, OutputPath
from docs_platform_action.job import Job
from docs_platform_action.models import EXPORT
from tests.action import Action
from tests.archives import HOSTILE, KINDS, NOT_ARCHIVES, SEVEN_ZIP, Site, crowded
from tests.ended import Ended
from tests.folders import read_tree
from tests.integration.parts import api_of, expiring_links, link_in
from tests.integration.raw import RawServer, read_request
from tests.ports import unresponsive_port
from tests.unit.fakes import context, http_client

EVERYTHING = {
    "bundle_path": "dist/bundle.tar.gz",
    "site_path": "public/site",
    "values_file": "deploy/export.yaml",
    "export_version": "20240601",
}


def deliver_files(action: Action, platform: Simulator, **inputs: str) -> Ended:
    return action.run(platform, **{"job_id": "export-finished", "domain": "docs.example.com", **inputs})


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

    def test_log_and_summary_name_the_paths(self, action: Action, platform: Simulator) -> None:
        ended = deliver_files(action, platform, **EVERYTHING)

        lines = [line.strip() for line in ended.log.splitlines()][-3:]
        assert lines[0].startswith("Downloaded ")
        assert lines[1:] == ["Unpacked 15 files to public/site/", "Wrote the Helm values file deploy/export.yaml"]
        assert f"SHA-256 `{ended.outputs['bundleSha256']}`" in ended.summary
        rows = {"Saved as": "dist/bundle.tar.gz", "Site": "15 files in public/site", "Helm values": "deploy/export.yaml"}
        for name, cell in rows.items():
            assert f"| {name} | {cell} |" in ended.summary

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
        assert len(ended.warnings) == 3
        assert all("`wait: false`" in warning for warning in ended.warnings)

    def test_the_runners_temporary_folder_is_allowed(self, action: Action, platform: Simulator, tmp_path: Path) -> None:
        temporary = tmp_path / "temporary"
        temporary.mkdir()

        ended = action.run(platform, job_id="export-finished", site_path=f"{temporary}/site", env={"RUNNER_TEMP": str(temporary)})

        assert (ended.exit_code, ended.outputs["sitePath"]) == (0, f"{temporary}/site")
        assert [found.name for found in temporary.iterdir()] == ["site"]

    def test_modes_do_not_depend_on_the_archive_or_the_umask(self, action: Action, platform: Simulator) -> None:
        deliver_files(action, platform, **EVERYTHING)

        modes = {(found.is_dir(), stat.S_IMODE(found.stat().st_mode)) for found in action.workspace.rglob("*")}
        assert modes == {(True, 0o755), (False, 0o644)}


class TestExpiringLink:
    """The link is renewed before it is written anywhere, if it has less than a minute left."""

    @pytest.mark.parametrize("seconds", [30, -5], ids=["soon", "expired"])
    @pytest.mark.parametrize("inputs", [{}, {"bundle_path": "b"}, {"site_path": "s"}, EVERYTHING])
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
        assert ("The bundle link expires in " in ended.log) is (seconds > 0)
        assert ("The bundle link has expired. Making a new link." in ended.log) is (seconds < 0)
        assert "  New bundle link: 127.0.0.1" in ended.log
        assert ended.summary.startswith("### ✅ ")
        assert "expired" not in ended.summary

    @pytest.mark.parametrize("fault", [Fault(status=503), Fault(status=404, json={"error": "export job not found"})])
    def test_if_that_fails_the_old_one_is_kept_with_a_warning(self, action: Action, platform: Simulator, fault: Fault) -> None:
        platform.override("make_bundle", expiring_links(-5))
        platform.script("make_bundle", None, *[fault] * 100)

        ended = deliver_files(action, platform, **EVERYTHING)

        assert (ended.exit_code, ended.reason) == (0, None), ended.stdout
        (warning,) = ended.warnings
        assert "docs.example.com: the bundle link has expired or is about to, and could not be replaced." in warning
        assert "session%2B1" in ended.outputs["bundleUrl"], "the first link"
        assert link_in(action.workspace / EVERYTHING["values_file"]) == ended.outputs["bundleUrl"]
        assert ended.summary.startswith("### ⚠️ ")
        assert "By this runner's clock, the link has expired." in ended.summary

    def test_a_new_one_that_expires_soon_is_used(self, action: Action, platform: Simulator) -> None:
        platform.override("make_bundle", expiring_links(2))

        ended = deliver_files(action, platform, **EVERYTHING)

        assert (ended.exit_code, platform.count("make_bundle"), ended.warnings) == (0, 2, [])
        assert "session%2B2" in ended.outputs["bundleUrl"]

    def test_without_a_known_expiry_nothing_is_renewed(self, action: Action, platform: Simulator) -> None:
        platform.override("make_bundle", lambda normal: {**normal, "expiresAt": "soon"})

        assert deliver_files(action, platform, **EVERYTHING).exit_code == 0
        assert platform.count("make_bundle") == 1

    def test_a_cancel_ends_it(self, action: Action, platform: Simulator) -> None:
        platform.override("make_bundle", expiring_links(-5))
        platform.script("make_bundle", None, Fault(delay_seconds=3600))

        with action.start(platform, job_id="export-finished", values_file="values.yaml") as running:
            running.wait_for("The bundle link has expired. Making a new link.")
            running.signal(signal.SIGTERM)
            ended = running.wait()

        assert (ended.exit_code, ended.reason, read_tree(action.workspace)) == (143, "cancelled", {})


@pytest.mark.parametrize("archive", ["tar.gz", "tar", "tar.bz2", "tar.xz", "zip"])
def test_every_format_is_recognized_by_its_content(action: Action, make_platform: Callable[..., Simulator], archive: str) -> None:
    platform = make_platform(archive=archive)

    ended = deliver_files(action, platform, bundle_path="misleading.7z", site_path="site")

    assert ended.exit_code == 0, ended.stdout
    files = {name: found for name, found in read_tree(action.workspace / "site").items() if found is not None}
    assert files == members((action.workspace / "misleading.7z").read_bytes())
    assert len(files) == 15


UNPACKED_DURING_DOWNLOAD: Final = 5 * 1024**2
"""A size above which an archive is unpacked during the download, if it can be read in order."""


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        *((kind, 100) for kind in KINDS if kind.startswith("gzip of") or kind == "zip-padded"),
        ("gzip of zip", UNPACKED_DURING_DOWNLOAD),
        ("gzip of tar.gz", UNPACKED_DURING_DOWNLOAD),
    ],
)
def test_an_additional_layer_around_an_archive_is_removed(action: Action, platform: Simulator, kind: str, size: int) -> None:
    page = os.urandom(size)
    content = KINDS[kind](Site(files={"index.html": b"<h1>Docs</h1>", "guide/large.html": page}))
    platform.put_bundle("export-finished", content)
    platform.script("download", Fault(headers={"Content-Encoding": "gzip"} if kind.startswith("gzip of") else {}))

    ended = deliver_files(action, platform, bundle_path="bundle", site_path="site")

    assert ended.exit_code == 0, ended.stdout
    assert read_tree(action.workspace / "site") == {"guide": None, "guide/large.html": page, "index.html": b"<h1>Docs</h1>"}
    assert (action.workspace / "bundle").read_bytes() == content
    assert ended.outputs["bundleSha256"] == hashlib.sha256(content).hexdigest()
    assert sorted(path.name for path in action.workspace.iterdir()) == ["bundle", "site"]


class TestEmptyFolder:
    def test_an_empty_folder_is_filled(self, action: Action, platform: Simulator) -> None:
        (action.workspace / "site").mkdir()

        ended = deliver_files(action, platform, site_path="site")

        assert (ended.exit_code, (action.workspace / "site" / "index.html").exists()) == (0, True)

    def test_a_folder_that_was_filled_meanwhile_is_left_unchanged(self, action: Action, platform: Simulator) -> None:
        site = action.workspace / "site"
        site.mkdir()
        archive, filled = KINDS["tar.gz"](Site(files={"index.html": b"<h1>Docs</h1>"})), threading.Event()

        def answer_when_filled(connection: socket.socket) -> None:
            read_request(connection)
            filled.wait(100)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(archive) + archive)

        with RawServer(answer_when_filled) as storage:
            platform.override("make_bundle", {"bundleUrl": f"{storage.base_url}/bundle.tar.gz"})
            with action.start(platform, job_id="export-finished", site_path="site") as running:
                running.wait_for("Bundle link ready")
                (site / "mine").write_text("mine")
                filled.set()
                ended = running.wait()

        assert (ended.exit_code, ended.reason) == (1, "internal-error")
        assert "the site cannot be written to site" in ended.error
        assert "`site` is no longer empty: something else wrote there during the run." in ended.error
        assert "Directory not empty" in ended.error
        assert "faulty" not in ended.error
        assert read_tree(action.workspace) == {"site": None, "site/mine": b"mine"}


class TestReplacedArchive:
    """Another process replaces the temporary file before the download ends. What is hashed is what is unpacked or kept."""

    ARCHIVE, OTHER = (KINDS["tar.gz"](Site(files={"index.html": text})) for text in (b"ours", b"theirs"))

    def run(self, action: Action, platform: Simulator, folder: Path, **inputs: str) -> Ended:
        """Run the action, and replace its only part, which is in the folder, when it requests the bundle."""

        def replace_and_answer(connection: socket.socket) -> None:
            read_request(connection)
            (part,) = folder.glob(".*.part")
            (folder / "theirs").write_bytes(self.OTHER)
            (folder / "theirs").replace(part)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(self.ARCHIVE) + self.ARCHIVE)

        with RawServer(replace_and_answer) as storage:
            platform.override("make_bundle", {"bundleUrl": f"{storage.base_url}/bundle.tar.gz"})
            return action.run(platform, job_id="export-finished", env={"RUNNER_TEMP": str(folder)}, **inputs)

    def test_the_site_is_that_of_the_hashed_archive(self, action: Action, platform: Simulator, tmp_path: Path) -> None:
        temporary = tmp_path / "temporary"
        temporary.mkdir()

        ended = self.run(action, platform, temporary, site_path="site")

        assert ended.exit_code == 0, ended.stdout
        assert ended.outputs["bundleSha256"] == hashlib.sha256(self.ARCHIVE).hexdigest()
        assert read_tree(action.workspace) == {"site": None, "site/index.html": b"ours"}

    def test_another_archive_is_not_kept(self, action: Action, platform: Simulator) -> None:
        (action.workspace / "bundle").write_bytes(b"old")

        ended = self.run(action, platform, action.workspace, bundle_path="bundle")

        assert (ended.exit_code, ended.reason) == (1, "download-failed")
        assert "The temporary files of `bundle` were replaced during the run by something else." in ended.error
        assert read_tree(action.workspace) == {"bundle": b"old"}
        assert "bundlePath" not in ended.outputs


def test_a_file_system_that_reports_no_sizes_is_not_full(action: Action, platform: Simulator) -> None:
    nothing = "os.statvfs_result([4096, 4096, 0, 0, 0, 0, 0, 0, 0, 255])"  # as of ramfs
    action.begin_with(f"import os; os.statvfs = os.fstatvfs = lambda place: {nothing}")

    ended = action.run(
        platform, job_id="export-finished", bundle_path="bundle.tar.gz", site_path="site", values_file="values.yaml"
    )

    assert (ended.exit_code, ended.commands) == (0, [])
    assert (action.workspace / "site" / "index.html").is_file()


def snapshot(folder: Path) -> dict[Path, tuple[int, ...]]:
    """Return mode, inode, size and modification time of everything in a folder."""
    found = {path: path.lstat() for path in folder.rglob("*")}
    return {path: (status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns) for path, status in found.items()}


class TestInvalidPaths:
    @pytest.mark.parametrize(
        ("inputs", "says"),
        [
            ({"site_path": "full"}, "'full' is not empty (it contains 'index.html')"),
            ({"site_path": "file"}, "'file' is a file"),
            ({"site_path": "."}, "'.' cannot be replaced"),
            ({"site_path": "../site"}, "'../site' is outside the workspace"),
            ({"site_path": "/etc/site"}, "'/etc/site' is outside the workspace"),
            ({"site_path": "away/site"}, "'away/site' is outside the workspace"),
            ({"site_path": "file/site"}, "'file' in this path is a file"),
            ({"site_path": "s\tb"}, "contains a control character"),
            ({"bundle_path": "full"}, "'full' is a folder"),
            ({"bundle_path": "new/"}, "'new/' is a folder"),
            ({"bundle_path": "pipe"}, "'pipe' is not a regular file"),
            ({"bundle_path": "x" * 300}, "contains a name longer than 255 bytes"),
            ({"bundle_path": "site/bundle", "site_path": "site"}, "; use separate paths"),
            ({"bundle_path": "same", "values_file": "./same"}, "; use separate paths"),
            ({"values_file": "../values.yaml"}, "is outside the workspace"),
            ({"export_version": "1\x1b[2J"}, "must be one line without control characters"),
            ({"mask_bundle_url": "maybe"}, "must be true or false"),
        ],
    )
    def test_they_are_reported_before_any_request(
        self, action: Action, platform: Simulator, inputs: Mapping[str, str], says: str
    ) -> None:
        (action.workspace / "full").mkdir()
        (action.workspace / "full" / "index.html").touch()
        (action.workspace / "file").touch()
        (action.workspace / "away").symlink_to("/var")
        os.mkfifo(action.workspace / "pipe")
        before = snapshot(action.workspace)

        ended = action.export(platform, **inputs)

        assert (ended.exit_code, ended.reason, platform.requests) == (1, "invalid-input", [])
        assert says in ended.error
        assert snapshot(action.workspace) == before

    @pytest.mark.parametrize("value", ["../site", "a/../../site"])
    def test_without_a_workspace_the_working_directory_is_the_one_that_they_are_outside_of(
        self, action: Action, platform: Simulator, value: str
    ) -> None:
        ended = action.export(platform, env={"GITHUB_WORKSPACE": None}, site_path=value)

        assert (ended.exit_code, ended.reason, platform.requests) == (1, "invalid-input", [])
        assert f"'{value}' is outside the workspace, so it is not shared with the container" in ended.error

    def test_all_are_reported_together(self, action: Action, platform: Simulator) -> None:
        ended = action.export(platform, site_path="../site", bundle_path="/dev/null", values_file="/")

        assert "3 invalid inputs" in ended.error


REFUSED = [name for name in HOSTILE if name not in NOT_ARCHIVES]


class TestHostileArchives:
    @pytest.mark.parametrize("name", REFUSED)
    def test_each_is_rejected_and_leaves_nothing(self, platform: Simulator, tmp_path: Path, name: str) -> None:
        """Deliver without a separate process, so that the whole corpus takes seconds."""
        content, word = HOSTILE[name]
        platform.put_bundle("export-finished", content)
        workspace = tmp_path / "workspace"
        workspace.mkdir()
        (tmp_path / "mine").write_text("mine")
        before = read_tree(tmp_path)

        with pytest.raises(InvalidBundle) as caught:
            deliver_site(platform, workspace)

        assert word in f"{caught.value.summary} {caught.value.details}"
        assert read_tree(tmp_path) == before

    @pytest.mark.parametrize("name", REFUSED[:: len(REFUSED) // 6])
    def test_the_run_fails_with_invalid_bundle(self, action: Action, platform: Simulator, name: str, tmp_path: Path) -> None:
        platform.put_bundle("export-finished", HOSTILE[name][0])
        before = read_tree(tmp_path)

        ended = deliver_files(action, platform, site_path="public/site", values_file="values.yaml")

        assert (ended.exit_code, ended.reason) == (1, "invalid-bundle"), ended.stdout
        assert read_tree(tmp_path) == before
        assert not {"sitePath", "valuesFile", "bundleUrl"} & {*ended.outputs}
        assert "Traceback" not in ended.stdout + ended.stderr


def deliver_site(platform: Simulator, workspace: Path) -> None:
    clock, api = Clock(), api_of(platform.base_url, outage_tolerance_seconds=1)
    client = http_client(AbortableAdapter(create_ssl_context(None)))
    job = Job(mode=EXPORT, job_id="export-finished")
    job.bundle = api.make_bundle(job)
    site = OutputPath(path=workspace / "public" / "site", root=workspace, name="public/site")
    deliver(job, DeliverySettings(site=site), context(clock, Events(), api=api, client=client, tolerance=1))


def test_a_requested_archive_stays_if_it_cannot_be_opened(action: Action, platform: Simulator) -> None:
    platform.put_bundle("export-finished", SEVEN_ZIP)

    ended = deliver_files(action, platform, **EVERYTHING)

    assert (ended.exit_code, ended.reason) == (1, "invalid-bundle")
    assert read_tree(action.workspace) == {"dist": None, "dist/bundle.tar.gz": SEVEN_ZIP}
    assert ended.outputs["bundlePath"] == "dist/bundle.tar.gz"


def cancel_during_download(action: Action, platform: Simulator, number: signal.Signals) -> Ended:
    """Start a delivery of all files, and cancel it during the download."""
    with action.start(platform, job_id="export-finished", **EVERYTHING) as running:
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

        with action.start(platform, job_id="export-finished", **EVERYTHING) as running:
            while not platform.count("download"):
                time.sleep(0.005)
            running.signal(number)
            ended = running.wait()

        assert (ended.exit_code, ended.reason) == (exit_code, "cancelled")
        assert read_tree(action.workspace) == {}
        assert ended.outputs["jobId"] == "export-finished"
        assert "makes its bundle link without exporting again" in ended.error

    def test_in_a_pause_between_two_attempts_leaves_nothing(
        self, action: Action, platform: Simulator, number: signal.Signals, exit_code: int
    ) -> None:
        platform.script_forever("download", Fault(status=503, headers={"Retry-After": "3000"}))

        with action.start(platform, job_id="export-finished", outage_tolerance="1h", **EVERYTHING) as running:
            running.wait_for("Retrying for up to")
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

    def test_during_unpacking_leaves_the_folder_unchanged(
        self, action: Action, platform: Simulator, number: signal.Signals, exit_code: int
    ) -> None:
        platform.put_bundle("export-finished", crowded(60_000))
        (action.workspace / "site").mkdir()
        action.set_constants(report__job_log__LINE_SECONDS=0.0, jobs__runner__CLEANUP_GRACE_SECONDS=60.0)

        with action.start(platform, job_id="export-finished", site_path="site") as running:
            running.wait_for("  unpacking ")
            running.signal(number)
            ended = running.wait()

        assert (ended.exit_code, ended.reason) == (exit_code, "cancelled")
        assert read_tree(action.workspace) == {"site": None}


def test_files_delivered_before_a_cancellation_are_outputs(action: Action, platform: Simulator) -> None:
    platform.put_bundle("export-finished", crowded(60_000))
    action.set_constants(report__job_log__LINE_SECONDS=0.0, jobs__runner__CLEANUP_GRACE_SECONDS=60.0)

    with action.start(platform, job_id="export-finished", **EVERYTHING) as running:
        running.wait_for("  unpacking ")
        running.signal(signal.SIGINT)
        ended = running.wait()

    assert [found for found, content in read_tree(action.workspace).items() if content is not None] == ["dist/bundle.tar.gz"]
    assert ended.outputs["bundlePath"] == ended.result["bundlePath"] == "dist/bundle.tar.gz"
    assert "sitePath" not in ended.outputs
