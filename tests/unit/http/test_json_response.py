"""A response is read as JSON, from which the key is hidden."""

import json

import pytest

from docs_platform_action.http.faults import NetworkError
from docs_platform_action.http.json_response import (
    MAX_RESPONSE_BYTES,
    JsonResponse,
    quote,
    request_json,
)
from docs_platform_action.http.transport import Request, Timeouts
from docs_platform_action.redaction import HIDDEN
from tests.keys import ADMIN_KEY
from tests.unit.fakes import BASE_URL, HOST, Answer, FakeTransport, http_client


def response_of(answer: Answer, *, key: str = ADMIN_KEY) -> JsonResponse:
    """Return the response to a request that is sent for this key."""
    client = http_client(FakeTransport(answer), secrets=[key])
    request = Request(method="GET", url=f"{BASE_URL}/v1/x")
    return request_json(client, client.new_exchange(request, Timeouts(), headers={}))


def test_a_response_has_its_parts() -> None:
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "Retry-After": "7",
        "X-Request-Id": "r-1",
    }

    found = response_of(Answer(status=503, body=b'{"error": "x"}', headers=headers))

    assert found.status == 503
    assert found.body == {"error": "x"}
    assert found.retry_after_seconds == 7
    assert found.request_id == "r-1"
    assert not found.is_web_page
    assert found.description == "application/json, 14 bytes"


def test_a_byte_order_mark_does_not_count() -> None:
    assert response_of(Answer(body=b"\xef\xbb\xbf{}")).body == {}


def test_a_coding_that_cannot_be_undone_is_named() -> None:
    headers = {"Content-Type": "", "Content-Encoding": "br"}

    found = response_of(Answer(body=b"x", headers=headers))

    assert found.description == "no content type, 1 byte, Content-Encoding br"


@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=500, body=b"{", is_cut=True),
        Answer(status=500, body=b" " * (MAX_RESPONSE_BYTES + 1)),
    ],
)
def test_an_error_response_needs_no_body_that_can_be_read(answer: Answer) -> None:
    found = response_of(answer)

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
        response_of(answer)

    assert caught.value.was_sent


def test_the_key_is_hidden_in_a_body_but_not_in_a_field_that_is_used_as_it_is() -> None:
    body = b'{"jobId": "x-%(key)b", "a": [{"b": "%(key)b"}, 7]}' % {b"key": ADMIN_KEY.encode()}
    hidden = [{"b": HIDDEN}, 7]

    assert response_of(Answer(body=body)).body == {
        "jobId": f"x-{ADMIN_KEY}",
        "a": hidden,
    }
    assert response_of(Answer(status=400, body=body)).body == {
        "jobId": f"x-{HIDDEN}",
        "a": hidden,
    }


@pytest.mark.parametrize("body", [[7], "x", None, {"bundleUrl": 7}, {"bundleUrl": "https://[x"}])
def test_a_body_of_any_other_form_is_read_as_it_is(body: object) -> None:
    answer = Answer(body=json.dumps(body).encode())

    assert response_of(answer).body == body


def test_a_short_key_stays_in_a_body_because_it_may_be_part_of_a_word() -> None:
    found = response_of(Answer(body=b'{"status": "completed"}'), key="complet")

    assert found.body == {"status": "completed"}


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({"jobId": "x", "bundleUrl": f"x{ADMIN_KEY}"}, "bundleUrl"),
        ({"jobId": f"x-{ADMIN_KEY}"}, "jobId"),
        ({"prLink": ADMIN_KEY}, "prLink"),
        ({"jobId": "x", "other": ADMIN_KEY}, None),
        ([{"jobId": ADMIN_KEY}], None),
        (ADMIN_KEY, None),
    ],
)
def test_only_a_field_that_is_used_as_it_is_must_not_contain_the_key(
    body: object, name: str | None
) -> None:
    content = json.dumps(body).encode()

    assert response_of(Answer(body=content)).field_with_key == name
    # an error's fields are not used
    assert response_of(Answer(status=400, body=content)).field_with_key is None


def test_the_signature_of_a_link_is_hidden_from_then_on() -> None:
    link = f"{BASE_URL}/b?X-Amz-Signature=0123456789"
    client = http_client(FakeTransport(Answer(body=json.dumps({"bundleUrl": link}).encode())))
    request = Request(method="GET", url=BASE_URL)

    found = request_json(client, client.new_exchange(request, Timeouts(), headers={}))

    assert found.body == {"bundleUrl": link}
    assert client.redactor.hide("0123456789") == "…"


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

    assert response_of(answer).is_web_page == expected


@pytest.mark.parametrize(
    ("status", "is_success"), [(199, False), (200, True), (299, True), (300, False), (503, False)]
)
def test_a_2xx_is_a_success(status: int, is_success: bool) -> None:
    assert response_of(Answer(status=status)).is_success == is_success


def test_the_reason_in_an_error_response_is_quoted_if_there_is_any() -> None:
    found = response_of(Answer(status=503, body=b'{"error": "no room"}'))

    (sentence,) = found.quotes
    assert '"no room"' in sentence
    assert HOST in sentence
    assert response_of(Answer(status=503)).quotes == ()


@pytest.mark.parametrize("reason", ["", None])
def test_without_a_reason_nothing_is_quoted(reason: str | None) -> None:
    assert quote(HOST, reason) == ()
