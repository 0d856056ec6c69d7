"""What is hidden in foreign text.

The whole key in every promised form, secrets of links, and queries of addresses.
"""

import base64
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

import pytest

from docs_platform_action.redaction import HIDDEN, Redactor
from tests.keys import ADMIN_KEY, AWKWARD_KEYS
from tests.leaks import ENCODERS

LINK = (
    "https://s.example.com/b?part=shown&X-Amz-Signature=vjbyPxy%2FbdZNm%3D&sig=kX9vT2bQ7m"
    "&token=short&X-Amz-Security-Token=&other=longenough1"
)


class TestKeys:
    @pytest.mark.parametrize("key", [ADMIN_KEY, *AWKWARD_KEYS])
    @pytest.mark.parametrize("form", ENCODERS)
    def test_the_whole_key_is_hidden_in_every_form(self, form: str, key: str) -> None:
        encoded = ENCODERS[form](key)

        assert encoded not in Redactor([key]).hide_key(f"x {encoded} x")
        assert Redactor([key]).has_key(f"x{encoded}x")

    @pytest.mark.parametrize("alphabet", [base64.b64encode, base64.urlsafe_b64encode])
    @pytest.mark.parametrize("after", ["", "\r\n", ":x", "é?>~"])
    @pytest.mark.parametrize(
        "before", ["Bearer ", "Authorization: Bearer ", "user:", "us:", ":", '{"key": "', "ÿ"]
    )
    @pytest.mark.parametrize("key", [ADMIN_KEY, *AWKWARD_KEYS])
    def test_the_base64_of_a_text_with_the_key_does_not_reveal_it(
        self, key: str, before: str, after: str, alphabet: Callable[[bytes], bytes]
    ) -> None:
        redactor = Redactor([key])
        encoded = alphabet(f"{before}{key}{after}".encode()).decode()

        shown = redactor.hide_key(encoded)

        hidden_length = len(encoded) - len(shown.replace(HIDDEN, ""))
        rest = shown.translate(str.maketrans("-_", "+/"))
        decoded = base64.b64decode(rest.replace(HIDDEN, "A" * hidden_length))
        # of its first and its last character, some bits are left
        assert bytes(len(key) - 2) in decoded
        assert HIDDEN in redactor.hide_key(quote(encoded, safe=""))
        assert redactor.has_key(f"x{encoded}x")

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("Bearer abcdefgh.12345", "QmVhcmVyIG***"),
            ("Authorization: Bearer abcdefgh.12345", "QXV0aG9yaXphdGlvbjogQmVhcmVyIG***"),
            ("user:abcdefgh.12345", "dXNlcjp***Q=="),
            ("us:abcdefgh.12345", "dXM6***="),
        ],
    )
    def test_the_base64_of_a_header_with_the_key_is_hidden_but_for_its_ends(
        self, text: str, shown: str
    ) -> None:
        encoded = base64.b64encode(text.encode()).decode()

        assert Redactor(["abcdefgh.12345"]).hide_key(f"got {encoded}!") == f"got {shown}!"

    def test_the_base64_of_a_text_with_a_short_key_stays_if_it_could_be_a_word(self) -> None:
        encoded = base64.b64encode(b"Bearer abc").decode()

        assert Redactor(["abc"]).hide_key(encoded) == encoded

    def test_a_part_of_the_key_is_not(self) -> None:
        text = f"{ADMIN_KEY[:-1]} {ADMIN_KEY[1:]}"

        assert Redactor([ADMIN_KEY]).hide(text) == text

    @pytest.mark.parametrize("entity", ["&apos;", "&#x27;", "&#039;"])
    def test_an_apostrophe_is_known_in_each_form_of_html(self, entity: str) -> None:
        assert Redactor(["adm'k3y-9f27"]).hide_key(f"adm{entity}k3y-9f27") == HIDDEN

    def test_of_several_keys_the_longest_is_hidden_first(self) -> None:
        redactor = Redactor(["abcdefgh", "abcdefghij", ""])

        assert redactor.hide_key("abcdefghij abcdefgh") == f"{HIDDEN} {HIDDEN}"

    def test_a_short_key_is_hidden_but_makes_no_job_unusable(self) -> None:
        redactor = Redactor(["1234567", "abcdefgh"])

        assert redactor.hide_key("1234567") == HIDDEN
        assert not redactor.has_key("1234567")
        assert redactor.has_key("abcdefgh")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see https://a.example/b?c=d&e, please", "see https://a.example/b?… please"),
        ("HTTP://a.example/b#secret", "HTTP://a.example/b#…"),
        (r'"https:\/\/a.example\/b?c=d"', r'"https:\/\/a.example\/b?…"'),
        ("<https://a.example/?x>", "<https://a.example/?…>"),
        ("https://a.example/b and ?x=1", "https://a.example/b and ?x=1"),
    ],
)
def test_the_queries_of_addresses_are_cut_off(text: str, shown: str) -> None:
    assert Redactor().hide(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("vjbyPxy%2FbdZNm%3D is wrong", "… is wrong"),
        ("got vjbyPxy/bdZNm=.", "got …."),
        ("vjbyPxy%252FbdZNm%253D", "…"),
        ("(kX9vT2bQ7m)", "(…)"),
        ("kX9vT2bQ7m==", "…"),
        ("kX9vT2bQ7m%3D%3d", "…"),
        ("shown, longenough1", "shown, longenough1"),
        ("short", "short"),
        ("kX9vT2bQ7", "kX9vT2bQ7"),
        ("........", "........"),
    ],
)
def test_the_signature_credential_and_token_of_a_link_are_hidden(text: str, shown: str) -> None:
    redactor = Redactor()
    assert redactor.hide(text) == text
    redactor.add_link(LINK)

    assert redactor.hide(text) == shown


AROUND: Final = [
    *" \t.,:;!?|/_-+~*@#$^&=%<>()[]{}'`\"\\",
    *("x", "7", "%3D", "%3d", "%20", "%25", "&#39;", "&quot;", "&amp;", "\\u0026", "\\/", "é"),
]


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("value", ["kX9vT2bQ7m", "vjbyPxy/bdZNm", "vjbyPxy%2FbdZNm"])
def test_a_secret_of_a_link_is_hidden_whatever_stands_around_it(value: str, around: str) -> None:
    redactor = Redactor()
    redactor.add_link(LINK)

    assert redactor.hide(f"a{around}{value}.") == f"a{around}…."
    assert redactor.hide(f"a{value}{around}.") in {f"a…{around}.", "a…."}  # `=` is a padding


CREDENTIAL: Final = "AKIAEXAMPLE/20261129/us-east-1/s3/aws4_request"


@pytest.mark.parametrize(
    "encoded",
    [
        CREDENTIAL,
        CREDENTIAL.replace("/", "%2F"),
        CREDENTIAL.replace("/", "%2f"),
        CREDENTIAL.replace("/", r"\/"),
        CREDENTIAL.replace("/", r"\u002f").replace("_", r"\u005F"),
        CREDENTIAL.replace("/", "&#x2F;").replace("-", "&#45;"),
    ],
)
@pytest.mark.parametrize("slash", ["/", "%2F", "%2f"])
def test_a_secret_of_a_link_is_hidden_in_each_encoding(slash: str, encoded: str) -> None:
    redactor = Redactor()
    redactor.add_link(f"https://s.example.com/b?X-Amz-Credential={CREDENTIAL.replace('/', slash)}")

    assert redactor.hide(f"credential:{encoded}|") == "credential:…|"


def test_of_several_secrets_of_links_the_longest_is_hidden_first() -> None:
    redactor = Redactor()
    redactor.add_link("https://s.example.com/b?sig=abcdefgh")
    redactor.add_link("https://s.example.com/b?sig=abcdefghij&token=cdefghijkl")

    assert redactor.hide("abcdefghij abcdefgh cdefghijkl") == "… … …"
