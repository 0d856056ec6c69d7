"""A release, from the working tree to workflows that use it, with local registries instead of the public one."""

import re

import pytest
from packaging.version import Version

from tests.engine import ROOT
from tests.registry import descriptor, manifest
from tests.rehearsal.conftest import Host, Use
from tests.rehearsal.image import action_packages, architecture
from tests.rehearsal.release import Release

pytestmark = pytest.mark.timeout(900)  # the first test builds and pushes the image

LOCKED = dict(re.findall(r"^([\w.-]+)==([\w.]+)", (ROOT / "requirements" / "image.txt").read_text(), re.MULTILINE))


class TestImage:
    def test_the_index_has_another_platform_this_one_and_an_attestation(self, release: Release) -> None:
        digest, index = manifest(release.image)

        assert digest == release.digest
        other, native, attestation = [entry["platform"]["architecture"] for entry in index["manifests"]]
        assert native == architecture()
        assert other not in (native, attestation)
        assert attestation == "unknown"

    def test_the_sbom_has_the_locked_version_of_each_dependency(self, release: Release) -> None:
        # the installed package has the version in Python's form, such as 1.2.0rc1 for 1.2.0-rc.1
        assert action_packages(release.sbom) == {**LOCKED, "docs-platform-action": str(Version(release.version))}


class TestCommit:
    def test_only_the_image_in_action_yml_changes(self, release: Release) -> None:
        assert re.findall(r"^diff --git (.*)$", release.changes, re.MULTILINE) == ["a/action.yml b/action.yml"]
        assert re.findall(r"^[-+] .*$", release.changes, re.MULTILINE) == [
            "-  image: Dockerfile",
            f"+  image: docker://{release.image} # v{release.version}",
        ]


class TestWorkflow:
    def test_a_later_step_reads_the_outputs(self, use: Use) -> None:
        assert use.run.printed("outputs:") == ["completed, 12 pages, site with 12 of them"], use.run.log

    def test_the_next_job_reads_the_outputs(self, use: Use) -> None:
        assert use.run.printed("next job:") == ["12 pages"], use.run.log

    def test_the_image_is_pulled_by_its_digest_and_not_built(self, use: Use, release: Release) -> None:
        assert f"docker pull image={release.image} " in use.run.log
        assert "docker build" not in use.run.log
        assert release.image in use.image["RepoDigests"]

    def test_the_engine_takes_the_image_of_its_own_platform_from_the_registry(self, use: Use, release: Release) -> None:
        _, index = manifest(release.image)
        other, native, _ = [entry["digest"] for entry in index["manifests"]]
        _, image = manifest(f"{release.repository}@{native}")

        # no layers: the engine still has them, in its builder's cache
        downloaded = [request.rpartition("/")[2] for request in use.public_requests if request.startswith("GET ")]

        assert {release.digest, native, image["config"]["digest"]} <= {*downloaded}
        assert other not in downloaded
        assert use.image["Architecture"] == architecture()


class TestMirror:
    def test_every_digest_is_the_same(self, release: Release, mirrored: Release) -> None:
        digest, index = manifest(f"{mirrored.repository}:{mirrored.version}")

        assert digest == release.digest
        for entry in index["manifests"]:
            assert descriptor(f"{mirrored.repository}@{entry['digest']}")["digest"] == entry["digest"]

    def test_only_the_host_in_action_yml_changes(self, release: Release, mirrored: Release, public: Host, mirror: Host) -> None:
        before, after = [(action / "action.yml").read_text().splitlines() for action in (release.action, mirrored.action)]

        changed = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
        line = f"  image: docker://{{}}/owner/docs-platform-action@{release.digest} # v{release.version}"
        assert changed == [(line.format(public.address), line.format(mirror.address))]

    def test_the_workflow_runs_without_the_first_registry(self, mirrored_use: Use, mirrored: Release) -> None:
        assert mirrored_use.run.printed("outputs:") == ["completed, 12 pages, site with 12 of them"], mirrored_use.run.log
        assert f"docker pull image={mirrored.image} " in mirrored_use.run.log
        assert f"GET /v2/owner/docs-platform-action/manifests/{mirrored.digest}" in mirrored_use.mirror_requests
        assert mirrored_use.public_requests == []
