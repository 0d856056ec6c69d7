"""A request is sent as it should be, and its response is read within the limits."""

import gzip
import zlib
from collections.abc import Mapping
from typing import Final

import pytest

from docs_platform_action import __version__
from docs_platform_action.clock import Clock
from docs_platform_action.errors import Cancelled
from docs_platform_action.http.client import HttpClient
from docs_platform_action.http.faults import NetworkError, request_id_of
from docs_platform_action.http.transport import Request, Timeouts
from tests.unit.fakes import BASE_URL, HOST, FakeTransport, http_client
from tests.virtual_platform import Sent

BODY: Final = b"{}" * 500_000


def get(url: str = f"{BASE_URL}/x") -> Request:
    return Request(method="GET", url=url)


def fetch(client: HttpClient, request: Request | None = None, *, max_bytes: int = 1000) -> bytes:
    with client.send(request or get(), Timeouts(), headers={}) as response:
        return response.read(max_bytes)


def sent(request: Request, *, proxies: Mapping[str, str] | None = None, base_url: str = "") -> Sent:
    """Return what is sent for a request."""
    transport = FakeTransport()
    with http_client(transport, proxies=proxies).send(request, Timeouts(), headers={"Range": "bytes=5-"}, base_url=base_url):
        return transport.requests[0]


class TestRequest:
    def test_it_names_the_action_and_asks_for_no_compression_beside_the_headers_of_the_caller(self) -> None:
        assert dict(sent(get()).headers) == {
            "Accept-Encoding": "identity",
            "Connection": "close",
            "User-Agent": f"docs-platform-action/{__version__}",
            "Range": "bytes=5-",
        }

    def test_a_body_is_sent_as_json(self) -> None:
        request = sent(Request(method="POST", url=f"{BASE_URL}/x", body={"a": 1}))

        assert (request.method, request.body) == ("POST", b'{"a": 1}')
        assert (request.headers["Content-Type"], request.headers["Content-Length"]) == ("application/json", "8")

    @pytest.mark.parametrize(
        ("url", "base_url", "target"),
        [
            ("/a%2fb/%2E%2E?c", BASE_URL, "/a%2fb/%2E%2E?c"),
            (f"{BASE_URL}/a%2fb/../c?s=%2B+%", "", "/a%2fb/../c?s=%2B+%"),
            (f"{BASE_URL}/p\u00e4ge 1#part", "", "/p%C3%A4ge%201"),
            (BASE_URL, "", "/"),
            (f"{BASE_URL}?c", "", "/?c"),
        ],
        ids=["with a base URL", "a signed link", "characters that no URL contains", "no path", "a query alone"],
    )
    def test_what_follows_the_host_is_sent_byte_for_byte(self, url: str, base_url: str, target: str) -> None:
        assert sent(get(url), base_url=base_url).target == target

    def test_a_user_name_in_a_link_is_not_sent(self) -> None:
        request = sent(get("https://user:word@api.example.com:8443/x"))

        assert "Authorization" not in request.headers
        assert (request.exchange.host, request.url) == (f"{HOST}:8443", f"{BASE_URL}:8443/x")

    def test_the_mark_of_an_earlier_attempt_is_cleared(self) -> None:
        request = get()
        transport = FakeTransport()
        fetch(http_client(transport), request)
        marks = [request.maybe_processed]
        transport.before = lambda _sent: marks.append(request.maybe_processed)

        fetch(http_client(transport), request)

        assert marks == [True, False]

    def test_none_begins_once_the_run_is_cancelled(self) -> None:
        transport, clock = FakeTransport(), Clock()
        clock.cancellation.cancel()

        with pytest.raises(Cancelled):
            fetch(http_client(transport, clock=clock))

        assert transport.requests == []

    @pytest.mark.parametrize(
        ("proxies", "proxy"),
        [
            ({"http": "http://proxy:1"}, None),
            ({"https": "http://proxy:1", "all": "http://proxy:2"}, "http://proxy:1"),
            ({"all": "robot:word@proxy:2"}, "http://robot:word@proxy:2"),
        ],
        ids=["for another scheme", "for its scheme", "for all schemes"],
    )
    def test_it_goes_through_the_proxy_for_its_scheme(self, proxies: dict[str, str], proxy: str | None) -> None:
        assert sent(get(), proxies=proxies).exchange.proxy == proxy


def test_the_total_timeout_is_limited_to_the_remaining_time_and_does_not_grow() -> None:
    assert [Timeouts(total_seconds=60).within(seconds).total_seconds for seconds in (5, 90)] == [5, 60]


def read(body: bytes, coding: str, *, max_bytes: int = 2_000_000) -> bytes:
    headers = {"Content-Encoding": coding, "Content-Length": str(len(body))}
    return fetch(http_client(FakeTransport(200, body, headers)), max_bytes=max_bytes)


class TestResponse:
    @pytest.mark.parametrize("name", ["X-Request-Id", "request-id", "X-Correlation-ID", "x-amzn-requestid", "X-Amz-Request-Id"])
    def test_the_request_id_is_found_where_servers_put_it(self, name: str) -> None:
        with http_client(FakeTransport(headers={name: "7f3a"})).send(get(), Timeouts(), headers={}) as response:
            assert request_id_of(response.headers) == "7f3a"

    @pytest.mark.parametrize(("body", "coding"), [(BODY, ""), (gzip.compress(BODY), "gzip")], ids=["as it is", "compressed"])
    def test_no_more_of_a_body_is_read_than_is_needed(self, body: bytes, coding: str) -> None:
        content = read(body, coding, max_bytes=70_000)

        assert 70_000 <= len(content) < len(BODY)

    def test_blanks_around_a_length_do_not_count(self) -> None:
        assert fetch(http_client(FakeTransport(headers={"Content-Length": " 2 "}))) == b"{}"

    @pytest.mark.parametrize("length", ["", "x", "-2", "+2", "2.0", "2, 2", "\u0662", "9" * 19])
    def test_a_length_that_is_not_a_number_is_not_http(self, length: str) -> None:
        transport = FakeTransport(headers={"Content-Length": length})

        with pytest.raises(NetworkError) as caught:
            fetch(http_client(transport))

        assert caught.value.maybe_processed
        assert transport.requests[0].exchange.is_over

    @pytest.mark.parametrize(
        ("body", "coding", "content"),
        [
            (gzip.compress(BODY), "gzip", BODY),
            (gzip.compress(BODY) + bytes(9), " X-GZIP ", BODY),
            (zlib.compress(BODY) + b"\n", "deflate", BODY),
            (BODY, "identity", BODY),
            (BODY, "br", BODY),
            (BODY, "gzip, gzip", BODY),
            (b"", "gzip", b""),
        ],
        ids=["gzip", "gzip with padding", "deflate with a newline", "identity", "another", "nested", "an empty body"],
    )
    def test_one_coding_of_gzip_or_deflate_is_undone_and_others_are_not(self, body: bytes, coding: str, content: bytes) -> None:
        assert read(body, coding) == content

    @pytest.mark.parametrize(
        "body",
        [b"{}", gzip.compress(b"{}")[:-1], zlib.compress(b"{}")[:-1], gzip.compress(b"{}")[:-8] + bytes(8)],
        ids=["not compressed", "cut gzip", "cut deflate", "wrong checksum"],
    )
    def test_damaged_data_is_an_error(self, body: bytes) -> None:
        with pytest.raises(NetworkError) as caught:
            read(body, "gzip")

        assert caught.value.maybe_processed
