"""A request is sent as it should be, and its response is read within the limits."""

import gzip
import tracemalloc
import zlib
from collections.abc import Mapping
from typing import Final

import pytest

from docs_platform_action import __version__
from docs_platform_action.errors import Cancelled
from docs_platform_action.http.client import HttpClient
from docs_platform_action.http.faults import NetworkError
from docs_platform_action.http.transport import Exchange, Request, Timeouts
from tests.unit.fakes import BASE_URL, HOST, Answer, FakeTransport, http_client
from tests.virtual_platform import Sent
from tests.virtual_time import VirtualClock

BODY: Final = b"{}" * 500_000
PROXY: Final = "http://robot:word@proxy.example.com:3128"


def sent(url: str, base_url: str = "") -> Sent:
    """Return what is sent for a request."""
    transport = FakeTransport()
    client = http_client(transport, proxies={"https": PROXY})
    with client.send(exchange_of(client, url, base_url)):
        (only,) = transport.requests
        assert not only.exchange.is_over
    assert only.exchange.is_over
    return only


def exchange_of(client: HttpClient, url: str, base_url: str = "") -> Exchange:
    request = Request(method="GET", url=url)
    return client.new_exchange(
        request, Timeouts(), headers={"Range": "bytes=5-"}, base_url=base_url
    )


def read(
    body: bytes, headers: Mapping[str, str], max_bytes: int = 2_000_000
) -> tuple[int | None, bytes]:
    """Return the announced length and the content of a response."""
    client = http_client(FakeTransport(Answer(body=body, headers=headers)))
    with client.send(exchange_of(client, BASE_URL)) as response:
        return response.length, response.read(max_bytes)


def test_a_request_has_the_headers_of_the_action_and_the_caller_but_no_user_of_its_url() -> None:
    request = sent("https://user:word@api.example.com:8443/x")

    assert request.url == f"{BASE_URL}:8443/x"
    assert dict(request.headers) == {
        "Accept-Encoding": "identity",
        "Connection": "close",
        "User-Agent": f"docs-platform-action/{__version__}",
        "Range": "bytes=5-",
    }


def test_a_request_goes_through_the_proxy_to_its_host_and_port() -> None:
    request = sent("https://user:word@api.example.com:8443/x")

    assert request.exchange.proxy == PROXY
    assert request.exchange.host == f"{HOST}:8443"


def test_a_request_goes_to_the_path_after_the_prefix() -> None:
    request = sent("/v1/x%2F?a", f"{BASE_URL}:8443/admin")

    assert request.url == f"{BASE_URL}:8443/admin/v1/x%2F?a"
    assert request.exchange.host == f"{HOST}:8443"


def test_each_attempt_of_a_request_says_for_itself_whether_it_was_sent() -> None:
    transport = FakeTransport()
    client = http_client(transport)
    first = exchange_of(client, BASE_URL)
    second = exchange_of(client, BASE_URL)
    with client.send(first):
        assert first.was_sent

    transport.is_reached = False
    with client.send(second):
        pass

    assert first.was_sent
    assert not second.was_sent


def test_a_cancelled_run_begins_no_exchange_whatever_the_proxy_is() -> None:
    clock = VirtualClock()
    transport = FakeTransport()
    client = http_client(transport, clock=clock, proxies={"https": "not a proxy"})
    clock.cancel()

    with pytest.raises(Cancelled):
        exchange_of(client, BASE_URL)

    assert transport.requests == []


def test_what_follows_the_host_is_sent_byte_for_byte() -> None:
    assert sent("/a%2fb/%2E%2E?c", f"{BASE_URL}/api").target == "/api/a%2fb/%2E%2E?c"
    assert sent(f"{BASE_URL}/a%2fb/../c?s=%2B+%&t='\"<>|").target == "/a%2fb/../c?s=%2B+%&t='\"<>|"
    assert sent(f"{BASE_URL}/p\u00e4ge 1#part").target == "/p%C3%A4ge%201"
    assert sent(f"{BASE_URL}?c").target == "/?c"


@pytest.mark.parametrize(
    ("body", "coding", "content"),
    [
        (gzip.compress(BODY) + bytes(9), " X-GZIP ", BODY),
        (zlib.compress(BODY) + b"\n", "deflate", BODY),
        (zlib.compress(BODY, wbits=-zlib.MAX_WBITS), "deflate", BODY),
        (gzip.compress(zlib.compress(BODY)), "deflate, gzip", BODY),
        (BODY, "br", BODY),
        (b"", "gzip", b""),
    ],
    ids=[
        "gzip with padding",
        "deflate with a newline",
        "deflate in its raw form",
        "two codings",
        "another",
        "an empty body",
    ],
)
def test_the_length_of_a_response_is_the_announced_one_and_gzip_or_deflate_is_undone(
    body: bytes, coding: str, content: bytes
) -> None:
    headers = {"Content-Encoding": coding}
    assert read(body, headers) == (None, content)

    headers["Content-Length"] = f" {len(body)} "
    assert read(body, headers) == (len(body), content)


def test_no_more_is_received_than_is_read() -> None:
    client = http_client(FakeTransport(Answer(body=BODY)))

    with client.send(exchange_of(client, BASE_URL)) as response:
        start = response.read(1)
        rest = b"".join(response.pieces)

    assert start + rest == BODY
    assert rest


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_no_more_is_decompressed_than_is_read(coding: str) -> None:
    bomb = bytes(64 * 1024**2)
    body = gzip.compress(bomb) if coding == "gzip" else zlib.compress(bomb)
    tracemalloc.start()
    try:
        _, content = read(body, {"Content-Encoding": coding}, max_bytes=1000)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert content == bytes(1000)
    assert peak_bytes < 4 * 1024**2


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"{}", {"Content-Length": ""}),
        (b"{}", {"Content-Length": "x"}),
        (b"{}", {"Content-Length": "-2"}),
        (b"{}", {"Content-Length": "+2"}),
        (b"{}", {"Content-Length": "2.0"}),
        (b"{}", {"Content-Length": "2, 2"}),
        (b"{}", {"Content-Length": "\u0662"}),
        (b"{}", {"Content-Length": "9" * 19}),
        (b"\xff" * 9, {"Content-Encoding": "gzip"}),
        (b"\xff" * 9, {"Content-Encoding": "deflate"}),
        (b"\xff" * 9, {"Content-Encoding": "deflate, gzip"}),
    ],
)
def test_a_length_that_is_not_a_number_or_damaged_data_is_an_error(
    body: bytes, headers: dict[str, str]
) -> None:
    with pytest.raises(NetworkError) as caught:
        read(body, headers)

    assert caught.value.was_sent
