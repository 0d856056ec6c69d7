"""The reason in an error response, wherever it stands."""

import pytest

from docs_platform_action.http.fields import MAX_TEXT_LENGTH
from docs_platform_action.http.reasons import read_error


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"error": "no theme"}, "no theme"),
        ({"message": " wait "}, "wait"),
        ({"msg": "a", "detail": "b"}, "a; b"),
        ({"error": {"message": "m", "code": 7}}, "m"),
        (
            {"errors": [{"msg": "missing", "loc": ["body", "domain"]}, {"message": "x"}]},
            "body.domain: missing; x",
        ),
        ({"errors": {"domain": ["is taken", "is long"]}}, "domain: is taken; domain: is long"),
        ({"error": "Not Found", "message": "no such job"}, "no such job"),
        ({"error": "Not Found"}, "Not Found"),
        ({"error": "a", "message": "a"}, "a"),
        ({"errors": ["1", "2", "3", "4"]}, "1; 2; 3"),
        ({"error": "x" * 2000}, "x" * MAX_TEXT_LENGTH),
        ({"error": " "}, None),
        ({"error": [[[["deep"]]]]}, "deep"),
        ({"error": [[[[["too deep"]]]]]}, None),
        ({"reason": "x"}, None),
        (["x"], None),
        (None, None),
    ],
)
def test_the_reason_of_an_error_is_found_wherever_it_stands(
    body: object, expected: str | None
) -> None:
    assert read_error(body) == expected
