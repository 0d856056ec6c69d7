"""What a run leaves in the workspace.

That is the archive, the site and the values of one bundle, or what was there before.
"""

import contextlib
import gzip
import hashlib
import itertools
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from admin_api_simulator import Fault, RecordedRequest, Simulator
from tests.action import Action
from tests.archives import KINDS, SMALL_SITE, Site, entry, tar, tar_of
from tests.folders import files_of_at_most, read_tree
from tests.forms import BOTH_FORMS
from tests.virtual_platform import VirtualPlatform
from tests.virtual_time import VirtualClock

JOB: Final = "export-finished"
COLLECT: Final = {"mode": "collect", "job_id": JOB, "domain": "docs.example.com"}
FILES: Final = {
    "bundle_path": "dist/bundle",
    "site_path": "public/site",
    "values_file": "deploy/{domain}.yaml",
}
VALUES: Final = "deploy/docs.example.com.yaml"
DELIVERED: Final = {"bundleUrl", "expiresAt", "bundlePath", "sitePath", "valuesFile"}
CONTENT: Final = gzip.compress(os.urandom(1_000_000))
"""What a download takes for a bundle: it checks only the first bytes."""

Plan = Callable[[Simulator], Any]


@pytest.fixture
def virtual() -> VirtualPlatform:
    return VirtualPlatform(VirtualClock(), pages=12, asset_bytes=200_000)


def without_count(job: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in job.items() if name != "pageCount"}


def put_uncounted(simulator: Simulator, content: bytes) -> None:
    """Replace the bundle of a job whose pages only the site tells.

    If the API counts them, an invalid archive is kept for inspection.
    """
    simulator.put_bundle(JOB, content)
    simulator.override("read_export", without_count)


def link_in(file: Path) -> str:
    return str(yaml.safe_load(file.read_text())["staticExport"]["bundleUrl"])


def ranges(requests: Iterable[RecordedRequest]) -> list[str | None]:
    return [request.headers.get("Range") for request in requests]


@BOTH_FORMS
class TestDelivered:
    @pytest.mark.parametrize("kind", ["tar.gz", "zip"])
    def test_the_files_and_the_outputs_are_of_one_bundle(
        self, action: Action, virtual: VirtualPlatform, kind: str
    ) -> None:
        archive = KINDS[kind](SMALL_SITE)
        virtual.simulator.put_bundle(JOB, archive)

        ended = action.run(virtual, **COLLECT, **FILES, export_version="20240601")

        tree = read_tree(action.workspace / "public" / "site")
        files = {path: content for path, content in tree.items() if isinstance(content, bytes)}
        values = yaml.safe_load((action.workspace / VALUES).read_text())
        assert ended.end == (0, None), ended.stdout
        assert files == SMALL_SITE.files
        assert (action.workspace / "dist" / "bundle").read_bytes() == archive
        assert ended.outputs["bundleSize"] == str(len(archive))
        assert ended.outputs["bundleSha256"] == sha256(archive)
        assert ended.outputs["bundlePath"] == "dist/bundle"
        assert ended.outputs["sitePath"] == "public/site"
        assert ended.outputs["valuesFile"] == VALUES
        assert values == {
            "staticExport": {
                "enabled": True,
                "bundleUrl": ended.outputs["bundleUrl"],
                "version": "20240601",
            }
        }

    def test_files_of_an_earlier_run_are_replaced_and_an_empty_folder_is_filled(
        self, action: Action, virtual: VirtualPlatform
    ) -> None:
        left_by_an_earlier_run(action.workspace)

        ended = action.run(virtual, **COLLECT, **FILES)

        assert ended.end == (0, None), ended.stdout
        assert link_in(action.workspace / VALUES) == ended.outputs["bundleUrl"]
        bundle = action.workspace / "dist" / "bundle"
        assert bundle.stat().st_size == int(ended.outputs["bundleSize"])
        assert (action.workspace / "public" / "site" / "index.html").is_file()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def left_by_an_earlier_run(workspace: Path) -> None:
    for file in ("dist/bundle", VALUES):
        (workspace / file).parent.mkdir()
        (workspace / file).write_text("of an earlier run")
    (workspace / "public" / "site").mkdir(parents=True)


def snapshot(folder: Path) -> dict[Path, tuple[int, ...]]:
    """Return mode, inode and size of everything in a folder."""
    found = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        found[path] = (status.st_mode, status.st_ino, status.st_size)
    return found


def storage_is_down(simulator: Simulator) -> None:
    simulator.script_forever("download", Fault(status=503))


def bundle_disappears_midway(simulator: Simulator) -> None:
    simulator.script_forever("download", Fault(status=404), after=[Fault(cut="in_body")])


def key_ends_before_a_second_link(simulator: Simulator) -> None:
    simulator.script("download", Fault(cut="in_body"), Fault(status=403))
    simulator.script("make_bundle", None, Fault(status=401))
    simulator.script("read_export", None, Fault(status=401))


def with_bundle(content: bytes) -> Plan:
    return lambda simulator: put_uncounted(simulator, content)


FAILURES: Final[dict[str, tuple[str, Plan]]] = {
    "the storage is down": ("download-failed", storage_is_down),
    "the bundle disappears midway": ("download-failed", bundle_disappears_midway),
    "the key ends before a second link": ("unauthorized", key_ends_before_a_second_link),
    "the archive is cut": ("invalid-bundle", with_bundle(gzip.compress(tar(SMALL_SITE))[:-20])),
    "the archive leads outside": ("invalid-bundle", with_bundle(tar_of(entry(b"../outside")))),
    "the site has too few pages": ("too-few-pages", with_bundle(KINDS["zip"](SMALL_SITE))),
    "the disk is full": ("download-failed", lambda simulator: simulator.put_bundle(JOB, CONTENT)),
}
"""What happens, with the `failureReason` of the run."""


@BOTH_FORMS
@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_leaves_everything_as_it_was(
    action: Action, virtual: VirtualPlatform, name: str
) -> None:
    reason, plan = FAILURES[name]
    plan(virtual.simulator)
    left_by_an_earlier_run(action.workspace)
    before = snapshot(action.workspace)
    disk: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
    if name == "the disk is full":
        disk = files_of_at_most(500_000)

    with disk:
        ended = action.run(virtual, **COLLECT, **FILES, min_pages="12")

    assert ended.end == (1, reason), ended.stdout
    assert snapshot(action.workspace) == before
    assert DELIVERED.isdisjoint(ended.outputs)
    assert {ended.result[output] for output in DELIVERED} == {None}


class TestMinPages:
    """The guard of a deploy step that deletes pages."""

    SITE: Final = {"site_path": "site", "bundle_path": "bundle", "values_file": "values.yaml"}

    @pytest.mark.parametrize("is_counted", [True, False])
    def test_enough_pages_are_published_whether_the_api_counts_them_or_not(
        self, action: Action, virtual: VirtualPlatform, is_counted: bool
    ) -> None:
        if not is_counted:
            virtual.simulator.override("read_export", without_count)

        ended = action.export(virtual, min_pages="12", **self.SITE)

        assert ended.end == (0, None)
        assert {path.name for path in action.workspace.iterdir()} == {*self.SITE.values()}

    @pytest.mark.parametrize("inputs", [SITE, {"bundle_path": "bundle"}, {}])
    def test_pages_that_are_not_counted_are_not_enough(
        self, action: Action, virtual: VirtualPlatform, inputs: dict[str, str]
    ) -> None:
        of_an_unfinished_job = Fault(json={"status": "running", "pageCount": 500})
        virtual.simulator.script("read_export", of_an_unfinished_job)
        virtual.simulator.override("read_export", without_count)

        ended = action.export(virtual, min_pages="14", **inputs)

        assert ended.end == (1, "too-few-pages")
        assert "bundleUrl" not in ended.outputs
        # a bundle is downloaded only to count the pages in it
        downloads = 1 if "site_path" in inputs else 0
        assert virtual.simulator.count("download") == downloads
        assert [*action.workspace.iterdir()] == []


def site_of(ending: str, pages: int) -> Site:
    files = {f"{number}{ending}": b"<p>Page</p>" for number in range(pages)}
    return Site(files={**files, "style.css": b"a {}"})


ARCHIVE_INSIDE: Final = Site(files={"export/site.tar.gz": gzip.compress(tar(SMALL_SITE))})
NO_SITES: Final = {
    "an archive inside": (ARCHIVE_INSIDE, "'export/site.tar.gz', looks like gzip data."),
    "a saved error": (Site(files={"error.xml": b"<?xml?><Error/>"}), "'error.xml', looks like XML"),
    "assets alone": (site_of(".js", 12), "no `.html` file (13 files in all)"),
    "other endings": (site_of(".htm", 12), "another extension, such as `.htm`"),
    "fewer than half": (site_of(".html", 5), "5 `.html` files (6 files in all)"),
}
"""Bundles of a job with 12 pages that are probably not its site, and what a warning says."""


class TestPromisedPages:
    """Without `min-pages`, what was unpacked is held against what the API promised."""

    @pytest.mark.parametrize("name", NO_SITES)
    def test_a_bundle_that_is_probably_not_the_site_brings_one_warning(
        self, action: Action, virtual: VirtualPlatform, name: str
    ) -> None:
        site, fact = NO_SITES[name]
        virtual.simulator.put_bundle(JOB, tar(site))

        ended = action.run(virtual, **COLLECT, site_path="site")

        assert ended.end == (0, None)
        (warning,) = ended.warnings
        assert fact in warning
        assert "the API reported 12 pages" in warning
        assert "aws s3 sync --delete" in warning
        assert ended.summary.startswith("### ⚠️")
        assert ended.summary.count("> [!WARNING]") == 1
        assert "12 reported, " in ended.summary

    @pytest.mark.parametrize("pages", [6, 12])
    def test_half_of_the_pages_bring_none(
        self, action: Action, virtual: VirtualPlatform, pages: int
    ) -> None:
        virtual.simulator.put_bundle(JOB, tar(site_of(".html", pages)))

        ended = action.run(virtual, **COLLECT, site_path="site")

        assert ended.end == (0, None)
        assert ended.warnings == []
        assert ended.summary.startswith("### ✅")

    @pytest.mark.parametrize(("name", "count"), [("fewer than half", 0), ("assets alone", 1)])
    def test_without_a_number_only_a_bundle_without_pages_brings_one(
        self, action: Action, virtual: VirtualPlatform, name: str, count: int
    ) -> None:
        site, _ = NO_SITES[name]
        put_uncounted(virtual.simulator, tar(site))

        ended = action.run(virtual, **COLLECT, site_path="site")

        assert ended.end == (0, None)
        assert len(ended.warnings) == count


class TestLink:
    """With less than a minute left, the link is renewed before it is written anywhere."""

    @BOTH_FORMS
    def test_one_that_expires_during_the_download_is_replaced_and_the_download_resumed(
        self, action: Action
    ) -> None:
        platform = VirtualPlatform(VirtualClock(), asset_bytes=200_000, link_seconds=3600)
        pause = Fault(status=503, headers={"Retry-After": "3600"})
        platform.simulator.script("download", Fault(cut="in_body", cut_after_bytes=70_000), pause)

        inputs = {"bundle_path": "bundle", "outage_tolerance": "2h", "mask_bundle_url": "true"}

        ended = action.run(platform, **COLLECT, **inputs)

        masked = [command.value for command in ended.commands if command.name == "add-mask"]
        downloads = platform.simulator.requests_of("download")
        assert ended.end == (0, None), ended.stdout
        assert ranges(downloads) == [None, *["bytes=70000-"] * 3]
        assert [request.status for request in downloads] == [200, 503, 403, 206]
        assert masked == [ended.outputs["bundleUrl"]]
        assert "session%2B2" in masked[0]


class TestDownload:
    """Over real sockets."""

    @pytest.fixture
    def platform(self, platform: Simulator) -> Simulator:
        platform.put_bundle(JOB, CONTENT)
        return platform

    def test_is_resumed_after_each_cut(self, action: Action, platform: Simulator) -> None:
        cuts = [100_001, 1, 300_000, 65_536, 5]
        faults = [Fault(cut="in_body", cut_after_bytes=count) for count in cuts]
        platform.script("download", *faults)

        ended = action.run(platform, **COLLECT, bundle_path="bundle", outage_tolerance="1m")

        assert ended.end == (0, None), ended.stdout
        assert read_tree(action.workspace) == {"bundle": CONTENT}
        assert ended.outputs["bundleSize"] == str(len(CONTENT))
        assert ended.outputs["bundleSha256"] == sha256(CONTENT)
        downloads = platform.requests_of("download")
        rest = [f"bytes={received}-" for received in itertools.accumulate(cuts)]
        assert ranges(downloads) == [None, *rest]
        assert len({request.headers.get("If-Range") for request in downloads[1:]}) == 1
