"""What is hidden in foreign text.

The whole key in every promised form, secrets of links, and queries of addresses.
"""

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
        ("(kX9vT2bQ7m)", "(…)"),
        ("shown, longenough1", "shown, longenough1"),
        ("short", "short"),
        ("kX9vT2bQ7mX", "kX9vT2bQ7mX"),
        ("........", "........"),
    ],
)
def test_the_signature_credential_and_token_of_a_link_are_hidden_as_whole_words(
    text: str, shown: str
) -> None:
    redactor = Redactor()
    assert redactor.hide(text) == text
    redactor.add_link(LINK)

    assert redactor.hide(text) == shown
