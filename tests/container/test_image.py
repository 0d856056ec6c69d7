"""What the image is made of."""

import json
import re

import pytest

from tests.engine import ROOT, docker

pytestmark = pytest.mark.timeout(900)

PYTHON = "/opt/action/bin/python"


def test_the_entry_point_is_a_program_without_a_shell(image: str) -> None:
    config = json.loads(docker("image", "inspect", "--format", "{{json .Config}}", image))

    assert config["Entrypoint"] == [PYTHON, "-I", "-u", "/opt/action/entrypoint.py"]
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


@pytest.mark.parametrize("module", ["pip", "flit_core", "github", "admin_api_simulator", "pytest"])
def test_what_only_development_needs_stays_out(image: str, module: str) -> None:
    found = inside(image, f"import importlib.util; print(importlib.util.find_spec({module!r}))")

    assert found.strip() == "None"


def test_nothing_of_the_build_is_left(image: str) -> None:
    left = json.loads(inside(image, "import json, os; print(json.dumps([os.listdir('/opt'), os.path.exists('/build')]))"))

    assert left == [["action"], False]


def test_the_action_is_loaded_from_byte_code_throughout(image: str) -> None:
    python = f"{PYTHON} -I -v -c 'import docs_platform_action.main' 2>&1"
    trace = docker("run", "--rm", "--network=host", "--entrypoint", "sh", image, "-c", python)

    sources = re.findall(r"# code object from '?([^'\n]+)'?", trace)
    assert any("docs_platform_action" in source for source in sources), "the trace tells where modules come from"
    assert [source for source in sources if not source.endswith(".pyc")] == []


def test_every_module_has_byte_code_that_looks_at_no_times(image: str) -> None:
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


def inside(image: str, code: str) -> str:
    """Run code with the action's own Python, isolated as the action is."""
    return docker("run", "--rm", "--network=host", "--entrypoint", PYTHON, image, "-I", "-c", code)
