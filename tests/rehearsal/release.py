"""Makes a release on this machine, in the order of the release workflow.

A local registry stands in for the public one. The commands are logged for people.
"""

import json
import logging
import os
import shlex
import shutil
import subprocess
import sys
import tomllib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.engine import LABEL, ROOT, docker, locked_images
from tests.rehearsal.registry import add_blob, add_manifest, descriptor
from tests.workflow.act import GIT_SETTINGS

LOG = logging.getLogger("rehearsal")
MAJOR_TAG = "v1"
OCI = "application/vnd.oci.image"


@dataclass(frozen=True, kw_only=True)
class Release:
    """A release: an image in a registry, and the action as GitHub delivers it."""

    version: str
    repository: str
    """The image's name with the registry's host, without a tag."""
    digest: str
    """The digest of the index, which action.yml names."""
    action: Path
    """The files of the tag `v1`."""

    @property
    def image(self) -> str:
        return f"{self.repository}@{self.digest}"


def run(
    *command: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout_seconds: float = 120,
) -> str:
    """Run a command, log it, and return its output.

    Raises AssertionError with the output if it fails.
    """
    LOG.info("$ %s", shlex.join(command))
    # a git hook that runs the tests sets GIT_DIR, which is the wrong repository here
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**inherited, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_seconds,
        check=False,
    )
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def architecture() -> str:
    """Return the engine's architecture, such as `amd64`."""
    return docker("version", "--format", "{{.Server.Arch}}").strip()


def make_release(repository: str, *, folder: Path) -> Release:
    """Release the working tree, with its image in a repository such as `127.0.0.1:5000/owner/name`.

    Only the registry has the image afterwards, not the engine.
    """
    (folder / "gitconfig").write_text(GIT_SETTINGS)
    settings = {"GIT_CONFIG_GLOBAL": str(folder / "gitconfig"), "GIT_CONFIG_NOSYSTEM": "1"}
    clone = clone_with_working_tree(folder / "clone", settings)
    version = tomllib.loads((clone / "pyproject.toml").read_text())["project"]["version"]
    native = build_and_push(clone, f"{repository}:{version}-{architecture()}")
    digest = push_index(repository, version, native)
    image = f"{repository}@{digest}"
    script = (sys.executable, "-m", "release")
    run(*script, "tag", f"--image={image}", version, cwd=clone, env=settings)
    origin = folder / "origin.git"
    run("git", "init", "--quiet", "--bare", str(origin), env=settings)
    tag_ref = f"refs/tags/v{version}"
    branch_ref = f"refs/heads/release/v{version}"
    pushed = (tag_ref, f"{tag_ref}:{branch_ref}")
    run("git", "push", "--quiet", "--atomic", str(origin), *pushed, cwd=clone, env=settings)
    run("git", "tag", MAJOR_TAG, f"v{version}", cwd=origin, env=settings)
    branches = run("git", "branch", "--contains", MAJOR_TAG, cwd=origin, env=settings)
    LOG.info("%s", branches)
    commits = (f"{MAJOR_TAG}^", MAJOR_TAG)
    change = run("git", "diff", "--unified=0", *commits, cwd=origin, env=settings)
    LOG.info("%s", change)
    # as GitHub delivers them to the runner
    delivered = folder / "delivered"
    delivered.mkdir()
    archive = folder / "v1.tar"
    run("git", "archive", f"--output={archive}", MAJOR_TAG, cwd=origin)
    run("tar", "--extract", f"--file={archive}", f"--directory={delivered}")
    tagged = run("git", "rev-parse", MAJOR_TAG, cwd=origin).strip()
    on_branch = run("git", "for-each-ref", "--format=%(objectname)", branch_ref, cwd=origin).strip()
    assert on_branch == tagged
    return Release(version=version, repository=repository, digest=digest, action=delivered)


def clone_with_working_tree(clone: Path, settings: Mapping[str, str]) -> Path:
    """Clone this repository, and commit what the working tree has beyond the last commit.

    Files that git ignores are not committed. The clone has no tags: the version may be released
    already.
    """
    without = ("--no-tags", "--no-checkout")
    run("git", "clone", "--quiet", *without, str(ROOT), str(clone), env=settings)
    selected = ("--cached", "--others", "--exclude-standard")
    names = run("git", "ls-files", "-z", *selected, cwd=ROOT, env=settings)
    for name in names.split("\0"):
        if (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, clone / name)
    run("git", "add", "--all", cwd=clone, env=settings)
    changed = run("git", "status", "--short", cwd=clone, env=settings)
    if changed:
        LOG.info("Not committed, and part of this rehearsal:\n%s", changed)
        run("git", "commit", "--quiet", "--message=The working tree", cwd=clone, env=settings)
    return clone


def build_and_push(context: Path, tag: str) -> dict[str, Any]:
    """Build an image, push it, and remove it from the engine.

    Returns the descriptor of its manifest.
    """
    # the label makes the image unique, so that it is gone when it is removed
    label = f"{LABEL}={uuid.uuid4().hex}"
    # buildx may otherwise add an attestation and push an index; the rehearsal makes its own
    env = {"BUILDX_NO_DEFAULT_ATTESTATIONS": "1"}
    build = ("docker", "build", "--network=host", f"--label={label}", f"--tag={tag}", str(context))
    with locked_images():
        run(*build, env=env, timeout_seconds=600)
    try:
        run("docker", "push", "--quiet", tag, timeout_seconds=600)
    finally:
        with locked_images():
            run("docker", "image", "rm", "--force", tag)
    left = docker("image", "ls", "--quiet", "--filter", f"label={label}")
    assert left == "", "the engine still has the image"
    return descriptor(tag)


def push_index(repository: str, tag: str, native: dict[str, Any]) -> str:
    """Push an index like that of a release, and return its digest.

    It has an empty image for another platform, then the image for the engine's, and what looks to
    an engine like BuildKit's attestation of it (moby/buildkit,
    docs/attestations/attestation-storage.md).
    """
    other = "arm64" if architecture() == "amd64" else "amd64"
    attestation = {
        **push_empty_image(repository, "unknown"),
        "platform": {"architecture": "unknown", "os": "unknown"},
        "annotations": {
            "vnd.docker.reference.type": "attestation-manifest",
            "vnd.docker.reference.digest": native["digest"],
        },
    }
    manifests = [
        {**push_empty_image(repository, other), "platform": {"architecture": other, "os": "linux"}},
        {**native, "platform": {"architecture": architecture(), "os": "linux"}},
        attestation,
    ]
    index = {"schemaVersion": 2, "mediaType": f"{OCI}.index.v1+json", "manifests": manifests}
    return str(add_manifest(repository, index, tag)["digest"])


def push_empty_image(repository: str, platform: str) -> dict[str, Any]:
    """Push an image that holds nothing to run, and return its descriptor."""
    config = {
        "architecture": platform,
        "os": "linux",
        "config": {},
        "rootfs": {"type": "layers", "diff_ids": []},
    }
    blob = add_blob(repository, json.dumps(config).encode(), f"{OCI}.config.v1+json")
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{OCI}.manifest.v1+json",
        "config": blob,
        "layers": [],
    }
    return add_manifest(repository, manifest)
