"""Every YAML reader gets the strings of the values file back, and the comment stays a comment."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from docs_platform_action.bundle.helm_values import values_text
from docs_platform_action.inputs.settings import Mode
from docs_platform_action.job import Job
from docs_platform_action.models import Bundle
from tests.hostile import YAML as YAML_LOOKALIKES
from tests.virtual_time import NOON

LINK = "https://exports.example-storage.com/se_1/bundle.tar.gz?x-id=GetObject,bundle&X-Amz-Signature=9b1c"
LINE_BREAKS = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def written(
    *, url: str = LINK, version: str | None = None, domain: str | None = None, job_id: str = "se_1", **bundle: Any
) -> str:
    """Return the values file of a job, at noon."""
    job = Job(mode=Mode.EXPORT, domain=domain, job_id=job_id, link=Bundle(url=url, **bundle))
    return values_text(job, version, NOON)


def yaml_1_1(text: str) -> object:
    return yaml.safe_load(text)


def yaml_1_2(text: str) -> object:
    return YAML(typ="safe", pure=True).load(text)


READERS = pytest.mark.parametrize("read", [yaml_1_1, yaml_1_2])


def test_the_file_has_two_lines_for_people_and_the_values() -> None:
    lines = written(version="2024-06-01", domain="docs.example.com").splitlines()

    assert [line.startswith("# ") for line in lines] == [True, True, False, False, False, False]
    assert lines[2:] == ["staticExport:", "  enabled: true", f'  bundleUrl: "{LINK}"', '  version: "2024-06-01"']


@READERS
def test_without_a_version_there_is_no_version_key(read: Callable[[str], object]) -> None:
    assert read(written()) == {"staticExport": {"enabled": True, "bundleUrl": LINK}}


@READERS
@pytest.mark.parametrize("text", YAML_LOOKALIKES)
def test_awkward_strings_are_read_back_unchanged(read: Callable[[str], object], text: str) -> None:
    read_back = read(written(url=text, version=text, domain=text, job_id=text))

    assert read_back == {"staticExport": {"enabled": True, "bundleUrl": text, "version": text}}


@given(text=TEXT)
def test_each_key_has_one_line_of_printable_ascii(text: str) -> None:
    file = written(url=text, version=text)

    assert re.fullmatch(r"[ -~\n]*", file)
    assert file.count("\n") == 6


@given(text=st.text() | st.sampled_from(["a\nb: c", "a\r\nb", "a\x85b", "a\u2028b", "\ud800", "--- #", "\ufeff"]))
def test_any_text_stays_a_comment(text: str) -> None:
    lines = LINE_BREAKS.split(written(domain=text, job_id=text, expires_at=text))

    assert all(line.startswith("#") and line.isascii() for line in lines[:2])
    assert lines[2:] == LINE_BREAKS.split(written())[2:]


def test_foreign_text_is_escaped_without_ambiguity() -> None:
    assert r" \xe9\nx: \\n, " in written(domain="é\nx: \\n")


@pytest.mark.parametrize(
    ("bundle", "shown"),
    [
        ({"expires": NOON + timedelta(seconds=1), "expires_at": "2026"}, r"until 2026-05-04 12:00:01 UTC\."),
        ({"expires": NOON, "expires_at": "2026"}, r"expired at 2026-05-04 12:00:00 UTC\."),
        ({"expires_at": "in an hour"}, r"until in an hour\."),
        ({}, r"job se_1\."),
    ],
    ids=["valid", "expired", "unknown", "none"],
)
def test_the_comment_tells_when_the_link_expires_or_expired(bundle: dict[str, Any], shown: str) -> None:
    assert re.search(f"{shown}$", written(**bundle).splitlines()[0])
