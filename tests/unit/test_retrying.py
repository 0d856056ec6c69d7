"""Pauses between tries, and what a server asks for."""

from datetime import timedelta
from email.utils import format_datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from docs_platform_action.retrying import read_retry_after
from tests.unit.fakes import NOON


class TestRetryAfter:
    def test_a_date_is_measured_against_the_servers_own_clock(self) -> None:
        server = NOON - timedelta(hours=3)
        headers = {"Retry-After": format_datetime(server + timedelta(seconds=20), usegmt=True), "Date": format_datetime(server)}

        assert read_retry_after(headers, NOON) == 20

    @pytest.mark.parametrize(
        ("text", "seconds"),
        [("0", 0), (" 7 ", 7), ("Mon, 04 May 2026 12:00:30 GMT", 30), ("Mon, 04 May 2026 11:00:00 GMT", 0)]
        + [(text, None) for text in ("", "-1", "1.5", "soon", "1e3", "٣", "9999999999", "Mon, 99 May 2026 12:00:30 GMT")],
    )
    def test_the_two_forms_are_read_and_nothing_else(self, text: str, seconds: float | None) -> None:
        assert read_retry_after({"Retry-After": text}, NOON) == seconds

    def test_without_one_there_is_none(self) -> None:
        assert read_retry_after({}, NOON) is None

    @given(
        st.one_of(st.text(max_size=40), st.text("0123456789 :,+-MonMayGMT/.", max_size=32)),
        st.one_of(st.just(""), st.text("0123456789 :,+-MonMayGMT", max_size=32)),
    )
    @example("Mon, 04 May 2026 12:00:30 +9999999999", "")
    @example("Mon, 04 May 0000 12:00:30 -2359", "Mon, 04 May 9999 12:00:30 +2359")
    @example("0 0 0 0", "0 0 0 0")
    def test_any_text_is_a_pause_or_none(self, text: str, date: str) -> None:
        seconds = read_retry_after({"Retry-After": text, "Date": date}, NOON)

        assert seconds is None or 0 <= seconds < float("inf")
