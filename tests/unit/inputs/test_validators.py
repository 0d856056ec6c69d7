"""Input formats are read as documented; anything else is refused without showing a secret."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
from hypothesis import example, given
from hypothesis import strategies as st

from docs_platform_action.inputs import validators
from docs_platform_action.inputs.validators import MAX_CA_BUNDLE_BYTES, MAX_DURATION_SECONDS


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

        assert "must be true or false" in refusal(validators.boolean, text)


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
        assert validators.duration(text) == pytest.approx(seconds)

    @given(st.integers(0, 800), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999))
    def test_what_is_spelled_out_is_read_back(self, hours: int, minutes: int, seconds: int, milliseconds: int) -> None:
        text = spelled(hours, minutes, seconds, milliseconds) or "1s"

        read = validators.duration(text)

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

        assert "is not a duration" in refusal(validators.duration, text)

    @pytest.mark.parametrize("nothing", ["0", "0s", "0.0h", "0h0m", "000ms"])
    def test_zero_is_refused(self, nothing: str) -> None:
        assert "must be greater than zero" in refusal(validators.duration, nothing)

    @pytest.mark.parametrize("text", ["841h", "9" * 400, "99999999999m"])
    def test_more_than_a_workflow_run_can_last_is_refused(self, text: str) -> None:
        assert "35 days" in refusal(validators.duration, text)


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
            ("http://127.0.0.1:8080/x", "http://127.0.0.1:8080/x"),
            ("http://[::1]:8080", "http://[::1]:8080"),
        ],
    )
    def test_an_address_is_kept_without_its_trailing_slash(self, text: str, kept: str) -> None:
        assert validators.base_url(text) == kept

    @pytest.mark.parametrize(
        "text",
        [
            "api.example.com",
            "//api.example.com",
            "ftp://api.example.com",
            "https://",
            "https:///v1",
            "https:api.example.com",
            "https://api example.com",
            "https://api.example.com\nhttps://other.example.com",
            "https://münchen.example.com",
            "https://api.example.com:port",
            "https://api.example.com:99999",
            "https://api.example.com:0",
            "https://api.example.com:",
            "https://[::1",
            "https://[api]",
            "https://a..example.com",
            "https://.example.com",
            "https://*.example.com",
            "https://<host>",
            "https://a|b.example.com",
            f"https://{'a' * 64}.example.com",
            "https://api.example.com/a/../b",
            "https://api.example.com/a|b",
            "https://api.example.com/%zz",
            "https://api.example.com/a[b]",
            "https://api.example.com\\@evil.example.com",
        ],
    )
    def test_an_invalid_address_is_refused(self, text: str) -> None:
        assert refusal(validators.base_url, text)

    def test_http_is_for_this_machine_alone(self) -> None:
        assert "would send the key unencrypted" in refusal(validators.base_url, "http://api.example.com")

    @pytest.mark.parametrize(
        "text",
        [
            "https://user:pa55word@api.example.com",
            "https://api.example.com?token=pa55word",
            "https://api.example.com/#pa55word",
            "https://user:pa55word@api.example.com:port",
            "https://user:pa55word@ api.example.com",
            "ftp://user:pa55word@api.example.com",
        ],
    )
    def test_credentials_are_refused_and_not_shown(self, text: str) -> None:
        assert "pa55word" not in refusal(validators.base_url, text)

    @given(
        st.one_of(
            st.text(max_size=30),
            st.text("abz09.-_:/@?#%[]|<>\\ ", max_size=24).map("https://{}".format),
            st.from_regex(r"https://[a-z0-9.:-]{1,20}(/[a-z0-9%.]{0,8}){0,3}", fullmatch=True),
        )
    )
    @example("https://0/%30")
    def test_what_is_accepted_can_be_sent_to(self, text: str) -> None:
        try:
            kept = validators.base_url(text)
        except ValueError:
            return

        request = requests.PreparedRequest()
        request.prepare(method="GET", url=f"{kept}/v1/static-export/jobs")

        # requests writes escapes that no character needs, such as `%7E`, as the character (RFC 3986, section 6.2.2.2)
        assert str(request.url).lower() == requests.utils.unquote_unreserved(f"{kept}/v1/static-export/jobs").lower()


class TestAdminKey:
    @pytest.mark.parametrize("inside", [" ", "\n", "\t", "\x00", "\x7f", "é", "\u200b"])
    def test_a_key_that_cannot_be_one_is_refused_without_being_shown(self, inside: str) -> None:
        message = refusal(validators.admin_key, f"first{inside}second")

        assert message == ("contains white space, control or non-ASCII characters, which a key cannot contain")

    def test_a_pasted_header_is_refused_with_what_to_leave_out(self) -> None:
        message = refusal(validators.admin_key, "Bearer s3cr3t-key")

        assert "without `Bearer`" in message
        assert "s3cr3t" not in message

    @given(st.text(min_size=1).filter(str.strip))
    def test_what_is_accepted_fits_a_header(self, key: str) -> None:
        try:
            kept = validators.admin_key(key)
        except ValueError:
            return

        assert re.fullmatch(r"[\x21-\x7e]+", kept)

    @given(st.text("abcXYZ", min_size=4), st.sampled_from(" \t\n\x00é\u2028"), st.text("abcXYZ", min_size=4))
    def test_what_is_refused_is_not_shown(self, first: str, inside: str, second: str) -> None:
        message = refusal(validators.admin_key, f"{first}{inside}{second}")

        assert first not in message
        assert second not in message


class TestDomain:
    @pytest.mark.parametrize(
        "domain", ["docs.example.com", "localhost", "docs.example.com:8443", "xn--mnchen-3ya.example.com", "a_b.example.com"]
    )
    def test_a_bare_host_name_is_kept(self, domain: str) -> None:
        assert validators.domains(domain) == [domain]

    @pytest.mark.parametrize(
        ("text", "corrected"),
        [
            ("https://docs.example.com", "docs.example.com"),
            ("https://docs.example.com/", "docs.example.com"),
            ("https://docs.example.com:8443/guide?x#y", "docs.example.com:8443"),
            ("docs.example.com/guide", "docs.example.com"),
            ("docs.example.com.", "docs.example.com"),
            ("docs. example.com", "docs.example.com"),
            ("- docs.example.com", "docs.example.com"),
            ("münchen.example.com", "xn--mnchen-3ya.example.com"),
            ("straße.de", "xn--strae-oqa.de"),
            ("STRAßE.De", "xn--strae-oqa.de"),
            ("https://straße.de:8443/weg", "xn--strae-oqa.de:8443"),
            ("a_b.straße.de.", "a_b.xn--strae-oqa.de"),
            ("βόλος.com", "xn--nxasmm1c.com"),
            ("\uff44\uff4f\uff43\uff53\u3002example\uff61com", "docs.example.com"),
            ("日本語。jp", "xn--wgv71a119e.jp"),
        ],
    )
    def test_anything_but_a_bare_host_name_is_refused_with_the_corrected_form(self, text: str, corrected: str) -> None:
        assert refusal(validators.domains, text) == f"'{text}' is not a bare host name; write {corrected}"

    def test_a_joiner_that_a_name_needs_is_kept_in_the_corrected_form(self) -> None:
        assert refusal(validators.domains, "\u0646\u0627\u0645\u0647\u200c\u0627\u06cc.com").endswith(
            "write xn--mgba3gch31f060k.com"
        )

    @pytest.mark.parametrize(
        "text",
        [
            *("https://", "/", "...", "-docs.example.com", "docs.example.com:0", "docs.example.com:99999"),
            *("👍.example.com", "☃.example.com", "I♥docs.example.com", "ü-.example.com", "docs\uff0fguide.example.com"),
            *("ü\u200cb.example.com", "xn--ü.example.com", f"{'ü' * 63}.example.com", "docs.\u0627a.example.com"),
        ],
    )
    def test_where_nothing_can_be_meant_an_example_is_given(self, text: str) -> None:
        assert refusal(validators.domains, text).endswith("is not a bare host name, such as docs.example.com")

    def test_credentials_in_it_are_not_shown(self) -> None:
        message = refusal(validators.domains, "https://user:pa55word@docs.example.com/")

        assert "pa55word" not in message
        assert message.endswith("write docs.example.com")

    @pytest.mark.parametrize("second", ["docs.example.com", "Docs.Example.COM"])
    def test_a_domain_named_twice_is_refused(self, second: str) -> None:
        message = refusal(validators.domains, f"docs.example.com\n{second}")

        assert "listed twice" in message

    @pytest.mark.parametrize("between", [", ", ",", " ", "; "])
    def test_several_on_one_line_are_refused_with_their_number(self, between: str) -> None:
        message = refusal(validators.domains, f"a.example.com{between}b.example.com:8443")

        assert message.endswith("b.example.com:8443' contains 2 domains; write one per line")

    def test_every_invalid_line_is_reported(self) -> None:
        message = refusal(validators.domains, "https://a.example.com\nb.example.com/x")

        assert "write a.example.com" in message
        assert "write b.example.com" in message

    @given(st.one_of(st.text(max_size=40), st.text("ab.:-_/@ ß", max_size=20)))
    def test_what_is_accepted_is_a_host_and_a_port(self, text: str) -> None:
        try:
            found = validators.domains(text)
        except ValueError:
            return

        assert all(re.fullmatch(r"(?a:[\w-]{1,63}(\.[\w-]{1,63})*(:\d{1,5})?)", domain) for domain in found)


class TestSeveralDomains:
    def test_a_byte_order_mark_within_is_trimmed_too(self) -> None:
        assert validators.domains("a.example.com\n\ufeffb.example.com") == ["a.example.com", "b.example.com"]

    def test_an_invisible_character_is_reported(self) -> None:
        message = refusal(validators.domains, "a.exa\u200bmple.com")

        assert message.endswith("contains an invisible character, so it is not a bare host name; write a.example.com")

    def test_a_port_written_in_two_ways_is_the_same_one(self) -> None:
        assert "listed twice" in refusal(validators.domains, "a.example.com:443\na.example.com:0443")
        assert len(validators.domains("a.example.com\na.example.com:443")) == 2

    def test_many_mistakes_are_counted(self) -> None:
        message = refusal(validators.domains, "\n".join(f"https://d{number}.example.com" for number in range(50)))

        assert message.count("is not a bare host name; write") == 20
        assert message.endswith("write d19.example.com; and 30 more")

    def test_a_domain_of_byte_order_marks_alone_is_refused(self) -> None:
        assert refusal(validators.domains, "\ufeff\n\ufeff\n\ufeff") == "contains no domain"


class TestStartOptions:
    def test_an_object_of_further_fields_is_read(self) -> None:
        options = validators.start_options('{"version": "v2", "paths": ["/a"], "deep": {"domain": 1}}')

        assert options == {"version": "v2", "paths": ["/a"], "deep": {"domain": 1}}

    @pytest.mark.parametrize(
        "text",
        [
            "version=v2",
            "{",
            '{"a": NaN}',
            '{"a": 1e999}',
            '{"a": -Infinity}',
            "{'a': 1}",
            "[" * 100_000,
            '{"a": ' + "9" * 5000 + "}",
        ],
        ids=lambda text: text[:16],
    )
    def test_what_is_not_json_is_refused(self, text: str) -> None:
        assert refusal(validators.start_options, text) == (
            'is not valid JSON; use a JSON object of additional fields, such as {"version": "v2"}'
        )

    @pytest.mark.parametrize("text", ["[]", "1", '"x"', "null", "true"])
    def test_json_that_is_not_an_object_is_refused(self, text: str) -> None:
        assert "is not a JSON object" in refusal(validators.start_options, text)

    def test_the_domain_has_its_own_input(self) -> None:
        message = refusal(validators.start_options, '{"domain": "other.example.com"}')

        assert message == "contains `domain`; use the input `domain` for it"

    @given(
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
        )
    )
    def test_what_is_accepted_can_be_sent(self, value: Any) -> None:
        text = requests.compat.json.dumps({"a": value})

        try:
            options = validators.start_options(text)
        except ValueError:
            return

        requests.Request("POST", "https://api.example.com", json=options).prepare()


class TestCaBundle:
    def test_certificates_are_read_whatever_stands_between_them(self, tmp_path: Path, authority_pem: bytes) -> None:
        (tmp_path / "ca.pem").write_bytes("Zürich\r\n".encode("latin-1") + authority_pem + b"# end\n" + authority_pem)

        assert validators.certificates("ca.pem", [tmp_path]).count("BEGIN CERTIFICATE") == 2

    @pytest.mark.parametrize(
        "garbage", [b"", b"garbage", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", b"\xff\xfe\x00"]
    )
    def test_garbage_is_refused(self, tmp_path: Path, garbage: bytes) -> None:
        (tmp_path / "ca.pem").write_bytes(garbage)

        assert "contains no valid PEM certificate" in refusal(validators.certificates, "ca.pem", [tmp_path])

    def test_a_damaged_certificate_beside_a_good_one_is_refused(self, tmp_path: Path, authority_pem: bytes) -> None:
        damaged = b"-----BEGIN CERTIFICATE-----\nMIIB-AAA\n-----END CERTIFICATE-----\n"
        (tmp_path / "ca.pem").write_bytes(authority_pem + damaged)

        assert "contains no valid PEM certificate" in refusal(validators.certificates, "ca.pem", [tmp_path])

    def test_a_file_that_is_not_there_is_refused(self, tmp_path: Path) -> None:
        assert refusal(validators.certificates, "ca.pem", [tmp_path]) == "the file does not exist"

    def test_a_folder_is_refused(self, tmp_path: Path) -> None:
        assert refusal(validators.certificates, ".", [tmp_path]) == "the path is not a regular file"

    def test_a_pipe_that_nobody_writes_to_is_refused_without_waiting(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "ca.pem")

        assert "the path is not a regular file" in refusal(validators.certificates, "ca.pem", [tmp_path])

    @pytest.mark.timeout(20, method="signal")  # an expression that looks for an end behind each of them would take hours
    def test_one_of_beginnings_alone_is_refused_at_once(self, tmp_path: Path) -> None:
        beginning = b"-----BEGIN CERTIFICATE-----\n"
        (tmp_path / "ca.pem").write_bytes(beginning * (MAX_CA_BUNDLE_BYTES // len(beginning)))

        assert "contains no valid PEM certificate" in refusal(validators.certificates, "ca.pem", [tmp_path])

    def test_one_without_an_end_is_not_read_to_it(
        self, tmp_path: Path, authority_pem: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("docs_platform_action.inputs.validators.MAX_CA_BUNDLE_BYTES", 100)
        (tmp_path / "ca.pem").write_bytes(b"#" * 100 + authority_pem)

        assert "contains no valid PEM certificate" in refusal(validators.certificates, "ca.pem", [tmp_path])

    def test_one_that_cannot_be_read_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> None:
            raise PermissionError(13, "Permission denied")

        (tmp_path / "ca.pem").touch()
        monkeypatch.setattr(Path, "open", refuse)  # root, who runs the container, may read every file

        assert "the file cannot be read (Permission denied; likely causes: SELinux" in refusal(
            validators.certificates, "ca.pem", [tmp_path]
        )
