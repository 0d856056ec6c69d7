"""The check of the pages finds links that lead nowhere."""

import pytest

from tests.pages import ROOT, form_findings, issue_forms, link_findings, markdown_pages, picture_findings

REPOSITORY = "https://github.com/OWNER/docs-platform-action"


def test_the_pages_and_forms_are_found() -> None:
    assert {ROOT / "README.md", ROOT / "docs" / "threat-model.md"} <= {*markdown_pages()}
    assert {"bug_report.yml", "config.yml"} <= {form.name for form in issue_forms()}


@pytest.mark.parametrize(
    "markdown",
    [
        "[a](README.md) [b](docs) [c](README.md#security) [d](https://example.com/missing)",
        "# Some `code`, and a comma\n# Twice\n# Twice\n[a](#some-code-and-a-comma) [b](#twice-1)",
        'A <a name="here"></a> [a](#here)',
        "`[a](missing.md)`\n\n```\n[b](missing.md) http://example.com\n```",
        "http://127.0.0.1:8080/ http://[::1]:8080/ https://docs.example.com:8443/a%20page/?b=c#d",
        f"{REPOSITORY}/blob/main/docs/threat-model.md#threats {REPOSITORY}/actions/workflows/ci.yml {REPOSITORY}#security",
    ],
)
def test_links_that_lead_somewhere_are_fine(markdown: str) -> None:
    assert [*link_findings(ROOT / "page.md", markdown)] == []


@pytest.mark.parametrize(
    ("markdown", "found"),
    [
        ("[a](missing.md)", "missing.md: no such file"),
        ("[a](../outside.md)", "../outside.md: no such file"),
        ("[a](#missing)", "#missing: no such section"),
        ("[a](README.md#missing)", "README.md#missing: no such section"),
        ("[a]()", ": no target"),
        ("[a](missing file.md)", "a](missing file.md): not a link for Markdown"),
        ('<picture>\n<source srcset="README.md, missing.png 2x">\n</picture>', "missing.png: no such file"),
        ('A <a href="missing.md">link</a>', "missing.md: no such file"),
        ("Read http://example.com/a.", "http://example.com/a: not https"),
        ("[a](https://example)", "https://example: not a valid host"),
        ('<a href="https://example.com/a.">a</a>', "https://example.com/a.: ends with punctuation"),
        (f"[a]({REPOSITORY}/blob/main/missing.md)", f"{REPOSITORY}/blob/main/missing.md: no such file"),
        (f"[a]({REPOSITORY}/missing)", f"{REPOSITORY}/missing: no such page of the repository"),
    ],
)
def test_links_that_lead_nowhere_are_found(markdown: str, found: str) -> None:
    assert [*link_findings(ROOT / "page.md", markdown)] == [f"page.md:1: {found}"]


def test_forms_and_pictures_are_checked_too() -> None:
    assert [*form_findings(ROOT / "form.yml", "body:\n  - value: '[a](README.md)'")] == [
        f"form.yml: README.md: not in {REPOSITORY}"
    ]
    assert [*picture_findings(ROOT / "README.md", "![](a.png)")] == ["README.md:1: a picture without an alternative text"]
