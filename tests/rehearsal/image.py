"""Builds and publishes the image of a release: the part that BuildKit and GitHub's actions do in the release workflow."""

import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.engine import LABEL, docker
from tests.registry import add_blob, add_manifest, descriptor
from tests.rehearsal.steps import LOG, run

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
ATTESTATION = "application/vnd.in-toto+json"
BUILDKIT = {
    "DOCKER_BUILDKIT": "1",
    # otherwise buildx may add an attestation and push an index; the rehearsal makes its own
    "BUILDX_NO_DEFAULT_ATTESTATIONS": "1",
}


def architecture() -> str:
    """Return the engine's architecture, such as `amd64`."""
    return docker("version", "--format", "{{.Server.Arch}}").strip()


def buildkit_client() -> str | None:
    """Return the first docker command on `PATH` that builds with BuildKit, or None.

    Newer clients need the plugin buildx for it, so this builds an empty image to find out. If the engine does not have that
    image afterwards, buildx keeps its images elsewhere (actions/runner#2480).
    """
    for folder in os.get_exec_path():
        if (client := shutil.which("docker", path=folder)) is None:
            continue
        tag = f"{LABEL}:{uuid.uuid4().hex[:12]}"
        built = subprocess.run(
            [client, "build", "--tag", tag, "-"],
            env={**os.environ, **BUILDKIT},
            input=b"FROM scratch\nLABEL title=probe\n",
            capture_output=True,
            timeout=120,
            check=False,
        )
        if built.returncode == 0 and docker("image", "ls", "--quiet", tag).strip():
            docker("image", "rm", tag)
            return client
    return None


def build_and_push(context: Path, tag: str) -> dict[str, Any]:
    """Build an image and push it, remove it from the engine, and return the descriptor of its manifest."""
    client = buildkit_client()
    LOG.info("Builder: %s", f"BuildKit, with {client}" if client else "the classic one, because no docker command has BuildKit")
    # the label makes the image unique, so that it is gone when it is removed
    label = f"{LABEL}={uuid.uuid4().hex}"
    run(
        *(client or "docker", "build", "--network=host", f"--label={label}", f"--tag={tag}", str(context)),
        env=BUILDKIT if client else {"DOCKER_BUILDKIT": "0"},
        timeout_seconds=600,
    )
    try:
        run("docker", "push", "--quiet", tag, timeout_seconds=600)
    finally:
        run("docker", "image", "rm", "--force", tag)
    assert docker("image", "ls", "--quiet", "--filter", f"label={label}") == "", "the engine still has the image"
    return descriptor(tag)


def sbom(syft: str, image: str) -> dict[str, Any]:
    """Return a list of the Python packages in an image, in the SPDX format."""
    found: dict[str, Any] = json.loads(
        run(
            *(syft, "--quiet", f"registry:{image}", "--select-catalogers=python", "--output=spdx-json"),
            env={"SYFT_REGISTRY_INSECURE_USE_HTTP": "true", "SYFT_CHECK_FOR_APP_UPDATE": "false", "SYFT_CACHE_TTL": "0"},
        )
    )
    return found


def action_packages(packages: dict[str, Any]) -> dict[str, str]:
    """Return the names and versions of the packages that an SBOM lists in the action's environment."""
    found = [package for package in packages["packages"] if "/opt/action/" in package.get("sourceInfo", "")]
    return {package["name"].lower().replace("_", "-"): package["versionInfo"] for package in found}


def push_index(repository: str, tag: str, native: dict[str, Any], packages: dict[str, Any]) -> str:
    """Push an index like that of a release, and return its digest.

    It has an empty image for another platform, then the image for the engine's, whose SBOM is attached as BuildKit does it
    (moby/buildkit, docs/attestations/attestation-storage.md).
    """
    statement = {
        "_type": "https://in-toto.io/Statement/v0.1",
        "predicateType": "https://spdx.dev/Document",
        "subject": [{"name": repository, "digest": {"sha256": native["digest"].removeprefix("sha256:")}}],
        "predicate": packages,
    }
    other = "arm64" if architecture() == "amd64" else "amd64"
    manifests = [
        {**_push_image(repository, other), "platform": {"architecture": other, "os": "linux"}},
        {**native, "platform": {"architecture": architecture(), "os": "linux"}},
        {
            **_push_image(repository, "unknown", add_blob(repository, json.dumps(statement).encode(), ATTESTATION)),
            "platform": {"architecture": "unknown", "os": "unknown"},
            "annotations": {
                "vnd.docker.reference.type": "attestation-manifest",
                "vnd.docker.reference.digest": native["digest"],
            },
        },
    ]
    return str(add_manifest(repository, {"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}, tag)["digest"])


@contextmanager
def removed_afterwards(image: str) -> Iterator[None]:
    """Remove an image from the engine at the end."""
    try:
        yield
    finally:
        if docker("image", "ls", "--quiet", image).strip():
            run("docker", "image", "rm", "--force", image)


def _push_image(repository: str, platform: str, *layers: dict[str, Any]) -> dict[str, Any]:
    """Push an image that holds nothing to run, and return its descriptor."""
    config = {"architecture": platform, "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": []}}
    return add_manifest(
        repository,
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": add_blob(repository, json.dumps(config).encode(), CONFIG),
            "layers": list(layers),
        },
    )
