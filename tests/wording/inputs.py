"""Inputs.

What somebody reads whose workflow passes a wrong input.
"""

from docs_platform_action.inputs import validators
from tests.wording.page import Sections


def sections() -> Sections:
    """Return the errors of each input."""
    return {"`timeout`": {value: _refusal(value) for value in ("", "abc", "-1s")}}


def _refusal(value: str) -> str:
    try:
        validators.duration(value)
    except ValueError as error:
        return str(error)
    return "accepted"
