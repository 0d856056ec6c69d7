"""Header fields that several servers send: `Retry-After`, and the ids of requests."""

import pytest

from docs_platform_action.http.headers import read_retry_after, request_id_of
from tests.virtual_time import NOON


@pytest.mark.parametrize(
    ("text", "date", "seconds"),
    [
        (" 7 ", "", 7),
        ("Mon, 04 May 2026 12:00:30 GMT", "", 30),
        ("Mon, 04 May 2026 11:00:00 GMT", "", 0),
        ("Mon, 04 May 2026 14:00:30 +0200", "", 30),
        # the server's own clock counts
        ("Mon, 04 May 2026 09:00:20 -0000", "Mon, 04 May 2026 09:00:00 GMT", 20),
        ("", "", None),
        ("-1", "", None),
        ("1.5", "", None),
        ("soon", "", None),
        ("1e3", "", None),
        ("٣", "", None),
        ("9999999999", "", None),
        ("Mon, 99 May 2026 12:00:30 GMT", "", None),
    ],
)
def test_the_two_forms_of_retry_after_are_read_and_nothing_else(
    text: str, date: str, seconds: float | None
) -> None:
    assert read_retry_after({"Retry-After": text, "Date": date}, NOON) == seconds


def test_the_first_header_with_an_id_names_the_request() -> None:
    headers = {"X-Request-Id": "", "Request-Id": "r-1", "X-Amzn-RequestId": "r-2"}

    assert request_id_of(headers) == "r-1"
    assert request_id_of({"X-Request-Id": ""}) is None
