"""A secret is taken out of a text whatever wrote it there, and nothing else is."""

import base64
import html
import json
import re
import urllib.parse
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.redaction import HIDDEN, SHORTEST_TO_RECOGNISE, Redactor
from tests.keys import ADMIN_KEY, AWKWARD_KEYS
from tests.leaks import forms_of, leaked

PRINTABLE = st.characters(min_codepoint=0x21, max_codepoint=0x7E)
KEYS = st.one_of(
    st.sampled_from(AWKWARD_KEYS),
    st.text(PRINTABLE, min_size=12, max_size=40),
    st.text(st.sampled_from("%25&amp;\\/+x41u0"), min_size=12, max_size=24),
)
NEIGHBOURS = st.text(st.sampled_from(" \"'/<>=.:,"), max_size=4)
ENCODERS: dict[str, Callable[[str], str]] = {
    "JSON": lambda text: json.dumps(text)[1:-1],
    "HTML": html.escape,
    "percent-encoding": lambda text: urllib.parse.quote(text, safe=""),
    "percent-encoding of some": urllib.parse.quote,
    "Markdown": lambda text: re.sub(r"([^A-Za-z0-9])", r"\\\1", text),
    "Python's repr": lambda text: repr(text)[1:-1],
    "XML's numbers": lambda text: "".join(f"&#{ord(character)};" for character in text),
    "Python's numbers": lambda text: "".join(f"\\x{ord(character):02x}" for character in text),
    "JSON's numbers": lambda text: "".join(f"\\u{ord(character):04X}" for character in text),
}


@given(KEYS, NEIGHBOURS, NEIGHBOURS)
def test_no_form_of_a_key_is_left(key: str, before: str, after: str) -> None:
    subject = Redactor([key])

    for name, form in forms_of(key).items():
        if b" " in form:
            continue  # our own cleaning puts a space into what looks like a command, after it was searched
        shown = subject.hide(f"{before}{form.decode('latin-1')}{after}")
        assert HIDDEN in shown, name
        assert leaked(key, shown.replace(HIDDEN, " ")) == [], name


@pytest.mark.parametrize("outer", ENCODERS)
@pytest.mark.parametrize("inner", ENCODERS)
@pytest.mark.parametrize("key", [ADMIN_KEY, *AWKWARD_KEYS])
def test_a_key_that_is_encoded_twice_is_hidden(key: str, inner: str, outer: str) -> None:
    shown = Redactor([key]).hide(f"[{ENCODERS[outer](ENCODERS[inner](key))}]")

    # what a last zero byte or backslash is written as may be left, which tells nothing
    assert re.fullmatch(r"\[.{0,12}\*\*\*.{0,12}\]", shown, re.DOTALL)


@given(st.data())
def test_a_key_is_hidden_whose_characters_are_each_written_in_a_way_of_their_own(data: st.DataObject) -> None:
    key = data.draw(KEYS)
    ways = data.draw(st.lists(st.sampled_from([str, *ENCODERS.values()]), min_size=len(key), max_size=len(key)))

    shown = Redactor([key]).hide("".join(way(character) for way, character in zip(ways, key, strict=True)))

    assert HIDDEN in shown


@given(st.text(), st.sampled_from([ADMIN_KEY, *AWKWARD_KEYS]))
def test_a_text_without_the_key_stays_as_it_is(text: str, key: str) -> None:
    assert Redactor([key]).hide(text) == text


@pytest.mark.parametrize("text", ["100% \\ &amp; &lt;b&gt; %2F \\u0041 \\x41 &unknown; &#65;", "a\u200bb\x00c", "%", "&;", "\\"])
def test_escapes_are_left_as_they_are_where_there_is_no_key(text: str) -> None:
    assert Redactor([ADMIN_KEY]).hide(f"{text} {ADMIN_KEY} {text}") == f"{text} *** {text}"


def test_what_surrounds_an_escaped_key_stays_as_it_is() -> None:
    key = "adm/k3y+9f27"

    shown = Redactor([key]).hide(f"%2Fa%2F{urllib.parse.quote(key, safe='')}%2Fb &amp; {urllib.parse.quote(key, safe='')}&amp;c")

    assert shown == "%2Fa%2F***%2Fb &amp; ***&amp;c"


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@given(before=st.binary(max_size=5), after=st.binary(max_size=5))
def test_of_a_key_in_base64_at_most_what_shares_a_character_with_others_is_left(
    encode: Callable[[bytes], bytes], before: bytes, after: bytes
) -> None:
    key = "adm?k3y>9f27~c1d4"

    shown = Redactor([key]).hide(encode(before + key.encode() + after).decode())

    kept = shown.replace(HIDDEN, "").rstrip("=")
    assert HIDDEN in shown
    assert len(kept) <= (len(before) + len(after)) * 8 / 6 + 2


def test_a_base64_that_is_percent_encoded_is_hidden_too() -> None:
    key = "adm?k3y>9f27~c1d4"
    encoded = base64.b64encode(key.encode()).decode()

    assert HIDDEN in Redactor([key]).hide(urllib.parse.quote(encoded, safe=""))


@pytest.mark.parametrize("length", [1, SHORTEST_TO_RECOGNISE - 1])
def test_a_shorter_secret_than_is_looked_for_stays(length: int) -> None:
    secret = "queued-x"[:length]

    assert Redactor([secret], shortest=SHORTEST_TO_RECOGNISE).hide(f"{secret} {secret}") == f"{secret} {secret}"


def test_the_shortest_that_is_looked_for_is_hidden() -> None:
    assert Redactor(["queued-x"], shortest=SHORTEST_TO_RECOGNISE).hide("queued-x") == HIDDEN


@pytest.mark.parametrize("secret", ["a", "\\", "%", "&amp;", "amp", "*", "**", "***", "\\***", "%2A"])
def test_even_the_shortest_is_hidden_when_asked_for(secret: str) -> None:
    assert Redactor([secret]).hide(f"x {secret} x") in {"x *** x", "x ***** x", "x ****** x", "x ********* x"}


@pytest.mark.parametrize("between", ["\u034f", "\ufe0f", "\u3164", "\U000e0100", "\u180b", "\u00ad", "\u200b"])
def test_a_key_is_hidden_that_only_looks_whole(between: str) -> None:
    assert Redactor([ADMIN_KEY]).hide(f"<{between.join(ADMIN_KEY)}>") == f"<{HIDDEN}>"


def test_a_short_one_is_not_looked_for_in_base64() -> None:
    text = base64.b64encode(b"abc").decode()

    assert Redactor(["abc"]).hide(text) == text


def test_of_secrets_that_hold_one_another_the_longest_is_hidden() -> None:
    assert Redactor(["first-part", "first-part-and-second"]).hide("first-part-and-second first%2Dpart-and-second") == "*** ***"


def test_one_that_is_not_ascii_is_hidden_in_an_address_too() -> None:
    secret = "schlüssel/9f27"

    assert Redactor([secret]).hide(f"/login?key={urllib.parse.quote(secret, safe='')}&x") == "/login?key=***&x"


def test_without_secrets_nothing_is_hidden() -> None:
    assert not Redactor().finds_in("a%20b")


def test_it_tells_whether_there_is_one() -> None:
    assert Redactor([ADMIN_KEY]).finds_in(f"x{ADMIN_KEY}")


def test_more_layers_than_anyone_makes_are_not_undone() -> None:
    # the price of each is a pass over a text that a server chose
    text = "k%3Ay-9f27c1d4"
    for _ in range(6):
        text = urllib.parse.quote(text)

    assert not Redactor(["k:y-9f27c1d4"]).finds_in(text)
