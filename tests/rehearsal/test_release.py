"""A release, from the working tree to workflows that use it.

Local registries stand in for the public one.
"""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.version import Version

from admin_api_simulator import Simulator
from tests.engine import ROOT, docker, job_image, need_installed, remove_image
from tests.keys import ADMIN_KEY
from tests.rehearsal.conftest import NAME, WHAT
from tests.rehearsal.registry import manifest, registry, served_requests
from tests.rehearsal.release import LOG, Release, architecture, run
from tests.workflow.act import PUBLISHED_AS, Act

pytestmark = pytest.mark.timeout(900)  # the first test builds and pushes the image

WORKFLOW = Path(__file__).with_name("workflows") / "released.yml"


def test_the_sbom_has_the_locked_version_of_each_dependency(release: Release) -> None:
    requirements = (ROOT / "requirements" / "image.txt").read_text()
    locked = dict(re.findall(r"^([\w.-]+)==([\w.]+)", requirements, re.MULTILINE))
    image = f"{release.repository}:{release.version}-{architecture()}"
    command = (
        need_installed("syft", WHAT),
        "--quiet",
        f"registry:{image}",
        "--select-catalogers=python",
        "--output=spdx-json",
    )
    env = {
        "SYFT_REGISTRY_INSECURE_USE_HTTP": "true",
        "SYFT_CHECK_FOR_APP_UPDATE": "false",
        "SYFT_CACHE_TTL": "0",
    }

    packages = json.loads(run(*command, env=env))["packages"]

    found = {}
    for package in packages:
        if "/opt/action/" in package.get("sourceInfo", ""):
            name = package["name"].lower().replace("_", "-")
            found[name] = package["versionInfo"]
    # the installed package has the version in Python's form, such as 1.2.0rc1 for 1.2.0-rc.1
    expected = {**locked, "docs-platform-action": str(Version(release.version))}
    assert found == expected


def test_a_workflow_pulls_the_image_of_its_platform_by_the_digest_in_action_yml(
    folder: Path, release: Release
) -> None:
    (requested,) = use(release, folder / "use", registries=[folder / "public"])

    before = (ROOT / "action.yml").read_text().splitlines()
    after = (release.action / "action.yml").read_text().splitlines()
    changed = [new for old, new in zip(before, after, strict=True) if new != old]
    assert changed == [f"  image: docker://{release.image} # v{release.version}"]
    other, native, _ = (entry["digest"] for entry in manifest(release.image)[1]["manifests"])
    # no layers: the engine still has them, in its builder's cache
    downloaded = {request.rpartition("/")[2] for request in requested if request.startswith("GET ")}
    assert {release.digest, native} <= downloaded
    assert other not in downloaded


def test_a_mirror_has_the_same_digest_and_the_workflow_runs_without_the_first_registry(
    folder: Path, release: Release
) -> None:
    LOG.info("\nA mirror, as in a network without access to the first registry")
    with registry(folder / "mirror") as mirror:
        mirrored = replace(release, repository=f"{mirror}/{NAME}", action=folder / "mirrored")
        run(
            "skopeo",
            "copy",
            "--all",
            "--preserve-digests",
            "--src-tls-verify=false",
            "--dest-tls-verify=false",
            f"docker://{release.image}",
            f"docker://{mirrored.repository}:{release.version}",
        )
        shutil.copytree(release.action, mirrored.action)
        action = mirrored.action / "action.yml"
        action.write_text(action.read_text().replace(release.repository, mirrored.repository))

        to_public, to_mirror = use(
            mirrored, folder / "mirrored-use", registries=[folder / "public", folder / "mirror"]
        )
        assert manifest(f"{mirrored.repository}:{mirrored.version}")[0] == release.digest

    assert f"GET /v2/{NAME}/manifests/{release.digest}" in to_mirror
    assert to_public == []


def use(release: Release, folder: Path, *, registries: list[Path]) -> list[list[str]]:
    """Run a workflow with the released action.

    Returns the requests to each registry meanwhile.
    """
    LOG.info("\nA workflow with the release")
    act = Act(
        folder=folder,
        workflows={"released.yml": WORKFLOW.read_text("utf-8")},
        image=job_image(),
        actions={PUBLISHED_AS: release.action},
    )
    before = [len(served_requests(registry)) for registry in registries]
    try:
        with Simulator(key=ADMIN_KEY, export_seconds=0.3, pages=12, host="127.0.0.1") as platform:
            ended = act.run("released.yml", platform)
        (image,) = json.loads(docker("image", "inspect", release.image))
    finally:
        remove_image(release.image)
    requested = [
        served_requests(registry)[count:]
        for registry, count in zip(registries, before, strict=True)
    ]
    LOG.info("%s\nRequests to the registries: %s", ended.log, json.dumps(requested, indent=2))
    assert ended.printed("outputs:") == ["completed, 12 pages, site with 12 of them"], ended.log
    assert ended.printed("next job:") == ["12 pages"], ended.log
    assert f"docker pull image={release.image} " in ended.log
    assert "docker build" not in ended.log
    assert image["Architecture"] == architecture()
    return requested
