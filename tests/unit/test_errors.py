"""Every way to fail has a `failureReason`, a cause and a remedy."""

import pytest

from docs_platform_action.errors import (
    DENIED_CAUSE,
    DENIED_REMEDY,
    ActionError,
    Forbidden,
    NotFound,
    Rejected,
    Unauthorized,
)

KINDS = ActionError.__subclasses__()


def test_every_kind_has_its_own_failure_reason() -> None:
    assert len({kind.failure_reason for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.failure_reason)
def test_a_kind_has_its_default_cause_and_remedy(kind: type[ActionError]) -> None:
    error = kind("it broke", details=("One.", "Two."), request_id="r-1")

    assert (error.cause, error.remedy) == (kind.default_cause, kind.default_remedy)
    assert (error.summary, error.details, error.request_id) == ("it broke", ("One.", "Two."), "r-1")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.failure_reason)
def test_causes_and_remedies_are_sentences_without_exclamation(kind: type[ActionError]) -> None:
    for text in filter(None, (kind.default_cause, kind.default_remedy)):
        assert text[0].isupper()
        assert text.endswith(".")
        assert "!" not in text


def test_a_failure_can_override_them() -> None:
    error = Rejected("it broke", cause="The moon.", remedy="")

    assert (error.cause, error.remedy) == ("The moon.", "")


def test_the_cause_of_a_403_fits_both_modes() -> None:
    assert "The plan does not include this (static export needs an Enterprise plan)" in Forbidden.default_cause


def test_a_401_advises_to_check_the_secret_before_a_new_key() -> None:
    assert Unauthorized.default_remedy.startswith("Check the secret that `admin-key` reads.")
    assert "If it is right, create a new key on the dashboard's API keys page" in Unauthorized.default_remedy


def test_a_write_that_is_denied_has_two_likely_causes() -> None:
    for text in (DENIED_CAUSE, DENIED_REMEDY):
        assert "SELinux" in text
        assert "user namespace" in text


def test_what_was_not_found_has_a_likely_cause() -> None:
    assert "mistyped" in NotFound.default_cause
