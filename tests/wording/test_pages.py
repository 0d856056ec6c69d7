"""The pages of this folder are what the package says."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.wording import errors, runs

PAGES: Final[Mapping[Path, Callable[[], str]]] = {
    Path(__file__).with_name("errors.md"): errors.page,
    Path(__file__).with_name("runs.md"): runs.page,
}


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.name)
def test_the_page_has_the_sentences_of_the_package(file: Path) -> None:
    assert file.read_text(encoding="utf-8") == PAGES[file](), "read the difference that `make wording` makes"
