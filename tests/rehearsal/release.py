"""Makes a release on this machine, in the order of the release workflow, with a local registry instead of the public one."""

import shutil
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.engine import ROOT
from tests.rehearsal.image import action_packages, architecture, build_and_push, push_index, sbom
from tests.rehearsal.steps import LOG, run
from tests.workflow.act import AUTHOR

MAJOR_TAG = "v1"


@dataclass(frozen=True, kw_only=True)
class Release:
    """A release: an image in a registry, and the action as GitHub delivers it."""

    version: str
    repository: str
    """The image's name with the registry's host, without a tag."""
    digest: str
    """The digest of the index, which action.yml names."""
    sbom: dict[str, Any]
    changes: str
    """The difference between the release's commit and its parent."""
    action: Path
    """The files of the tag `v1`."""

    @property
    def image(self) -> str:
        return f"{self.repository}@{self.digest}"


def make_release(repository: str, *, syft: str, folder: Path) -> Release:
    """Release the working tree, with its image in a repository such as `127.0.0.1:5000/owner/name`.

    Only the registry has the image afterwards, not the engine.
    """
    settings = _git_settings(folder)
    clone = _clone_with_working_tree(folder / "clone", settings)
    version = tomllib.loads((clone / "pyproject.toml").read_text())["project"]["version"]
    native = build_and_push(clone, f"{repository}:{version}-{architecture()}")
    packages = sbom(syft, f"{repository}@{native['digest']}")
    digest = push_index(repository, version, native, packages)
    LOG.info("The action's packages in the SBOM: %s", action_packages(packages))
    LOG.info("Digest of the index: %s", digest)
    run(sys.executable, "-m", "release", "tag", f"--image={repository}@{digest}", version, cwd=clone, env=settings)
    run("git", "tag", MAJOR_TAG, f"v{version}", cwd=clone, env=settings)
    changes = run("git", "diff", "--unified=0", "HEAD", MAJOR_TAG, cwd=clone, env=settings)
    LOG.info("%s", changes)
    return Release(
        version=version,
        repository=repository,
        digest=digest,
        sbom=packages,
        changes=changes,
        action=_delivered(clone, MAJOR_TAG, folder),
    )


def _git_settings(folder: Path) -> dict[str, str]:
    """Return an environment for git with the tests' author and without the user's settings."""
    settings = folder / "gitconfig"
    # the working tree may belong to another user
    settings.write_text(f"[user]\nname = {AUTHOR['NAME']}\nemail = {AUTHOR['EMAIL']}\n[safe]\ndirectory = *\n")
    return {"GIT_CONFIG_GLOBAL": str(settings), "GIT_CONFIG_NOSYSTEM": "1"}


def _clone_with_working_tree(clone: Path, settings: Mapping[str, str]) -> Path:
    """Clone this repository, and commit what the working tree has beyond the last commit, without files that git ignores.

    The clone has no tags: the version may be released already.
    """
    run("git", "clone", "--quiet", "--no-tags", "--no-checkout", str(ROOT), str(clone), env=settings)
    names = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT, env=settings)
    for name in names.split("\0"):
        if (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, clone / name)
    run("git", "add", "--all", cwd=clone, env=settings)
    if changed := run("git", "status", "--short", cwd=clone, env=settings):
        LOG.info("Not committed, and part of this rehearsal:\n%s", changed)
        run("git", "commit", "--quiet", "--message=The working tree", cwd=clone, env=settings)
    return clone


def _delivered(clone: Path, tag: str, folder: Path) -> Path:
    """Return a folder with the files of a tag, as GitHub delivers them to the runner."""
    archive, delivered = folder / f"{tag}.tar.gz", folder / "delivered"
    delivered.mkdir()
    run("git", "archive", "--prefix=docs-platform-action/", f"--output={archive}", tag, cwd=clone)
    run("tar", "--extract", f"--file={archive}", f"--directory={delivered}", "--strip-components=1")
    return delivered
