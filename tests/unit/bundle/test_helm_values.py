"""The lines for people in the Helm values file. The fuzz tests read its strings back."""

from datetime import timedelta

import pytest

from docs_platform_action.bundle.helm_values import values_text
from docs_platform_action.job import Job
from docs_platform_action.models import Bundle
from tests.virtual_time import NOON


@pytest.mark.parametrize(("minutes", "word"), [(60, "13:00"), (-1, "expired"), (None, "")])
def test_the_comment_says_until_when_the_link_is_valid(minutes: int | None, word: str) -> None:
    expires = None if minutes is None else NOON + timedelta(minutes=minutes)
    job = Job(mode="export", domain="d", link=Bundle(url="https://s.example.com/b", expires_at="x", expires=expires))

    assert word in values_text(job, None, NOON).split("staticExport")[0]
