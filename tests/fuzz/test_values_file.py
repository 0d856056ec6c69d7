"""The values file: whatever its strings hold, two readers of YAML get them back, and the comment stays a comment."""

import re
from typing import Final

import yaml
from hypothesis import example
from hypothesis import strategies as st
from ruamel.yaml import YAML

from docs_platform_action.delivery.helm_values import values_text
from tests.fuzz import fuzz
from tests.fuzz.mutation import HOSTILE_TEXTS, mutated_text

LOOKALIKES: Final = (
    *(
        "https://s.example.com/b.tar.gz?x-id=GetObject,bundle&sig=9b1c",
        "2024-06-01",
        "2024-06-01T10:00:00Z",
        "007",
        "0o17",
        "1e3",
    ),
    *(
        "1_000",
        "12:30:45",
        ".inf",
        "yes",
        "off",
        "true",
        "null",
        "~",
        "<<",
        "- a",
        "a: b",
        "a #b",
        "&a *a !a",
        "--- a",
        "...",
        "? x",
    ),
    *(
        "{{ .Release.Name }}",
        "%YAML 1.1",
        "|",
        ">-",
        "'",
        '"',
        "\\",
        "\\x41",
        "\\u0041",
        "a\u2028b",
        "\ufeff",
        "\x85",
        "\U0010ffff",
    ),
)

sound = st.characters(exclude_categories=["Cs"])
lookalikes = st.sampled_from([*LOOKALIKES, *(text for text in HOSTILE_TEXTS if not re.search("[\ud800-\udfff]", text))])
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
def test_two_readers_get_the_same_strings_back(bundle_url: str, version: str | None, comment: list[str]) -> None:
    written = values_text(bundle_url=bundle_url, version=version, comment=comment)

    expected = {"enabled": True, "bundleUrl": bundle_url} | ({} if version is None else {"version": version})
    assert yaml.safe_load(written) == {"staticExport": expected}
    assert YAML(typ="safe", pure=True).load(written) == {"staticExport": expected}
    assert re.fullmatch(r"[ -~\n]*", written)
    lines = written.splitlines()
    assert len(lines) == len(comment) + len(expected) + 1
    assert all(line.startswith("#") for line in lines[: len(comment)])
