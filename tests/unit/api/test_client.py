"""The API's client sends the key only to the base URL, limits the size of JSON, and hides the key in it."""

import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action import __version__
from docs_platform_action.api.client import MAX_RESPONSE_BYTES, ApiClient, ApiResponse
from docs_platform_action.http.faults import NetworkError
from docs_platform_action.http.transport import Request, Timeouts
from docs_platform_action.models import (
    ExportJob,
    StartedExport,
)
from tests.keys import ADMIN_KEY
from tests.unit.fakes import BASE_URL, FakeTransport, http_client


def api_client(transport: FakeTransport, *, base_url: str = BASE_URL, key: str = ADMIN_KEY) -> ApiClient:
    return ApiClient(http_client(transport, secrets=[key]), base_url=base_url, key=key)


def exchange(
    transport: FakeTransport, method: str = "GET", path: str = "/x", body: dict[str, object] | None = None
) -> ApiResponse:
    return api_client(transport).send(Request(method=method, url=path, body=body), Timeouts())


class TestRequest:
    def test_it_carries_the_key_and_names_the_action(self) -> None:
        transport = FakeTransport()

        exchange(transport)

        headers = transport.requests[0].headers
        assert headers["Authorization"] == f"Bearer {ADMIN_KEY}"
        assert headers["User-Agent"] == f"docs-platform-action/{__version__}"
        assert headers["Accept"] == "application/json"

    @pytest.mark.parametrize(
        ("body", "sent", "headers"),
        [
            ({"domain": "d"}, b'{"domain": "d"}', {"Content-Length": "15", "Content-Type": "application/json"}),
            (None, None, {"Content-Length": "0"}),
        ],
    )
    def test_a_body_is_sent_as_json(self, body: dict[str, object] | None, sent: bytes | None, headers: dict[str, str]) -> None:
        transport = FakeTransport()

        exchange(transport, "POST", body=body)

        (request,) = transport.requests
        assert request.body == sent
        assert {name: text for name, text in request.headers.items() if name.startswith("Content")} == headers

    @pytest.mark.parametrize("path", ["/jobs/a%2Fb", "/jobs/%2E%2E", "/jobs/%252F", "/jobs/%C3%BC", "/jobs/~a-b_c.d"])
    def test_a_path_is_sent_byte_for_byte_after_the_prefix(self, path: str) -> None:
        transport = FakeTransport()

        api_client(transport, base_url="https://example.com:8443/admin").send(Request(method="GET", url=path), Timeouts())

        assert transport.requests[0].url == f"https://example.com:8443/admin{path}"

    def test_the_host_is_named_with_its_port(self) -> None:
        assert api_client(FakeTransport(), base_url="https://example.com:8443/admin").host == "example.com:8443"


class TestAnswer:
    @pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
    def test_json_is_read_with_status_headers_and_size(self, mark: bytes) -> None:
        body = mark + b'{"status": "queued"}'

        answer = exchange(FakeTransport(202, body, {"Retry-After": "3"}))

        assert (answer.status, answer.body, answer.description) == (
            202,
            {"status": "queued"},
            f"no content type, {len(body)} bytes",
        )
        assert answer.headers["retry-after"] == "3"

    @pytest.mark.parametrize(
        "content", [b"", b"<html>", b"{", b"\xff\xfe", b"[" * 200_000], ids=lambda content: repr(content[:8])
    )
    def test_a_body_that_is_not_json_is_none(self, content: bytes) -> None:
        assert exchange(FakeTransport(200, content)).body is None

    def test_invalid_utf_8_spoils_only_its_own_field(self) -> None:
        body = exchange(FakeTransport(200, b'{"jobId": "se_1", "status": "termin\xe9"}')).body

        assert isinstance(body, dict)
        assert StartedExport.from_json(body) == StartedExport(job_id="se_1", status="termin\udce9")

    def test_a_job_id_that_is_not_utf_8_is_invalid(self) -> None:
        body = exchange(FakeTransport(200, b'{"jobId": "se_\xe9"}')).body

        assert isinstance(body, dict)
        with pytest.raises(ValueError, match="`jobId`"):
            StartedExport.from_json(body)

    def test_a_huge_number_makes_only_its_own_field_unknown(self) -> None:
        body = exchange(FakeTransport(200, b'{"status": "running", "pageCount": ' + b"9" * 401 + b"}")).body

        assert isinstance(body, dict)
        assert ExportJob.from_json(body) == ExportJob(status="running")

    def test_other_numbers_are_read(self) -> None:
        assert exchange(FakeTransport(200, b"[-7, 0, 412]")).body == [-7, 0, 412]

    @pytest.mark.parametrize("depth", [100, 300, 600, 900, 950, 990, 1010])
    def test_json_of_any_depth_is_read_or_none(self, depth: int) -> None:
        body = exchange(FakeTransport(200, b"[" * depth + b"]" * depth)).body

        assert body is None or isinstance(body, list)

    def test_the_body_of_an_error_is_read(self) -> None:
        assert exchange(FakeTransport(404, b'{"error": "job not found"}')).body == {"error": "job not found"}

    def test_the_largest_allowed_response_is_read(self) -> None:
        content = b'"' + b"x" * (MAX_RESPONSE_BYTES - 2) + b'"'

        assert exchange(FakeTransport(200, content)).body == content[1:-1].decode()

    @pytest.mark.parametrize("status", [302, 401, 403, 404, 429, 503])
    @pytest.mark.parametrize("content", [b"{" * (MAX_RESPONSE_BYTES + 1), gzip.compress(b"{}")[:-1]], ids=["large", "damaged"])
    def test_the_status_of_an_error_is_known_even_if_its_body_cannot_be_read(self, status: int, content: bytes) -> None:
        coding = {"Content-Encoding": "gzip"} if content.startswith(b"\x1f") else {}

        answer = exchange(FakeTransport(status, content, {**coding, "Retry-After": "7"}))

        assert (answer.status, answer.body, answer.headers["Retry-After"]) == (status, None, "7")

    def test_a_larger_one_is_a_network_error(self) -> None:
        with pytest.raises(NetworkError) as caught:
            exchange(FakeTransport(200, b"x" * (MAX_RESPONSE_BYTES + 1)))

        assert caught.value.maybe_processed


class TestScrubbing:
    def test_an_echoed_key_is_hidden_in_bodies(self) -> None:
        echo = {"error": f"key {ADMIN_KEY} is wrong", "y": [{"x": f"Bearer {ADMIN_KEY}"}], "n": 1}

        answer = exchange(FakeTransport(401, json.dumps(echo).encode()))

        assert answer.body == {"error": "key *** is wrong", "y": [{"x": "Bearer ***"}], "n": 1}

    def test_an_echoed_key_is_hidden_behind_escapes(self) -> None:
        escaped = "".join(f"\\u{ord(character):04x}" for character in ADMIN_KEY)

        answer = exchange(FakeTransport(401, f'{{"error": "{escaped}"}}'.encode()))

        assert answer.body == {"error": "***"}

    @pytest.mark.parametrize("name", ["jobId", "bundleUrl", "prLink"])
    def test_a_field_that_is_used_stays_as_the_api_gave_it(self, name: str) -> None:
        value = f"https://git.example.com/{ADMIN_KEY[1:]}"

        assert exchange(FakeTransport(200, json.dumps({name: value}).encode())).body == {name: value}

    @given(
        st.recursive(
            st.sampled_from([ADMIN_KEY, f"a{ADMIN_KEY}b", ADMIN_KEY * 2, "x", None, 1]),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b"]), inner),
            max_leaves=8,
        )
    )
    def test_no_echo_is_left_anywhere(self, body: Any) -> None:
        answer = exchange(FakeTransport(200, json.dumps(body).encode()))

        assert ADMIN_KEY not in json.dumps(answer.body)
