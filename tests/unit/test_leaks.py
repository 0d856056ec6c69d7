"""The search after every test finds the key and the signatures of links in every encoding, but not where they belong."""

import base64
import html
import json
import urllib.parse
from collections.abc import Callable

import pytest
from actions_toolkit.command import Command
from multidict import CIMultiDict

from admin_api_simulator.recording import RecordedRequest
from docs_platform_action.text import clean, markdown
from tests.keys import ADMIN_KEY
from tests.leaks import leaked, leaked_in_part
from tests.search import USER_AGENT_PREFIX, Search

AWKWARD = "-ü k%+/=:\"'\\<>&|`$*_~[]()#;,::set-output x::y##[x]z!"
"""A secret that every encoder writes differently."""

SIGNATURE = "5f" * 32
LINK = f"https://storage.example.com/b.tar.gz?X-Amz-Expires=60&X-Amz-Signature={SIGNATURE}"


def quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="")


def numbered(form: str) -> Callable[[str], str]:
    return lambda text: "".join(letter if letter.isalnum() else form.format(ord(letter)) for letter in text)


ENCODERS: dict[str, Callable[[str], str | bytes]] = {
    "unencoded": str,
    "percent-encoded": quoted,
    "percent-encoded twice": lambda text: quoted(quoted(text)),
    "percent-encoded three times": lambda text: quoted(quoted(quoted(text))),
    "percent-encoded, but slashes": urllib.parse.quote,
    "percent-encoded as JavaScript does": lambda text: urllib.parse.quote(text, safe="!'()*"),
    "percent-encoded in a form": lambda text: urllib.parse.urlencode({"q": text}),
    "percent codes for all": lambda text: "".join(f"%{ord(letter):02X}" for letter in text),
    "JSON": json.dumps,
    "JSON with escaped slashes": lambda text: json.dumps(text).replace("/", r"\/"),
    "JSON with non-ASCII characters": lambda text: json.dumps(text, ensure_ascii=False),
    "JSON numbers": numbered("\\u{:04X}"),
    "JSON numbers for all": lambda text: "".join(f"\\u{ord(letter):04X}" for letter in text),
    "HTML": html.escape,
    "HTML numbers": numbered("&#{};"),
    "HTML hex numbers": numbered("&#x{:x};"),
    "HTML hex numbers for all": lambda text: "".join(f"&#x{ord(letter):x};" for letter in text),
    "HTML, decimal": lambda text: html.escape(text, quote=False).replace('"', "&#34;").replace("'", "&#39;"),
    "HTML, quotes as they are": lambda text: html.escape(text, quote=False),
    "hex": lambda text: text.encode().hex(),
    "a log line": lambda text: clean(f"before {text} after"),
    "Markdown": lambda text: markdown(f"{text} after"),
    "Markdown, inside a line": lambda text: markdown(f"before {text} after"),
    "Python's repr": lambda text: repr([text]),
    "Python's repr of bytes": lambda text: repr(text.encode()),
    "a workflow command's message": lambda text: str(Command("x", {}, text)),
    "a workflow command's property": lambda text: str(Command("x", {"title": text}, "")),
    "UTF-16-LE": lambda text: text.encode("utf-16-le"),
    "UTF-16-BE": lambda text: text.encode("utf-16-be"),
    **{f"base64 after {count}": lambda text, count=count: base64.b64encode(b"x" * count + text.encode()) for count in range(3)},
    "base64 for links after 0": lambda text: base64.urlsafe_b64encode(text.encode()),
}


@pytest.mark.parametrize("form", ENCODERS)
def test_a_secret_is_found_however_it_is_encoded(form: str) -> None:
    text = ENCODERS[form](AWKWARD)
    written = text if isinstance(text, bytes) else text.encode()

    assert form in leaked(AWKWARD, written)
    assert form in leaked(AWKWARD, written.lower())
    assert form in leaked(AWKWARD, written.upper())
    assert leaked(ADMIN_KEY, ENCODERS[form](ADMIN_KEY))
    assert leaked(ADMIN_KEY, ENCODERS[form](f"{ADMIN_KEY[:9]}~{ADMIN_KEY[10:]}")) == []


def wrapped(text: str, columns: int, line_end: str) -> str:
    return line_end.join(text[at : at + columns] for at in range(0, len(text), columns))


FRAGMENT = ADMIN_KEY[3:19]


@pytest.mark.parametrize(
    "text",
    [
        f"key {FRAGMENT}... refused",
        f"key {FRAGMENT.upper()}... refused",
        wrapped(ADMIN_KEY, 13, "\n    "),
        wrapped(FRAGMENT, 3, "\r\n"),
        wrapped(base64.b64encode(f"Bearer {ADMIN_KEY}".encode()).decode(), 20, "\r\n"),
        base64.b64encode(f"x{FRAGMENT}".encode()).lower(),
        base64.b64encode(f"xx{FRAGMENT}".encode()),
        FRAGMENT.encode().hex().upper(),
        wrapped(ADMIN_KEY.encode().hex(":"), 45, "\n  "),
        ", ".join(f"0x{byte:02x}" for byte in ADMIN_KEY.encode()),
        b"x" * 5_000_000 + ADMIN_KEY.encode(),
    ],
)
def test_sixteen_characters_of_the_key_are_found(text: str | bytes) -> None:
    assert leaked_in_part(ADMIN_KEY, text)


def test_fifteen_characters_of_the_key_are_not_a_leak() -> None:
    nearly = FRAGMENT[:15]

    assert leaked_in_part(ADMIN_KEY, f"{nearly} {nearly.encode().hex(':')} {wrapped(nearly, 4, ' ')}") == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("all is well", []),
        (f"::add-mask::{ADMIN_KEY}\nx\n", []),
        (f"::add-mask::{ADMIN_KEY}\n::add-mask::{ADMIN_KEY}\n", ["a text holds the key, unencoded"]),
        (f"::debug::{ADMIN_KEY}\n", ["a text holds the key, unencoded"]),
        (LINK, ["a text holds a link's signature, unencoded"]),
        (f"::add-mask::{LINK}\nx\n", []),
        (f"x\nbundleUrl={LINK}\n", []),
        (f'results=[{{"bundleUrl": "{LINK}"}}]\nx\n', []),
        (f"bundleUrl<<d\n{LINK}\nd\nx\n", []),
    ],
)
def test_texts_are_searched(text: str, found: list[str]) -> None:
    search = Search(signatures={SIGNATURE})
    search.remember(text)

    assert search.found(None) == found


def test_signatures_from_outputs_are_searched_for_elsewhere() -> None:
    search = Search()
    search.remember(SIGNATURE, where="the summary")
    search.remember(LINK, holds_links=True)

    assert search.found(None) == ["the summary holds a link's signature, unencoded"]


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("home/.cache", b"\xff" + ADMIN_KEY.encode("utf-16-le"), ["home/.cache holds the key, UTF-16-LE"]),
        ("output", ADMIN_KEY.encode(), ["output holds the key, unencoded"]),
        ("values.yaml", LINK.encode(), ["values.yaml holds a link's signature, unencoded"]),
        ("values.yaml", f"# Static export\nstaticExport:\n  bundleUrl: {LINK}\n".encode(), []),
        ("output", f"bundleUrl<<d\n{LINK}\nd\n".encode(), []),
    ],
)
def test_files_are_searched(tmp_path_factory: pytest.TempPathFactory, name: str, content: bytes, found: list[str]) -> None:
    folder = tmp_path_factory.mktemp("left")  # the test's own `tmp_path` is searched after the test
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)

    assert Search(signatures={SIGNATURE}).found(folder) == found


@pytest.mark.parametrize(
    ("operation", "part", "found"),
    [
        ("read_export", {"Authorization": f"Bearer {ADMIN_KEY}"}, None),
        ("download", {"Authorization": "Bearer other"}, "an Authorization"),
        ("download", {"query": LINK}, None),
        ("read_export", {"query": LINK}, "a link's signature, unencoded"),
        ("read_export", {"path": f"/{ADMIN_KEY}"}, "the key, unencoded"),
        ("download", {"query": ADMIN_KEY}, "the key, unencoded"),
        ("read_export", {"body": ADMIN_KEY}, "the key, unencoded"),
        ("download", {"Referer": ADMIN_KEY}, "the key, unencoded"),
        ("download", {"Authorization": "Bearer x", "User-Agent": "curl"}, None),
    ],
)
def test_requests_of_the_action_are_searched(operation: str, part: dict[str, str], found: str | None) -> None:
    headers = CIMultiDict({"User-Agent": f"{USER_AGENT_PREFIX}1.0"})
    headers.update({name: text for name, text in part.items() if name[0].isupper()})
    request = RecordedRequest(
        operation=operation,
        method="GET",
        path=part.get("path", "/x"),
        query=part.get("query", ""),
        headers=headers,
        body=part.get("body", "").encode(),
    )
    search = Search(signatures={SIGNATURE}, requests=[request])

    assert [finding.partition(" holds ")[2] for finding in search.found(None)] == ([found] if found else [])
