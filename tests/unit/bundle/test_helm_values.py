"""The Helm values file: its lines for people, and strings that YAML reads differently if they are not quoted."""

from datetime import timedelta
from typing import Final

import pytest
import yaml

from docs_platform_action.bundle.helm_values import values_text
from docs_platform_action.job import Job
from docs_platform_action.models import BundleLink
from tests.virtual_time import NOON

STRINGS: Final = (
    *(
        "",
        " ",
        "2024-06-01",
        "2024-06-01T10:00:00Z",
        "20240601",
        "007",
        "0x1F",
        "0o17",
        "1e3",
        "1_000",
        "12:30:45",
        ".inf",
    ),
    *(
        "yes",
        "off",
        "true",
        "null",
        "~",
        "=",
        "<<",
        "a,b",
        "a: b",
        "a #b",
        "# a",
        "'",
        '"',
        '\\"',
        "\\",
        "{{ .Release.Name }}",
    ),
    *(
        "{}",
        "%20%",
        "@a",
        "`a`",
        "&a *a !a",
        "- a",
        "--- a",
        "...",
        "a\nb",
        "\ta\r\n",
        " a ",
        "\x00\x07\x1b\x7f\x85\x9f",
    ),
    *(
        "\u00a0\u2028\u2029\ufeff\ufffe\uffff",
        "ß 漢 \U0001f600 \U0010ffff",
        "a " * 4000,
        "a\n---\nstaticExport: null\n",
    ),
)


@pytest.mark.parametrize("text", STRINGS)
def test_every_string_is_read_back(text: str) -> None:
    job = Job(mode="export", domain=text, job_id=text, link=BundleLink(url=text, expires_at=text))

    assert yaml.safe_load(values_text(job, text, NOON)) == {
        "staticExport": {"enabled": True, "bundleUrl": text, "version": text}
    }


@pytest.mark.parametrize(("minutes", "word"), [(60, "13:00"), (-1, "expired"), (None, "")])
def test_the_comment_says_until_when_the_link_is_valid(minutes: int | None, word: str) -> None:
    expires = None if minutes is None else NOON + timedelta(minutes=minutes)
    job = Job(
        mode="export",
        domain="d",
        link=BundleLink(url="https://s.example.com/b", expires_at="x", expires=expires),
    )

    assert word in values_text(job, None, NOON).split("staticExport")[0]
