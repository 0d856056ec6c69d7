"""Archives of real packers unpack to the trees that were packed, or are refused."""

import pytest

from docs_platform_action.errors import InvalidBundle
from tests import corpus
from tests.unpacking import unpacked


@pytest.mark.parametrize("name", corpus.ACCEPTED)
def test_the_packed_tree_comes_out(name: str) -> None:
    assert corpus.digests(unpacked(corpus.read(name))) == corpus.expected(name)


@pytest.mark.parametrize("name", corpus.REFUSED)
def test_it_is_refused(name: str) -> None:
    with pytest.raises(InvalidBundle):
        unpacked(corpus.read(name))


def test_each_archive_is_in_the_manifest() -> None:
    assert {path.name for path in (corpus.FOLDER / "archives").iterdir()} == {*corpus.ACCEPTED, *corpus.REFUSED}
