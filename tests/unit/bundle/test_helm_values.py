"""The Helm values file: its lines for people, and strings that YAML reads differently unquoted."""

from datetime import datetime, timedelta
from typing import Final

import pytest
import yaml

from docs_platform_action.bundle.helm_values import values_text
from docs_platform_action.job import Job
from docs_platform_action.jobs.collect import Collect
from docs_platform_action.jobs.export import Export
from docs_platform_action.models import BundleLink
from tests.virtual_time import NOON

STRINGS: Final = (
    "",
    " ",
    # not strings in YAML 1.1 or 1.2, if they are not quoted
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
    "yes",
    "off",
    "true",
    "null",
    "~",
    "=",
    "<<",
    # characters with a meaning in YAML or Helm
    "a,b",
    "a: b",
    "a #b",
    "# a",
    "'",
    '"',
    '\\"',
    "\\",
    "{{ .Release.Name }}",
    "{}",
    "%20%",
    "@a",
    "`a`",
    "&a *a !a",
    "- a",
    "--- a",
    "...",
    # breaks, blanks and control characters
    "a\nb",
    "\ta\r\n",
    " a ",
    "\x00\x07\x1b\x7f\x85\x9f",
    "\u00a0\u2028\u2029\ufeff\ufffe\uffff",
    "ß 漢 \U0001f600 \U0010ffff",
    "a " * 4000,
    "a\n---\nstaticExport: null\n",
)


@pytest.mark.parametrize("text", STRINGS)
def test_every_string_is_read_back(text: str) -> None:
    job = Job(kind=Export(), domain=text, job_id=text)
    link = BundleLink(url=text, expires_at=text)

    assert yaml.safe_load(values_text(job, link, text, NOON)) == {
        "staticExport": {"enabled": True, "bundleUrl": text, "version": text}
    }


@pytest.mark.parametrize(
    ("expires", "expires_at", "expiry"),
    [
        (NOON + timedelta(hours=1), "x", " The link is valid until 2026-05-04 13:00:00 UTC."),
        (NOON - timedelta(minutes=1), "x", " The link expired at 2026-05-04 11:59:00 UTC."),
        (NOON, "x", " The link expired at 2026-05-04 12:00:00 UTC."),
        (None, "tomorrow", " The link is valid until tomorrow."),
        (None, None, ""),
    ],
)
def test_the_comment_says_until_when_the_link_is_valid(
    expires: datetime | None, expires_at: str | None, expiry: str
) -> None:
    job = Job(kind=Export(), domain="docs.example.com", job_id="se_1")
    link = BundleLink(url="https://s.example.com/b", expires_at=expires_at, expires=expires)

    first_line = values_text(job, link, None, NOON).partition("\n")[0]

    assert first_line == f"# Static export of docs.example.com, job se_1.{expiry}"


def test_what_is_unknown_is_left_out() -> None:
    link = BundleLink(url="https://s.example.com/b")

    text = values_text(Job(kind=Collect(), job_id="se_1"), link, None, NOON)

    assert text.partition("\n")[0] == "# Static export, job se_1."
    assert yaml.safe_load(text) == {"staticExport": {"enabled": True, "bundleUrl": link.url}}
