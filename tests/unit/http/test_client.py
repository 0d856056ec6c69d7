"""A request is sent as it should be, and its response is read within the limits."""

import gzip
import socket
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import requests

from docs_platform_action import __version__
from docs_platform_action.clock import Clock
from docs_platform_action.errors import Cancelled
from docs_platform_action.http.client import HttpClient, Request, Timeouts
from docs_platform_action.http.connection import AbortableRequest, InFlight
from docs_platform_action.http.faults import NetworkError, ResponseTimeout, request_id_of
from docs_platform_action.http.proxy import UnusableProxyError
from tests.keys import ADMIN_KEY
from tests.unit.fakes import BASE_URL, FakeAdapter, http_client

PROXIES = {"https": "http://proxy.example.com:3128"}


def fetch(client: HttpClient, *, timeouts: Timeouts | None = None, new_connection: bool = False) -> bytes:
    request = Request(method="GET", url=f"{BASE_URL}/x")
    with client.send(request, timeouts or Timeouts(), headers={}, new_connection=new_connection) as response:
        return response.read(1000)


def headers_of(adapter: FakeAdapter) -> tuple[Mapping[str, str], str | None]:
    with http_client(adapter).send(Request(method="GET", url=f"{BASE_URL}/x"), Timeouts(), headers={}) as response:
        return response.headers, request_id_of(response.headers)


class TestRequest:
    def test_it_names_the_action_and_asks_for_no_compression_beside_the_headers_of_the_caller(self) -> None:
        adapter = FakeAdapter()

        with http_client(adapter).send(Request(method="GET", url=f"{BASE_URL}/x"), Timeouts(), headers={"Range": "bytes=5-"}):
            pass

        assert dict(adapter.requests[0].headers) == {
            "Accept-Encoding": "identity",
            "User-Agent": f"docs-platform-action/{__version__}",
            "Range": "bytes=5-",
        }

    def test_what_follows_the_base_url_is_sent_byte_for_byte(self) -> None:
        adapter = FakeAdapter()

        with http_client(adapter).send(Request(method="GET", url="/a%2fb/%2E%2E?c"), Timeouts(), base_url=BASE_URL, headers={}):
            pass

        assert adapter.requests[0].url == f"{BASE_URL}/a%2fb/%2E%2E?c"

    def test_proxies_and_timeouts_reach_the_adapter(self) -> None:
        adapter = FakeAdapter()

        fetch(http_client(adapter, proxies=PROXIES), timeouts=Timeouts(connect_seconds=1, idle_seconds=2, total_seconds=3))

        assert adapter.options[0]["timeout"] == (1, 2)
        assert adapter.options[0]["proxies"] == PROXIES

    def test_it_is_not_sent_through_a_socks_proxy(self) -> None:
        adapter = FakeAdapter()

        with pytest.raises(UnusableProxyError):
            fetch(http_client(adapter, proxies={"https": "socks5h://proxy.example.com:1080"}))

        assert adapter.requests == []

    def test_a_proxy_without_a_scheme_is_an_http_proxy(self) -> None:
        adapter = FakeAdapter()

        fetch(http_client(adapter, proxies={"all": "robot:word@proxy.example.com:3128"}))

        assert adapter.options[0]["proxies"] == {"https": "http://robot:word@proxy.example.com:3128"}


class TestTimeouts:
    def test_they_are_limited_to_the_remaining_time(self) -> None:
        assert Timeouts().within(5) == Timeouts(connect_seconds=5, idle_seconds=5, total_seconds=5)

    def test_they_do_not_grow(self) -> None:
        assert Timeouts().within(float("inf")) == Timeouts()


class TestResponse:
    def test_the_key_is_hidden_in_headers(self) -> None:
        headers, request_id = headers_of(
            FakeAdapter(headers={"Location": f"https://e.example.com/{ADMIN_KEY}", "X-Request-Id": ADMIN_KEY})
        )

        assert headers["location"] == "https://e.example.com/***"
        assert request_id == "***"

    @pytest.mark.parametrize("name", ["X-Request-Id", "request-id", "X-Correlation-ID", "x-amzn-requestid", "X-Amz-Request-Id"])
    def test_the_request_id_is_found_where_servers_put_it(self, name: str) -> None:
        assert headers_of(FakeAdapter(headers={name: "7f3a"}))[1] == "7f3a"

    def test_without_one_there_is_none(self) -> None:
        assert headers_of(FakeAdapter(headers={"X-Request-Id": ""}))[1] is None

    def test_no_more_of_a_body_is_read_than_is_needed(self) -> None:
        request = Request(method="GET", url=f"{BASE_URL}/x")

        with http_client(FakeAdapter(body=bytes(1024 * 1024))).send(request, Timeouts(), headers={}) as response:
            assert 70_000 <= len(response.read(70_000)) < 1024 * 1024

    def test_its_remaining_time_can_be_extended(self) -> None:
        request = Request(method="GET", url=f"{BASE_URL}/x")
        client = http_client(FakeAdapter())

        with client.send(request, Timeouts(total_seconds=60), headers={}) as response:
            before = response.exchange.remaining_seconds
            client.in_flight.extend(response.exchange, 600)

            assert 50 < before <= 60 < 590 < response.exchange.remaining_seconds <= 600

    def test_no_time_remains_once_it_was_aborted(self) -> None:
        adapter = FakeAdapter()
        adapter.before = lambda request: request.exchange.abort()

        with http_client(adapter).send(Request(method="GET", url=f"{BASE_URL}/x"), Timeouts(), headers={}) as response:
            assert response.exchange.remaining_seconds == 0

    @pytest.mark.parametrize(("headers", "is_complete"), [({}, False), ({"Content-Length": "4"}, True)])
    def test_at_the_end_of_its_time_only_a_body_with_a_length_is_complete(
        self, headers: dict[str, str], is_complete: bool
    ) -> None:
        adapter = FakeAdapter(200, b"half", headers)
        adapter.before = lambda request: request.exchange.abort()

        with http_client(adapter).send(Request(method="GET", url=f"{BASE_URL}/x"), Timeouts(), headers={}) as response:
            pieces = response.pieces()
            assert next(pieces) == b"half"
            with pytest.raises(StopIteration if is_complete else ResponseTimeout):
                next(pieces)


def read(body: bytes, *codings: str) -> bytes:
    headers = {"Content-Encoding": ", ".join(codings), "Content-Length": str(len(body))}
    with http_client(FakeAdapter(200, body, headers)).send(
        Request(method="GET", url=BASE_URL), Timeouts(), headers={}
    ) as response:
        return response.read(2_000_000)


class TestCoding:
    CONTENT = b"{}" * 500_000

    @pytest.mark.parametrize(
        ("body", "codings"),
        [
            (gzip.compress(CONTENT), ["gzip"]),
            (gzip.compress(CONTENT), ["X-GZIP", "identity", ""]),
            (gzip.compress(CONTENT[:9]) + gzip.compress(CONTENT[9:]), ["gzip"]),
            (zlib.compress(CONTENT), ["deflate"]),
            (gzip.compress(zlib.compress(CONTENT)), ["deflate", "gzip"]),
            (gzip.compress(CONTENT) + bytes(9), ["gzip"]),
            (zlib.compress(CONTENT) + b"\n", ["deflate"]),
            (CONTENT, ["identity"]),
            (CONTENT, ["br"]),
            (CONTENT, ["br", "gzip"]),
            (CONTENT, ["gzip"] * 6),
        ],
        ids=[
            *("gzip", "other names", "two members", "deflate", "both", "padding", "newline"),
            *("identity", "another", "another one inside", "too many"),
        ],
    )
    def test_gzip_and_deflate_are_undone_and_others_are_not(self, body: bytes, codings: list[str]) -> None:
        assert read(body, *codings) == self.CONTENT

    @pytest.mark.parametrize("coding", ["gzip", "deflate", "br"])
    def test_no_body_needs_no_coding(self, coding: str) -> None:
        assert read(b"", coding) == b""

    @pytest.mark.parametrize("body", [gzip.compress(b"{}"), zlib.compress(b"{}")], ids=["gzip", "deflate"])
    def test_a_body_is_not_complete_before_its_checksum(self, body: bytes) -> None:
        for count in range(1, len(body)):
            with pytest.raises(NetworkError):
                read(body[:count], "gzip")

    @pytest.mark.parametrize(
        "body",
        [b"{}", gzip.compress(b"{}")[:-8] + bytes(8), gzip.compress(b"{}") * 2 + b"\x1f"],
        ids=["not gzip", "wrong checksum", "cut member"],
    )
    def test_damaged_data_is_an_error(self, body: bytes) -> None:
        with pytest.raises(NetworkError) as caught:
            read(body, "gzip")

        assert caught.value.maybe_processed


class TestNewConnection:
    @pytest.mark.parametrize("new_connection", [True, False])
    def test_the_caller_decides_whether_a_kept_connection_may_be_used(self, new_connection: bool) -> None:
        adapter = FakeAdapter()

        fetch(http_client(adapter), new_connection=new_connection)

        (request,) = adapter.requests
        assert isinstance(request, AbortableRequest)
        assert request.exchange.new_connection is new_connection


class TestAbort:
    def test_a_request_that_is_under_way_raises_cancelled(self) -> None:
        adapter = FakeAdapter(error=requests.ConnectionError())
        in_flight = InFlight(Clock())
        client = http_client(adapter, in_flight=in_flight)
        adapter.before = lambda _request: in_flight.abort()

        with pytest.raises(Cancelled):
            fetch(client)

    def test_it_shuts_the_connection_down(self) -> None:
        ours, theirs = socket.socketpair()
        adapter = FakeAdapter(headers={"Content-Length": "2"})
        in_flight = InFlight(Clock())
        client = http_client(adapter, in_flight=in_flight)

        def connect_and_abort(request: Any) -> None:
            request.exchange.adopt(ours)
            in_flight.abort()

        adapter.before = connect_and_abort

        fetch(client)

        with ours, theirs:
            assert theirs.recv(1) == b""

    @pytest.mark.parametrize("end", [InFlight.abort, InFlight.stop])
    def test_no_further_request_begins(self, end: Callable[[InFlight], None]) -> None:
        adapter = FakeAdapter(error=requests.ConnectionError())
        in_flight = InFlight(Clock())
        client = http_client(adapter, in_flight=in_flight)
        begun: list[object] = []
        adapter.before = begun.append
        end(in_flight)

        with pytest.raises(Cancelled):
            fetch(client)

        assert begun == []

    def test_a_request_that_is_under_way_can_succeed_after_a_stop(self) -> None:
        adapter = FakeAdapter()
        in_flight = InFlight(Clock())
        client = http_client(adapter, in_flight=in_flight)
        adapter.before = lambda _request: in_flight.stop()

        assert fetch(client) == b"{}"
