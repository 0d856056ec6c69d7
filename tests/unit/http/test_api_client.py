"""Requests carry the key to one address alone, and a response is read as JSON without the key."""

import json

import pytest

from docs_platform_action.http.api_client import MAX_RESPONSE_BYTES, ApiClient, ApiResponse
from docs_platform_action.http.faults import NetworkError
from docs_platform_action.http.transport import Request, Timeouts
from docs_platform_action.redaction import HIDDEN
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
    assert sent.headers["Authorization"] == f"Bearer {ADMIN_KEY}"
    assert sent.headers["Accept"] == "application/json"
    assert sent.url == f"{BASE_URL}:8443/admin/v1/x%2F?a"
    assert sent.exchange.host == "api.example.com:8443"


def test_a_response_has_its_parts() -> None:
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "Retry-After": "7",
        "X-Request-Id": "r-1",
    }

    found = exchange(FakeTransport(Answer(status=503, body=b'{"error": "x"}', headers=headers)))

    assert found.status == 503
    assert found.body == {"error": "x"}
    assert found.retry_after_seconds == 7
    assert found.request_id == "r-1"
    assert not found.is_web_page
    assert found.description == "application/json, 14 bytes"


def test_a_coding_that_cannot_be_undone_is_named() -> None:
    headers = {"Content-Type": "", "Content-Encoding": "br"}

    found = exchange(FakeTransport(Answer(body=b"x", headers=headers)))

    assert found.description == "no content type, 1 byte, Content-Encoding br"


@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=500, body=b"{", is_cut=True),
        Answer(status=500, body=b" " * (MAX_RESPONSE_BYTES + 1)),
    ],
)
def test_an_error_response_needs_no_body_that_can_be_read(answer: Answer) -> None:
    found = exchange(FakeTransport(answer))

    assert found.status == 500
    assert found.body is None


@pytest.mark.parametrize(
    "answer",
    [
        Answer(body=b"{", is_cut=True),
        Answer(body=b" " * (MAX_RESPONSE_BYTES + 1)),
    ],
)
def test_a_success_whose_body_is_cut_or_too_large_is_a_network_error(answer: Answer) -> None:
    with pytest.raises(NetworkError) as caught:
        exchange(FakeTransport(answer))

    assert caught.value.maybe_processed


def test_the_key_is_hidden_in_a_body_but_not_in_a_field_that_is_used_as_it_is() -> None:
    body = b'{"jobId": "x-%(key)b", "a": [{"b": "%(key)b"}, 7]}' % {b"key": ADMIN_KEY.encode()}
    hidden = [{"b": HIDDEN}, 7]

    assert exchange(FakeTransport(Answer(body=body))).body == {
        "jobId": f"x-{ADMIN_KEY}",
        "a": hidden,
    }
    assert exchange(FakeTransport(Answer(status=400, body=body))).body == {
        "jobId": f"x-{HIDDEN}",
        "a": hidden,
    }


@pytest.mark.parametrize("body", [[7], "x", None, {"bundleUrl": 7}, {"bundleUrl": "https://[x"}])
def test_a_body_of_any_other_form_is_read_as_it_is(body: object) -> None:
    answer = Answer(body=json.dumps(body).encode())

    assert exchange(FakeTransport(answer)).body == body


def test_a_short_key_stays_in_a_body_because_it_may_be_part_of_a_word() -> None:
    found = exchange(FakeTransport(Answer(body=b'{"status": "completed"}')), key="complet")

    assert found.body == {"status": "completed"}


def test_only_a_field_that_is_used_as_it_is_must_not_contain_the_key() -> None:
    client = ApiClient(http_client(FakeTransport()), base_url=BASE_URL, key=ADMIN_KEY)

    assert client.field_with_key({"jobId": "x", "bundleUrl": f"x{ADMIN_KEY}"}) == "bundleUrl"
    assert client.field_with_key({"jobId": "x", "other": ADMIN_KEY}) is None


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
    answer = Answer(body=content, headers={"Content-Type": content_type})

    assert exchange(FakeTransport(answer)).is_web_page == expected


def test_the_text_of_an_error_response_is_quoted_if_there_is_any() -> None:
    client = ApiClient(http_client(FakeTransport()), base_url=BASE_URL, key=ADMIN_KEY)

    (sentence,) = client.quote("no room")
    assert '"no room"' in sentence
    assert client.quote("") == ()
    assert client.quote(None) == ()
