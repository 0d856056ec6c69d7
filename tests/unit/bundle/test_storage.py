"""One GET of a bundle: the request that is sent, and the meaning of the response's headers."""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import Any

import pytest
import requests

from docs_platform_action import __version__
from docs_platform_action.bundle.storage import (
    MAX_ERROR_BYTES,
    MAX_REDIRECTS,
    MIN_BYTES_PER_SECOND,
    SLOW_SECONDS,
    StorageResponse,
    request_bundle,
)
from docs_platform_action.errors import Cancelled, DownloadFailed
from docs_platform_action.http.client import HttpClient
from docs_platform_action.http.connection import AbortableRequest, Exchange, InFlight
from docs_platform_action.http.faults import NetworkError
from docs_platform_action.job import Job
from docs_platform_action.models import EXPORT
from docs_platform_action.redaction import Redactor
from tests.keys import ADMIN_KEY
from tests.unit.fakes import FakeAdapter, RecordedEvents, Redirecting, context
from tests.virtual_time import VirtualClock

NO_SECRETS = Redactor([])

PAST, RECENT, NOW = (f"Mon, 04 May 2026 {time} GMT" for time in ("12:00:00", "12:59:59", "13:00:00"))


class FakeStorage:
    """A storage behind a fake adapter."""

    def __init__(self, adapter: FakeAdapter, proxies: Mapping[str, str] | None = None) -> None:
        self.adapter = adapter
        clock = VirtualClock()
        self.in_flight = InFlight(clock)
        self.asked_proxies_for: list[str] = []
        self._proxies = proxies or {}
        client = HttpClient(
            adapter=adapter, in_flight=self.in_flight, proxies_for=self._proxies_for, redactor=Redactor([ADMIN_KEY])
        )
        self.events = RecordedEvents()
        self._context = context(clock, self.events, client=client)

    @property
    def redirects(self) -> list[str]:
        return [url for (url,) in self.events.of("link_redirected")]

    def _proxies_for(self, url: str) -> Mapping[str, str]:
        self.asked_proxies_for.append(url)
        return self._proxies

    def open(self, url: str, headers: Mapping[str, str] | None = None) -> AbstractContextManager[StorageResponse]:
        return request_bundle(url, headers or {}, Job(mode=EXPORT), self._context, within_seconds=60)

    def get(self, url: str, headers: Mapping[str, str] | None = None) -> tuple[StorageResponse, bytes]:
        with self.open(url, headers) as response:
            return response, b"".join(response.pieces)


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
        storage = FakeStorage(FakeAdapter())

        storage.get(link)

        assert [request.url for request in storage.adapter.requests] == [requested]

    def test_it_carries_nothing_but_what_a_download_needs(self) -> None:
        storage = FakeStorage(FakeAdapter())

        storage.get("https://me:secret@s.example.com/a", {"Range": "bytes=5-"})

        assert dict(storage.adapter.requests[0].headers) == {
            "Accept": "*/*",
            "Accept-Encoding": "identity",
            "Connection": "close",
            "User-Agent": f"docs-platform-action/{__version__}",
            "Range": "bytes=5-",
        }

    def test_the_proxies_are_those_for_its_address(self) -> None:
        storage = FakeStorage(FakeAdapter(), {"https": "http://proxy.example.com:3128"})

        storage.get("https://s.example.com/a")

        assert storage.asked_proxies_for == ["https://s.example.com/a"]
        assert storage.adapter.options[0]["proxies"] == {"https": "http://proxy.example.com:3128"}

    def test_none_is_sent_after_a_cancel(self) -> None:
        storage = FakeStorage(FakeAdapter())
        storage.in_flight.stop()

        with pytest.raises(Cancelled):
            storage.get("https://s.example.com/a")

        assert storage.adapter.requests == []


def test_no_connection_is_used_twice() -> None:
    storage = FakeStorage(Redirecting("/b"))

    storage.get("https://s.example.com/a")

    requested = [request for request in storage.adapter.requests if isinstance(request, AbortableRequest)]
    assert [(request.exchange.new_connection, request.headers["Connection"]) for request in requested] == [(True, "close")] * 2


UNSAFE = (
    *("http://other.example.com/?secret=1", "ftp://s.example.com/", "javascript:alert(1)", "file:///etc/passwd"),
    *("https://[broken/", "", "/a\tb", "/a\x01b", "https://s.example.com/a\x7f", "/\xc2\x85"),
)
"""Redirects that are not followed."""


class TestRedirects:
    def test_relative_and_absolute_ones_are_followed(self) -> None:
        storage = FakeStorage(Redirecting("/b", "//other.example.com/c?d", "https://me:x@third.example.com/\xc3\xbc", "?e=f"))

        response, body = storage.get("https://s.example.com/a?sig=1")

        assert body == b"bundle"
        assert [request.url for request in storage.adapter.requests] == [
            "https://s.example.com/a?sig=1",
            "https://s.example.com/b",
            "https://other.example.com/c?d",
            "https://third.example.com/%C3%BC",
            "https://third.example.com/%C3%BC?e=f",
        ]
        assert response.address == "https://third.example.com/ü"
        assert not any("Authorization" in request.headers for request in storage.adapter.requests)

    def test_each_is_announced_before_it_is_followed(self) -> None:
        storage = FakeStorage(Redirecting("https://other.example.com/c?sig=2"))

        storage.get("https://s.example.com/a")

        assert storage.redirects == ["https://other.example.com/c?sig=2"]

    @pytest.mark.parametrize("location", ["https://o.example.com/a/../b;?", "https://o.example.com/./c;?d=%2f#", "HTTPS://o/a?"])
    def test_an_absolute_one_is_requested_byte_for_byte(self, location: str) -> None:
        storage = FakeStorage(Redirecting(location))

        storage.get("https://s.example.com/a")

        request = storage.adapter.requests[1]
        assert isinstance(request, AbortableRequest)
        assert request.target == location.partition("#")[0][location.index("/", 8) :]

    def test_spaces_in_one_are_percent_encoded(self) -> None:
        storage = FakeStorage(Redirecting("/my bundles/a b.tar.gz?name=a b"))

        storage.get("https://s.example.com/a")

        assert storage.adapter.requests[1].url == "https://s.example.com/my%20bundles/a%20b.tar.gz?name=a%20b"

    @pytest.mark.parametrize("location", UNSAFE)
    def test_one_to_an_unsafe_address_is_refused(self, location: str) -> None:
        storage = FakeStorage(Redirecting(location))

        with pytest.raises(DownloadFailed):
            storage.get("https://s.example.com/a")

        assert (len(storage.adapter.requests), storage.redirects) == (1, [])

    def test_too_many_are_refused(self) -> None:
        storage = FakeStorage(Redirecting(*["/a"] * (MAX_REDIRECTS + 1)))

        with pytest.raises(DownloadFailed):
            storage.get("https://s.example.com/a")

        assert len(storage.adapter.requests) == MAX_REDIRECTS + 1 == 6

    def test_the_most_that_are_allowed_are_followed(self) -> None:
        _, body = FakeStorage(Redirecting(*["/a"] * MAX_REDIRECTS)).get("https://s.example.com/a")

        assert body == b"bundle"


def head(**headers: str) -> StorageResponse:
    pieces: Iterator[bytes] = iter(())
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return StorageResponse(redactor=NO_SECRETS, status=200, headers=named, address="https://s.example.com/a", pieces=pieces)


class TestHeaders:
    @pytest.mark.parametrize(("headers", "length"), [({"Content_Length": "17"}, 17), ({"Transfer_Encoding": "chunked"}, None)])
    def test_a_length_is_read_if_there_is_one(self, headers: dict[str, str], length: int | None) -> None:
        assert head(**headers).length == length

    @pytest.mark.parametrize(
        ("etag", "validator"),
        [('"a-1"', '"a-1"'), ('W/"a"', None), ("a", None), ('"a"b"', None), ('"a b"', None), ('""', None), ("", None)],
    )
    def test_of_etags_only_a_strong_one_is_a_validator(self, etag: str, validator: str | None) -> None:
        assert head(ETag=etag).validator == (validator and ("ETag", validator))

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
            ({"Last_Modified": "Monday, 04-May-26 12:00:00 GMT", "Date": NOW}, False),
            ({"Last_Modified": "Mon May  4 12:00:00 2026", "Date": NOW}, False),
            ({"Last_Modified": PAST.replace("GMT", "+0000"), "Date": NOW}, False),
            ({"Last_Modified": f"{PAST}, {PAST}", "Date": NOW}, False),
            ({"Last_Modified": PAST, "Date": NOW, "ETag": 'W/"a"'}, False),
            ({"Last_Modified": PAST, "Date": NOW, "ETag": "a"}, False),
            ({"Last_Modified": PAST, "Date": NOW, "ETag": ""}, True),
        ],
    )
    def test_without_an_etag_a_date_is_one_if_it_is_a_second_old(self, headers: dict[str, str], is_strong: bool) -> None:
        assert head(**headers).validator == (("Last-Modified", headers["Last_Modified"]) if is_strong else None)

    @pytest.mark.parametrize(
        ("encoding", "codings"),
        [("", []), ("identity", []), ("GZIP", ["gzip"]), ("br , identity,gzip", ["br", "gzip"]), (", ", [])],
    )
    def test_codings_are_listed_in_their_order(self, encoding: str, codings: list[str]) -> None:
        assert head(Content_Encoding=encoding).codings == codings


def test_an_abort_ends_the_wait_for_a_body() -> None:
    storage = FakeStorage(FakeAdapter(body=b"half"))

    with ExitStack() as stack:
        response = stack.enter_context(storage.open("https://s.example.com/a"))
        storage.in_flight.abort()
        with pytest.raises(Cancelled):
            list(response.pieces)


def too_late() -> tuple[FakeAdapter, list[float]]:
    """Return a storage whose responses take 40 s each, and the seconds that remain when they are requested."""
    adapter, left = Redirecting("https://other.example.com/b"), list[float]()
    turn = adapter.before

    def pass_time(request: Any) -> None:
        turn(request)
        left.append(request.exchange.remaining_seconds)
        request.exchange.ends_at -= 40
        if len(left) == 2:
            request.exchange.abort()
            raise requests.ConnectionError

    adapter.before = pass_time
    return adapter, left


def too_slow() -> FakeAdapter:
    """Return a storage whose bundle is cut off."""
    adapter = FakeAdapter(body=b"half")
    adapter.before = lambda request: request.exchange.abort()
    return adapter


class TestErrors:
    def test_redirects_share_one_time_limit(self) -> None:
        adapter, left = too_late()

        with pytest.raises(NetworkError) as caught:
            FakeStorage(adapter).get("https://s.example.com/a")

        assert left == [pytest.approx(60, abs=5), pytest.approx(20, abs=5)]
        assert not caught.value.maybe_processed

    def test_a_bundle_that_is_too_slow_is_cut_off(self) -> None:
        with pytest.raises(NetworkError) as caught:
            FakeStorage(too_slow()).get("https://s.example.com/a")

        assert caught.value.maybe_processed

    def test_a_bundle_that_is_fast_enough_gets_more_time(self) -> None:
        exchanges: list[Exchange] = []
        adapter = FakeAdapter(body=bytes(MIN_BYTES_PER_SECOND * int(SLOW_SECONDS) + 1))
        adapter.before = lambda request: exchanges.append(request.exchange)

        with FakeStorage(adapter).open("https://s.example.com/a") as response:
            exchanges[0].ends_at -= 50
            assert len(next(response.pieces)) >= MIN_BYTES_PER_SECOND * SLOW_SECONDS
            assert exchanges[0].remaining_seconds > 50

    def test_an_untrusted_certificate_is_final(self) -> None:
        cause = ssl.SSLCertVerificationError(1, "certificate verify failed")
        cause.verify_message, cause.verify_code = "self-signed certificate", 18

        with pytest.raises(DownloadFailed):
            FakeStorage(FakeAdapter(error=requests.exceptions.SSLError(cause))).get("https://s.example.com/a")

    def test_a_socks_proxy_is_refused(self) -> None:
        storage = FakeStorage(FakeAdapter(), {"https": "socks5://proxy.example.com:1080"})

        with pytest.raises(DownloadFailed):
            storage.get("https://s.example.com/a")

        assert storage.adapter.requests == []

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
            (f"<Code>{ADMIN_KEY}</Code><Message>no {ADMIN_KEY}</Message>".encode(), "403 (***: no ***)"),
        ],
    )
    def test_an_error_is_shown_with_the_code_and_the_message_of_the_storage(self, body: bytes, text: str) -> None:
        with FakeStorage(FakeAdapter(403, body)).open("https://s.example.com/a") as response:
            assert response.error_text() == text

    def test_little_is_read_of_a_long_error(self) -> None:
        pieces = iter([bytes(MAX_ERROR_BYTES), b"<Code>", b"No</Code>"])

        assert replace(head(), pieces=pieces).error_text() == "200"
        assert next(pieces) == b"No</Code>"

    def test_an_error_that_is_cut_off_is_shown_as_far_as_it_came(self) -> None:
        def pieces() -> Iterator[bytes]:
            yield b"<Code>No</Code>"
            raise NetworkError("cut", maybe_processed=True)

        assert replace(head(), pieces=pieces()).error_text() == "200 (No)"


def test_the_key_is_hidden_in_headers() -> None:
    response, _ = FakeStorage(FakeAdapter(headers={"ETag": ADMIN_KEY})).get("https://s.example.com/a")

    assert response.headers["etag"] == "***"
