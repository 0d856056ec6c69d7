"""Mistakes in inputs are one failure, with what to do about each kind."""

import pytest

from docs_platform_action.errors import DENIED, DENIED_BY, InvalidInput
from docs_platform_action.inputs.mistakes import Mistakes

DENIED_TEXT = f"Permission denied; likely causes: {DENIED_BY}"


@pytest.mark.parametrize(
    ("texts", "remedies"),
    [
        (["must be true"], [InvalidInput.default_remedy]),
        ([DENIED_TEXT], [DENIED["remedy"]]),
        (["must be true", DENIED_TEXT], [InvalidInput.default_remedy, DENIED["remedy"]]),
        (["must be true", "must be false"], [InvalidInput.default_remedy]),
    ],
)
def test_the_remedy_has_that_of_each_kind_once(texts: list[str], remedies: list[str]) -> None:
    mistakes = Mistakes()
    for number, text in enumerate(texts):
        mistakes.add(f"input-{number}", text)

    with pytest.raises(InvalidInput) as caught:
        mistakes.check()

    assert caught.value.remedy == " ".join(remedies)
    assert len(caught.value.details) == (len(texts) if len(texts) > 1 else 0)


def test_without_mistakes_there_is_no_failure() -> None:
    Mistakes().check()
