"""The reason in an error response, wherever it stands."""

import pytest

from docs_platform_action.http.fields import MAX_TEXT_LENGTH
from docs_platform_action.http.reasons import read_error, read_error_of_success


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
        ([{"error": "a"}, "x", {"status": "queued"}, {"detail": "b"}], "a; b"),
        (["x"], None),
        (None, None),
    ],
)
def test_the_reason_of_an_error_is_found_wherever_it_stands(
    body: object, expected: str | None
) -> None:
    assert read_error(body) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"status": "queued", "title": "Our docs", "message": "wait"}, "wait"),
        ({"status": "queued", "title": "Our docs"}, None),
        ({"status": 403, "title": "No seat left"}, "No seat left"),
        ({"title": "No seat left"}, "No seat left"),
        (None, None),
    ],
)
def test_the_title_of_a_job_is_not_a_reason(body: object, expected: str | None) -> None:
    assert read_error_of_success(body) == expected
