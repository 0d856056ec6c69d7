"""The pages of this folder are what the package says, and leave no sentence out."""

import pytest

from tests.wording.page import NAMES, path_of, written
from tests.wording.sentences import sentences


@pytest.mark.parametrize("name", NAMES)
def test_the_page_has_the_sentences_of_the_package(name: str) -> None:
    assert path_of(name).read_text(encoding="utf-8") == written(name), "read the difference that `make wording` makes"


def test_every_sentence_stands_on_a_page() -> None:
    pages = "\n".join(path_of(name).read_text(encoding="utf-8") for name in NAMES)

    assert [sentence for sentence in sorted(sentences()) if sentence not in pages] == []
