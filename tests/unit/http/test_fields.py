"""One field of a JSON body: its value in the right type, or nothing."""

from datetime import UTC, datetime

import pytest

from docs_platform_action.http.fields import (
    MAX_TEXT_LENGTH,
    parse_time,
    read_count,
    read_percent,
    read_text,
)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"ref": " main "}, "main"),
        ({"ref": "x" * 2000}, "x" * MAX_TEXT_LENGTH),
        ({"ref": "  "}, None),
        ({"ref": 7}, None),
        ({"other": "main"}, None),
        ("ref", None),
        ([], None),
        (None, None),
    ],
)
def test_a_text_has_no_space_around_it_and_a_limit(body: object, expected: str | None) -> None:
    assert read_text(body, "ref") == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0.0),
        (57.5, 57.5),
        (100, 100.0),
        (-1, None),
        (100.1, None),
        (1e999, None),
        (True, None),
        ("57", None),
        (None, None),
    ],
)
def test_a_percentage_is_from_0_to_100(value: object, expected: float | None) -> None:
    assert read_percent({"progress": value}, "progress") == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0),
        (412, 412),
        (3.0, 3),
        (-1, None),
        (1.5, None),
        (2**53, None),
        (float("nan"), None),
        (True, None),
        ("412", None),
        (None, None),
    ],
)
def test_a_count_is_a_whole_number(value: object, expected: int | None) -> None:
    assert read_count({"pageCount": value}, "pageCount") == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-05-04T15:04:00Z", datetime(2026, 5, 4, 15, 4, tzinfo=UTC)),
        (" 2026-05-04T17:04:00+02:00 ", datetime(2026, 5, 4, 15, 4, tzinfo=UTC)),
        ("2026-05-04T15:04:00", datetime(2026, 5, 4, 15, 4, tzinfo=UTC)),
        (1777907040, datetime(2026, 5, 4, 15, 4, tzinfo=UTC)),
        (1777907040000.0, datetime(2026, 5, 4, 15, 4, tzinfo=UTC)),
        (10**30, None),
        ("tomorrow", None),
    ],
)
def test_a_time_is_read_in_any_form_that_apis_use(
    value: str | float, expected: datetime | None
) -> None:
    found = parse_time(value)

    assert found == expected
    assert found is None or found.tzinfo == UTC
