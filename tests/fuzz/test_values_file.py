"""The values file: two YAML parsers read every string back unchanged, and the comment stays a comment."""

import re
from datetime import UTC, datetime

import yaml
from hypothesis import example
from hypothesis import strategies as st
from ruamel.yaml import YAML

from docs_platform_action.bundle.helm_values import values_text
from docs_platform_action.job import Job
from docs_platform_action.models import Bundle
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
    link=strings,
    version=st.none() | strings,
    foreign=st.lists(
        st.one_of(strings, st.text(st.characters(), max_size=20), st.sampled_from(HOSTILE_TEXTS)), min_size=3, max_size=3
    ),
)
@example("a\nb: c", "\n--- #", ["a\nstaticExport: null", "\ud800", "a\r\n---\n"])
def test_two_yaml_parsers_read_the_strings_back(link: str, version: str | None, foreign: list[str]) -> None:
    domain, job_id, expires_at = foreign
    job = Job(mode="export", domain=domain, job_id=job_id, link=Bundle(url=link, expires_at=expires_at))

    written = values_text(job, version, datetime(2026, 5, 4, tzinfo=UTC))

    expected = {"enabled": True, "bundleUrl": link} | ({} if version is None else {"version": version})
    assert yaml.safe_load(written) == {"staticExport": expected}
    assert YAML(typ="safe", pure=True).load(written) == {"staticExport": expected}
    assert re.fullmatch(r"[ -~\n]*", written)
    lines = written.splitlines()
    assert [line.startswith("#") for line in lines] == [True] * 2 + [False] * (len(expected) + 1)
