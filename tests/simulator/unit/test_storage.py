"""Reading Range headers."""

import pytest

from admin_api_simulator.storage import Span, parse_range


@pytest.mark.parametrize(
    ("header", "start", "end"),
    [
        ("bytes=0-", 0, 10),
        ("bytes=3-", 3, 10),
        ("bytes=3-5", 3, 6),
        ("bytes=3-99", 3, 10),
        ("bytes=-4", 6, 10),
        ("bytes=-99", 0, 10),
        ("bytes=10-", 10, 10),
        ("bytes=-0", 10, 10),
    ],
)
def test_one_range_is_a_span(header: str, start: int, end: int) -> None:
    assert parse_range(header, 10) == Span(start=start, end=end)


@pytest.mark.parametrize("header", ["", "bytes=", "bytes=-", "bytes=5-3", "bytes=1-2,4-5", "items=1-2", "bytes=x-"])
def test_anything_else_is_ignored(header: str) -> None:
    assert parse_range(header, 10) is None
