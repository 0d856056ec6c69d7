"""The Helm values file: two lines for people, then strings that every YAML reader reads back unchanged."""

from datetime import timedelta

import pytest
import yaml

from docs_platform_action.bundle.helm_values import values_text
from docs_platform_action.job import Job
from docs_platform_action.models import Bundle
from tests.hostile import HARMFUL
from tests.virtual_time import NOON


def written(version: str | None = "1", **known: str) -> str:
    job = Job(
        mode="export",
        domain=known.get("domain", "docs.example.com"),
        link=Bundle(url=known.get("url", "https://s.example.com/b?x=1,2")),
    )
    return values_text(job, version, NOON)


def test_without_a_version_there_is_no_such_key() -> None:
    assert [*yaml.safe_load(written(None))["staticExport"]] == ["enabled", "bundleUrl"]


@pytest.mark.parametrize("text", HARMFUL)
def test_foreign_text_stays_in_the_two_lines_of_the_comment(text: str) -> None:
    lines = written(domain=text).splitlines()

    assert [line.startswith("#") for line in lines] == [True, True, False, False, False, False]
    assert all(line.isprintable() and line.isascii() for line in lines)


@pytest.mark.parametrize(("minutes", "word"), [(60, "13:00"), (-1, "expired"), (None, "")])
def test_the_comment_says_until_when_the_link_is_valid(minutes: int | None, word: str) -> None:
    expires = None if minutes is None else NOON + timedelta(minutes=minutes)
    job = Job(mode="export", domain="d", link=Bundle(url="https://s.example.com/b", expires_at="x", expires=expires))

    assert word in values_text(job, None, NOON).split("staticExport")[0]
