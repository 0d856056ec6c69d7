"""The content and size of the image."""

import json
import re
from typing import Any

import pytest

from tests.container.runner import RUNS
from tests.engine import ROOT, docker

pytestmark = pytest.mark.timeout(900)

PYTHON = "/opt/action/bin/python"

MAX_ADDED_BYTES = 8_000_000
"""Maximum size of the files that the image adds to its base.

Each job on a new machine downloads or builds them.
"""

LOOK = """
import importlib.metadata as metadata, importlib.util as util, json, os, pathlib

def is_compiled(source):
    # flags of a .pyc file: 1 is an unchecked hash, so that the times of files do not matter
    compiled = pathlib.Path(util.cache_from_source(source))
    return compiled.exists() and compiled.read_bytes()[4:8] == bytes([1, 0, 0, 0])

versions = {}
files_of = {}
for found in metadata.distributions():
    versions[found.name] = found.version
    files_of[found.name] = [file.name for file in found.files if file.locate().exists()]

files = []
not_compiled = []
for path in pathlib.Path("/opt/action").rglob("*"):
    if not path.is_file() or path.is_symlink():
        continue
    files.append(str(path))
    if "lib" in path.parts and path.suffix == ".py" and not is_compiled(path):
        not_compiled.append(str(path))

print(json.dumps({
    "versions": versions,
    "files of": files_of,
    "files": files,
    "not compiled": not_compiled,
    "left of the build": [*{*os.listdir("/opt")} - {"action"}, *{*os.listdir("/")} & {"build"}],
}))
"""


@pytest.fixture(scope="module")
def found(image: str) -> dict[str, Any]:
    """Return what the action's Python, isolated like the action, finds in the image."""
    output = docker(
        "run", "--rm", "--network=host", "--entrypoint", PYTHON, image, "-I", "-c", LOOK
    )
    return dict(json.loads(output))


def test_the_entry_point_is_a_program_without_a_shell(image: str) -> None:
    config = json.loads(docker("image", "inspect", "--format", "{{json .Config}}", image))

    assert config["Entrypoint"] == [PYTHON, "-I", "-u", "/opt/action/entrypoint.py"]
    assert [RUNS["entrypoint"], *RUNS["args"]] == config["Entrypoint"]
    assert not config.get("User"), "only root can write to the files of every runner"


def test_the_image_holds_the_locked_distributions_and_no_other(found: dict[str, Any]) -> None:
    lock_file = (ROOT / "requirements" / "image.txt").read_text()
    locked = dict(re.findall(r"^([\w.-]+)==([\w.]+)", lock_file, re.MULTILINE))

    versions = {}
    for name, version in found["versions"].items():
        versions[name.lower().replace("_", "-")] = version

    assert versions == {**locked, "docs-platform-action": versions["docs-platform-action"]}


def test_each_distribution_has_its_license(found: dict[str, Any]) -> None:
    without = []
    for name, files in found["files of"].items():
        licenses = [file for file in files if re.match("(?i)licen[cs]e", file)]
        if not licenses:
            without.append(name)

    assert without == []


def test_all_byte_code_is_there_and_valid_regardless_of_file_times(found: dict[str, Any]) -> None:
    assert any(file.endswith("/docs_platform_action/main.py") for file in found["files"])
    assert found["not compiled"] == []


def test_neither_unused_kinds_of_files_nor_those_of_the_build_remain(found: dict[str, Any]) -> None:
    unused = re.compile(
        r"/(?:tests?|cli|emscripten|include|admin_api_simulator)/|/bin/|\.(?:so|pyi|exe|h|c|js|sh)$"
    )

    assert [file for file in found["files"] if unused.search(file)] == []
    assert found["left of the build"] == []


def test_the_image_adds_little_to_its_base(image: str) -> None:
    # the build stage does not match, because it has a name
    (base,) = re.findall(r"(?m)^FROM (\S+)$", (ROOT / "Dockerfile").read_text())

    assert 0 < total_bytes(image) - total_bytes(base) <= MAX_ADDED_BYTES


def total_bytes(image: str) -> int:
    # not the engine's size of the image, which means something else in each kind of image store
    find = ("find", image, "/", "-xdev", "-type", "f", "-printf", r"%s\n")
    sizes = docker("run", "--rm", "--network=host", "--entrypoint", *find).split()
    return sum(int(size) for size in sizes)
