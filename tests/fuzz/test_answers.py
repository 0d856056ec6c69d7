"""The API's responses, as bytes and as JSON: each gives a valid object or none."""

import json
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from hypothesis import example
from hypothesis import strategies as st

from docs_platform_action.api.client import MAX_RESPONSE_BYTES, ApiClient, ApiResponse
from docs_platform_action.http.faults import NetworkError
from docs_platform_action.http.transport import Request, Timeouts
from docs_platform_action.models import (
    MAX_TEXT_LENGTH,
    AgentJob,
    Bundle,
    ExportJob,
    StartedExport,
    read_error,
)
from tests.fuzz import fuzz
from tests.fuzz.mutation import HOSTILE_TEXTS, edited, edits, mutated_bytes, mutated_text
from tests.keys import ADMIN_KEY
from tests.unit.fakes import AGENT_JOB, BASE_URL, FakeTransport, http_client

Body = dict[str, Any]

GOOD: Final[tuple[Body, ...]] = (
    {"jobId": "se_1", "status": "queued"},
    {"status": "running", "progress": 57.5, "pageCount": 231},
    {"status": "failed", "error": {"message": "page /a does not render", "code": 7}},
    {"bundleUrl": "https://s.example.com/b?sig=1", "expiresAt": "2026-05-04T15:04:00Z", "sizeBytes": 1024},
    {**AGENT_JOB},
)
NAMES: Final = sorted({name for body in GOOD for name in body} | {"message", "detail"})
READERS: Final[tuple[Callable[[Mapping[str, object]], object], ...]] = (
    StartedExport.from_json,
    ExportJob.from_json,
    Bundle.from_json,
    AgentJob.from_json,
)

strings = st.one_of(
    st.text(max_size=20),
    st.sampled_from(HOSTILE_TEXTS),
    mutated_text(
        st.sampled_from(["se_1", "running", "https://s.example.com/b?sig=1", "http://127.0.0.1:9000/b", "2026-05-04T15:04:00Z"])
    ),
    st.sampled_from([ADMIN_KEY, f"a{ADMIN_KEY}", "x" * (MAX_TEXT_LENGTH + 1), "W" * 100_000]),
)
numbers = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from([-1, 0, -0.0, 100, 100.0000001, 2**53, 2**53 - 1, 1e308, 10**400, -(10**400), 1e11, 253402300800, 5e-324]),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, strings),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | strings, inner, max_size=3),
    max_leaves=5,
)
bodies = st.builds(
    lambda good, other: {**good, **other}, st.sampled_from(GOOD), st.dictionaries(st.sampled_from(NAMES), values, max_size=3)
)


def read_all(body: Mapping[str, object]) -> None:
    """Read a body with every reader, and check the results."""
    for read in READERS:
        try:
            found = read(body)
        except ValueError:
            continue
        CHECKS[type(found)](found)
    assert_text(read_error(body))


def assert_text(text: str | None) -> None:
    assert text is None or (text == text.strip() != "" and len(text) <= MAX_TEXT_LENGTH)


def check_started(started: StartedExport) -> None:
    assert started.job_id
    assert not {"Cc", "Cs"} & {unicodedata.category(character) for character in started.job_id}
    assert_text(started.status)


def check_export_job(job: ExportJob) -> None:
    assert job.status
    assert_text(job.status)
    assert_text(job.error)
    assert job.progress is None or (isinstance(job.progress, float) and 0 <= job.progress <= 100)
    assert job.page_count is None or (type(job.page_count) is int and 0 <= job.page_count < 2**53)


def check_bundle(bundle: Bundle) -> None:
    assert_address(bundle.url)
    parts = urlsplit(bundle.url)
    assert parts.scheme == "https" or parts.hostname in {"localhost", "::1"} or str(parts.hostname).startswith("127.")
    assert bundle.expires_at != ""
    assert bundle.expires is None or (bundle.expires_at and bundle.expires.utcoffset() == timedelta(0))


def check_agent_job(job: AgentJob) -> None:
    assert job.status
    for text in (job.status, job.repository, job.ref, job.model, job.created_at, job.archived_at):
        assert_text(text)
    if job.pr_link is not None:
        assert_address(job.pr_link)


def assert_address(url: str) -> None:
    """Check that a URL is an absolute web address without white space and control characters."""
    assert url.lower().startswith(("https://", "http://"))
    assert urlsplit(url).hostname
    assert not any(character.isspace() or unicodedata.category(character) in {"Cc", "Cs"} for character in url)


CHECKS: Final[Mapping[type, Callable[[Any], None]]] = {
    StartedExport: check_started,
    ExportJob: check_export_job,
    Bundle: check_bundle,
    AgentJob: check_agent_job,
}


def respond_with(content: bytes) -> ApiResponse:
    """Return the response with these bytes as its body."""
    client = ApiClient(http_client(FakeTransport(200, content)), base_url=BASE_URL, key=ADMIN_KEY)
    return client.send(Request(method="GET", url="/x"), Timeouts())


@fuzz("answers as values", body=bodies)
@example({"status": "running", "progress": 100.5, "pageCount": 1.5})
@example({"status": "running", "progress": True, "pageCount": 2**53})
@example({"status": " ", "jobId": "a\x85b", "prLink": "javascript:alert(1)"})
@example({"status": "completed", "prLink": "https://git.example.com/a b", "error": {"message": "x" * 5000}})
@example({"bundleUrl": "https://s.example.com/b", "expiresAt": 10**30})
@example({"bundleUrl": "https://s.example.com/b", "expiresAt": -1e-320})
@example({"bundleUrl": "https://s.example.com/b", "expiresAt": "0001-01-01T00:00:00+23:59"})
def test_any_json_gives_a_valid_object_or_none(body: Body) -> None:
    read_all(body)


def spelled(body: Body, *, doubled: bool, plain: bool) -> str:
    """Return JSON in unusual forms: with duplicate names, with non-ASCII characters."""
    text = json.dumps(body, ensure_ascii=not plain)
    return f"{{{text[1:-1]}, {text[1:-1]}}}" if doubled and body else text


texts = st.builds(spelled, bodies, doubled=st.booleans(), plain=st.booleans())
tokens = st.lists(
    st.sampled_from(
        [
            *('{"status":', '"running"', "{", "}", "[", "]", ":", ",", '"', "\\", "\\u", "\\ud800", "\\u0000", " ", "\ufeff"),
            "\0",
            *('"jobId"', '"status"', '"progress"', '"a"', "1", "-", "0", ".", "e", "E+9", "1e400", "NaN", "-Infinity", "true"),
            "null",
            *("9" * 5000, "[" * 100_000, '{"a":' * 50_000, "]" * 300, '"' + "W" * 1000 + '"', f'"{ADMIN_KEY}"'),
        ]
    ),
    max_size=12,
).map("".join)
encodings = st.sampled_from(["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1", "cp1252", "utf-7"])
encoded = st.builds(lambda text, encoding: text.encode(encoding, "replace"), texts, encodings)
contents = st.one_of(
    encoded,
    mutated_bytes(encoded, most=2),
    tokens.map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.builds(
        lambda body, todo: json.dumps(dict(edited([*body.items()], todo))).encode(),
        st.sampled_from(GOOD),
        edits(st.tuples(st.sampled_from(NAMES), values).map(lambda item: [item])),
    ),
    st.binary(max_size=60),
)


def texts_in(value: Any) -> Iterator[str]:
    """Yield the texts in a JSON value, without the names of members."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts_in(item)


def without_given(value: Any) -> Any:
    """Return JSON without the texts that are used as the API gave them; with the key in one of them, the response is refused."""
    if not isinstance(value, dict):
        return value
    given = {name for name in ("jobId", "bundleUrl", "prLink") if isinstance(value.get(name), str)}
    return {name: item for name, item in value.items() if name not in given}


@fuzz("answers as bytes", content=contents)
@example(b"[" * 100_000)
@example(b'{"a":' * 100_000)
@example(b'{"status": "running", "pageCount": ' + b"9" * 1_000_000 + b"}")
@example(b'{"status": "running", "progress": 1.' + b"9" * 1_000_000 + b"}")
@example(b'{"status": "running", "progress": 1e' + b"9" * 1_000_000 + b"}")
@example(b"9" * (MAX_RESPONSE_BYTES - 1))
@example(b"9" * (MAX_RESPONSE_BYTES + 1))
@example(b'{"status": "r\xff"}')
@example(b'\xef\xbb\xbf{"status": "r"}')
@example('{"status": "r"}'.encode("utf-16"))
@example(b'{"status": "\\ud800", "jobId": "\\ud800"}')
@example(f'{{"{ADMIN_KEY}": 1, "status": "{ADMIN_KEY}"}}'.encode())
@example(f'{{"jobId": "{ADMIN_KEY}"}}'.encode())
@example(b'{"status": "a", "status": ["b"]}')
def test_any_bytes_give_json_without_the_key_or_nothing(content: bytes) -> None:
    if len(content) > MAX_RESPONSE_BYTES:
        with pytest.raises(NetworkError):
            respond_with(content)
        return
    answer = respond_with(content)

    assert f" {len(content):,} byte" in answer.description
    if isinstance(answer.body, dict):
        read_all(answer.body)
    if answer.body is None:
        return
    assert not any(ADMIN_KEY in text for text in texts_in(without_given(answer.body)))
    expected = json.loads(content.decode("utf-8-sig", "surrogateescape"))
    if not any(ADMIN_KEY in text for text in texts_in(expected)):
        assert json.dumps(answer.body) == json.dumps(expected)
