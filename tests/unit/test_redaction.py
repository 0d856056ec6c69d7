"""The whole key is hidden in each promised form, and so are the secrets of links and the queries of addresses."""

import base64
import html
import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.redaction import HIDDEN, Redactor
from tests.keys import ADMIN_KEY, AWKWARD_KEYS

FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "percent-encoded": lambda key: quote(key, safe=""),
    "percent-encoded, but for slashes": quote,
    "percent-encoded in lower case": lambda key: "".join(f"%{byte:02x}" for byte in key.encode()),
    "JSON": lambda key: json.dumps(key)[1:-1],
    "JSON with escaped slashes": lambda key: json.dumps(key)[1:-1].replace("/", "\\/"),
    "JSON's numbers": lambda key: "".join(f"\\u{ord(character):04X}" for character in key),
    "HTML": html.escape,
    "HTML's numbers": lambda key: "".join(f"&#{ord(character)};" for character in key),
    "HTML's hex numbers": lambda key: "".join(f"&#x{ord(character):x};" for character in key),
    "base64": lambda key: base64.b64encode(key.encode()).decode().rstrip("="),
    "base64 for addresses": lambda key: base64.urlsafe_b64encode(key.encode()).decode().rstrip("="),
    "base64, percent-encoded": lambda key: quote(base64.b64encode(key.encode()).decode().rstrip("="), safe=""),
}
KEYS = st.sampled_from(AWKWARD_KEYS) | st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=8, max_size=40)


@pytest.mark.parametrize("form", FORMS)
@given(key=KEYS)
def test_a_whole_key_is_hidden_in_each_promised_form(form: str, key: str) -> None:
    encoded = FORMS[form](key)
    redactor = Redactor([key])

    # the last character may be shown by the rest of its escape, if the escape begins with it
    assert re.fullmatch(r"before \(\*\*\*[\w#;]{0,6}\) after", redactor.hide_key(f"before ({encoded}) after"))
    assert redactor.has_key(encoded)


@pytest.mark.parametrize(
    "text", ["", "........", "?!?!?!?!?!", "((((((((====", "no key here", ADMIN_KEY[1:], ADMIN_KEY[:-1], "***"]
)
def test_any_other_text_stays_as_it_is(text: str) -> None:
    redactor = Redactor([ADMIN_KEY])

    assert (redactor.hide(text), redactor.has_key(text)) == (text, False)
    assert Redactor().hide(text) == text


def test_a_key_that_contains_another_one_is_hidden_whole() -> None:
    assert Redactor(["abcd-efgh", "abcd-efgh-ijkl"]).hide("abcd-efgh-ijkl") == HIDDEN


def test_a_short_key_is_hidden_but_does_not_make_a_text_unusable() -> None:
    redactor = Redactor(["secret"])

    assert (redactor.hide("my secret"), redactor.has_key("my secret")) == (f"my {HIDDEN}", False)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see https://x.example.com/a?b=c&d=e.", "see https://x.example.com/a?…"),
        ('"http://x.example.com/a?b"', '"http://x.example.com/a?…"'),
        ('<a href="https://x.example.com/?b">', '<a href="https://x.example.com/?…">'),
        ("https://x.example.com/a#token=1 and HTTPS://Y.example.com?b", "https://x.example.com/a#… and HTTPS://Y.example.com?…"),
        ("https:\\/\\/x.example.com\\/a?b=c", "https:\\/\\/x.example.com\\/a?…"),
        ("https://x.example.com/a b?c", "https://x.example.com/a b?c"),
        ("https://x.example.com/o'brien?x=a'tail&sig=z", "https://x.example.com/o'brien?…"),
        ("what is this?", "what is this?"),
    ],
)
def test_an_address_is_shown_without_its_query(text: str, shown: str) -> None:
    assert Redactor().hide(text) == shown


@pytest.mark.parametrize(
    "name",
    [
        *("X-Amz-Signature", "X-Amz-Credential", "X-Amz-Security-Token", "Signature", "sig"),
        *("X-Goog-Signature", "X-Goog-Credential", "x%2damz%2dsignature", "token"),
    ],
)
def test_the_secrets_of_a_link_are_hidden_as_they_are_and_decoded(name: str) -> None:
    redactor = Redactor()

    redactor.add_link(f"https://s.example.com/b.tar.gz?x=12345678&{name}=a%2Fb%2Bc12345&y=87654321")

    assert redactor.hide("got a%2Fb%2Bc12345, not a/b+c12345") == "got …, not …"
    assert redactor.hide("12345678 87654321") == "12345678 87654321"


@pytest.mark.parametrize("text", ["({})", '"{}"', "<Signature>{}</Signature>", "sig={}&x=1", "no {}.", "{}, and more"])
def test_a_secret_of_a_link_is_hidden_wherever_it_stands(text: str) -> None:
    redactor = Redactor()

    redactor.add_link("https://s.example.com/b?X-Goog-Credential=robot@example.com/20240601/auto")

    assert "robot" not in redactor.hide(text.format("robot@example.com/20240601/auto"))


def test_a_short_value_of_a_link_stays_because_it_may_be_a_word() -> None:
    redactor = Redactor()

    redactor.add_link("https://s.example.com/b?token=abc&signature=")

    assert redactor.hide("abc") == "abc"


def test_links_that_several_threads_add_are_all_hidden() -> None:
    redactor, secrets = Redactor(), [f"signature-{number:04}" for number in range(200)]

    with ThreadPoolExecutor(8) as threads:
        [*threads.map(lambda secret: redactor.add_link(f"https://s.example.com/?sig={secret}"), secrets)]

    assert {redactor.hide(secret) for secret in secrets} == {"…"}
