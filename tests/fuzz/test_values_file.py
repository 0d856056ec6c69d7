"""The values file: two YAML parsers read every string back unchanged, and the comment stays a comment."""

import re

import yaml
from hypothesis import example
from hypothesis import strategies as st
from ruamel.yaml import YAML

from docs_platform_action.bundle.helm_values import values_text
from tests.fuzz import fuzz
from tests.fuzz.mutation import HOSTILE_TEXTS, mutated_text
from tests.hostile import YAML as YAML_LOOKALIKES

sound = st.characters(exclude_categories=["Cs"])
lookalikes = st.sampled_from([*YAML_LOOKALIKES, *(text for text in HOSTILE_TEXTS if not re.search("[\ud800-\udfff]", text))])
strings = st.one_of(
    st.text(sound, max_size=30),
    lookalikes,
    st.lists(lookalikes, max_size=4).map("".join),
    mutated_text(lookalikes).filter(lambda text: not re.search("[\ud800-\udfff]", text)),
)


@fuzz(
    "values files",
    bundle_url=strings,
    version=st.none() | strings,
    comment=st.lists(st.one_of(strings, st.text(st.characters(), max_size=20), st.sampled_from(HOSTILE_TEXTS)), max_size=4),
)
@example("a\nb: c", "\n--- #", ["a\nstaticExport: null", "\ud800", "a\r\n---\n"])
def test_two_yaml_parsers_read_the_strings_back(bundle_url: str, version: str | None, comment: list[str]) -> None:
    written = values_text(bundle_url=bundle_url, version=version, comment=comment)

    expected = {"enabled": True, "bundleUrl": bundle_url} | ({} if version is None else {"version": version})
    assert yaml.safe_load(written) == {"staticExport": expected}
    assert YAML(typ="safe", pure=True).load(written) == {"staticExport": expected}
    assert re.fullmatch(r"[ -~\n]*", written)
    lines = written.splitlines()
    assert len(lines) == len(comment) + len(expected) + 1
    assert all(line.startswith("#") for line in lines[: len(comment)])
