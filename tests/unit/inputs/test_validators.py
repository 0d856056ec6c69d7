"""Input formats are read as documented; `tests/wording/inputs.md` has what is refused, and the errors."""

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from hypothesis import example, given
from hypothesis import strategies as st

from docs_platform_action.inputs import validators
from docs_platform_action.inputs.validators import MAX_DURATION_SECONDS


def refusal(read: Callable[..., object], value: str, *others: object) -> str:
    """Return the error for a value."""
    with pytest.raises(ValueError, match=r".") as caught:
        read(value, *others)
    return str(caught.value)


class TestBooleans:
    @given(st.one_of(st.sampled_from(["yes", "no", "on", "off", "1", "0", "tRue", "y", "null"]), st.text(min_size=1)))
    def test_nothing_else_is(self, text: str) -> None:
        if text in {"true", "True", "TRUE", "false", "False", "FALSE"}:
            return

        assert refusal(validators.parse_boolean, text)


def spelled(hours: int, minutes: int, seconds: int, milliseconds: int) -> str:
    parts = ((hours, "h"), (minutes, "m"), (seconds, "s"), (milliseconds, "ms"))
    return "".join(f"{amount}{unit}" for amount, unit in parts if amount)


class TestDurations:
    @pytest.mark.parametrize(
        ("text", "seconds"),
        [
            ("500ms", 0.5),
            ("30s", 30),
            ("15m", 900),
            ("1h30m", 5400),
            ("90", 90),
            ("1.5h", 5400),
            ("0.5", 0.5),
            ("1m30s", 90),
            ("2h3m4s5ms", 7384.005),
            ("840h", MAX_DURATION_SECONDS),
        ],
    )
    def test_the_documented_forms_are_read(self, text: str, seconds: float) -> None:
        assert validators.parse_duration(text) == pytest.approx(seconds)

    @given(st.integers(0, 800), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999))
    def test_what_is_spelled_out_is_read_back(self, hours: int, minutes: int, seconds: int, milliseconds: int) -> None:
        text = spelled(hours, minutes, seconds, milliseconds) or "1s"

        read = validators.parse_duration(text)

        assert read == pytest.approx(hours * 3600 + minutes * 60 + seconds + milliseconds / 1000 or 1)

    @given(st.one_of(st.text("0123456789.hms -+e_", min_size=1, max_size=8), st.text(min_size=1)))
    @example("1h 30m")
    @example("30m1h")
    @example("5 m")
    @example("1e3")
    @example("-5s")
    @example("٣s")
    @example("1d")
    @example("1H")
    @example("inf")
    @example("1.s")
    @example(".5s")
    def test_nothing_else_is(self, text: str) -> None:
        unit = r"\d+(\.\d+)?"
        if re.fullmatch(rf"(?a:{unit}|(?=.)({unit}h)?({unit}m)?({unit}s)?({unit}ms)?)", text) or not text:
            return

        assert refusal(validators.parse_duration, text)

    @pytest.mark.parametrize("text", ["0", "0s", "0.0h", "0h0m", "000ms", "841h", "9" * 400, "99999999999m"])
    def test_nothing_and_more_than_a_workflow_run_can_last_are_refused(self, text: str) -> None:
        assert refusal(validators.parse_duration, text)


class TestBaseUrl:
    @pytest.mark.parametrize(
        ("text", "kept"),
        [
            ("https://api.example.com", "https://api.example.com"),
            ("https://api.example.com/", "https://api.example.com"),
            ("https://api.example.com//", "https://api.example.com"),
            ("https://example.com:8443/admin/api/", "https://example.com:8443/admin/api"),
            ("https://example.com/a%20b", "https://example.com/a%20b"),
            ("https://10.0.0.1", "https://10.0.0.1"),
            ("https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443"),
            ("http://localhost:8080", "http://localhost:8080"),
            ("HTTPS://api.example.com/", "HTTPS://api.example.com"),
            ("http://127.0.0.1:8080/x", "http://127.0.0.1:8080/x"),
            ("http://[::1]:8080", "http://[::1]:8080"),
        ],
    )
    def test_an_address_is_kept_without_its_trailing_slash(self, text: str, kept: str) -> None:
        assert validators.parse_base_url(text) == kept

    @given(
        st.one_of(
            st.text(max_size=30),
            st.text("abz09.-_:/@?#%[]|<>\\ ", max_size=24).map("https://{}".format),
            st.from_regex(r"https://[a-z0-9.:-]{1,20}(/[a-z0-9%.]{0,8}){0,3}", fullmatch=True),
        )
    )
    @example("https://0/../%zz|")
    @example("https://[....]")
    @example("https://[::1]:99999")
    @example("http://[:::]")
    def test_what_is_accepted_can_be_sent_to(self, text: str) -> None:
        try:
            kept = validators.parse_base_url(text)
        except ValueError:
            return

        request = requests.PreparedRequest()
        request.prepare(method="GET", url=f"{kept}/v1/static-export/jobs")
        sent, given = urlsplit(str(request.url)), urlsplit(kept)

        assert (sent.scheme, sent.hostname, sent.port) == (given.scheme, given.hostname, given.port)
        assert sent.path.endswith("/v1/static-export/jobs")


class TestAdminKey:
    @given(st.text(min_size=1).filter(str.strip))
    def test_what_is_accepted_fits_a_header(self, key: str) -> None:
        try:
            kept = validators.parse_key(key)
        except ValueError:
            return

        assert re.fullmatch(r"[\x21-\x7e]+", kept)

    @given(st.text("abcXYZ", min_size=4), st.sampled_from(" \t\n\x00é\u2028"), st.text("abcXYZ", min_size=4))
    def test_what_is_refused_is_not_shown(self, first: str, inside: str, second: str) -> None:
        message = refusal(validators.parse_key, f"{first}{inside}{second}")

        assert first not in message
        assert second not in message


class TestDomain:
    @pytest.mark.parametrize(
        "domain", ["docs.example.com", "localhost", "docs.example.com:8443", "xn--mnchen-3ya.example.com", "a_b.example.com"]
    )
    def test_a_bare_host_name_is_kept(self, domain: str) -> None:
        assert validators.parse_domains(domain) == [domain]

    @given(st.one_of(st.text(max_size=40), st.text("ab.:-_/@ ß", max_size=20)))
    def test_what_is_accepted_is_a_host_and_a_port(self, text: str) -> None:
        try:
            found = validators.parse_domains(text)
        except ValueError:
            return

        assert all(re.fullmatch(r"(?a:[\w-]{1,63}(\.[\w-]{1,63})*(:\d{1,5})?)", domain) for domain in found)

    @pytest.mark.timeout(5)
    @pytest.mark.parametrize(
        "text", ["a" * 130_000 + "_", "a@" * 65_000, "@" + "," * 130_000, "a b " * 30_000, "a" + " " * 130_000 + "b"]
    )
    def test_a_very_long_line_is_refused_at_once(self, text: str) -> None:
        """Refuse the longest value of a variable, on which a quadratic search takes ten seconds."""
        assert len(refusal(validators.parse_domains, text)) < 500

    def test_a_byte_order_mark_within_is_trimmed_too(self) -> None:
        assert validators.parse_domains("a.example.com\n\ufeffb.example.com") == ["a.example.com", "b.example.com"]

    def test_a_port_makes_another_domain(self) -> None:
        assert len(validators.parse_domains("a.example.com\na.example.com:443")) == 2


class TestStartOptions:
    def test_an_object_of_further_fields_is_read(self) -> None:
        options = validators.parse_start_options('{"version": "v2", "paths": ["/a"], "deep": {"domain": 1}}')

        assert options == {"version": "v2", "paths": ["/a"], "deep": {"domain": 1}}

    @given(
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
        )
    )
    def test_what_is_accepted_can_be_sent(self, value: Any) -> None:
        text = json.dumps({"a": value})

        try:
            options = validators.parse_start_options(text)
        except ValueError:
            return

        requests.Request("POST", "https://api.example.com", json=options).prepare()


class TestPaths:
    @pytest.mark.parametrize(
        "path",
        ["~/site", "~", "~deploy/site", "$RUNNER_TEMP/site", "out/$HOME", "${HOME}/x", "${domain}", "$(pwd)/x", "%TEMP%/x"],
    )
    def test_what_only_a_shell_would_replace_is_refused_and_quoted(self, path: str) -> None:
        assert f"'{path}'" in refusal(validators.parse_path, path)

    @pytest.mark.parametrize(
        "path", [".\\site", "out\\site", "C:\\site", "a\nb", "a\0b", "a\x1b[31mb", "a\x85b", "a\x7f", "a\udcff"]
    )
    def test_a_backslash_or_a_character_that_no_name_should_have_is_refused(self, path: str) -> None:
        assert refusal(validators.parse_path, path)

    @pytest.mark.parametrize(
        "path",
        [
            *("a~b", "out/~", "100%", "100%/50%", "a$", "a$/b", "$", "$-x", "{domain}", "`pwd`", "*.zip", "#x", "a b", "-rf"),
            *("über uns/日本語 🙂", "/github/workspace/out", "../workspace/out"),
        ],
    )
    def test_anything_else_is_kept_as_it_is(self, path: str) -> None:
        assert validators.parse_path(path) == path
