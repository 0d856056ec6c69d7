"""A bundle that is a file here is unpacked without the platform.

It is compared and guarded like a fresh one.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from admin_api_simulator.site import build_archive, site_files
from docs_platform_action.bundle import file as module
from docs_platform_action.bundle.archive import CHUNK_BYTES
from docs_platform_action.outputs import Outputs
from docs_platform_action.site import manifest
from docs_platform_action.site.manifest import read_manifest
from tests.action import Action
from tests.ended import Ended
from tests.folders import read_tree
from tests.keys import ADMIN_KEY
from tests.virtual_platform import Sent, VirtualPlatform
from tests.virtual_time import VirtualClock

DOMAIN: Final = "docs.example.com"
PAGES: Final = 12
SITE: Final = site_files(domain=DOMAIN, pages=PAGES)
ARCHIVES: Final = {kind: build_archive(SITE, kind) for kind in ("tar.gz", "tar", "zip")}
INPUTS: Final = {"mode": "unpack", "bundle_path": "docs.bundle", "site_path": "site"}
NO_PLATFORM: Final = {"base_url": "", "admin_key": ""}
KINDS = pytest.mark.parametrize("archive", ARCHIVES.values(), ids=ARCHIVES)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Offline(VirtualPlatform):
    """A platform that no request may reach."""

    def respond(self, sent: Sent) -> Any:
        raise AssertionError(sent)


def unpack(action: Action, archive: bytes | None = None, **inputs: str) -> Ended:
    if archive is not None:
        action.workspace.joinpath("docs.bundle").write_bytes(archive)
    given = {"bundle_sha256": sha256(archive or b""), **INPUTS, **NO_PLATFORM, **inputs}
    return action.run(Offline(VirtualClock()), **given)


@KINDS
def test_the_site_of_the_archive_is_delivered_and_the_archive_stays_as_it_is(
    action: Action, archive: bytes
) -> None:
    inputs = {"domain": DOMAIN, "min_pages": str(PAGES), "manifest_path": "{domain}.manifest"}

    ended = unpack(action, archive, **inputs)

    assert ended.end == (0, None)
    assert not ended.warnings
    tree = read_tree(action.workspace / "site")
    assert {name: content for name, content in tree.items() if content is not None} == SITE
    assert action.workspace.joinpath("docs.bundle").read_bytes() == archive
    lines = action.workspace.joinpath(f"{DOMAIN}.manifest").read_bytes()
    assert len(read_manifest(lines).files) == len(SITE)
    assert ended.result["mode"] == "unpack"
    assert ended.result["domain"] == DOMAIN
    for name in ("jobId", "status", "bundleUrl", "pageCount"):
        assert ended.result[name] is None
    assert ended.outputs["bundlePath"] == "docs.bundle"
    assert ended.outputs["bundleSize"] == str(len(archive))
    assert ended.outputs["bundleSha256"] == sha256(archive)
    assert ended.outputs["sitePath"] == "site"
    assert ended.outputs["manifestPath"] == f"{DOMAIN}.manifest"


@KINDS
@pytest.mark.parametrize(
    "change",
    [
        lambda archive: archive + b"\0",
        lambda archive: archive[:-1],
        lambda _: build_archive({}, "tar"),
    ],
    ids=["longer", "shorter", "empty"],
)
def test_another_archive_than_the_given_one_is_not_unpacked(
    action: Action, archive: bytes, change: Callable[[bytes], bytes]
) -> None:
    changed = change(archive)

    ended = unpack(action, changed, bundle_sha256=sha256(archive), manifest_path="m")

    assert ended.end == (1, "invalid-bundle")
    assert sha256(changed) in ended.error
    assert [*read_tree(action.workspace)] == ["docs.bundle"]
    assert not {"sitePath", "bundlePath", "bundleSha256", "manifestPath"} & {*ended.outputs}


@KINDS
def test_an_archive_that_is_replaced_after_its_check_is_not_unpacked(
    action: Action, archive: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = build_archive({**SITE, "evil.html": b"<p>evil"}, "tar")
    path = action.workspace / "docs.bundle"
    verify = module.BundleFile.verify

    def replaced(bundle: module.BundleFile) -> object:
        found = verify(bundle)
        path.with_name("new").write_bytes(other)
        path.with_name("new").rename(path)
        return found

    monkeypatch.setattr(module.BundleFile, "verify", replaced)

    ended = unpack(action, archive)

    assert ended.end == (0, None)  # the file that was checked is still open
    assert "evil.html" not in read_tree(action.workspace / "site")


@KINDS
def test_an_archive_that_is_written_to_after_its_check_is_refused(
    action: Action, archive: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = action.workspace / "docs.bundle"
    verify = module.BundleFile.verify

    def overwritten(bundle: module.BundleFile) -> object:
        found = verify(bundle)
        path.write_bytes(build_archive({**SITE, "evil.html": b"<p>evil"}, "tar"))
        return found

    monkeypatch.setattr(module.BundleFile, "verify", overwritten)

    ended = unpack(action, archive)

    assert ended.end == (1, "invalid-bundle")
    assert not action.workspace.joinpath("site").exists()


def test_it_is_compared_and_stopped_like_a_fresh_export(action: Action) -> None:
    published = unpack(action, ARCHIVES["zip"], manifest_path="published")
    assert published.end == (0, None)
    remaining = {name: body for name, body in SITE.items() if not name.startswith("guides/")}
    fewer = build_archive(remaining, "zip")
    plan = {"site_path": "next", "compare_with": "published", "changes_path": "changes.json"}

    stopped = unpack(action, fewer, **plan, max_removed="0")
    too_few = unpack(action, fewer, **plan, min_pages=str(PAGES))
    delivered = unpack(action, fewer, **plan, max_removed="100%")

    assert stopped.reason == "too-many-removed"
    assert too_few.reason == "too-few-pages"
    assert delivered.reason is None
    assert stopped.outputs["changed"] == "true"
    assert stopped.outputs["changesPath"] == "changes.json"
    assert delivered.result["changes"]["pages"]["removed"] > 0
    assert "Changes since the last publication" in delivered.summary


def test_an_input_of_the_platform_brings_a_warning_and_the_key_is_masked(action: Action) -> None:
    of_the_platform = {
        "base_url": "https://api.example.com",
        "admin_key": ADMIN_KEY,
        "values_file": "v.yaml",
    }

    ended = unpack(action, ARCHIVES["tar"], **of_the_platform)

    assert ended.end == (0, None)
    assert len(ended.warnings) == 1  # a step that several modes share may set the other two
    assert f"::add-mask::{ADMIN_KEY}" in ended.stdout


def test_a_damaged_archive_with_the_right_digest_leaves_nothing(action: Action) -> None:
    ended = unpack(action, ARCHIVES["tar.gz"][:-20])

    assert ended.end == (1, "invalid-bundle")
    assert [*read_tree(action.workspace)] == ["docs.bundle"]


def _places(workspace: Path) -> Iterator[dict[str, str]]:
    """Yield inputs whose archive cannot be used."""
    yield {"bundle_path": "missing"}
    yield {"bundle_path": "published"}  # a folder
    os.mkfifo(workspace / "pipe")
    yield {"bundle_path": "pipe"}
    workspace.joinpath("link").symlink_to("/etc/hostname")
    yield {"bundle_path": "link"}
    yield {"bundle_path": "/etc/hostname"}
    yield {"bundle_path": "published/docs.bundle", "site_path": "published"}
    yield {"bundle_path": "published/docs.bundle", "site_path": "published/docs.bundle"}
    yield {"manifest_path": "docs.bundle"}
    yield {"bundle_path": "{domain}"}
    yield {"domain": "a.example.com\nb.example.com"}


def test_an_archive_that_cannot_be_used_is_an_error_of_an_input(action: Action) -> None:
    folder = action.workspace / "published"
    folder.mkdir()
    folder.joinpath("docs.bundle").write_bytes(ARCHIVES["tar"])

    for inputs in _places(action.workspace):
        assert unpack(action, ARCHIVES["tar"], **inputs).end == (1, "invalid-input"), inputs


@pytest.mark.parametrize(
    "change", [str.upper, lambda digest: f" {digest}\n"], ids=["capitals", "white space"]
)
def test_a_digest_may_have_capitals_and_white_space_around_it(action: Action, change: Any) -> None:
    archive = ARCHIVES["tar"]

    ended = unpack(action, archive, bundle_sha256=change(sha256(archive)))

    assert ended.end == (0, None)


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "0" * 63,
        "0" * 128,
        "0" * 40,
        f"sha256:{'0' * 64}",
        f"{'0' * 32} {'0' * 32}",
        "g" * 64,
        "\uff10" * 64,
        "none",
    ],
)
def test_anything_but_64_hexadecimal_digits_is_refused(action: Action, wrong: str) -> None:
    ended = unpack(action, ARCHIVES["tar"], bundle_sha256=wrong)

    assert ended.end == (1, "invalid-input")
    assert "bundle-sha256" in ended.error


@pytest.mark.parametrize("other", ["docs.bundle", "published"])
def test_an_environment_file_that_would_replace_what_is_read_is_refused_and_nothing_is_lost(
    action: Action, other: str
) -> None:
    kept = {"docs.bundle": ARCHIVES["tar"], "published": f"# 1 files\n{'0' * 64}  a\n".encode()}
    for name, content in kept.items():
        action.workspace.joinpath(name).write_bytes(content)
    digest = sha256(ARCHIVES["tar"])
    inputs = {**INPUTS, **NO_PLATFORM, "bundle_sha256": digest, "compare_with": "published"}
    environment = {
        "GITHUB_OUTPUT": "",
        "GITHUB_ACTIONS": "",
        "OUTPUT_ENV_FILE": str(action.workspace / other),
    }

    ended = action.run(Offline(VirtualClock()), env=environment, **inputs)

    assert ended.exit_code == 1
    assert "OUTPUT_ENV_FILE" in ended.stdout
    assert read_tree(action.workspace) == kept


@pytest.mark.parametrize("kind", ARCHIVES)
def test_each_heartbeat_says_how_far_it_is(
    action: Action, monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    large = build_archive({**SITE, "zz.bin": os.urandom(12 * 1024**2)}, kind)
    clock = VirtualClock()
    read = module.BundleFile.read

    def read_slowly(bundle: module.BundleFile, *given: int) -> bytes:
        chunk = read(bundle, *given)
        clock.sleep(120 * len(chunk) / CHUNK_BYTES)
        return chunk

    monkeypatch.setattr(module.BundleFile, "read", read_slowly)
    monkeypatch.setattr("tests.scenarios.test_unpack.VirtualClock", lambda: clock)

    ended = unpack(action, large)

    before, _, after = ended.log.partition("  Verified ")
    assert ended.end == (0, None)
    assert len(re.findall("^  verifying +[0-9]", before, re.MULTILINE)) > 12
    assert "unpacking" not in before
    found = re.findall("^  unpacking +([0-9]+) files?, ", after, re.MULTILINE)
    counts = [int(count) for count in found]
    assert len(counts) > 12
    # a zip archive is copied before it is unpacked
    if kind != "zip":
        # the first megabytes are read before a file is written
        later_counts = counts[len(counts) // 2 :]
        assert min(later_counts) >= len(SITE)


def test_an_archive_that_disappears_after_the_check_of_the_inputs_is_not_called_a_bug(
    action: Action, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check_and_remove(_outputs: Outputs) -> None:
        action.workspace.joinpath("docs.bundle").unlink()

    monkeypatch.setattr(Outputs, "check", check_and_remove)

    ended = unpack(action, ARCHIVES["tar"])

    assert ended.end == (1, "invalid-bundle")
    assert "docs.bundle" in ended.error
    assert "Another process removed or replaced it" in ended.error
    assert [*action.workspace.iterdir()] == []


def test_an_error_with_an_advice_of_its_own_keeps_it(
    action: Action, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "MAX_BYTES", 100)

    ended = unpack(action, ARCHIVES["tar"], manifest_path="m")

    assert ended.end == (1, "invalid-bundle")
    assert "manifest-path" in ended.error
