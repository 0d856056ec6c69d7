"""Which texts are versions, and when the major tag moves."""

import pytest

from release.errors import ReleaseError
from release.version import parse_tag, parse_version, why_major_tag_stays


class TestParsing:
    @pytest.mark.parametrize("text", ["0.0.1", "1.0.0", "1.20.300", "2.0.0-rc.1", "2.0.0-rc.0"])
    def test_a_version_is_written_as_it_was_read(self, text: str) -> None:
        version = parse_version(text)

        assert str(version) == text
        assert version.tag == f"v{text}"
        assert version.is_prerelease == ("-rc." in text)

    @pytest.mark.parametrize(
        "text",
        [
            *("", "1", "1.0", "1.0.0.0", "v1.0.0", "1.0.0-rc1", "1.0.0rc1", "1.0.0-beta.1", "1.0.0+build", "01.0.0", "1.0.00"),
            *(
                " 1.0.0",
                "1.0.0\n",
                "1.0.0-rc.01",
                "-1.0.0",
                "1.0.0; id",
                "$(id)",
                "\N{ARABIC-INDIC DIGIT ONE}.0.0",
                f"{'1' * 5000}.0.0",
            ),
        ],
    )
    def test_another_text_is_refused_with_examples(self, text: str) -> None:
        with pytest.raises(ReleaseError, match=r"is not a version\. Write 1\.2\.3, or 1\.2\.3-rc\.1 for a prerelease"):
            parse_version(text)

    def test_a_tag_starts_with_v(self) -> None:
        assert str(parse_tag("v1.2.3")) == "1.2.3"
        with pytest.raises(ReleaseError, match=r"'1\.2\.3' is not the tag of a version, such as v1\.2\.3\."):
            parse_tag("1.2.3")


class TestMajorTag:
    @pytest.mark.parametrize(
        ("released", "published"),
        [
            ("1.0.0", ["v1.0.0"]),
            ("1.10.0", ["v1.10.0", "v1.9.0", "v1.0.0"]),
            ("1.2.1", ["v1.2.1", "v1.2.0"]),
            ("1.3.0", ["v2.0.0", "v1.3.0", "v1.2.0"]),
            ("2.0.0", ["v2.0.0", "v1.3.0"]),
            ("1.0.0", ["v1.0.0", "v1.1.0-rc.1", "v1", "docs-2026"]),
        ],
    )
    def test_it_moves_to_the_newest_release_of_its_line(self, released: str, published: list[str]) -> None:
        assert why_major_tag_stays(parse_version(released), published) is None

    @pytest.mark.parametrize(
        ("released", "published", "reason"),
        [
            ("1.1.0-rc.1", ["v1.0.0", "v1.1.0-rc.1"], "1.1.0-rc.1 is a prerelease."),
            ("1.1.5", ["v1.1.5", "v1.2.0", "v1.10.0"], "1.10.0 is newer."),
            ("1.9.0", ["v1.10.0", "v1.9.0"], "1.10.0 is newer."),
            ("1.1.0", ["v1.0.0"], "v1.1.0 is not among the published releases. GitHub marks it as a draft or a prerelease."),
            ("1.1.0", [], "v1.1.0 is not among the published releases. GitHub marks it as a draft or a prerelease."),
        ],
    )
    def test_it_stays_otherwise(self, released: str, published: list[str], reason: str) -> None:
        assert why_major_tag_stays(parse_version(released), published) == reason
