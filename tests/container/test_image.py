"""The content and size of the image."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import yaml

from admin_api_simulator import Simulator
from tests.container.runner import Runner
from tests.container.stripped_base import base_of, built_on, stripped
from tests.engine import ROOT, copy_action, docker, published_image, temporary_tag

pytestmark = pytest.mark.timeout(900)

PYTHON = "/opt/action/bin/python"

MAX_UNPACKED_BYTES = 8_000_000
"""Maximum size of the files that the image adds to its base; each job on a new machine downloads or builds them."""

WRITTEN_BY_THE_ENGINE = ("/etc/hostname", "/etc/hosts", "/etc/resolv.conf")
"""Files that differ from container to container."""


@dataclass(frozen=True, kw_only=True)
class Stripped:
    """The action's image on a base without byte code."""

    image: str
    base: str


@dataclass(frozen=True, kw_only=True)
class File:
    """A file of an image: its size in bytes, and its time, mode and owner."""

    size: int
    attributes: str
    path: str


@pytest.fixture(scope="module")
def on_stripped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stripped]:
    base = base_of((ROOT / "Dockerfile").read_text())
    context = copy_action(tmp_path_factory.mktemp("action"))
    with stripped(base, tmp_path_factory.mktemp("base")) as under, built_on(under, temporary_tag(), context) as image:
        yield Stripped(image=image, base=under)


@pytest.fixture
def without_byte_code(request: pytest.FixtureRequest) -> str:
    """Return the action's image on a base without byte code: the published one, on Docker Hub's base, or one that is built."""
    published = published_image()
    return published or str(request.getfixturevalue("on_stripped").image)


def test_the_entry_point_is_a_program_without_a_shell(image: str) -> None:
    config = json.loads(docker("image", "inspect", "--format", "{{json .Config}}", image))

    runs = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]
    assert config["Entrypoint"] == [PYTHON, "-I", "-u", "/opt/action/entrypoint.py"]
    assert [runs["entrypoint"], *runs["args"]] == config["Entrypoint"]
    assert not config.get("User"), "only root can write to the files of every runner"


def test_the_image_holds_the_locked_distributions_and_no_other(image: str) -> None:
    locked = dict(re.findall(r"^([\w.-]+)==([\w.]+)", (ROOT / "requirements" / "image.txt").read_text(), re.MULTILINE))

    installed = json.loads(
        inside(
            image,
            "import json, importlib.metadata as metadata;"
            "print(json.dumps({found.name: found.version for found in metadata.distributions()}))",
        )
    )

    assert installed.pop("docs-platform-action") is not None
    assert {name.lower().replace("_", "-"): version for name, version in installed.items()} == locked


def test_neither_development_packages_nor_build_files_remain(image: str) -> None:
    code = """
import importlib.util, json, os
modules = ["pip", "flit_core", "github", "admin_api_simulator", "pytest"]
found = [name for name in modules if importlib.util.find_spec(name)]
print(json.dumps([found, os.listdir("/opt"), os.path.exists("/build")]))
"""

    assert json.loads(inside(image, code)) == [[], ["action"], False]


def test_the_action_is_loaded_from_byte_code(image: str) -> None:
    python = f"{PYTHON} -I -v -c 'import docs_platform_action.main' 2>&1"
    trace = docker("run", "--rm", "--network=host", "--entrypoint", "sh", image, "-c", python)

    sources = re.findall(r"# code object from '?([^'\n]+)'?", trace)
    assert any("docs_platform_action" in source for source in sources), "the trace tells where modules come from"
    assert [source for source in sources if not source.endswith(".pyc")] == []


def test_all_byte_code_is_valid_regardless_of_file_times(image: str) -> None:
    # flags of a .pyc file: 1 is a hash that is not checked
    code = """
import importlib.util, json, pathlib
checked = {}
for source in pathlib.Path("/opt/action/lib").rglob("*.py"):
    compiled = pathlib.Path(importlib.util.cache_from_source(source))
    checked[str(source)] = compiled.exists() and compiled.read_bytes()[4:8] == bytes([1, 0, 0, 0])
print(json.dumps(checked))
"""
    checked = json.loads(inside(image, code))

    assert any(source.endswith("docs_platform_action/main.py") for source in checked)
    assert [source for source, good in checked.items() if not good] == []


def test_the_files_of_all_layers_together_stay_small(on_stripped: Stripped) -> None:
    # not the engine's size of the image, which means something else in each kind of image store
    added = files(on_stripped.image) - files(on_stripped.base)

    assert any(file.path.startswith("/opt/action/") for file in added), "the list shows what is added"
    assert sum(file.size for file in added) <= MAX_UNPACKED_BYTES


def test_the_image_has_no_unused_kinds_of_files(image: str) -> None:
    names = docker("run", "--rm", "--entrypoint", "find", image, "/opt/action", "-type", "f").splitlines()

    unused = re.compile(r"/(?:tests?|cli|emscripten|include)/|/bin/|\.(?:so|pyi|exe|h|c|js|sh)$")
    assert len(names) > 100, "all files are looked at"
    assert [name for name in names if unused.search(name)] == []


def test_each_distribution_has_its_metadata_and_license(image: str) -> None:
    # vulnerability scanners need the metadata, and the licenses require their text
    code = """
import importlib.metadata as metadata, json
print(json.dumps({found.name: [bool(found.version), [file.name for file in found.files if file.locate().exists()]]
                  for found in metadata.distributions()}))
"""
    found = json.loads(inside(image, code))

    assert len(found) > 5
    assert {name for name, (versioned, _) in found.items() if not versioned} == set()
    assert {name for name, (_, files) in found.items() if not any(re.match("(?i)licen[cs]e", file) for file in files)} == set()


def test_a_run_compiles_nothing(without_byte_code: str, platform: Simulator, tmp_path_factory: pytest.TempPathFactory) -> None:
    # otherwise Python, running as root, would compile and write it in each container
    runner = Runner(image=without_byte_code, folder=tmp_path_factory.mktemp("job"), logs=tmp_path_factory.mktemp("logs"))
    inputs = {
        "base-url": platform.base_url,
        "admin-key": platform.key,
        "domain": "docs.example.com\nhelp.example.com",
        "bundle-path": "bundles/{domain}",
        "site-path": "sites/{domain}",
        "values-file": "values/{domain}.yaml",
        "export-version": "1",
    }

    step = runner.start(inputs, keep=True)
    ended = step.wait()
    changes = step.changed_files()
    runner.clean_up()

    assert ended.exit_code == 0, ended.log
    assert any("/github" in change for change in changes), "the list shows what there is beside the image"
    assert [change for change in changes if "/github" not in change] == []


def files(image: str) -> set[File]:
    """Return all files of an image. A layer that changes a file of its base, even its mode, contains the whole file."""
    find = ("find", image, "/", "-xdev", "-type", "f", "-printf", r"%s\t%T@ %m %u %g\t%p\n")
    listed = (line.split("\t") for line in docker("run", "--rm", "--network=host", "--entrypoint", *find).splitlines())
    found = {File(size=int(size), attributes=attributes, path=path) for size, attributes, path in listed}
    return {file for file in found if file.path not in WRITTEN_BY_THE_ENGINE}


def inside(image: str, code: str) -> str:
    """Run code with the action's Python, isolated like the action."""
    return docker("run", "--rm", "--network=host", "--entrypoint", PYTHON, image, "-I", "-c", code)
