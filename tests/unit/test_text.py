"""Text for people: numbers, sizes and times, and foreign text made harmless."""

from datetime import timedelta

import pytest

from docs_platform_action import text
from tests.gfm import page_of, tables, tags
from tests.hostile import HARMFUL
from tests.virtual_time import NOON


class TestClean:
    @pytest.mark.parametrize(
        ("foreign", "shown"),
        [
            ("two\nlines\ttab", "two lines tab"),
            ("a\u2028b\x85c", "a b c"),
            ("::error::x", ": :error: :x"),
            ("a:::b", "a: : :b"),
            ("##[error]x ####[", "# #[error]x ### #["),
            ("\x1b[31mred\x07", "[31mred"),
            ("a\u200bb\u202ec\u034fd\ufe0f", "abcd"),
            ("a\ud800b", "a\ufffdb"),
            ("müller 日本 😀 ", "müller 日本 😀"),
        ],
    )
    def test_a_text_is_one_line_without_commands_and_invisible_characters(
        self, foreign: str, shown: str
    ) -> None:
        assert text.clean(foreign) == shown

    @pytest.mark.parametrize(
        ("foreign", "shown"),
        [
            ("x" * 1001, "x" * 1000 + "…"),
            ("x" * 1000, "x" * 1000),
            ("word " * 300, "word " * 199 + "word…"),
            ("a " + "x" * 2000, "a " + "x" * 998 + "…"),
        ],
    )
    def test_a_long_text_is_cut_at_a_space_if_one_is_near(self, foreign: str, shown: str) -> None:
        assert text.clean(foreign) == shown


class TestMarkdown:
    @pytest.mark.parametrize("foreign", HARMFUL)
    def test_a_page_shows_a_text_literally(self, foreign: str) -> None:
        escaped = text.markdown(foreign)

        (table,) = tables(page_of(f"| a |\n| - |\n| {escaped} |\n"))
        shown = table[1][0]
        assert shown.split() == text.clean(foreign).split()
        assert tags(page_of(f"x {escaped}")) <= {"p"}

    @pytest.mark.parametrize("foreign", ["- a", "1. a", "12) a", "--- ", "-"])
    def test_no_list_and_no_rule_begins(self, foreign: str) -> None:
        assert tags(page_of(text.markdown(foreign))) <= {"p"}

    @pytest.mark.parametrize(
        ("url", "target"),
        [
            ("https://git.example.com/docs/pull/7", "https://git.example.com/docs/pull/7"),
            ("https://a.example/?a=1&copy=2", "https://a.example/?a=1&amp;copy=2"),
            ("https://a.example/)<b>\"'", "https://a.example/%29%3Cb%3E%22%27"),
            ("https://a.example/%20ü", "https://a.example/%20%C3%BC"),
        ],
    )
    def test_nothing_in_an_address_ends_its_link(self, url: str, target: str) -> None:
        assert text.link_target(url) == target


def test_a_host_is_shown_without_its_user_and_a_link_without_its_query() -> None:
    assert text.netloc_of("https://me:pw@a.example:8443/x") == "a.example:8443"
    assert text.without_query("https://me@a.example/b?sig=1#x") == "a.example/b"


class TestNumbers:
    @pytest.mark.parametrize(
        ("seconds", "clock", "exact", "approx", "eta"),
        [
            (0.04, "0:00", "under 0.1 s", "under 0.1 s", "0:05"),
            (0.05, "0:00", "0.1 s", "0.1 s", "0:05"),
            (9.94, "0:09", "9.9 s", "9.9 s", "0:10"),
            (9.95, "0:09", "10 s", "10 s", "0:10"),
            (59.9, "0:59", "60 s", "60 s", "1:00"),
            (90, "1:30", "90 s", "2 min", "1:30"),
            (631, "10:31", "631 s", "11 min", "11:00"),
            (3599, "59:59", "3599 s", "60 min", "1:00:00"),
            (172_800, "48:00:00", "172800 s", "2 days", "48:00:00"),
        ],
    )
    def test_durations(self, seconds: float, clock: str, exact: str, approx: str, eta: str) -> None:
        assert text.format_clock(seconds) == clock
        assert text.format_seconds(seconds) == exact
        assert text.format_approx(seconds) == approx
        assert text.format_eta(seconds) == eta

    @pytest.mark.parametrize(
        ("count", "shown"),
        [
            (1, "1 byte"),
            (1024, "1.0 KiB"),
            (1023.94 * 1024, "1023.9 KiB"),
            (1023.96 * 1024, "1.0 MiB"),
            (3 * 1024**4, "3.0 TiB"),
        ],
    )
    def test_sizes(self, count: float, shown: str) -> None:
        assert text.format_bytes(count) == shown

    @pytest.mark.parametrize(
        ("count", "shown"), [(0, "0 files"), (1, "1 file"), (1904, "1,904 files")]
    )
    def test_counts(self, count: int, shown: str) -> None:
        assert text.pluralize(count, "file") == shown

    def test_times_are_utc_and_have_no_date_on_the_same_day(self) -> None:
        tomorrow = NOON + timedelta(days=1)

        assert text.format_time(NOON, NOON) == "12:00 UTC"
        assert text.format_time(NOON) == "2026-05-04 12:00 UTC"
        assert text.format_time(tomorrow, NOON) == "2026-05-05 12:00 UTC"

    @pytest.mark.parametrize(
        ("seconds", "words"),
        [
            (3540, ("12:59 UTC", "59 min")),
            (0, ("expired", "12:00 UTC")),
            (-60, ("expired", "11:59 UTC")),
        ],
    )
    def test_an_expiry_says_how_long_is_left(self, seconds: float, words: tuple[str, ...]) -> None:
        shown = text.format_expiry(NOON + timedelta(seconds=seconds), NOON)

        for word in words:
            assert word in shown

    def test_an_expiry_on_the_same_day_has_a_date_on_request(self) -> None:
        expires = NOON + timedelta(seconds=60)

        assert "2026-05-04" not in text.format_expiry(expires, NOON)
        assert "2026-05-04" in text.format_expiry(expires, NOON, always_dated=True)


class TestSentences:
    def test_a_long_name_is_shortened_in_the_middle(self) -> None:
        assert text.quoted("a" * 160) == f"'{'a' * 160}'"
        assert text.quoted("a" * 81 + "b" * 80) == f"'{'a' * 80}…{'b' * 80}'"

    def test_equal_errors_are_joined_to_one_and_those_beyond_ten_are_counted(self) -> None:
        assert text.join_errors(["a", "b", "a"]) == "a; b"
        assert text.join_errors([str(number) for number in range(10)]) == "; ".join("0123456789")
        assert text.join_errors([str(number) for number in range(12)]).endswith("; 9; and 2 more")

    @pytest.mark.parametrize(
        ("given", "shown"),
        [
            ("a", "a."),
            ("a.", "a."),
            ("a…", "a…"),
            ('a "b."', 'a "b."'),
            ('a "b"', 'a "b".'),
            ("a!", "a!"),
        ],
    )
    def test_a_sentence_ends_once(self, given: str, shown: str) -> None:
        assert text.as_sentence(given) == shown
