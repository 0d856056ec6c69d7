"""The API's responses, as JSON and as bytes: each gives a valid object or none, and no server makes a call wait too long."""

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
from docs_platform_action.api.by_project import ByProject
from docs_platform_action.api.resources import read_agent_job, read_bundle_link, read_started
from docs_platform_action.http.api_client import MAX_RESPONSE_BYTES, ApiClient
from docs_platform_action.http.faults import NetworkError
from docs_platform_action.http.fields import MAX_TEXT_LENGTH
from docs_platform_action.http.reasons import read_error
from docs_platform_action.http.retry import read_retry_after
from docs_platform_action.http.transport import Request, Timeouts
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
NAMES: Final = sorted({name for body in GOOD for name in body} | {"message", "detail"})

strings = st.one_of(
    st.text(max_size=20),
    st.sampled_from([*HOSTILE_TEXTS, ADMIN_KEY, f"a{ADMIN_KEY}", "x" * (MAX_TEXT_LENGTH + 1)]),
    mutated_text(
        st.sampled_from(
            [
                "se_1",
                "https://s.example.com/b?sig=1",
                "http://127.0.0.1:9000/b",
                "2026-05-04T15:04:00Z",
            ]
        )
    ),
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


def is_sound(text: str | None) -> bool:
    return text is None or (text == text.strip() != "" and len(text) <= MAX_TEXT_LENGTH)


def is_address(url: str) -> bool:
    odd = [
        character
        for character in url
        if character.isspace() or unicodedata.category(character) in {"Cc", "Cs"}
    ]
    return (
        url.lower().startswith(("https://", "http://")) and bool(urlsplit(url).hostname) and not odd
    )


def check(body: Mapping[str, object]) -> None:
    """Read a body as each of the API's objects, and check the results."""
    with contextlib.suppress(ValueError):
        job_id, _ = read_started(body)
        assert job_id
        assert not {"Cc", "Cs"} & {unicodedata.category(character) for character in job_id}
    with contextlib.suppress(ValueError):
        export = ByProject().read_status(body)
        assert export.link is None or (export.status == "completed" and is_address(export.link.url))
        assert all(map(is_sound, (export.status, export.error)))
        assert export.progress is None or 0 <= export.progress <= 100
        assert export.page_count is None or (
            type(export.page_count) is int and 0 <= export.page_count < 2**53
        )
    with contextlib.suppress(ValueError):
        bundle = read_bundle_link(body)
        assert is_address(bundle.url)
        assert bundle.url.lower().startswith("https://") or is_loopback(
            urlsplit(bundle.url).hostname or ""
        )
    with contextlib.suppress(ValueError):
        agent = read_agent_job(body)
        assert all(
            map(
                is_sound,
                (
                    agent.status,
                    agent.repository,
                    agent.ref,
                    agent.model,
                    agent.created_at,
                    agent.archived_at,
                ),
            )
        )
        assert agent.pr_link is None or is_address(agent.pr_link)
    assert is_sound(read_error(body))


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
    client = ApiClient(
        http_client(FakeTransport(Answer(body=content))), base_url=BASE_URL, key=ADMIN_KEY
    )
    if len(content) > MAX_RESPONSE_BYTES:
        with pytest.raises(NetworkError):
            client.send(Request(method="GET", url="/x"), Timeouts())
        return

    response = client.send(Request(method="GET", url="/x"), Timeouts())

    if isinstance(response.body, dict):
        assert ADMIN_KEY not in str(response.body.get("status"))
        check(response.body)


header_values = st.one_of(
    st.integers(0, 10**6).map(str),
    mutated_text(
        st.sampled_from(["Mon, 04 May 2026 12:00:30 GMT", "Monday, 04-May-26 12:00:30 GMT", "120"])
    ),
    st.sampled_from(HOSTILE_TEXTS),
    st.text("0123456789 :,+-MonMayGMT/.", max_size=32),
)


@fuzz(200, value=header_values, date=header_values)
@example("Mon, 04 May 0000 12:00:30 -2359", "Mon, 04 May 9999 12:00:30 +2359")
@example("Mon, 04 May 2026 12:00:30 +99999999999999999", "")
def test_any_retry_after_gives_a_pause_or_none(value: str, date: str) -> None:
    seconds = read_retry_after({"Retry-After": value, "Date": date}, NOON)

    assert seconds is None or (math.isfinite(seconds) and seconds >= 0)
