"""What an error of the system or of the action itself says."""

import errno
import os
from pathlib import Path

import pytest

from docs_platform_action import __version__
from docs_platform_action.errors import DENIED_BY, InternalError, internal_error, system_reason


def system_error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.ENOSPC, "No space left on device"),
        (errno.EACCES, f"Permission denied; likely causes: {DENIED_BY}"),
        (errno.EPERM, f"Operation not permitted; likely causes: {DENIED_BY}"),
    ],
)
def test_denied_access_has_likely_causes(number: int, reason: str) -> None:
    assert system_reason(system_error(number)) == reason


def test_an_unexpected_error_is_located_where_it_was_raised() -> None:
    def fail() -> None:
        raise KeyError("a secret")

    with pytest.raises(KeyError) as caught:
        fail()
    failure = internal_error(caught.value)

    assert isinstance(failure, InternalError)
    assert failure.bug is caught.value
    line = fail.__code__.co_firstlineno + 1
    start = f"KeyError at {Path(__file__).name}, line {line}, docs-platform-action {__version__}, "
    assert failure.details[0].startswith(start)
    assert "secret" not in failure.details[0]


def test_the_place_of_an_error_that_was_never_raised_is_unknown() -> None:
    assert internal_error(KeyError()).details[0].startswith("KeyError at unknown, ")
