"""Requests to the storage: their redirects, their validators, and its errors."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import pytest

from docs_platform_action.bundle.storage import error_text, request_bundle, validator_of
from docs_platform_action.errors import DownloadFailed
from tests.unit.fakes import Answer, FakeTransport, RecordedEvents, context, http_client
from tests.virtual_time import VirtualClock

LINK: Final = "https://s.example.com/a/b?sig=a%2Fb,c"
NOW: Final = "Mon, 04 May 2026 12:00:00 GMT"
RECENT: Final = "Mon, 04 May 2026 11:59:59 GMT"


def redirecting(*locations: str) -> FakeTransport:
    """Return a storage with one redirect after another, and then a bundle."""
    redirects = [Answer(status=302, headers={"Location": location}) for location in locations]
    return FakeTransport(*redirects, Answer())


def fetch(transport: FakeTransport, url: str = LINK) -> str:
    """Request a link, and return the address of the response."""
    parts = context(VirtualClock(), RecordedEvents(), client=http_client(transport))
    requested = request_bundle(url, {"Range": "bytes=5-"}, parts, within_seconds=60)
    with requested as (response, address):
        assert b"".join(response.pieces)
        return address


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/c?x=%2f", "https://s.example.com/c?x=%2f"),
        ("//t.example.com/c", "https://t.example.com/c"),
        ("https://t.example.com/../c?x=%7e", "https://t.example.com/../c?x=%7e"),
        ("https://t.example.com/a b", "https://t.example.com/a%20b"),
        ("/é".encode().decode("latin-1"), "https://s.example.com/%C3%A9"),
        ("http://127.0.0.1:9000/c", "http://127.0.0.1:9000/c"),
    ],
)
def test_a_redirect_to_https_or_to_this_machine_is_followed(location: str, target: str) -> None:
    transport = redirecting(location)

    fetch(transport)

    assert [sent.url for sent in transport.requests][1:] == [target]
    assert transport.requests[1].headers["Range"] == "bytes=5-"


@pytest.mark.parametrize(
    ("location", "named"),
    [
        ("", "unreadable"),
        ("http://t.example.com/", "t.example.com"),
        ("ftp://t.example.com/", "t.example.com"),
        ("https://", "unreadable"),
        ("https://[x/", "unreadable"),
        ("https://t\x7f.example.com/", "unreadable"),
        ("/a\tb", "unreadable"),
    ],
)
def test_any_other_fails_at_once_with_its_request_id(location: str, named: str) -> None:
    redirect = Answer(
        status=302,
        headers={"Location": location, "X-Amz-Request-Id": "r-1"},
        body=b"<Code>Moved</Code>",
    )
    transport = FakeTransport(redirect)

    with pytest.raises(DownloadFailed) as caught:
        fetch(transport)

    assert caught.value.request_id == "r-1"
    assert named in caught.value.summary
    assert "302" in caught.value.summary
    assert "Moved" in caught.value.details[0]
    assert len(transport.requests) == 1


@pytest.mark.parametrize(
    ("count", "outcome"), [(5, nullcontext()), (6, pytest.raises(DownloadFailed))]
)
def test_five_redirects_are_followed(count: int, outcome: AbstractContextManager[object]) -> None:
    with outcome:
        fetch(redirecting(*["/again"] * count))


def test_the_signature_of_a_redirects_target_is_hidden_from_then_on() -> None:
    client = http_client(redirecting("https://t.example.com/c?X-Amz-Signature=0123456789"))
    parts = context(VirtualClock(), RecordedEvents(), client=client)

    with request_bundle(LINK, {}, parts, within_seconds=60):
        assert client.redactor.hide("0123456789 is wrong") == "… is wrong"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"<Error><Code>Slow</Code><Message>Later</Message></Error>", "503 (Slow: Later)"),
        (b"<Error><Message>Later</Message></Error>", "503 (Later)"),
        (b"<Error><Code></Code></Error>", "503"),
        (b' {"code": 503, "message": "Later"}', "503 (Later)"),
        (b'{"error":{"code":"Slow","message":"Later"}}', "503 (Slow: Later)"),
        (b'a web page with "message": "Later"', "503"),
        (b"\xff", "503"),
    ],
)
def test_an_error_is_its_status_with_what_the_storage_says(body: bytes, text: str) -> None:
    client = http_client(FakeTransport(Answer(status=503, body=body)))
    parts = context(VirtualClock(), RecordedEvents(), client=client)

    with request_bundle(LINK, {}, parts, within_seconds=60) as (response, _address):
        assert error_text(response) == text


@pytest.mark.parametrize(
    ("headers", "validator"),
    [
        ({"ETag": '"a"'}, '"a"'),
        ({"ETag": 'W/"a"', "Last-Modified": RECENT, "Date": NOW}, None),
        ({"ETag": '"a"b"'}, None),
        ({"Last-Modified": RECENT, "Date": NOW}, RECENT),
        ({"Last-Modified": NOW, "Date": NOW}, None),
        ({"Last-Modified": "yesterday", "Date": NOW}, None),
        ({"Last-Modified": RECENT}, None),
        ({}, None),
    ],
)
def test_only_a_strong_etag_or_without_any_a_strong_date_is_a_validator(
    headers: dict[str, str], validator: str | None
) -> None:
    response: Any = type("Response", (), {"headers": {"ETag": "", **headers}})
    assert validator_of(response) == validator
