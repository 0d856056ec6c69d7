"""Every way to fail has a `failureReason`. `tests/wording/failures.md` has the causes and the advice."""

import pytest

from docs_platform_action.errors import ActionError, Rejected

KINDS = ActionError.__subclasses__()


def test_every_kind_has_its_own_failure_reason() -> None:
    assert len({kind.failure_reason for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.failure_reason)
def test_a_kind_has_its_default_cause_and_remedy_which_are_sentences(kind: type[ActionError]) -> None:
    error = kind("it broke", details=("One.", "Two."), request_id="r-1")

    assert (error.cause, error.remedy) == (kind.default_cause, kind.default_remedy)
    assert (error.summary, error.details, error.request_id) == ("it broke", ("One.", "Two."), "r-1")
    for text in filter(None, (error.cause, error.remedy)):
        assert text[0].isupper()
        assert text.endswith(".")
        assert "!" not in text


def test_a_failure_can_override_them() -> None:
    error = Rejected("it broke", cause="The moon.", remedy="")

    assert (error.cause, error.remedy) == ("The moon.", "")
