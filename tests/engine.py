"""Helpers of the container and workflow tests.

They are about the container engine, the images of a run of the tests, and act.
"""

import fcntl
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NoReturn

import pytest

ROOT = Path(__file__).parents[1]
LABEL = "docs-platform-action-tests"
TEST_RUN = os.environ.setdefault("DOCS_TEST_RUN", uuid.uuid4().hex[:12])
"""Names the images and act's containers of this run of the tests.

All of its processes inherit the variable.
"""
USED = Path(tempfile.gettempdir(), f"{LABEL}-{TEST_RUN}")
"""A file that exists once this run has used the container engine."""
BUILT_IMAGE = f"docs-platform-action:test-{TEST_RUN}"
EXAMPLES_JOB_IMAGE = f"act-job-examples:test-{TEST_RUN}"
JOB_IMAGE = "act-job:latest"
BUILT_BY_ACT = ("act-dockeraction:latest", "act-owner-docs-platform-action-v1-dockeraction:latest")
"""act's names for the images of `uses: ./` and of the published action."""
PUBLISHED = (
    ".dockerignore",
    "Dockerfile",
    "LICENSE",
    "Makefile",
    "README.md",
    "action.yml",
    "entrypoint.py",
    "pyproject.toml",
    "requirements",
    "src",
)
"""The files that are published as the action.

The simulator is one of them, so that tests can check that it stays out of the image.
"""


def need_engine(what: str) -> None:
    """Skip if no container engine responds, or fail if one is required."""
    problem = _engine_problem()
    if problem is not None:
        skip_or_fail(
            f"{what} need a container engine ({problem}). "
            "Start Docker or set DOCKER_HOST; `docker info` must succeed."
        )


def need_act() -> str:
    """Return act's path; skip if it is missing, or fail if it is required."""
    return need_installed("act", "Workflow tests")


def need_installed(program: str, what: str) -> str:
    """Return the path of a program of the development dependencies.

    Skip if it is missing, or fail if it is required.
    """
    found = shutil.which(program, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if found is None:
        skip_or_fail(
            f"{what} need {program}, "
            "which `make .venv/installed` puts into the virtual environment."
        )
    return found


def docker(*arguments: str, timeout_seconds: float = 60, stdin: IO[bytes] | None = None) -> str:
    """Run a docker command and return its output.

    Raises AssertionError with the output if it fails.
    """
    done = subprocess.run(
        ["docker", *arguments],
        capture_output=True,
        text=True,
        timeout=timeout_seconds,
        stdin=stdin or subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0, f"docker {' '.join(arguments)}\n{done.stdout}{done.stderr}"
    return done.stdout


def copy_action(target: Path) -> Path:
    """Copy the published files of the action, as in a new checkout."""
    target.mkdir(parents=True, exist_ok=True)
    unpublished = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in PUBLISHED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, ignore=unpublished)
        else:
            shutil.copy(ROOT / name, target / name)
    return target


def temporary_tag() -> str:
    """Return a unique image name."""
    return f"{BUILT_IMAGE}-{uuid.uuid4().hex[:12]}"


def build_image(tag: str, context: Path | IO[bytes], *arguments: str) -> None:
    """Build an image from a folder or an archive, unless its name exists.

    `arguments` are build arguments such as `NAME=value`.
    """
    # the only network that every supported engine has
    command = ["build", "--network=host", "--tag", tag]
    command += [f"--build-arg={argument}" for argument in arguments]
    stdin: IO[bytes] | None = None
    if isinstance(context, Path):
        command.append(str(context))
    else:
        command.append("-")
        stdin = context
    USED.touch()
    with locked_images():
        if not has_image(tag):
            docker(*command, timeout_seconds=600, stdin=stdin)


def has_image(tag: str) -> bool:
    """Return whether the engine has an image of this name."""
    return docker("image", "ls", "--quiet", tag).strip() != ""


def remove_image(tag: str) -> None:
    """Remove an image if it exists."""
    with locked_images():
        if has_image(tag):
            docker("image", "rm", "--force", tag)


def remove_what_this_run_left() -> None:
    """Remove the images that the processes of this run share.

    If act was stopped, remove what is left of its jobs, too.
    """
    if not USED.exists():
        return
    USED.unlink()
    remove_containers(f"name={TEST_RUN}")
    volumes = docker("volume", "ls", "--quiet", "--filter", f"name={TEST_RUN}").split()
    for volume in volumes:
        docker("volume", "rm", "--force", volume)
    for image in images_of(f"*:test-{TEST_RUN}*"):
        remove_image(image)
    if not images_of("docs-platform-action:test-*"):
        for image in BUILT_BY_ACT:
            remove_image(image)


def images_of(reference: str) -> list[str]:
    """Return the names of the images that match a pattern."""
    command = ["image", "ls", "--filter", f"reference={reference}"]
    command += ["--format", "{{.Repository}}:{{.Tag}}"]
    return docker(*command).split()


@contextmanager
def locked_images() -> Iterator[None]:
    """Wait until no other process builds or removes images.

    A build fails if an image with the same layers is removed meanwhile, and a second build of the
    same image finds the first one's layers only after that has ended.
    """
    with Path(tempfile.gettempdir(), f"{LABEL}-{os.getuid()}.lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def action_image() -> str:
    """Return the image that a release has published, or build the action's image."""
    published = os.environ.get("ACTION_IMAGE")
    if published:
        return published
    if not has_image(BUILT_IMAGE):
        with tempfile.TemporaryDirectory() as folder:
            build_image(BUILT_IMAGE, copy_action(Path(folder)))
    return BUILT_IMAGE


def job_image() -> str:
    """Return the image of act's jobs, and build it if it is missing."""
    build_image(JOB_IMAGE, ROOT / "tests" / "workflow" / "job-image")
    return JOB_IMAGE


def examples_job_image() -> str:
    """Return the image of act's jobs for the examples, with the programs that they call.

    Helm is that of the lock file, or the program that `EXAMPLES_HELM` names. A second name keeps
    the image in the cache, without which a build takes long and needs a network.
    """
    if has_image(EXAMPLES_JOB_IMAGE):
        return EXAMPLES_JOB_IMAGE
    with tempfile.TemporaryDirectory() as folder:
        context = Path(folder)
        fill_examples_context(context)
        build_image(EXAMPLES_JOB_IMAGE, context)
    docker("tag", EXAMPLES_JOB_IMAGE, "act-job-examples:latest")
    return EXAMPLES_JOB_IMAGE


def fill_examples_context(context: Path) -> None:
    """Copy what the image of the examples is built from into a folder."""
    (context / "requirements").mkdir()
    shutil.copy(ROOT / "requirements" / "examples.txt", context / "requirements" / "examples.txt")
    workflow = ROOT / "tests" / "workflow"
    for name in ("chart", "job-image"):
        shutil.copytree(workflow / name, context / "tests" / "workflow" / name)
    for name in node_packages("linkinator"):
        shutil.copytree(ROOT / "tests" / "node_modules" / name, context / "node_modules" / name)

    dockerfile = (workflow / "job-image" / "examples.Dockerfile").read_text()
    helm = os.environ.get("EXAMPLES_HELM")
    if helm:
        shutil.copy(helm, context / "helm")
        dockerfile += "COPY helm /usr/local/bin/helm\n"
    (context / "Dockerfile").write_text(dockerfile)


def node_packages(name: str) -> set[str]:
    """Return the names of a Node package of the tests and of all that it needs.

    The lock file lists them by folders.
    """
    locked = json.loads((ROOT / "tests" / "package-lock.json").read_text())["packages"]
    found: set[str] = set()
    pending = [name]
    while pending:
        package = pending.pop()
        if package in found:
            continue
        found.add(package)
        its_folders = re.compile(rf"node_modules/{re.escape(package)}(/node_modules/|$)")
        for path, entry in locked.items():
            if its_folders.match(path):
                pending.extend(entry.get("dependencies", {}))
    return {package for package in found if f"node_modules/{package}" in locked}


def remove_labelled_containers(label: str) -> None:
    """Remove the remaining containers that have a label."""
    remove_containers(f"label={label}")


def remove_containers(condition: str) -> None:
    """Remove the containers that meet a condition, such as `name=…`."""
    containers = docker("ps", "--all", "--quiet", "--filter", condition).split()
    for container in containers:
        command = ["docker", "rm", "--force", "--volumes", container]
        # may fail: because of --rm, or of act, which a signal has stopped, the engine may already
        # be removing the container
        subprocess.run(command, capture_output=True, timeout=60, check=False)


@functools.cache
def _engine_problem() -> str | None:
    try:
        done = subprocess.run(
            ["docker", "version"], capture_output=True, text=True, timeout=30, check=False
        )
    except FileNotFoundError:
        return "there is no docker command"
    except subprocess.TimeoutExpired:
        return "the engine did not respond within 30 s"
    if done.returncode == 0:
        return None
    errors = done.stderr.strip() or "docker version failed"
    return errors.splitlines()[-1].rstrip(".")


def skip_or_fail(reason: str) -> NoReturn:
    """Skip a test whose tools are missing, or fail if `REQUIRE_ENGINE` is set."""
    if os.environ.get("REQUIRE_ENGINE", "0") not in ("", "0"):
        pytest.fail(f"REQUIRE_ENGINE is set. {reason}", pytrace=False)
    pytest.skip(f"{reason} REQUIRE_ENGINE=1 makes this a failure.")
