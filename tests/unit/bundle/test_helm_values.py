"""Every YAML reader gets the strings of the values file back, and the comment stays a comment."""

import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from docs_platform_action.bundle.helm_values import values_text
from tests.hostile import YAML as YAML_LOOKALIKES

LINK = "https://exports.example-storage.com/se_1/bundle.tar.gz?x-id=GetObject,bundle&X-Amz-Signature=9b1c"
LINE_BREAKS = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def yaml_1_1(text: str) -> object:
    return yaml.safe_load(text)


def yaml_1_2(text: str) -> object:
    return YAML(typ="safe", pure=True).load(text)


@pytest.fixture(params=[yaml_1_1, yaml_1_2])
def read(request: pytest.FixtureRequest):
    return request.param


class TestValues:
    def test_a_file_for_people_to_read(self) -> None:
        written = values_text(bundle_url=LINK, version="2024-06-01", comment=["Job se_1", "", "Works until 15:04 UTC"])

        assert written == (
            "# Job se_1\n"
            "#\n"
            "# Works until 15:04 UTC\n"
            "staticExport:\n"
            "  enabled: true\n"
            f'  bundleUrl: "{LINK}"\n'
            '  version: "2024-06-01"\n'
        )

    def test_without_a_version_there_is_no_version_key(self, read) -> None:
        written = values_text(bundle_url=LINK, version=None, comment=[])

        assert read(written) == {"staticExport": {"enabled": True, "bundleUrl": LINK}}

    @pytest.mark.parametrize("text", YAML_LOOKALIKES)
    def test_awkward_strings_are_read_back_unchanged(self, read, text: str) -> None:
        written = values_text(bundle_url=text, version=text, comment=[text])

        assert read(written) == {"staticExport": {"enabled": True, "bundleUrl": text, "version": text}}

    @given(text=TEXT)
    def test_each_key_has_one_line_of_printable_ascii(self, text: str) -> None:
        written = values_text(bundle_url=text, version=text, comment=[])

        assert re.fullmatch(r"[ -~\n]*", written)
        assert written.count("\n") == 4


class TestComment:
    @given(
        comment=st.lists(st.text() | st.sampled_from(["a\nb: c", "a\r\nb", "a\x85b", "a\u2028b", "\ud800", "--- #", "\ufeff"]))
    )
    def test_any_text_stays_a_comment(self, comment: list[str]) -> None:
        written = values_text(bundle_url=LINK, version=None, comment=comment)

        lines = LINE_BREAKS.split(written)
        assert written.isascii()
        assert all(line.startswith("#") for line in lines[: len(comment)])
        assert lines[len(comment) :] == LINE_BREAKS.split(values_text(bundle_url=LINK, version=None, comment=[]))

    def test_foreign_text_is_escaped_without_ambiguity(self) -> None:
        written = values_text(bundle_url=LINK, version=None, comment=["Job é\nstaticExport: null", "a\\nb"])

        assert written.splitlines()[:2] == ["# Job \\xe9\\nstaticExport: null", "# a\\\\nb"]
