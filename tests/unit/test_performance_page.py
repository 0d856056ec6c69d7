"""How `bench/page.py` replaces one section of the page."""

import pytest
from bench.page import replace_section

PAGE = "# Performance\n\nText.\n\n## One\n\n| 1 |\n\n## Two\n\n| 2 |\n"


@pytest.mark.parametrize(
    ("section", "page"),
    [
        ("## One\n\n| 10 |\n", PAGE.replace("| 1 |", "| 10 |")),
        ("## Two\n\n| 20 |\n", PAGE.replace("| 2 |", "| 20 |")),
    ],
)
def test_a_new_version_takes_the_place_of_its_section(section: str, page: str) -> None:
    assert replace_section(PAGE, section) == page


def test_a_section_that_the_page_does_not_have_is_an_error() -> None:
    with pytest.raises(SystemExit, match="make bench"):
        replace_section(PAGE, "## Three\n\n| 3 |\n")
