"""The check of the pages finds links that lead nowhere, a README that is too long, and pages that do not name their reader."""

import pytest

from tests.pages import (
    MAX_README_WORDS,
    ROOT,
    Table,
    form_findings,
    issue_forms,
    link_findings,
    markdown_pages,
    opening_findings,
    picture_findings,
    readme_findings,
    tables,
    words,
)

PAGE = ROOT / "page.md"
FORM = ROOT / "form.yml"
REPOSITORY = "https://github.com/OWNER/docs-platform-action"


def broken_links(markdown: str) -> list[str]:
    return [finding.removeprefix("page.md:1: ") for finding in link_findings(PAGE, markdown)]


def test_the_pages_are_found() -> None:
    assert {ROOT / "README.md", ROOT / "docs" / "threat-model.md"} <= {*markdown_pages()}


def test_the_issue_forms_are_found() -> None:
    assert {"bug_report.yml", "config.yml"} <= {form.name for form in issue_forms()}


class TestLinks:
    @pytest.mark.parametrize(
        "markdown",
        [
            "[a](README.md) [b](docs) [c](README.md#security) [d](https://example.com/missing)",
            "# Some `code`, and a comma\n[a](#some-code-and-a-comma)",
            "# Twice\n# Twice\n[a](#twice) [b](#twice-1)",
            "`[a](missing.md)`\n\n```\n[b](missing.md)\n```",
            '<a id="here"></a>\n\n[a](#here)',
            'A <a name="here"></a> [a](#here)',
            '<picture>\n<source srcset="README.md, LICENSE 2x">\n<img src="README.md" alt="A">\n</picture>',
            '<!-- <img src="missing.png"> -->',
        ],
    )
    def test_to_what_exists_are_fine(self, markdown: str) -> None:
        assert broken_links(markdown) == []

    @pytest.mark.parametrize(
        ("markdown", "broken"),
        [
            ("[a](missing.md)", ["missing.md: no such file"]),
            ("![a](docs/missing.svg)", ["docs/missing.svg: no such file"]),
            ("[![a](missing.svg)](missing.md)", ["missing.md: no such file", "missing.svg: no such file"]),
            ("[a](../outside.md)", ["../outside.md: no such file"]),
            ("[a](#missing)", ["#missing: no such section"]),
            ("[a](README.md#missing)", ["README.md#missing: no such section"]),
            ("[a]()", [": no target"]),
            ("[a](missing file.md)", ["a](missing file.md): not a link for Markdown"]),
            ("[a][missing]", ["a][missing]: not a link for Markdown"]),
            ('<img src="missing.png" alt="A">', ["missing.png: no such file"]),
            ('<picture>\n<source srcset="missing.png, README.md 2x">\n</picture>', ["missing.png: no such file"]),
            ('<picture>\n<source srcset="README.md, missing.png 2x">\n</picture>', ["missing.png: no such file"]),
            ('A <a href="missing.md">link</a>', ["missing.md: no such file"]),
            ('<a href="#missing">link</a>', ["#missing: no such section"]),
            ('<img src="" alt="A">', [": no target"]),
        ],
    )
    def test_to_what_does_not_exist_are_found(self, markdown: str, broken: list[str]) -> None:
        assert broken_links(markdown) == broken

    def test_are_reported_with_their_line(self) -> None:
        assert [*link_findings(PAGE, "# Title\n\n| a |\n| --- |\n| [b](missing.md) |\n")] == [
            "page.md:5: missing.md: no such file"
        ]

    def test_of_a_page_start_in_its_folder(self) -> None:
        assert [*link_findings(ROOT / "docs" / "page.md", "[a](runners.md) [b](README.md)")] == [
            "docs/page.md:1: README.md: no such file"
        ]


class TestAddresses:
    @pytest.mark.parametrize(
        "address",
        [
            "https://example.com",
            "https://docs.example.com:8443/a%20page/?b=c#d",
            "http://127.0.0.1:8080/",
            "http://localhost/",
            "http://[::1]:8080/",
            REPOSITORY,
            f"{REPOSITORY}/issues",
            f"{REPOSITORY}/releases/latest",
            f"{REPOSITORY}#security",
            f"{REPOSITORY}/blob/main/docs/threat-model.md#threats",
            f"{REPOSITORY}/actions/workflows/ci.yml",
            f"{REPOSITORY}/actions/workflows/ci.yml/badge.svg?branch=main",
        ],
    )
    def test_that_are_valid_are_fine(self, address: str) -> None:
        assert broken_links(f"[a]({address})") == []
        assert broken_links(f"Read {address}.") == []

    @pytest.mark.parametrize(
        ("address", "problem"),
        [
            ("http://example.com", "not https"),
            ("ftp://example.com", "not https"),
            ("mailto:a@example.com", "not https"),
            ("//example.com/a", "not https"),
            ("https:///a", "not a valid host"),
            ("https://example", "not a valid host"),
            ("https://exa_mple.com", "not a valid host"),
            ("https://[example.com", "not a valid address"),
            ("https://example.com/a.", "ends with punctuation"),
            ("https://example.com/a,", "ends with punctuation"),
            (f"{REPOSITORY}#missing", "no such section"),
            (f"{REPOSITORY}/blob/main/missing.md", "no such file"),
            (f"{REPOSITORY}/blob/main/README.md#missing", "no such section"),
            (f"{REPOSITORY}/actions/workflows/missing.yml", "no such workflow"),
            (f"{REPOSITORY}/missing", "no such page of the repository"),
        ],
    )
    def test_that_are_invalid_are_found(self, address: str, problem: str) -> None:
        assert broken_links(f'<a href="{address}">a</a>') == [f"{address}: {problem}"]

    def test_with_a_space_are_found(self) -> None:
        assert broken_links('<a href="https://example.com/a b">a</a>') == ["https://example.com/a b: contains a space"]

    def test_without_markup_are_checked_too(self) -> None:
        assert broken_links("Read http://example.com/a.") == ["http://example.com/a: not https"]

    def test_in_code_are_not_checked(self) -> None:
        assert broken_links("`http://example.com`\n\n```\nhttp://example.com\n```") == []


class TestForms:
    @pytest.mark.parametrize(
        "target",
        [
            REPOSITORY,
            f"{REPOSITORY}/security/advisories/new",
            f"{REPOSITORY}#security",
            f"{REPOSITORY}/blob/main/CONTRIBUTING.md",
        ],
    )
    def test_links_to_the_repository_are_fine(self, target: str) -> None:
        assert [*form_findings(FORM, f"body:\n  - value: 'Read [a]({target}).'\n  - url: {target}")] == []

    @pytest.mark.parametrize(
        ("target", "problem"),
        [
            (f"{REPOSITORY}#missing", "no such section"),
            (f"{REPOSITORY}/blob/main/missing.md", "no such file"),
            (f"{REPOSITORY}/missing", "no such page of the repository"),
            ("https://example.com", f"not in {REPOSITORY}"),
            ("README.md", f"not in {REPOSITORY}"),
        ],
    )
    def test_other_links_are_found(self, target: str, problem: str) -> None:
        assert [*form_findings(FORM, f"body:\n  - value: '[a]({target})'")] == [f"form.yml: {target}: {problem}"]


class TestWords:
    @pytest.mark.parametrize(
        ("markdown", "count"),
        [
            ("# A title\n\nA paragraph\nof **two** lines.", 7),
            ("- one\n- two\n  - three", 3),
            ("| a head | |\n| --- | --- |\n| a cell | 3 |", 5),
            ("`a b` c", 3),
            ("[two words](https://example.com/a/b)", 2),
            ("**a**b c", 2),
            ("a - b · c …", 3),
            ("![a picture](a.png) b", 1),
            ('<img src="a.png" alt="a picture"> b', 1),
            ("<details>\n<summary>two words</summary>\n\nthree more words\n\n</details>", 5),
            ("```yaml\na: b\n```\n\n    indented code", 0),
        ],
    )
    def test_are_those_that_people_read(self, markdown: str, count: int) -> None:
        assert words(markdown) == count

    def test_of_the_readme_have_a_limit(self) -> None:
        assert [*readme_findings("word " * MAX_README_WORDS)] == []
        assert [*readme_findings("word " * (MAX_README_WORDS + 1))] == [
            "README.md: has 1,501 words, more than 1,500: move details to a page in docs/"
        ]


class TestOpenings:
    @pytest.mark.parametrize(
        ("page", "markdown"),
        [
            ("docs/page.md", "# Title\n\nFor workflow authors who look something up."),
            ("docs/page.md", "<!-- generated -->\n# Title\n\nFor reviewers: what was measured."),
            ("docs/evidence/page.md", "# Title\n\nFor reviewers: what was measured."),
        ],
    )
    def test_that_name_the_reader_are_fine(self, page: str, markdown: str) -> None:
        assert [*opening_findings(ROOT / page, markdown)] == []

    @pytest.mark.parametrize(
        ("page", "markdown"),
        [
            ("docs/page.md", "# Title\n\nThis page is for workflow authors."),
            ("docs/page.md", "# Title\n\nFor example, this."),
            ("docs/page.md", "# Title\n\n## For you\n"),
            ("docs/page.md", "For workflow authors."),
            ("docs/page.md", ""),
            ("docs/evidence/page.md", "# Title\n\nFor workflow authors: what was measured."),
        ],
    )
    def test_that_do_not_are_found(self, page: str, markdown: str) -> None:
        (finding,) = opening_findings(ROOT / page, markdown)

        assert finding.startswith(f"{page}: must start with the reader whom it is for")


class TestTables:
    PAGE = """\
# A

| x | y |
| --- | --- |
| `1` | a \\| b |
| 2 | |

## Inputs of B

| z |
| --- |
| 3 |

## C

| u |
| --- |
"""

    def test_below_a_heading_are_returned_with_their_cells(self) -> None:
        assert tables(self.PAGE, "a") == [Table(["x", "y"], [["`1`", "a | b"], ["2", ""]])]

    def test_below_a_heading_that_contains_the_word_are_returned(self) -> None:
        assert tables(self.PAGE, "inputs") == [Table(["z"], [["3"]])]

    def test_below_other_headings_are_not(self) -> None:
        assert tables(self.PAGE, "missing") == []


@pytest.mark.parametrize(
    ("markdown", "found"),
    [
        ("![a picture](a.png)", 0),
        ('<img src="a.png" alt="a picture">', 0),
        ('<picture>\n<source srcset="b.png">\n<img alt="a picture" src="a.png">\n</picture>', 0),
        ("`![](a.png)`", 0),
        ("![](a.png)", 1),
        ('<img src="a.png">', 1),
        ('text <img src="a.png" alt=" ">', 1),
        ('<picture>\n<source srcset="b.png">\n<img src="a.png">\n</picture>', 1),
    ],
)
def test_pictures_without_an_alternative_text_are_found(markdown: str, found: int) -> None:
    assert len([*picture_findings(ROOT / "README.md", markdown)]) == found
