"""A release in a local registry, a mirror of it, and a workflow that uses them."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from admin_api_simulator import Simulator
from tests.ended import without_key
from tests.engine import docker, need_act, need_engine, need_installed
from tests.keys import ADMIN_KEY
from tests.registry import need_registry_tools, registry, served_requests
from tests.rehearsal.image import removed_afterwards
from tests.rehearsal.release import Release, make_release
from tests.rehearsal.steps import LOG, run
from tests.workflow.act import Act, WorkflowRun

WORKFLOWS = Path(__file__).with_name("workflows")
NAME = "owner/docs-platform-action"
WHAT = "Tests that rehearse a release"


@dataclass(frozen=True, kw_only=True)
class Host:
    """A registry."""

    address: str
    folder: Path

    def requests(self) -> list[str]:
        """Return the successful requests so far."""
        return served_requests(self.folder)


@dataclass(frozen=True, kw_only=True)
class Use:
    """A finished workflow that used the action, and what it left in the engine and in the registries' logs."""

    run: WorkflowRun
    image: dict[str, Any]
    """What the engine says about the image that action.yml names."""
    public_requests: list[str]
    mirror_requests: list[str]


def pytest_runtest_setup(item: pytest.Function) -> None:
    if "release" not in item.fixturenames:
        return
    # not in a fixture, so that pytest's summary shows the reason once, not for each test
    need_engine(WHAT)
    need_registry_tools()
    need_act()
    need_installed("syft", WHAT)


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    # not pytest's own folder, which keeps the images of earlier sessions
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def public(folder: Path) -> Iterator[Host]:
    """Serve the registry that a release is pushed to."""
    with registry(folder / "public") as address:
        yield Host(address=address, folder=folder / "public")


@pytest.fixture(scope="session")
def mirror(folder: Path) -> Iterator[Host]:
    """Serve a second registry, as in a network without access to the first."""
    with registry(folder / "mirror") as address:
        yield Host(address=address, folder=folder / "mirror")


@pytest.fixture(scope="session")
def release(folder: Path, public: Host) -> Release:
    LOG.info("\nThe release")
    return make_release(f"{public.address}/{NAME}", syft=need_installed("syft", WHAT), folder=folder)


@pytest.fixture(scope="session")
def mirrored(folder: Path, release: Release, public: Host, mirror: Host) -> Release:
    """Copy the image to the mirror, and replace the host in action.yml."""
    LOG.info("\nThe mirror")
    run(
        *("skopeo", "copy", "--all", "--preserve-digests", "--src-tls-verify=false", "--dest-tls-verify=false"),
        f"docker://{release.repository}@{release.digest}",
        f"docker://{mirror.address}/{NAME}:{release.version}",
    )
    action = folder / "mirrored"
    shutil.copytree(release.action, action)
    text = (action / "action.yml").read_text()
    (action / "action.yml").write_text(text.replace(public.address, mirror.address))
    return replace(release, repository=f"{mirror.address}/{NAME}", action=action)


@pytest.fixture(scope="session")
def use(folder: Path, release: Release, public: Host, mirror: Host) -> Use:
    """Run a workflow with the released action."""
    LOG.info("\nA workflow with the release")
    return use_action(release, folder / "use", public, mirror)


@pytest.fixture(scope="session")
def mirrored_use(folder: Path, mirrored: Release, public: Host, mirror: Host) -> Use:
    """Run the same workflow with the mirrored action."""
    LOG.info("\nThe same workflow with the mirror")
    return use_action(mirrored, folder / "mirrored-use", public, mirror)


@pytest.fixture(autouse=True)
def _register_the_log(request: pytest.FixtureRequest) -> None:
    # a run is older than its tests, so its log is registered again for the search
    for name in {"use", "mirrored_use"}.intersection(request.fixturenames):
        without_key(request.getfixturevalue(name).run.log)


def use_action(release: Release, folder: Path, public: Host, mirror: Host) -> Use:
    act = Act(program=need_act(), folder=folder, workflows=WORKFLOWS, published=release.action)
    before = len(public.requests()), len(mirror.requests())
    with removed_afterwards(release.image), Simulator(key=ADMIN_KEY, export_seconds=0.3, pages=12, host="127.0.0.1") as platform:
        ended = act.push("released.yml", variables={"DOCS_API": platform.base_url}, secrets={"DOCS_ADMIN_KEY": platform.key})
        LOG.info("%s", ended.log)
        assert ended.succeeded, ended.log
        (image,) = json.loads(docker("image", "inspect", release.image))
    public_requests, mirror_requests = public.requests()[before[0] :], mirror.requests()[before[1] :]
    LOG.info("Requests to the registry %s:\n%s", public.address, "\n".join(public_requests) or "none")
    LOG.info("Requests to the mirror %s:\n%s", mirror.address, "\n".join(mirror_requests) or "none")
    return Use(run=ended, image=image, public_requests=public_requests, mirror_requests=mirror_requests)
