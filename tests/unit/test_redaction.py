"""A secret is hidden in whatever encoding a text holds it, and nothing else is."""

import base64
import functools
import hashlib
import html
import itertools
import json
import re
import urllib.parse
from collections.abc import Callable, Iterable
from typing import SupportsIndex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.redaction import HIDDEN, MIN_RUN_LENGTH, MIN_SECRET_LENGTH, Redactor
from docs_platform_action.report.signed_links import secrets_of
from tests.inside import unmeasured
from tests.keys import ADMIN_KEY, AWKWARD_KEYS
from tests.leaks import forms_of, leaked, leaked_in_part

PRINTABLE = st.characters(min_codepoint=0x21, max_codepoint=0x7E)
KEYS = st.one_of(
    st.sampled_from(AWKWARD_KEYS),
    st.text(PRINTABLE, min_size=12, max_size=40),
    st.text(st.sampled_from("%25&amp;\\/+x41u0"), min_size=12, max_size=24),
)
NEIGHBOURS = st.text(st.sampled_from(" \"'/<>=.:,"), max_size=4)
ENCODERS: dict[str, Callable[[str], str]] = {
    "JSON with escaped slashes": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "XML's hex numbers": lambda text: "".join(f"&#x{ord(character):X};" for character in text),
    "JavaScript's numbers": lambda text: "".join(f"\\u{{{ord(character):x}}}" for character in text),
    "IIS's numbers": lambda text: "".join(f"%u{ord(character):04x}" for character in text),
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


@functools.cache
def redactor_of(key: str) -> Redactor:
    """Return a redactor of one key, cached: to make one takes longer than to use it."""
    return Redactor([key])


@given(KEYS, NEIGHBOURS, NEIGHBOURS)
def test_no_form_of_a_key_is_left(key: str, before: str, after: str) -> None:
    subject = redactor_of(key)

    for name, form in forms_of(key).items():
        if b" " in form:
            continue  # our own cleaning puts a space into what looks like a command, after it was searched
        shown = subject.hide(f"{before}{form.decode('latin-1')}{after}")
        assert HIDDEN in shown, name
        assert leaked_in_part(key, shown.replace(HIDDEN, " ")) == [], name


@pytest.mark.parametrize("outer", ENCODERS)
@pytest.mark.parametrize("inner", ENCODERS)
@unmeasured()
def test_a_key_that_is_encoded_twice_is_hidden(inner: str, outer: str) -> None:
    for key in (ADMIN_KEY, *AWKWARD_KEYS):
        shown = redactor_of(key).hide(f"[{ENCODERS[outer](ENCODERS[inner](key))}]")

        # the escape of a final zero byte or backslash may be left; it reveals nothing
        assert re.fullmatch(r"\[.{0,12}\*\*\*.{0,12}\]", shown, re.DOTALL), key


def has_no_escape(key: str) -> bool:
    """Return whether a key stays the same if escapes are undone; another may become any text if they are escaped in part."""
    return html.unescape(urllib.parse.unquote(key)) == key and not re.search(r"\\|%u", key, re.IGNORECASE)


@given(st.data())
def test_a_key_is_hidden_whose_characters_are_escaped_in_different_ways(data: st.DataObject) -> None:
    key = data.draw(KEYS.filter(has_no_escape))
    ways = data.draw(st.lists(st.sampled_from([str, *ENCODERS.values()]), min_size=len(key), max_size=len(key)))

    shown = redactor_of(key).hide("".join(way(character) for way, character in zip(ways, key, strict=True)))

    assert HIDDEN in shown


@pytest.mark.parametrize(("key", "read_as"), [("%61%62%2D%63", "ab-c"), (f"%252F{ADMIN_KEY}%253D", f"/{ADMIN_KEY}=")])
def test_a_key_with_escapes_is_hidden_as_what_they_stand_for(key: str, read_as: str) -> None:
    assert redactor_of(key).hide(f"<{read_as}>") == f"<{HIDDEN}>"


@given(st.text(), st.sampled_from([ADMIN_KEY, *AWKWARD_KEYS]))
def test_a_text_without_the_key_stays_as_it_is(text: str, key: str) -> None:
    assert redactor_of(key).hide(text) == text


@pytest.mark.parametrize("text", ["100% \\ &amp; &lt;b&gt; %2F \\u0041 \\x41 &unknown; &#65;", "a\u200bb\x00c", "%", "&;", "\\"])
def test_escapes_are_left_as_they_are_where_there_is_no_key(text: str) -> None:
    assert redactor_of(ADMIN_KEY).hide(f"{text} {ADMIN_KEY} {text}") == f"{text} *** {text}"


def test_what_surrounds_an_escaped_key_stays_as_it_is() -> None:
    key = "adm/k3y+9f27"

    shown = redactor_of(key).hide(f"%2Fa%2F{urllib.parse.quote(key, safe='')}%2Fb &amp; {urllib.parse.quote(key, safe='')}&amp;c")

    assert shown == "%2Fa%2F***%2Fb &amp; ***&amp;c"


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@given(before=st.binary(max_size=5), after=st.binary(max_size=5))
def test_of_a_key_in_base64_only_characters_shared_with_its_neighbors_are_left(
    encode: Callable[[bytes], bytes], before: bytes, after: bytes
) -> None:
    key = "adm?k3y>9f27~c1d4"

    shown = redactor_of(key).hide(encode(before + key.encode() + after).decode())

    kept = shown.replace(HIDDEN, "").rstrip("=")
    assert HIDDEN in shown
    assert len(kept) <= (len(before) + len(after)) * 8 / 6 + 2


@pytest.mark.parametrize("number", ["#{:08}", "#{:030}", "#x{:08x}", "#X{:030X}"])
def test_numbers_may_begin_with_zeros(number: str) -> None:
    escaped = "".join(f"&{number.format(ord(character))};" for character in ADMIN_KEY)

    assert redactor_of(ADMIN_KEY).hide(f"[{escaped}]") == f"[{HIDDEN}]"


def test_a_base64_that_is_percent_encoded_is_hidden_too() -> None:
    key = "adm?k3y>9f27~c1d4"
    encoded = base64.b64encode(key.encode()).decode()

    assert HIDDEN in redactor_of(key).hide(urllib.parse.quote(encoded, safe=""))


@pytest.mark.parametrize("length", [1, MIN_SECRET_LENGTH - 1])
def test_a_secret_below_the_minimum_length_stays_in_responses(length: int) -> None:
    secret = "queued-x"[:length]

    assert Redactor([secret]).hide_keys(f"{secret} {secret}") == f"{secret} {secret}"
    assert not Redactor([secret]).has_whole_key(secret)


def test_a_secret_of_the_minimum_length_is_hidden_in_responses() -> None:
    assert Redactor(["queued-x"]).hide_keys("queued-x") == HIDDEN


@pytest.mark.parametrize("secret", ["a", "\\", "%", "&amp;", "amp", "*", "**", "***", "\\***", "%2A"])
def test_for_people_every_secret_is_hidden(secret: str) -> None:
    assert redactor_of(secret).hide(f"x {secret} x") in {"x *** x", "x ***** x", "x ****** x", "x ********* x"}


@pytest.mark.parametrize("between", ["\u034f", "\ufe0f", "\u3164", "\U000e0100", "\u180b", "\u00ad", "\u200b"])
def test_a_key_with_invisible_characters_is_hidden(between: str) -> None:
    assert redactor_of(ADMIN_KEY).hide(f"<{between.join(ADMIN_KEY)}>") == f"<{HIDDEN}>"


def test_a_short_secret_is_not_searched_for_in_base64() -> None:
    text = base64.b64encode(b"abc").decode()

    assert Redactor(["abc"]).hide(text) == text


def test_of_nested_secrets_the_longest_is_hidden() -> None:
    assert Redactor(["first-part", "first-part-and-second"]).hide("first-part-and-second first%2Dpart-and-second") == "*** ***"


def test_a_secret_that_is_not_ascii_is_hidden_when_percent_encoded() -> None:
    secret = "schlüssel/9f27"

    assert redactor_of(secret).hide(f"/login?key={urllib.parse.quote(secret, safe='')}&x") == "/login?key=***&x"


def test_without_secrets_nothing_is_hidden() -> None:
    assert Redactor().hide("a%20b") == "a%20b"


def test_a_whole_key_is_found() -> None:
    assert redactor_of(ADMIN_KEY).has_whole_key(f"x{ADMIN_KEY}")


def test_the_number_of_layers_is_bounded() -> None:
    # each layer costs a pass over a text that a server chose
    text = "k%3Ay-9f27c1d4"
    for _ in range(6):
        text = urllib.parse.quote(text)

    assert not Redactor(["k:y-9f27c1d4"]).has_whole_key(text)


def test_a_key_with_more_layers_of_its_own_is_hidden() -> None:
    key = f"k-9f27%{'25' * 6}41c1d4"

    assert redactor_of(key).hide(f"no {key} or {urllib.parse.quote(key)}") == f"no {HIDDEN} or {HIDDEN}"


WHOLE_LINE = "the platform refused {} as a token"
WRAPS = ["\n", "\r\n", "\n    ", "\r\n\t", " \n ", "\n\u200b\n", " ", "\r\n  | ", " \n> > "]
ESCAPED_WRAPS = ["%0A", "%0D%0A%20%20", "\\n", "\\r\\n    ", "\\\\n", "&#10;"]
FULL_OF_ESCAPES = {"adm\\u0041k3y\\x41\\n9f27\\", "%%%25%25%%adm"}
"""Keys that mean something else with an escape in the middle."""


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("key", [ADMIN_KEY, *AWKWARD_KEYS])
@unmeasured()
def test_a_key_that_is_wrapped_over_lines_is_hidden(key: str, wrap: str) -> None:
    for at in range(1, len(key)):
        shown = redactor_of(key).hide(WHOLE_LINE.format(key[:at] + wrap + key[at:]))

        assert shown == WHOLE_LINE.format(HIDDEN), at


@pytest.mark.parametrize("wrap", ESCAPED_WRAPS)
@pytest.mark.parametrize("key", [key for key in (ADMIN_KEY, *AWKWARD_KEYS) if key not in FULL_OF_ESCAPES])
@unmeasured()
def test_a_key_that_is_wrapped_by_an_escape_is_hidden(key: str, wrap: str) -> None:
    for at in range(1, len(key)):
        shown = redactor_of(key).hide(WHOLE_LINE.format(key[:at] + wrap + key[at:]))

        assert shown == WHOLE_LINE.format(HIDDEN), at


def test_a_key_that_is_wrapped_in_the_middle_of_an_escape_is_hidden() -> None:
    shown = Redactor(["adm/k3y+9f27"]).hide("key=adm%2Fk3\r\n  y%2B9f27 was refused")

    assert shown == "key=*** was refused"


@pytest.mark.parametrize("columns", [8, 20, 64, 76])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\n\t", "\\n", "%0A"])
@given(before=st.text(PRINTABLE, max_size=120))
def test_a_key_in_base64_with_line_breaks_is_hidden(columns: int, line_end: str, before: str) -> None:
    encoded = base64.b64encode(f"{before}{ADMIN_KEY}!".encode()).decode()
    wrapped = line_end.join(encoded[at : at + columns] for at in range(0, len(encoded), columns))

    shown = redactor_of(ADMIN_KEY).hide(wrapped)

    assert HIDDEN in shown
    assert leaked_in_part(ADMIN_KEY, shown.replace(HIDDEN, " ")) == []


HEX: dict[str, Callable[[bytes], str]] = {
    "xxd -p": lambda content: "\n".join(content[at : at + 30].hex() for at in range(0, len(content), 30)),
    "upper case": lambda content: content.hex().upper(),
    "hexdump's groups": lambda content: content.hex(" "),
    "groups of four": lambda content: content.hex(" ", -2),
    "openssl's colons": lambda content: content.hex(":").upper(),
    "colons over lines": lambda content: ":\n    ".join(content[at : at + 15].hex(":") for at in range(0, len(content), 15)),
    "a list of numbers": lambda content: ", ".join(f"0x{byte:02X}" for byte in content),
    "hyphens": lambda content: content.hex("-"),
    "semicolons": lambda content: content.hex(";"),
    "slashes": lambda content: content.hex("/"),
    "bars": lambda content: content.hex("|"),
    "percent-encoded colons": lambda content: content.hex(":").replace(":", "%3A"),
}
"""Ways in which programs print bytes in hex."""


@pytest.mark.parametrize("way", HEX)
@pytest.mark.parametrize("key", [ADMIN_KEY, *AWKWARD_KEYS])
def test_a_key_in_hex_is_hidden(key: str, way: str) -> None:
    shown = redactor_of(key).hide(f"<{HEX[way](key.encode())}>")

    assert shown in {f"<{HIDDEN}>", f"<0x{HIDDEN}>"}


def test_a_key_within_longer_hex_is_hidden_and_the_rest_stays() -> None:
    shown = redactor_of(ADMIN_KEY).hide(f"Bearer {ADMIN_KEY}.".encode().hex())

    assert shown == f"{b'Bearer '.hex()}{HIDDEN}{b'.'.hex()}"


def test_other_hex_stays_as_it_is() -> None:
    text = f"SHA-256 {'9b1c' * 16}, serial 61:64:6D:5F:6B:33:79:2D:39:66:32:37:63:31:64"

    assert redactor_of(ADMIN_KEY).hide(text) == text


CUTS = [(start, end) for start in range(len(ADMIN_KEY)) for end in range(start + MIN_RUN_LENGTH, len(ADMIN_KEY) + 1)]


@pytest.mark.parametrize("outer", [str, *ENCODERS.values()], ids=["as it is", *ENCODERS])
def test_a_run_of_sixteen_characters_of_a_key_is_hidden(outer: Callable[[str], str]) -> None:
    for start, end in CUTS:
        shown = redactor_of(ADMIN_KEY).hide(f"key '...{outer(ADMIN_KEY[start:end])}...' is wrong")

        assert re.fullmatch(r"key '...\\?\*\*\*...' is wrong", shown), (start, end)


@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_run_is_hidden_in_base64_and_hex_too(before: int) -> None:
    for start, end in CUTS:
        content = b"!" * before + ADMIN_KEY[start:end].encode() + b"!"

        assert HIDDEN in redactor_of(ADMIN_KEY).hide(base64.b64encode(content).decode()), (start, end)
        assert HIDDEN in redactor_of(ADMIN_KEY).hide(content.hex()), (start, end)


def test_a_run_of_fifteen_characters_stays() -> None:
    run = ADMIN_KEY[: MIN_RUN_LENGTH - 1]
    texts = [run, urllib.parse.quote(run), run.encode().hex(), f"se_{run}!"]

    assert [redactor_of(ADMIN_KEY).hide(text) for text in texts] == texts


@pytest.mark.parametrize("key", [ADMIN_KEY[:MIN_RUN_LENGTH], ADMIN_KEY[: MIN_RUN_LENGTH - 1]])
def test_of_a_key_no_longer_than_a_run_no_part_is_hidden(key: str) -> None:
    assert redactor_of(key).hide(f"{key} {key[1:]} {key[:-1]}") == f"{HIDDEN} {key[1:]} {key[:-1]}"


@given(st.data())
def test_no_run_of_sixteen_characters_of_any_key_is_left(data: st.DataObject) -> None:
    key = data.draw(st.text(PRINTABLE, min_size=20, max_size=60))
    start = data.draw(st.integers(0, len(key) - MIN_RUN_LENGTH))
    end = data.draw(st.integers(start + MIN_RUN_LENGTH, len(key)))

    assert redactor_of(key).hide(f"«{key[start:end]}»") == f"«{HIDDEN}»"


def test_a_name_stays_visible_even_if_it_is_part_of_the_key() -> None:
    project = "5f9d88b1c2e4a7003f6b2d1e"
    key = f"adm_{project}_{'k3y9' * 6}"
    subject = Redactor([key], names=["docs.example.com", project])

    assert subject.hide(f"Agent job 7 of project {project}: {key}") == f"Agent job 7 of project {project}: {HIDDEN}"
    assert subject.hide(f"Bearer {key[4:]}") == f"Bearer {project[:9]}{HIDDEN}"


def test_a_name_that_holds_the_whole_key_is_hidden() -> None:
    assert Redactor([ADMIN_KEY], names=[f"se_{ADMIN_KEY}"]).hide(f"job se_{ADMIN_KEY}") == f"job se_{HIDDEN}"


def test_in_a_text_that_is_used_only_whole_keys_are_hidden() -> None:
    subject = redactor_of(ADMIN_KEY)
    parts = f"{ADMIN_KEY[1:]} {ADMIN_KEY[:-1]} {ADMIN_KEY[1:].encode().hex()}"
    wholes = (ADMIN_KEY, ADMIN_KEY.encode().hex(), base64.b64encode(ADMIN_KEY.encode()).decode())

    assert (subject.hide_whole_keys(parts), subject.has_whole_key(parts)) == (parts, False)
    for whole in wholes:
        assert (subject.hide_whole_keys(f"/{whole}?x"), subject.has_whole_key(whole)) == (f"/{HIDDEN}?x", True)


@pytest.mark.parametrize(("short_keys", "shown"), [(True, "is-***"), (False, "is-abc")])
def test_short_keys_are_hidden_in_a_text_that_is_used_if_people_see_it(short_keys: bool, shown: str) -> None:
    assert Redactor(["abc"]).hide_whole_keys("is-abc", short_keys=short_keys) == shown


@pytest.mark.parametrize("secret", ["ab", "abc", "a-b-c-d"])
def test_a_short_secret_is_not_found_across_words(secret: str) -> None:
    text = f"{secret[0]} {secret[1:]} {secret[0]}\n{secret[1:]}"

    assert redactor_of(secret).hide(text) == text


class CountingText(str):
    """A text that counts how often it is sliced."""

    __slots__ = ("taken",)
    taken: int

    def __getitem__(self, part: SupportsIndex | slice) -> str:
        self.taken = getattr(self, "taken", 0) + 1
        return super().__getitem__(part)

    def translate(self, table: object) -> "CountingText":
        """Return this text, which is in lower case already."""
        del table
        return self


@pytest.mark.parametrize("pattern", ["x", ADMIN_KEY[:15], ADMIN_KEY[:16], f"{ADMIN_KEY}, ", "61 64 ", ADMIN_KEY])
def test_the_work_grows_no_faster_than_the_text(pattern: str) -> None:
    def work(characters: int) -> int:
        text = CountingText("\n" + (pattern * characters)[:characters])  # a line break, or a copy of the text is searched
        redactor_of(ADMIN_KEY).hide(text)
        return text.taken

    assert work(40_000) < 11 * work(4_000)
    assert work(40_000) < 10 * 40_000


HEX_SIGNATURE = "7d3c9a41f0b2e8d65c1a90ff3e4b7a28" * 2
SIGNATURES = (
    HEX_SIGNATURE,
    "Zm9v+YmFy/YmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmE=",
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJsaW5rIn0.1cmwQ-5x_Q",
    "a+b/c==9",
    "vjbyPxy/bdZ+8=",
)
LINK = "https://storage.example.com/b?x=1&sig={}&y=2"


@functools.cache
def link_redactor(*secrets: str) -> Redactor:
    """Return a redactor of links, each with a signature that is encoded as most signers do."""
    redactor = Redactor()
    for secret in secrets:
        redactor.add_link_secrets(secrets_of(LINK.format(urllib.parse.quote(secret, safe=""))))
    return redactor


@pytest.mark.parametrize("secret", SIGNATURES)
def test_no_form_of_a_links_secret_is_left(secret: str) -> None:
    for name, form in [*forms_of(secret).items(), *forms_of(urllib.parse.quote(secret, safe="")).items()]:
        for text in (form.decode("latin-1"), form.decode("latin-1").lower(), form.decode("latin-1").upper()):
            shown = link_redactor(secret).hide(f"signed <{text}>.")

            assert "…" in shown, name
            assert leaked(secret, shown) == [], name


@pytest.mark.parametrize("change", [str, str.lower, str.upper])
@pytest.mark.parametrize("outer", ENCODERS)
@pytest.mark.parametrize("inner", [str, *ENCODERS.values()], ids=["as it is", *ENCODERS])
@unmeasured()
def test_a_link_that_is_encoded_twice_is_shown_without_its_secret(
    inner: Callable[[str], str], outer: str, change: Callable[[str], str]
) -> None:
    for secret in SIGNATURES:
        encoded = change(ENCODERS[outer](inner(LINK.format(urllib.parse.quote(secret, safe="")))))
        without = change(ENCODERS[outer](inner(LINK.format(""))))

        shown = link_redactor(secret).hide(encoded)

        assert "…" in shown
        assert len(shown) <= len(without) + 12  # the escape of the secret's last character may be left


@pytest.mark.parametrize("columns", [8, 20, 64, 76])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode, lambda content: content.hex().encode()])
@pytest.mark.parametrize("secret", SIGNATURES)
def test_a_link_in_base64_or_hex_with_line_breaks_is_shown_without_its_secret(
    secret: str, encode: Callable[[bytes], bytes], columns: int
) -> None:
    for before in range(3):
        encoded = encode(f"{'!' * before}{LINK.format(urllib.parse.quote(secret, safe=''))}".encode()).decode()
        wrapped = "\r\n".join(encoded[at : at + columns] for at in range(0, len(encoded), columns))
        without = encode(f"{'!' * before}{LINK.format('')}".encode())

        shown = link_redactor(secret).hide(wrapped)

        assert "…" in shown
        assert len(re.sub(r"\s", "", shown)) <= len(without) + 4  # characters that hold bits of the neighbors, and the mark


@pytest.mark.parametrize("wrap", [*WRAPS, *ESCAPED_WRAPS])
def test_a_links_secret_that_is_wrapped_over_lines_is_hidden(wrap: str) -> None:
    for at in range(1, len(HEX_SIGNATURE)):
        shown = link_redactor(HEX_SIGNATURE).hide(WHOLE_LINE.format(HEX_SIGNATURE[:at] + wrap + HEX_SIGNATURE[at:]))

        assert shown == WHOLE_LINE.format("…"), at


def test_of_a_truncated_secret_of_a_link_fewer_than_sixteen_characters_are_left_at_either_end() -> None:
    length = len(HEX_SIGNATURE)
    for start, end in itertools.combinations(range(length + 1), 2):
        if end - start > (30 if start > 0 and end < length else 15):
            shown = link_redactor(HEX_SIGNATURE).hide(f"<{HEX_SIGNATURE[start:end]}>")

            assert re.fullmatch(r"<\w{0,15}…\w{0,15}>", shown), (start, end)


@pytest.mark.parametrize("outer", [str, *ENCODERS.values()], ids=["as it is", *ENCODERS])
@pytest.mark.parametrize("inner", [str, *ENCODERS.values()], ids=["as it is", *ENCODERS])
@unmeasured()
def test_a_short_secret_of_a_link_is_hidden_after_its_name_in_every_encoding(
    inner: Callable[[str], str], outer: Callable[[str], str]
) -> None:
    for secret in ("Zq3", "a+b", "a/b==", "-_~9", "1234567"):
        shown = link_redactor(secret).hide(outer(inner(f"GET /b?x=1&sig={urllib.parse.quote(secret, safe='')} failed")))

        assert "…" in shown, secret


@pytest.mark.parametrize("encode", [base64.b64encode, lambda content: content.hex().encode()])
def test_a_short_secret_of_a_link_is_hidden_with_its_name_in_base64_and_hex(encode: Callable[[bytes], bytes]) -> None:
    for before in range(3):
        for query in ("x=1&sig=Zq3&y=2", "sig=Zq3"):
            assert "…" in link_redactor("Zq3").hide(encode(f"{'!' * before}GET /b?{query}".encode()).decode())


@pytest.mark.parametrize(
    "text",
    ['sig="Zq3"', "sig = Zq3", ':sig => "Zq3"', '["sig", "Zq3"]', "&quot;sig&quot;: &quot;Zq3&quot;", "sig:'Zq3'", "SIG=zq3"],
)
def test_a_short_secret_of_a_link_is_hidden_after_its_name_in_every_notation(text: str) -> None:
    assert link_redactor("Zq3").hide(text) == re.sub("zq3", "…", text, flags=re.IGNORECASE)


@pytest.mark.parametrize(
    ("link", "echo"),
    [
        ("https://user:pw1@s.example.com/b", "user:…@s.example.com"),
        ("https://s.example.com/b?s%69g=Zq3", "s%69g=… sig=…"),
        ("https://s.example.com/b?token=a~b.c", "token=…"),
        ("https://s.example.com/b?token[]=abc12", "token[]=…"),
        ("https://s.example.com/b?my%20token=abc12", "my%20token=… my token=…"),
    ],
)
def test_a_short_secret_of_a_link_is_hidden_wherever_the_link_has_it(link: str, echo: str) -> None:
    redactor = Redactor()
    redactor.add_link_secrets(secrets_of(link))
    secret = link.rpartition("=")[2] if "=" in link else "pw1"

    assert redactor.hide(echo.replace("…", secret)) == echo


def test_a_secret_of_a_link_that_is_too_short_for_base64_is_hidden_only_after_its_name() -> None:
    redactor = Redactor()
    redactor.add_link_secrets([("k", "z")])

    assert redactor.hide("k=z az16 z") == "k=… az16 z"  # base64 of `k=z`


@pytest.mark.parametrize("text", ["Zq3", "x=Zq3", "sig=Zq2", "design=Zq3", "sig, the Zq3", "signed (Zq3)"])
def test_a_short_secret_of_a_link_stays_elsewhere(text: str) -> None:
    assert link_redactor("Zq3").hide(text) == text


def test_a_links_secret_that_holds_part_of_the_key_is_hidden_whole() -> None:
    key = f"{SIGNATURES[2][:37]}k3y-9f27"
    subject = Redactor([key])
    subject.add_link_secrets([("token", SIGNATURES[2])])

    assert subject.hide(f"token={SIGNATURES[2]}, key {key}, {HEX_SIGNATURE}") == f"token=***, key ***, {HEX_SIGNATURE}"


def test_what_programs_read_keeps_the_secrets_of_links() -> None:
    text = f"completed {HEX_SIGNATURE}"

    assert link_redactor(HEX_SIGNATURE).hide_keys(text) == text
    assert link_redactor(HEX_SIGNATURE).hide_whole_keys(text) == text


class TestNames:
    JOB = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"

    def test_one_that_is_shown_later_stays_from_then_on(self) -> None:
        subject = Redactor([f"adm_{self.JOB}_k3y"])
        before = subject.hide(f"job {self.JOB}")

        subject.show([f"{self.JOB}-1"])

        assert before == f"job {HIDDEN}"
        assert subject.hide(f"job {self.JOB}-1 of {self.JOB}") == f"job {self.JOB}-1 of {self.JOB}"
        assert subject.hide_keys(f"job {self.JOB}") == f"job {self.JOB}"
        assert subject.hide(f"adm_{self.JOB}_k3y") == HIDDEN

    @pytest.mark.parametrize("encode", ENCODERS.values(), ids=[*ENCODERS])
    @pytest.mark.parametrize("name", ["{}/a b", "ü {}", "a%2Fb{}", "{}\\n"])
    def test_one_is_shown_in_every_encoding(self, name: str, encode: Callable[[str], str]) -> None:
        subject = Redactor([f"adm_{self.JOB}_k3y"], names=[name.format(self.JOB)])
        text = encode(name.format(self.JOB))

        assert subject.hide(text) == text

    def test_one_that_is_a_links_secret_stays(self) -> None:
        subject = Redactor()
        subject.add_link_secrets([("token", self.JOB), ("sig", "short")])
        subject.show([self.JOB, "short"])

        assert subject.hide(f"token={self.JOB} sig=short") == f"token={self.JOB} sig=short"


class TestManyLinkSecrets:
    @given(st.lists(st.text("ab", min_size=6, max_size=9).map("<{}>".format), min_size=1, max_size=4), st.data())
    def test_nested_ones_are_hidden_as_if_replaced_one_by_one(self, inner: list[str], data: st.DataObject) -> None:
        query = f"({'&'.join(inner)})"
        secrets = {query, *inner}
        pieces = st.one_of(
            st.sampled_from(sorted(secrets)), st.sampled_from(inner).map(lambda value: value[:-1]), st.text("ab<>")
        )
        text = "".join(data.draw(st.lists(pieces, max_size=8)))

        assert redactor_of_unnamed(secrets).hide(text) == one_by_one(text, secrets)

    def test_of_two_that_overlap_nothing_is_left(self) -> None:
        assert redactor_of_unnamed(["abcdefgh", "efghijkl"]).hide("<abcdefghijkl>") == "<…>"

    @given(st.lists(st.text("ab", min_size=8, max_size=12), max_size=5), st.text("abc", max_size=80))
    def test_of_those_that_overlap_nothing_is_left(self, secrets: list[str], text: str) -> None:
        covered = [False] * len(text)
        for secret in secrets:
            for at in range(len(text)):
                if text.startswith(secret, at):
                    covered[at : at + len(secret)] = [True] * len(secret)

        shown = redactor_of_unnamed(secrets).hide(text)

        assert not any(secret in shown for secret in secrets)
        assert shown.replace("…", "") == "".join(letter for letter, hidden in zip(text, covered, strict=True) if not hidden)

    def test_the_work_does_not_grow_with_the_number_of_links(self) -> None:
        def work(links: int) -> int:
            signatures = [hashlib.sha256(bytes([number % 256, number // 256])).hexdigest() for number in range(links)]
            text = CountingText(f"get /b?x=sha256&sig={signatures[0]} and nothing else, {signatures[0][:15]}g")
            shown = link_redactor(*signatures).hide(text)
            assert shown == f"get /b?x=sha256&sig=… and nothing else, {signatures[0][:15]}g"
            return text.taken

        assert work(1000) == work(1)


def redactor_of_unnamed(secrets: Iterable[str]) -> Redactor:
    redactor = Redactor()
    redactor.add_link_secrets([("", secret) for secret in secrets])
    return redactor


def one_by_one(text: str, secrets: Iterable[str]) -> str:
    """Replace secrets the naive way."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "…")
    return text
