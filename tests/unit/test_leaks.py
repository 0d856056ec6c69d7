"""The search for secrets finds a secret in every common encoding, and finds nothing where there is no secret."""

import base64
import functools
import html
import json
import re
import urllib.parse
from collections.abc import Callable

import pytest
from actions_toolkit.command import Command
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.text import clean, markdown
from tests.keys import ADMIN_KEY
from tests.leaks import forms_of, leaked, leaked_in_part

AWKWARD = "k%+/=:\"'\\<>&|`$*_~[]()#;,::set-output x::y##[x]z"
DISTINCT_FORMS = f"-ü {AWKWARD}!"
"""A secret that every encoder writes differently."""

ENCODERS: dict[str, Callable[[str], str | bytes]] = {
    "unencoded": str,
    "percent-encoded": lambda text: urllib.parse.quote(text, safe=""),
    "percent-encoded twice": lambda text: urllib.parse.quote(urllib.parse.quote(text, safe=""), safe=""),
    "percent-encoded three times": lambda text: functools.reduce(
        lambda inner, _: urllib.parse.quote(inner, safe=""), range(3), text
    ),
    "percent-encoded, but slashes": urllib.parse.quote,
    "percent-encoded as JavaScript does": lambda text: urllib.parse.quote(text, safe="!'()*"),
    "percent-encoded in a form": lambda text: urllib.parse.urlencode({"q": text}),
    "JSON": json.dumps,
    "JSON with escaped slashes": lambda text: json.dumps(text).replace("/", r"\/"),
    "JSON with non-ASCII characters": lambda text: json.dumps(text, ensure_ascii=False),
    "HTML": html.escape,
    "HTML numbers": lambda text: "".join(letter if letter.isalnum() else f"&#{ord(letter)};" for letter in text),
    "HTML hex numbers": lambda text: "".join(letter if letter.isalnum() else f"&#x{ord(letter):x};" for letter in text),
    "HTML hex numbers for all": lambda text: "".join(f"&#x{ord(letter):x};" for letter in text),
    "JSON numbers": lambda text: "".join(letter if letter.isalnum() else f"\\u{ord(letter):04X}" for letter in text),
    "JSON numbers for all": lambda text: "".join(f"\\u{ord(letter):04X}" for letter in text),
    "percent codes for all": lambda text: "".join(f"%{ord(letter):02X}" for letter in text),
    "hex": lambda text: text.encode().hex(),
    "HTML, decimal": lambda text: re.sub("[\"']", lambda quote: f"&#{ord(quote[0])};", html.escape(text, quote=False)),
    "HTML, quotes as they are": lambda text: html.escape(text, quote=False),
    "a log line": lambda text: clean(f"before {text} after"),
    "Markdown": lambda text: markdown(f"{text} after"),
    "Markdown, inside a line": lambda text: markdown(f"before {text} after"),
    "Python's repr": lambda text: repr([text]),
    "Python's repr of bytes": lambda text: repr(text.encode()),
    "a workflow command's message": lambda text: str(Command("x", {}, text)),
    "a workflow command's property": lambda text: str(Command("x", {"title": text}, "")),
    "UTF-16-LE": lambda text: text.encode("utf-16-le"),
    "UTF-16-BE": lambda text: text.encode("utf-16-be"),
}


@pytest.mark.parametrize("form", ENCODERS)
def test_a_secret_is_found_however_it_is_encoded(form: str) -> None:
    assert form in leaked(DISTINCT_FORMS, ENCODERS[form](DISTINCT_FORMS))


@pytest.mark.parametrize("change", [bytes.lower, bytes.upper])
@pytest.mark.parametrize("form", ENCODERS)
def test_a_secret_is_found_in_lower_and_upper_case(form: str, change: Callable[[bytes], bytes]) -> None:
    written = ENCODERS[form](DISTINCT_FORMS)

    assert form in leaked(DISTINCT_FORMS, change(written if isinstance(written, bytes) else written.encode()))


@pytest.mark.parametrize("form", ENCODERS)
def test_the_key_of_the_tests_is_found_however_it_is_encoded(form: str) -> None:
    assert leaked(ADMIN_KEY, ENCODERS[form](ADMIN_KEY))


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@given(secret=st.text(min_size=12), before=st.binary(max_size=9), after=st.binary(max_size=9))
def test_a_secret_is_found_in_base64_wherever_it_stands(
    encode: Callable[[bytes], bytes], secret: str, before: bytes, after: bytes
) -> None:
    secret = secret.encode("utf-8", "replace").decode()

    assert [name for name in leaked(secret, encode(before + secret.encode() + after)) if name.startswith("base64")]


@given(st.text(alphabet=AWKWARD, min_size=1))
def test_forms_are_distinct(secret: str) -> None:
    forms = forms_of(secret)

    assert len(forms) == len({*forms.values()})
    assert forms["unencoded"] == secret.encode()


def test_a_secret_with_nothing_to_escape_has_few_forms() -> None:
    # unencoded, four ways to write each character as a number, three alignments of base64 in one alphabet, hex, and two byte
    # orders of UTF-16
    assert len(forms_of("abcdefghijkl")) == 11


def test_a_secret_with_much_to_escape_has_many() -> None:
    assert len(forms_of(AWKWARD)) > 20


def test_a_text_without_the_secret_contains_none_of_its_forms() -> None:
    nearly = ADMIN_KEY[:-1] + "4"

    assert leaked(ADMIN_KEY, " ".join(str(encode(nearly)) for encode in ENCODERS.values())) == []


def test_every_form_in_a_text_is_named() -> None:
    text = f"{AWKWARD} {html.escape(AWKWARD)}"

    assert leaked(AWKWARD, text) == ["unencoded", "HTML"]


def test_a_short_secret_is_not_searched_for_in_base64() -> None:
    assert not [name for name in forms_of("abc") if name.startswith("base64")]


def _wrapped(text: str, columns: int, line_end: str) -> str:
    return line_end.join(text[at : at + columns] for at in range(0, len(text), columns))


FRAGMENT = ADMIN_KEY[3:19]
PARTS: dict[str, str | bytes] = {
    "sixteen characters": f"key {FRAGMENT}... refused",
    "wrapped": _wrapped(ADMIN_KEY, 13, "\n    "),
    "wrapped often": _wrapped(FRAGMENT, 3, "\r\n"),
    "base64 with line breaks": _wrapped(base64.b64encode(f"Bearer {ADMIN_KEY}".encode()).decode(), 20, "\r\n"),
    "base64 of sixteen": base64.b64encode(f"x{FRAGMENT}".encode()),
    "base64 of another sixteen": base64.b64encode(f"xx{FRAGMENT}".encode()),
    "hex": ADMIN_KEY.encode().hex(),
    "upper case": f"key {FRAGMENT.upper()}... refused",
    "base64 in lower case": base64.b64encode(f"x{FRAGMENT}".encode()).lower(),
    "hex of sixteen": FRAGMENT.encode().hex().upper(),
    "hex in groups": ADMIN_KEY.encode().hex(" "),
    "hex with colons over lines": _wrapped(ADMIN_KEY.encode().hex(":"), 45, "\n  "),
    "a list of numbers": ", ".join(f"0x{byte:02x}" for byte in ADMIN_KEY.encode()),
}


@pytest.mark.parametrize("form", PARTS)
def test_a_part_of_the_key_is_found_however_it_is_written(form: str) -> None:
    assert leaked_in_part(ADMIN_KEY, PARTS[form])


def test_fifteen_characters_of_the_key_are_not_a_leak() -> None:
    nearly = FRAGMENT[:15]

    assert leaked_in_part(ADMIN_KEY, f"{nearly} {nearly.encode().hex(':')} {_wrapped(nearly, 4, ' ')}") == []


def test_a_very_short_key_is_not_searched_for_across_white_space() -> None:
    assert leaked_in_part("running", "run ning") == []


def test_a_large_file_is_searched_for_the_whole_key() -> None:
    assert leaked_in_part(ADMIN_KEY, b"x" * 5_000_000 + ADMIN_KEY.encode()) == ["unencoded"]
