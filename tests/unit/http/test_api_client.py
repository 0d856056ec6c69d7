"""Requests carry the key to one address alone, and a response is read as JSON without the key."""

import pytest

from docs_platform_action.http.api_client import ApiClient, ApiResponse
from docs_platform_action.http.transport import Request, Timeouts
from tests.keys import ADMIN_KEY
from tests.unit.fakes import BASE_URL, Answer, FakeTransport, http_client


def exchange(
    transport: FakeTransport, *, base_url: str = BASE_URL, key: str = ADMIN_KEY
) -> ApiResponse:
    client = ApiClient(http_client(transport, secrets=[key]), base_url=base_url, key=key)
    return client.send(Request(method="GET", url="/v1/x%2F?a"), Timeouts())


def test_a_request_carries_the_key_to_the_path_after_the_prefix() -> None:
    transport = FakeTransport()

    exchange(transport, base_url=f"{BASE_URL}:8443/admin")

    (sent,) = transport.requests
    assert (sent.headers["Authorization"], sent.headers["Accept"]) == (
        f"Bearer {ADMIN_KEY}",
        "application/json",
    )
    assert (sent.url, sent.exchange.host) == (
        f"{BASE_URL}:8443/admin/v1/x%2F?a",
        "api.example.com:8443",
    )


def test_a_response_has_its_parts() -> None:
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "Retry-After": "7",
        "X-Request-Id": "r-1",
    }

    found = exchange(FakeTransport(Answer(status=503, body=b'{"error": "x"}', headers=headers)))

    assert (found.status, found.body, found.retry_after_seconds, found.request_id) == (
        503,
        {"error": "x"},
        7,
        "r-1",
    )
    assert (found.is_web_page, found.description) == (False, "application/json, 14 bytes")


@pytest.mark.parametrize(
    ("content", "content_type", "expected"),
    [
        (b" <!DOCTYPE html>", "", True),
        (b"<HTML>", "", True),
        (b"x", "text/html", True),
        (b"{}", "text/html", False),
        (b"<xml>", "", False),
    ],
)
def test_a_web_page_is_recognized(content: bytes, content_type: str, expected: bool) -> None:
    assert (
        exchange(
            FakeTransport(Answer(body=content, headers={"Content-Type": content_type}))
        ).is_web_page
        == expected
    )
