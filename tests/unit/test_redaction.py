"""What is hidden in foreign text: the whole key in every promised form, secrets of links, and queries of addresses."""

import pytest

from docs_platform_action.redaction import HIDDEN, Redactor
from tests.keys import ADMIN_KEY, AWKWARD_KEYS
from tests.leaks import ENCODERS

LINK = "https://s.example.com/b?part=shown&X-Amz-Signature=vjbyPxy%2FbdZNm%3D&sig=kX9vT2bQ7m&token=short&other=longenough1"


class TestKeys:
    @pytest.mark.parametrize("key", [ADMIN_KEY, *AWKWARD_KEYS])
    @pytest.mark.parametrize("form", ENCODERS)
    def test_the_whole_key_is_hidden_in_every_form(self, form: str, key: str) -> None:
        encoded = ENCODERS[form](key)

        assert encoded not in Redactor([key]).hide_key(f"x {encoded} x")
        assert Redactor([key]).has_key(f"x{encoded}x")

    def test_a_part_of_the_key_is_not(self) -> None:
        assert (
            Redactor([ADMIN_KEY]).hide(f"{ADMIN_KEY[:-1]} {ADMIN_KEY[1:]}")
            == f"{ADMIN_KEY[:-1]} {ADMIN_KEY[1:]}"
        )

    def test_of_several_keys_the_longest_is_hidden_first(self) -> None:
        assert (
            Redactor(["abcdefgh", "abcdefghij", ""]).hide_key("abcdefghij abcdefgh")
            == f"{HIDDEN} {HIDDEN}"
        )

    def test_a_short_key_is_hidden_but_makes_no_job_unusable(self) -> None:
        redactor = Redactor(["1234567", "abcdefgh"])

        assert redactor.hide_key("1234567") == HIDDEN
        assert (redactor.has_key("1234567"), redactor.has_key("abcdefgh")) == (False, True)


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
    ],
)
def test_the_signature_credential_and_token_of_a_link_are_hidden_as_whole_words(
    text: str, shown: str
) -> None:
    redactor = Redactor()
    assert redactor.hide(text) == text
    redactor.add_link(LINK)

    assert redactor.hide(text) == shown
