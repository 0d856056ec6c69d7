"""Archives of real writers unpack to the trees that were packed; `tests/corpus/README.md` says how they were made."""

import pytest

from tests.corpus.make import ARCHIVES, manifest
from tests.corpus.recipes import RECIPES, VERSIONS
from tests.unit.bundle.places import Place

READ = [name for name, recipe in RECIPES.items() if recipe.refused is None]


@pytest.mark.parametrize("name", READ)
def test_the_tree_comes_out(name: str, place: Place) -> None:
    unpacked = place.unpack((ARCHIVES / name).read_bytes())

    tree = RECIPES[name].tree()
    assert place.tree() == tree
    assert unpacked.files == sum(isinstance(content, bytes) for content in tree.values())


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
