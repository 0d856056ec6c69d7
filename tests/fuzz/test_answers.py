"""The API's responses, as JSON and as bytes.

Each gives a valid object or none, and no server makes a call wait too long.
"""

import contextlib
import json
import math
import unicodedata
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from hypothesis import example
from hypothesis import strategies as st

from docs_platform_action.addresses import is_loopback
from docs_platform_action.http.faults import NetworkError
from docs_platform_action.http.fields import MAX_TEXT_LENGTH
from docs_platform_action.http.headers import read_retry_after
from docs_platform_action.http.json_response import MAX_RESPONSE_BYTES, request_json
from docs_platform_action.http.reasons import read_error
from docs_platform_action.http.transport import Request, Timeouts
from docs_platform_action.models import AgentJob, ExportJob
from docs_platform_action.platform.forms import ByProject
from docs_platform_action.platform.resources import (
    read_agent_job,
    read_bundle_link,
    read_started,
)
from tests.fuzz import fuzz
from tests.fuzz.mutation import HOSTILE_TEXTS, mutated_bytes, mutated_text
from tests.keys import ADMIN_KEY
from tests.unit.fakes import AGENT_JOB, BASE_URL, Answer, FakeTransport, http_client
from tests.virtual_time import NOON

Body = dict[str, Any]

GOOD: Final[tuple[Body, ...]] = (
    {"jobId": "se_1", "status": "queued"},
    {"status": "running", "progress": 57.5, "pageCount": 231},
    {"status": "failed", "error": {"message": "page /a does not render", "code": 7}},
    {
        "jobId": "6520f3",
        "status": "completed",
        "error": None,
        "bundleUrl": "https://s.example.com/b?sig=1",
    },
    {
        "bundleUrl": "https://s.example.com/b?sig=1",
        "expiresAt": "2026-05-04T15:04:00Z",
        "sizeBytes": 1024,
    },
    {**AGENT_JOB},
)
NAMES: Final = sorted({"message", "detail"}.union(*GOOD))
GOOD_TEXTS: Final = (
    "se_1",
    "https://s.example.com/b?sig=1",
    "http://127.0.0.1:9000/b",
    "2026-05-04T15:04:00Z",
)

strings = st.one_of(
    st.text(max_size=20),
    st.sampled_from([*HOSTILE_TEXTS, ADMIN_KEY, f"a{ADMIN_KEY}", "x" * (MAX_TEXT_LENGTH + 1)]),
    mutated_text(st.sampled_from(GOOD_TEXTS)),
)
numbers = (
    st.integers()
    | st.floats()
    | st.sampled_from([-0.0, 100.0000001, 2**53, 1e308, 10**400, 253402300800, 5e-324])
)
values = st.recursive(
    st.none() | st.booleans() | numbers | strings,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES) | strings, inner, max_size=3)
    ),
    max_leaves=5,
)
bodies = st.builds(
    lambda good, other: {**good, **other},
    st.sampled_from(GOOD),
    st.dictionaries(st.sampled_from(NAMES), values, max_size=3),
)
encoded = st.builds(
    lambda body, encoding: json.dumps(body, ensure_ascii=False).encode(encoding, "replace"),
    bodies,
    st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"]),
)
contents = encoded | mutated_bytes(encoded) | st.binary(max_size=60)


def has_control_or_surrogate(text: str) -> bool:
    return any(unicodedata.category(character) in {"Cc", "Cs"} for character in text)


def is_sound(text: str | None) -> bool:
    if text is None:
        return True
    return text == text.strip() and 0 < len(text) <= MAX_TEXT_LENGTH


def is_address(url: str) -> bool:
    if has_control_or_surrogate(url) or any(character.isspace() for character in url):
        return False
    is_web_address = url.lower().startswith(("https://", "http://"))
    return is_web_address and bool(urlsplit(url).hostname)


def check(body: Mapping[str, object]) -> None:
    """Read a body as each of the API's objects, and check the results."""
    with contextlib.suppress(ValueError):
        job_id, _ = read_started(body)
        assert job_id
        assert not has_control_or_surrogate(job_id)
    with contextlib.suppress(ValueError):
        check_export(ByProject().read_status(body))
    with contextlib.suppress(ValueError):
        bundle = read_bundle_link(body)
        assert is_address(bundle.url)
        host = urlsplit(bundle.url).hostname or ""
        assert bundle.url.lower().startswith("https://") or is_loopback(host)
    with contextlib.suppress(ValueError):
        check_agent_job(read_agent_job(body))
    assert is_sound(read_error(body))


def check_export(export: ExportJob) -> None:
    assert is_sound(export.status)
    assert is_sound(export.error)
    assert export.progress is None or 0 <= export.progress <= 100
    if export.page_count is not None:
        assert type(export.page_count) is int
        assert 0 <= export.page_count < 2**53
    if export.link is not None:
        assert export.status == "completed"
        assert is_address(export.link.url)


def check_agent_job(job: AgentJob) -> None:
    assert is_sound(job.status)
    assert is_sound(job.repository)
    assert is_sound(job.ref)
    assert is_sound(job.model)
    assert is_sound(job.created_at)
    assert is_sound(job.archived_at)
    assert job.pr_link is None or is_address(job.pr_link)


@fuzz(400, body=bodies)
@example({"status": "running", "progress": True, "pageCount": 2**53})
@example({"status": " ", "jobId": "a\x85b", "prLink": "javascript:alert(1)"})
@example({"bundleUrl": "https://s.example.com/b", "expiresAt": 10**30})
def test_any_json_gives_valid_objects_or_none(body: Body) -> None:
    check(body)


@fuzz(200, content=contents)
@example(b"[" * 100_000)
@example(b'{"status": "running", "pageCount": ' + b"9" * 1_000_000 + b"}")
@example(b"9" * (MAX_RESPONSE_BYTES + 1))
@example(b'{"status": "\\ud800", "jobId": "\\ud800"}')
@example(f'{{"{ADMIN_KEY}": 1, "status": "{ADMIN_KEY}"}}'.encode())
def test_any_bytes_give_an_object_or_nothing(content: bytes) -> None:
    client = http_client(FakeTransport(Answer(body=content)))
    exchange = client.new_exchange(Request(method="GET", url=BASE_URL), Timeouts(), headers={})
    if len(content) > MAX_RESPONSE_BYTES:
        with pytest.raises(NetworkError):
            request_json(client, exchange)
        return

    response = request_json(client, exchange)

    if isinstance(response.body, dict):
        assert ADMIN_KEY not in str(response.body.get("status"))
        check(response.body)


PAUSES: Final = ("Mon, 04 May 2026 12:00:30 GMT", "Monday, 04-May-26 12:00:30 GMT", "120")
header_values = st.one_of(
    st.integers(0, 10**6).map(str),
    mutated_text(st.sampled_from(PAUSES)),
    st.sampled_from(HOSTILE_TEXTS),
    st.text("0123456789 :,+-MonMayGMT/.", max_size=32),
)


@fuzz(200, value=header_values, date=header_values)
@example("Mon, 04 May 0000 12:00:30 -2359", "Mon, 04 May 9999 12:00:30 +2359")
@example("Mon, 04 May 2026 12:00:30 +99999999999999999", "")
def test_any_retry_after_gives_a_pause_or_none(value: str, date: str) -> None:
    seconds = read_retry_after({"Retry-After": value, "Date": date}, NOON)

    if seconds is not None:
        assert math.isfinite(seconds)
        assert seconds >= 0
