"""The check of the prose finds what it is made for, and nothing in prose that is fine."""

from pathlib import Path

import pytest

from tests.prose import Text, findings, texts_of_code, texts_of_page

PATH = Path("some.py")


def found(text: str, *, is_docstring: bool = False) -> list[str]:
    return list(findings(Text(PATH, 7, text, is_docstring)))


class TestFindings:
    def test_names_the_place_the_words_and_what_to_write(self) -> None:
        assert found("Wait until somebody mends the site.") == ["some.py:7: “mends”: write fix"]

    @pytest.mark.parametrize(
        "text",
        [
            "x is no number",
            "the site is there, whole or not at all",
            "Takes note of the answer.",
            "The job goes on at the platform.",
            "It may have started all the\nsame.",
            "Look in the dashboard whether it runs.",
            "No good answer came.",
            "the organisation's keys",
            "parametrised flags",
            "Its behaviour stays.",
            "Temporary errors are waited out.",
            "Mind three limits.",
            "The kind is told by the content.",
            "the pace of late",
            "once and for ever",
            "Actions that act does not heed.",
            "None is in another's way.",
        ],
    )
    def test_has_old_words(self, text: str) -> None:
        assert len(found(text)) == 1

    @pytest.mark.parametrize(
        "text",
        [
            "There is no such file.",
            "The job is no longer known.",
            "It is not a number.",
            "The input `mend` is code.",
            "The job continues.",
            "amended, recommends, commander",
            "otherwise, promise, exercise",
            "Give the address of the API.",
            "The reader's mind, a late response, wait without a limit.",
        ],
    )
    def test_leaves_good_ones(self, text: str) -> None:
        assert found(text) == []

    @pytest.mark.parametrize("verb", ["Tell", "Hear", "Give", "Have"])
    def test_a_docstring_begins_with_what_it_does(self, verb: str) -> None:
        assert len(found(f"{verb} the time.", is_docstring=True)) == 1
        assert found(f"Return the time. {verb} it.", is_docstring=True) == []


class TestTexts:
    CODE = '''"""A module."""

LIMIT = 3  # a comment
"""The limit."""


def test_it_works() -> None:
    """Check it."""
    raise ValueError(f"{LIMIT} is wrong")
'''

    def test_of_code_that_prints(self) -> None:
        texts = [(text.line, text.text, text.is_docstring) for text in texts_of_code(PATH, self.CODE, prints=True)]

        assert sorted(texts) == [
            (1, "A module.", True),
            (3, "a comment", False),
            (4, "The limit.", True),
            (7, "it works", False),
            (8, "Check it.", True),
            (9, " is wrong", False),
        ]

    def test_of_other_code_has_no_strings(self) -> None:
        assert " is wrong" not in [text.text for text in texts_of_code(PATH, self.CODE, prints=False)]

    def test_of_a_page_has_no_code_blocks(self) -> None:
        page = "# Title\n\nA paragraph\nof two lines.\n\n```yaml\ncode: 1\n```\n\n| head |\n| --- |\n| cell |\n"

        texts = [(text.line, text.text) for text in texts_of_page(Path("page.md"), page)]

        assert texts == [(1, "Title"), (3, "A paragraph\nof two lines."), (10, "head"), (12, "cell")]
