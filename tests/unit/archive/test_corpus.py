"""Archives of real writers unpack to the trees that were packed; `tests/corpus/README.md` says how they were made."""

from pathlib import Path

import pytest

from docs_platform_action.archive.unpack import Unpacked, unpack
from docs_platform_action.clock import Cancellation
from tests.archives import open_archive
from tests.corpus.make import ARCHIVES, manifest
from tests.corpus.recipes import RECIPES, VERSIONS
from tests.folders import read_tree

READ = [name for name, recipe in RECIPES.items() if recipe.refused is None]


def unpack_into(folder: Path, name: str) -> Unpacked:
    with open_archive(ARCHIVES / name, Cancellation()) as archive:
        return unpack(archive, folder, on_progress=lambda *_: None)


@pytest.mark.parametrize("name", READ)
def test_the_tree_comes_out(name: str, tmp_path: Path) -> None:
    unpacked = unpack_into(tmp_path, name)

    tree = RECIPES[name].tree()
    files = [content for content in tree.values() if isinstance(content, bytes)]
    assert read_tree(tmp_path) == tree
    assert (unpacked.files, unpacked.size) == (len(files), sum(map(len, files)))


class TestTheCorpus:
    def test_each_recipe_has_its_archive_and_each_archive_its_recipe(self) -> None:
        assert {path.name for path in ARCHIVES.iterdir()} == {*RECIPES}

    def test_the_manifest_names_the_version_of_each_writer(self) -> None:
        written = manifest()

        assert written.keys() == RECIPES.keys()
        assert all(any(digit.isdigit() for digit in version) for version in written.values())
        assert {recipe.writer for recipe in RECIPES.values()} == {*VERSIONS}

    def test_it_stays_small(self) -> None:
        assert sum(path.stat().st_size for path in ARCHIVES.iterdir()) < 1024**2
