"""One GET of a bundle: the request that is sent, and the meaning of the response's headers."""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, cast

import pytest
import requests

from docs_platform_action import __version__
from docs_platform_action.bundle.storage import MAX_ERROR_BYTES, MAX_REDIRECTS, error_text, request_bundle, validator_of
from docs_platform_action.errors import Cancelled, DownloadFailed
from docs_platform_action.http.client import HttpClient, Response
from docs_platform_action.http.faults import NetworkError
from docs_platform_action.http.transport import Exchange, Transport
from docs_platform_action.redaction import Redactor
from tests.unit.fakes import FakeTransport, RecordedEvents, Redirecting, context
from tests.virtual_platform import Sent
from tests.virtual_time import VirtualClock

PAST, RECENT, NOW = (f"Mon, 04 May 2026 {time} GMT" for time in ("12:00:00", "12:59:59", "13:00:00"))


class FakeStorage:
    """A storage behind a fake transport."""

    def __init__(self, transport: Transport, proxies: Mapping[str, str] | None = None) -> None:
        self.clock = VirtualClock()
        self.asked_proxies_for: list[str] = []
        self._proxies = proxies or {}
        self.redactor = Redactor()
        client = HttpClient(transport=transport, clock=self.clock, proxies_for=self._proxies_for, redactor=self.redactor)
        self._context = context(self.clock, RecordedEvents(), client=client)

    def _proxies_for(self, url: str) -> Mapping[str, str]:
        self.asked_proxies_for.append(url)
        return self._proxies

    def open(self, url: str, headers: Mapping[str, str] | None = None) -> AbstractContextManager[tuple[Response, str]]:
        return request_bundle(url, headers or {}, self._context, within_seconds=60)

    def get(self, url: str, headers: Mapping[str, str] | None = None) -> tuple[Response, str, bytes]:
        with self.open(url, headers) as (response, address):
            return response, address, b"".join(response.pieces)


class TestRequest:
    @pytest.mark.parametrize(
        ("link", "requested"),
        [
            ("https://s.example.com/a/b.tar.gz?X-Sig=a%2Fb,c&d=%7e", "https://s.example.com/a/b.tar.gz?X-Sig=a%2Fb,c&d=%7e"),
            ("https://s.example.com/%7Euser/a%20b?x=~!$'()*", "https://s.example.com/%7Euser/a%20b?x=~!$'()*"),
            ("https://s.example.com:8443/a?b#part", "https://s.example.com:8443/a?b"),
            ("https://me:secret@s.example.com/a", "https://s.example.com/a"),
            ("https://s.example.com", "https://s.example.com/"),
            ("https://s.example.com?sig=1", "https://s.example.com/?sig=1"),
            ("https://s.example.com#part", "https://s.example.com/"),
            ("https://s.example.com/a?b#part?c#d", "https://s.example.com/a?b"),
            ("https://s.example.com/\u96ea?\U0001f600", "https://s.example.com/%E9%9B%AA?%F0%9F%98%80"),
            ("https://bücher.example/ü?ß=é", "https://xn--bcher-kva.example/%C3%BC?%C3%9F=%C3%A9"),
            ("http://[::1]:8080/a", "http://[::1]:8080/a"),
        ],
    )
    def test_a_link_is_requested_as_it_is_written(self, link: str, requested: str) -> None:
        transport = FakeTransport()
        storage = FakeStorage(transport)

        storage.get(link)

        assert [request.url for request in transport.requests] == [requested]

    def test_it_carries_nothing_but_what_a_download_needs(self) -> None:
        transport = FakeTransport()
        storage = FakeStorage(transport)

        storage.get("https://me:secret@s.example.com/a", {"Range": "bytes=5-"})

        assert dict(transport.requests[0].headers) == {
            "Accept": "*/*",
            "Accept-Encoding": "identity",
            "Connection": "close",
            "User-Agent": f"docs-platform-action/{__version__}",
            "Range": "bytes=5-",
        }

    def test_the_proxies_are_those_for_its_address(self) -> None:
        transport = FakeTransport()
        storage = FakeStorage(transport, {"https": "http://proxy.example.com:3128"})

        storage.get("https://s.example.com/a")

        assert storage.asked_proxies_for == ["https://s.example.com/a"]
        assert [request.exchange.proxy for request in transport.requests] == ["http://proxy.example.com:3128"]

    def test_none_is_sent_after_a_cancel(self) -> None:
        transport = FakeTransport()
        storage = FakeStorage(transport)
        storage.clock.cancellation.cancel()

        with pytest.raises(Cancelled):
            storage.get("https://s.example.com/a")

        assert transport.requests == []


UNSAFE = (
    *("http://other.example.com/?secret=1", "ftp://s.example.com/", "javascript:alert(1)", "file:///etc/passwd"),
    *("https://[broken/", "", "/a\tb", "/a\x01b", "https://s.example.com/a\x7f", "/\xc2\x85"),
)
"""Redirects that are not followed."""


class TestRedirects:
    def test_relative_and_absolute_ones_are_followed(self) -> None:
        transport = Redirecting("/b", "//other.example.com/c?d", "https://me:x@third.example.com/\xc3\xbc", "?e=f")
        storage = FakeStorage(transport)

        _, address, body = storage.get("https://s.example.com/a?sig=1")

        assert body == b"bundle"
        assert [request.url for request in transport.requests] == [
            "https://s.example.com/a?sig=1",
            "https://s.example.com/b",
            "https://other.example.com/c?d",
            "https://third.example.com/%C3%BC",
            "https://third.example.com/%C3%BC?e=f",
        ]
        assert address == "https://third.example.com/ü"
        assert not any("Authorization" in request.headers for request in transport.requests)

    def test_the_signature_of_one_is_hidden_from_then_on(self) -> None:
        storage = FakeStorage(Redirecting("https://other.example.com/c?sig=5ecret-signature"))

        storage.get("https://s.example.com/a")

        assert "5ecret-signature" not in storage.redactor.hide("no such signature: 5ecret-signature")

    @pytest.mark.parametrize("location", ["https://o.example.com/a/../b;?", "https://o.example.com/./c;?d=%2f#", "HTTPS://o/a?"])
    def test_an_absolute_one_is_requested_byte_for_byte(self, location: str) -> None:
        transport = Redirecting(location)
        storage = FakeStorage(transport)

        storage.get("https://s.example.com/a")

        assert transport.requests[1].target == location.partition("#")[0][location.index("/", 8) :]

    def test_spaces_in_one_are_percent_encoded(self) -> None:
        transport = Redirecting("/my bundles/a b.tar.gz?name=a b")
        storage = FakeStorage(transport)

        storage.get("https://s.example.com/a")

        assert transport.requests[1].url == "https://s.example.com/my%20bundles/a%20b.tar.gz?name=a%20b"

    @pytest.mark.parametrize("location", UNSAFE)
    def test_one_to_an_unsafe_address_is_refused(self, location: str) -> None:
        transport = Redirecting(location)
        storage = FakeStorage(transport)

        with pytest.raises(DownloadFailed):
            storage.get("https://s.example.com/a")

        assert len(transport.requests) == 1

    def test_too_many_are_refused(self) -> None:
        transport = Redirecting(*["/a"] * (MAX_REDIRECTS + 1))
        storage = FakeStorage(transport)

        with pytest.raises(DownloadFailed):
            storage.get("https://s.example.com/a")

        assert len(transport.requests) == MAX_REDIRECTS + 1 == 6

    def test_the_most_that_are_allowed_are_followed(self) -> None:
        *_, body = FakeStorage(Redirecting(*["/a"] * MAX_REDIRECTS)).get("https://s.example.com/a")

        assert body == b"bundle"


def head(**headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(cast("Any", None), 200, named, iter(()))


class TestHeaders:
    @pytest.mark.parametrize(
        ("etag", "validator"),
        [('"a-1"', '"a-1"'), ('W/"a"', None), ("a", None), ('"a"b"', None), ('"a b"', None), ('""', None), ("", None)],
    )
    def test_of_etags_only_a_strong_one_is_a_validator(self, etag: str, validator: str | None) -> None:
        assert validator_of(head(ETag=etag)) == validator

    @pytest.mark.parametrize(
        ("headers", "is_strong"),
        [
            ({"Last_Modified": PAST, "Date": NOW}, True),
            ({"Last_Modified": RECENT, "Date": NOW}, True),
            ({"Last_Modified": NOW, "Date": NOW}, False),
            ({"Last_Modified": NOW, "Date": PAST}, False),
            ({"Last_Modified": PAST}, False),
            ({"Last_Modified": PAST, "Date": "Mon, 04 May 2026"}, False),
            ({"Last_Modified": "Thu, 31 Feb 2022 12:00:00 GMT", "Date": NOW}, False),
            ({"Last_Modified": "Monday, 04-May-26 12:00:00 GMT", "Date": NOW}, True),
            ({"Last_Modified": "Mon May  4 12:00:00 2026", "Date": NOW}, True),
            ({"Last_Modified": PAST.replace("GMT", "+0000"), "Date": NOW}, True),
            ({"Last_Modified": PAST, "Date": NOW, "ETag": 'W/"a"'}, False),
            ({"Last_Modified": PAST, "Date": NOW, "ETag": "a"}, False),
            ({"Last_Modified": PAST, "Date": NOW, "ETag": ""}, True),
        ],
    )
    def test_without_an_etag_a_date_is_one_if_it_is_a_second_old(self, headers: dict[str, str], is_strong: bool) -> None:
        assert validator_of(head(**headers)) == (headers["Last_Modified"] if is_strong else None)


def sleep_within(exchange: Exchange, seconds: float) -> None:
    """Let time pass, or give up the exchange when its time is up."""
    waited = min(seconds, exchange.remaining_seconds)
    exchange.clock.sleep(waited)
    exchange.remaining_seconds -= waited
    if exchange.remaining_seconds <= 0:
        raise exchange.give_up()


class LateRedirect(Redirecting):
    """Takes `seconds` for each response. The first one redirects."""

    def __init__(self, seconds: float) -> None:
        super().__init__("https://other.example.com/b")
        self._seconds = seconds

    def respond(self, sent: Sent) -> requests.Response:
        response = super().respond(sent)
        sleep_within(sent.exchange, self._seconds)
        return response


class TestTimeLimits:
    @pytest.mark.parametrize("seconds", [1, 29])
    def test_a_response_after_a_redirect_may_come_within_a_minute(self, seconds: float) -> None:
        *_, body = FakeStorage(LateRedirect(seconds)).get("https://s.example.com/a")

        assert body == b"bundle"

    @pytest.mark.parametrize("seconds", [31, 61])
    def test_redirects_share_one_time_limit(self, seconds: float) -> None:
        storage = FakeStorage(LateRedirect(seconds))

        with pytest.raises(NetworkError):
            storage.get("https://s.example.com/a")

        assert storage.clock.elapsed == 60


class TestErrors:
    def test_an_untrusted_certificate_is_final(self) -> None:
        cause = ssl.SSLCertVerificationError(1, "certificate verify failed")
        cause.verify_message, cause.verify_code = "self-signed certificate", 18

        with pytest.raises(DownloadFailed):
            FakeStorage(FakeTransport(error=requests.exceptions.SSLError(cause))).get("https://s.example.com/a")

    def test_a_socks_proxy_is_refused(self) -> None:
        transport = FakeTransport()
        storage = FakeStorage(transport, {"https": "socks5://proxy.example.com:1080"})

        with pytest.raises(DownloadFailed):
            storage.get("https://s.example.com/a")

        assert transport.requests == []

    @pytest.mark.parametrize("link", ["https://*.example.com/a", "https://[v1.x]/a", "https://-ß.example.com/a"])
    def test_a_link_with_a_host_that_cannot_exist_is_an_error_of_the_storage(self, link: str) -> None:
        transport = FakeTransport()

        with pytest.raises((DownloadFailed, NetworkError)):
            FakeStorage(transport).get(link)

        assert transport.requests == []

    def test_a_redirect_without_an_address_shows_what_the_storage_said(self) -> None:
        body = b"<Error><Code>PermanentRedirect</Code><Message>Use another endpoint</Message></Error>"

        with pytest.raises(DownloadFailed) as caught:
            FakeStorage(FakeTransport(301, body, {"X-Amz-Request-Id": "r-1"})).get("https://s.example.com/a")

        assert "301 (PermanentRedirect: Use another endpoint)" in caught.value.details[0]
        assert caught.value.request_id == "r-1"

    @pytest.mark.parametrize(
        ("body", "text"),
        [
            (
                b"<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>",
                "403 (AccessDenied: Request has expired)",
            ),
            (b"<Error><Code>NoSuchKey</Code></Error>", "403 (NoSuchKey)"),
            (b"<Message>no</Message>", "403 (no)"),
            (b"no", "403"),
            (b"<Code></Code>", "403"),
            (b"<Code>" + b"x" * 200 + b"</Code>", f"403 ({'x' * 200})"),
            (b"<Code>" + b"x" * 201 + b"</Code>", "403"),
            (b"\xff<Code>No</Code>", "403 (No)"),
            (b"x" * MAX_ERROR_BYTES + b"<Code>No</Code>", "403 (No)"),
        ],
    )
    def test_an_error_is_shown_with_the_code_and_the_message_of_the_storage(self, body: bytes, text: str) -> None:
        with FakeStorage(FakeTransport(403, body)).open("https://s.example.com/a") as (response, _):
            assert error_text(response) == text

    def test_little_is_read_of_a_long_error(self) -> None:
        response = head()
        response.pieces = iter([bytes(MAX_ERROR_BYTES), b"<Code>", b"No</Code>"])

        assert error_text(response) == "200"
        assert next(response.pieces) == b"<Code>"

    def test_an_error_that_is_cut_off_is_shown_by_its_status(self) -> None:
        def pieces() -> Iterator[bytes]:
            yield b"<Code>No</Code>"
            raise NetworkError("cut", maybe_processed=True)

        response = head()
        response.pieces = pieces()

        assert error_text(response) == "200"
