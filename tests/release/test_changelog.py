"""The changelog's section of a version."""

import pytest

from release.changelog import changelog_section
from release.errors import ReleaseError
from release.version import parse_version
from tests.release.clones import CHANGELOG

VERSION = parse_version("1.2.0")


def with_change(text: str) -> str:
    return CHANGELOG.replace("- Something new.", text)


def test_a_section_ends_at_the_next_one() -> None:
    assert changelog_section(CHANGELOG, VERSION) == "### Added\n\n- Something new."


def test_the_last_section_has_no_link_definitions() -> None:
    assert changelog_section(CHANGELOG, parse_version("1.1.0")) == "- Something old."


def test_the_ends_of_lines_do_not_matter() -> None:
    assert changelog_section(CHANGELOG.replace("\n", "\r\n"), VERSION) == changelog_section(CHANGELOG, VERSION)


def test_code_ends_where_its_fence_does() -> None:
    changes = "```sh\nmake\n```\n\n~~~md\n```\n~~~\n\n```make``` is needed, as in [1.2.0](https://example.com)."

    assert changelog_section(with_change(changes), VERSION) == f"### Added\n\n{changes}"


def test_a_prerelease_has_a_section_of_its_own() -> None:
    text = CHANGELOG.replace("[1.2.0] -", "[1.2.0-rc.1] -")

    assert changelog_section(text, parse_version("1.2.0-rc.1")) == "### Added\n\n- Something new."
    with pytest.raises(ReleaseError, match=r"no section for 1\.2\.0\."):
        changelog_section(text, VERSION)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CHANGELOG.replace("[1.2.0]", "[1.3.0]"), "has no section for 1.2.0. Rename “Unreleased” to '## [1.2.0] - YYYY-MM-DD'."),
        ("", "has no section for 1.2.0. Rename “Unreleased”"),
        (
            CHANGELOG.replace("2026-11-20", "Unreleased"),
            "has no valid date right after the version. Write '## [1.2.0] - YYYY-MM-DD'.",
        ),
        (CHANGELOG.replace(" - 2026-11-20", ""), "has no valid date right after the version."),
        (CHANGELOG.replace("2026-11-20", "2026-02-30"), "has no valid date right after the version."),
        (CHANGELOG.replace("[1.2.0] -", "[1.2.0](https://example.com) -"), "has no valid date right after the version."),
        (CHANGELOG.replace("2026-11-20", "20261120"), "has no valid date right after the version."),
        (CHANGELOG.replace("2026-11-20", "2026-11-20 [YANKED]"), "has no valid date right after the version."),
        (CHANGELOG.replace("- Something new.", ""), "is empty. Describe the changes for users."),
        (CHANGELOG.replace("### Added\n\n- Something new.\n", ""), "is empty."),
        (CHANGELOG.replace("[1.1.0]", "[1.2.0]"), "has 2 sections for 1.2.0. Merge them."),
        (with_change("```sh\n## build it\nmake\n```"), "Line 10 of CHANGELOG.md is code, but looks like a section's heading."),
        (with_change("~~~\n```\n## [1.2.0] - 2026-11-20\n~~~"), "Line 11 of CHANGELOG.md is code"),
        (
            with_change("See [the guide].\n\n[the guide]: https://example.com"),
            "Write the address beside the text: [the guide](https",
        ),
        (with_change("See [1.2.0]."), "uses the link [1.2.0], whose address would not be in the notes."),
        (with_change("\x1b[2J"), "has the control character '\\x1b'. Remove it."),
        (with_change("\x9b2J"), "has the control character '\\x9b'. Remove it."),
    ],
)
def test_a_section_that_is_missing_or_unfinished_is_refused(text: str, message: str) -> None:
    with pytest.raises(ReleaseError) as caught:
        changelog_section(text, VERSION)

    assert message in str(caught.value)
