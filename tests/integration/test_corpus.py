"""The whole action downloads and unpacks archives of real tools; `tests/corpus/README.md` describes how they were made."""

from pathlib import Path

import pytest

from admin_api_simulator import Simulator
from tests.corpus.make import ARCHIVES
from tests.corpus.recipes import RECIPES
from tests.folders import read_tree
from tests.inside import run_inside
from tests.keys import ADMIN_KEY

ONE_OF_EACH_WRITER = {recipe.writer: name for name, recipe in RECIPES.items() if recipe.refused is None}


@pytest.mark.parametrize("name", ONE_OF_EACH_WRITER.values(), ids=ONE_OF_EACH_WRITER)
def test_a_bundle_of_each_writer_becomes_the_site(platform: Simulator, tmp_path: Path, name: str) -> None:
    platform.put_bundle("export-finished", (ARCHIVES / name).read_bytes())
    inputs = {
        "base-url": platform.base_url,
        "admin-key": ADMIN_KEY,
        "mode": "collect",
        "job-id": "export-finished",
        "site-path": "site",
    }

    ended = run_inside(inputs, workspace=tmp_path)

    assert ended.exit_code == 0, ended.stdout
    assert read_tree(tmp_path / "site") == RECIPES[name].tree()
