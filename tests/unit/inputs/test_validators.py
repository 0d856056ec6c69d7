"""Input formats are read as documented, and nothing else is."""

from collections.abc import Iterator
from typing import Final

import pytest

from docs_platform_action.inputs.table import INPUTS
from docs_platform_action.inputs.validators import project_errors
from docs_platform_action.models import MaxRemoved, Project

PARSERS: Final = {row.name: row.parse for row in INPUTS}


def project(project_id: str, label: str | None = None) -> Project:
    return Project(project_id=project_id, label=label)


READ: Final[list[tuple[str, dict[str, object]]]] = [
    ("mode", {"export": "export", "collect": "collect", "agent": "agent"}),
    (
        "wait",
        {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False},
    ),
    (
        "timeout",
        {
            "500ms": 0.5,
            "30s": 30.0,
            "15m": 900.0,
            "1h30m": 5400.0,
            "90": 90.0,
            "1.5h": 5400.0,
            "0.5": 0.5,
        },
    ),
    ("timeout", {"2h3m4s5ms": 7384.005, "840h": 35 * 24 * 3600.0, "0h1s": 1.0}),
    ("max-parallel", {"1": 1, "07": 7, "100": 100}),
    ("commit", {"0aF9" * 10: "0af9" * 10}),
    ("min-pages", {"1": 1, "999999999": 999_999_999}),
    (
        "max-removed",
        {
            "0": MaxRemoved(amount=0, is_percentage=False),
            "07": MaxRemoved(amount=7, is_percentage=False),
        },
    ),
    (
        "max-removed",
        {f"{number}%": MaxRemoved(amount=number, is_percentage=True) for number in (0, 10, 100)},
    ),
    (
        "base-url",
        {
            url: url
            for url in ("https://api.example.com", "https://10.0.0.1", "https://[2001:db8::1]:8443")
        },
    ),
    (
        "base-url",
        {
            url: url
            for url in ("http://localhost:80", "http://127.0.0.1/x", "http://[::1]:80", "HTTPS://a")
        },
    ),
    ("base-url", {"https://example.com:8443/a%20b/api//": "https://example.com:8443/a%20b/api"}),
    ("admin-key", {"adm/k3y+%!~": "adm/k3y+%!~"}),
    (
        "domain",
        {
            host: [host]
            for host in (
                "docs.example.com",
                "localhost",
                "a.de:8443",
                "xn--m-3ya.de",
                "a_b.de",
                "a" * 63,
            )
        },
    ),
    ("domain", {"a.de\n\n \ufeffB.de \na.de:65535": ["a.de", "B.de", "a.de:65535"]}),
    (
        "project-id",
        {
            text: [project(text)]
            for text in ("6520f3a1c9b1a20012ab34cd", "proj_a/b", "50%", "a?b", "65 20")
        },
    ),
    (
        "project-id",
        {
            "docs.example.com:8443: 65": [project("65", "docs.example.com:8443")],
            "a: b: 65": [project("65", "a: b")],
        },
    ),
    (
        "project-id",
        {" a.de: 65 \n\n\ufeffGuides:  66": [project("65", "a.de"), project("66", "Guides")]},
    ),
    ("job-id", {text: text for text in ("se_1", "a/b", "..", "%2F", "with space", "ünïcödé 🙂")}),
    (
        "start-options",
        {'{"a": "v2", "deep": {"domain": [1, null]}}': {"a": "v2", "deep": {"domain": [1, None]}}},
    ),
    (
        "site-path",
        {
            path: path
            for path in (
                "a~b",
                "out/~",
                "100%/50%",
                "a$/b",
                "$",
                "{domain}",
                "*.zip",
                "über uns/日本 🙂",
            )
        },
    ),
]
REFUSED: Final[list[tuple[str, tuple[str, ...]]]] = [
    ("mode", ("Export", "import", "")),
    ("wait", ("yes", "on", "1", "tRue", "null")),
    (
        "timeout",
        (
            "1h 30m",
            "30m1h",
            "5 m",
            "1e3",
            "-5s",
            "٣s",
            "1d",
            "1H",
            "inf",
            "1.s",
            ".5s",
            "1m1m",
            "ms",
        ),
    ),
    ("timeout", ("0", "0s", "0h0m", "000ms", "841h", "9" * 400)),
    ("max-parallel", ("0", "101", "-1", "+1", "1.5", "ten", "1e1", "٣", "1_0", "9" * 5000)),
    ("commit", ("main", "HEAD", "a" * 39, "a" * 41, "g" * 40, "a" * 64, "٣" * 40)),
    ("min-pages", ("0", "1000000000")),
    (
        "max-removed",
        ("-1", "+1", "1.5", "1.5%", "101%", "5 %", "%", "٣", "1000000000", "ten", "10%%"),
    ),
    (
        "base-url",
        (
            "api.example.com",
            "ftp://a.de",
            "https://",
            "https://a..de",
            "https://a.de:0",
            "https://a.de:65536",
        ),
    ),
    (
        "base-url",
        (
            "http://a.de",
            "https://me@a.de",
            "https://a.de?x=1",
            "https://a.de#x",
            "https://a b.de",
            "https://ä.de",
        ),
    ),
    ("base-url", ("https://[::1", "https://a\\b", "https://a.de/x\n")),
    (
        "domain",
        (
            "https://a.de",
            "a.de/x",
            "a.de, b.de",
            "ä.de",
            "*.de",
            "-a.de",
            "a..de",
            "a.de:0",
            "a.de:65536",
        ),
    ),
    ("domain", ("a.de\nA.de", "a" * 64, "a." * 126 + "de", "a.de\u200b")),
    ("project-id", ("a.de: 6\x1b5", "65\u200b", "a.de\u200b: 65", "x" * 1001)),
    ("job-id", ("a\nb", "a\x1bb", "a\x7fb", "a\x85b", "a\udcffb")),
    (
        "start-options",
        (
            "[]",
            "{'a': 1}",
            "{",
            '{"n": NaN}',
            '{"n": -Infinity}',
            '{"n": 1e999}',
            '{"domain": 1}',
            "[" * 9**5,
        ),
    ),
    (
        "site-path",
        (
            "~/site",
            "~",
            "~deploy/x",
            "$RUNNER_TEMP/x",
            "out/$HOME",
            "${HOME}/x",
            "${{ x }}",
            "$(pwd)/x",
            "%TEMP%/x",
        ),
    ),
    (
        "site-path",
        (".\\site", "C:\\site", "a\nb", "a\0b", "a\x1b[31mb", "a\x85b", "a\x7f", "a\udcff"),
    ),
]


def each_read_value() -> Iterator[tuple[str, str, object]]:
    for name, values in READ:
        for text, value in values.items():
            yield name, text, value


def each_refused_value() -> Iterator[tuple[str, str]]:
    for name, texts in REFUSED:
        for text in texts:
            yield name, text


@pytest.mark.parametrize(("name", "text", "value"), list(each_read_value()))
def test_the_documented_forms_are_read(name: str, text: str, value: object) -> None:
    expected = pytest.approx(value) if isinstance(value, float) else value
    assert PARSERS[name](text) == expected


@pytest.mark.parametrize(("name", "text"), list(each_refused_value()))
def test_nothing_else_is(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        PARSERS[name](text)


def test_each_format_has_accepted_and_refused_values() -> None:
    def format_of(name: str) -> object:
        # without the options of a partial function
        return getattr(PARSERS[name], "func", PARSERS[name])

    formats = {format_of(name) for name in PARSERS}
    assert {format_of(name) for name, _ in READ} == formats
    # refused keys have a test of their own, because they must not be shown
    assert {format_of(name) for name, _ in REFUSED} | {format_of("admin-key")} == formats


@pytest.mark.parametrize("inside", [" ", "\t", "\n", "\0", "é", "\u2028"])
def test_a_key_that_cannot_be_one_is_refused_and_not_shown(inside: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        PARSERS["admin-key"](f"ABCD{inside}WXYZ")

    assert not any(part in str(caught.value) for part in ("ABCD", "WXYZ"))


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("https://docs.example.com/start?x#y", "docs.example.com"),
        ("- docs.example.com.", "docs.example.com"),
        ("docs. example.com\\x", "docs.example.com"),
        ("https://me:s3cr3t@docs.example.com:8443", "docs.example.com:8443"),
    ],
)
def test_a_domain_that_is_not_a_bare_host_name_is_refused_with_the_corrected_form(
    text: str, host: str
) -> None:
    with pytest.raises(ValueError, match=f"write {host}$") as caught:
        PARSERS["domain"](text)

    assert "s3cr3t" not in str(caught.value)


MISTAKEN: Final = (
    *(
        "65\n66",
        "a.de: 65\n66",
        "a.de: 65\nA.de: 66",
        "a.de: 65\nb.de: 65",
        "\u00c1: 65\nA\u0301: 66",
        "stra\u00dfe: 65\nSTRASSE: 66",
    ),
    *(
        "a.de",
        "a.de: b.de",
        "a.de:65",
        "a.de 65",
        "a.de, 65",
        "a.de=65",
        "a.de:",
        "65, 66",
        "65;66",
        "- a.de: 65",
    ),
    *("..: 65", "a/b: 65", "a\\b: 65"),
    *(
        '"a.de: 65"',
        "'65'",
        "# a.de: 65",
        "a.de: 65 # x",
        '{"a.de": "65"}',
        "<project-id>",
        "https://a.de/65",
    ),
)


@pytest.mark.parametrize("text", MISTAKEN)
def test_projects_to_export_that_cannot_be_meant_are_refused(text: str) -> None:
    assert project_errors(PARSERS["project-id"](text))


@pytest.mark.parametrize(
    "text",
    ["65", "proj_a/b", "proj.v2", "50%", "65 20", "a.de: 65", "A: 65\nB: 66", "a.de:8443: 65"],
)
def test_other_projects_are_not(text: str) -> None:
    assert project_errors(PARSERS["project-id"](text)) == []


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("65: docs.example.com", "docs.example.com: 65"),
        ("www.example.com/docs: 65", "www.example.com-docs: 65"),
        *(
            (f"docs.example.com{mark}65f3", "docs.example.com: 65f3")
            for mark in (":", " ", ", ", "=", "; ")
        ),
    ],
)
def test_a_project_that_is_not_written_as_documented_is_refused_with_the_corrected_form(
    text: str, instead: str
) -> None:
    (error,) = project_errors(PARSERS["project-id"](text))

    assert f"write `{instead}`" in error
