"""One request goes out as it should, and its answer is bounded, read and rid of the key."""

import http.client
import json
import socket
import ssl
from collections.abc import Callable
from typing import Any

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from urllib3.exceptions import NameResolutionError, ProtocolError

from docs_platform_action import __version__
from docs_platform_action.errors import Cancelled
from docs_platform_action.http.client import LARGEST_ANSWER_BYTES, Answer, Bounds, Exchanger
from docs_platform_action.http.connection import Exchanges, GuardedRequest
from docs_platform_action.http.faults import NetworkError, UntrustedError
from docs_platform_action.models import ExportJob, StartedExport, read_export_job, read_started_export
from tests.keys import ADMIN_KEY
from tests.unit.fakes import BASE_URL, HOST, FakeAdapter


def exchanger(
    adapter: FakeAdapter, *, base_url: str = BASE_URL, key: str = ADMIN_KEY, exchanges: Exchanges | None = None
) -> Exchanger:
    proxies = {"https": "http://proxy.example.com:3128"}
    return Exchanger(adapter=adapter, base_url=base_url, key=key, proxies=proxies, exchanges=exchanges or Exchanges())


def exchange(adapter: FakeAdapter, method: str = "GET", path: str = "/x", body: dict[str, object] | None = None) -> Answer:
    return exchanger(adapter).exchange(method, path, body, Bounds())


class TestRequest:
    def test_it_carries_the_key_and_names_the_action(self) -> None:
        adapter = FakeAdapter()

        exchange(adapter)

        headers = adapter.requests[0].headers
        assert headers["Authorization"] == f"Bearer {ADMIN_KEY}"
        assert headers["User-Agent"] == f"docs-platform-action/{__version__}"
        assert headers["Accept"] == "application/json"

    def test_a_body_is_sent_as_json(self) -> None:
        adapter = FakeAdapter()

        exchange(adapter, "POST", body={"domain": "docs.example.com"})

        assert json.loads(adapter.requests[0].body or b"") == {"domain": "docs.example.com"}
        assert adapter.requests[0].headers["Content-Type"] == "application/json"

    def test_without_a_body_none_is_sent(self) -> None:
        adapter = FakeAdapter()

        exchange(adapter, "POST")

        assert adapter.requests[0].body is None
        assert adapter.requests[0].headers["Content-Length"] == "0"
        assert "Content-Type" not in adapter.requests[0].headers

    @pytest.mark.parametrize("path", ["/jobs/a%2Fb", "/jobs/%2E%2E", "/jobs/%252F", "/jobs/%C3%BC", "/jobs/~a-b_c.d"])
    def test_a_path_is_sent_byte_for_byte_after_the_prefix(self, path: str) -> None:
        adapter = FakeAdapter()

        exchanger(adapter, base_url="https://example.com:8443/admin").exchange("GET", path, None, Bounds())

        assert adapter.requests[0].url == f"https://example.com:8443/admin{path}"
        assert adapter.requests[0].path_url == f"/admin{path}"

    def test_proxies_and_bounds_reach_the_adapter(self) -> None:
        adapter = FakeAdapter()

        exchanger(adapter).exchange("GET", "/x", None, Bounds(connect_seconds=1, idle_seconds=2, total_seconds=3))

        assert adapter.options[0]["timeout"] == (1, 2)
        assert adapter.options[0]["proxies"] == {"https": "http://proxy.example.com:3128"}

    def test_the_host_is_named_with_its_port(self) -> None:
        assert exchanger(FakeAdapter(), base_url="https://example.com:8443/admin").host == "example.com:8443"


class TestBounds:
    def test_they_shrink_to_the_time_that_is_left(self) -> None:
        assert Bounds().within(5) == Bounds(connect_seconds=5, idle_seconds=5, total_seconds=5)

    def test_they_do_not_grow(self) -> None:
        assert Bounds().within(float("inf")) == Bounds()


class TestAnswer:
    @pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
    def test_json_is_read_with_status_headers_and_size(self, mark: bytes) -> None:
        body = mark + b'{"status": "queued"}'

        answer = exchange(FakeAdapter(202, body, {"Retry-After": "3"}))

        assert (answer.status, answer.body, answer.size) == (202, {"status": "queued"}, len(body))
        assert answer.headers["retry-after"] == "3"

    @pytest.mark.parametrize(
        "content", [b"", b"<html>", b"{", b"\xff\xfe", b"[" * 200_000], ids=lambda content: repr(content[:8])
    )
    def test_what_is_no_json_is_none(self, content: bytes) -> None:
        assert exchange(FakeAdapter(200, content)).body is None

    def test_text_that_is_no_utf_8_spoils_only_its_own_field(self) -> None:
        body = exchange(FakeAdapter(200, b'{"jobId": "se_1", "status": "termin\xe9"}')).body

        assert isinstance(body, dict)
        assert read_started_export(body) == StartedExport(job_id="se_1", status="termin\udce9")

    def test_and_makes_no_job_id(self) -> None:
        body = exchange(FakeAdapter(200, b'{"jobId": "se_\xe9"}')).body

        assert isinstance(body, dict)
        with pytest.raises(ValueError, match="unusable"):
            read_started_export(body)

    @pytest.mark.parametrize("digits", [b"9" * 5000, b"-" + b"9" * 5000, b"9" * 401])
    def test_a_number_that_nobody_can_count_does_not_spoil_it(self, digits: bytes) -> None:
        body = exchange(FakeAdapter(200, b'{"status": "running", "pageCount": ' + digits + b"}")).body

        assert isinstance(body, dict)
        assert read_export_job(body) == ExportJob(status="running")

    def test_any_other_is_what_it_is(self) -> None:
        assert exchange(FakeAdapter(200, b"[-7, 0, 412]")).body == [-7, 0, 412]

    @pytest.mark.parametrize("depth", [100, 300, 600, 900, 950, 990, 1010])
    def test_json_of_any_depth_is_read_or_none(self, depth: int) -> None:
        body = exchange(FakeAdapter(200, b"[" * depth + b"]" * depth)).body

        assert body is None or isinstance(body, list)

    @pytest.mark.parametrize("name", ["X-Request-Id", "request-id", "X-Correlation-ID", "x-amzn-requestid", "X-Amz-Request-Id"])
    def test_the_request_id_is_found_where_servers_put_it(self, name: str) -> None:
        assert exchange(FakeAdapter(headers={name: "7f3a"})).request_id == "7f3a"

    def test_without_one_there_is_none(self) -> None:
        assert exchange(FakeAdapter(headers={"X-Request-Id": ""})).request_id is None

    def test_the_text_of_an_error_is_at_hand(self) -> None:
        assert exchange(FakeAdapter(404, b'{"error": "job not found"}')).said == "job not found"

    def test_one_that_is_as_large_as_can_be_is_read(self) -> None:
        content = b'"' + b"x" * (LARGEST_ANSWER_BYTES - 2) + b'"'

        assert exchange(FakeAdapter(200, content)).size == LARGEST_ANSWER_BYTES

    def test_a_larger_one_is_a_network_error(self) -> None:
        with pytest.raises(NetworkError, match="larger than 1024 KiB"):
            exchange(FakeAdapter(200, b"x" * (LARGEST_ANSWER_BYTES + 1)))


class TestScrubbing:
    def test_an_echoed_key_is_taken_out_of_bodies(self) -> None:
        echo = {"error": f"key {ADMIN_KEY} is wrong", ADMIN_KEY: [{"x": f"Bearer {ADMIN_KEY}"}], "n": 1}

        answer = exchange(FakeAdapter(401, json.dumps(echo).encode()))

        assert answer.body == {"error": "key *** is wrong", "***": [{"x": "Bearer ***"}], "n": 1}

    def test_an_echoed_key_is_found_behind_escapes(self) -> None:
        escaped = "".join(f"\\u{ord(character):04x}" for character in ADMIN_KEY)

        answer = exchange(FakeAdapter(401, f'{{"error": "{escaped}"}}'.encode()))

        assert answer.said == "***"

    def test_an_echoed_key_is_taken_out_of_headers(self) -> None:
        answer = exchange(FakeAdapter(302, b"", {"Location": f"https://evil.example.com/{ADMIN_KEY}", "X-Request-Id": ADMIN_KEY}))

        assert answer.headers["Location"] == "https://evil.example.com/***"
        assert answer.request_id == "***"

    def test_a_key_as_short_as_a_word_takes_no_word_apart(self) -> None:
        adapter = FakeAdapter(200, b'{"status": "running"}')

        answer = exchanger(adapter, key="run").exchange("GET", "/x", None, Bounds())

        assert answer.body == {"status": "running"}

    @given(
        st.recursive(
            st.sampled_from([ADMIN_KEY, f"a{ADMIN_KEY}b", ADMIN_KEY * 2, "x", None, 1]),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", ADMIN_KEY]), inner),
            max_leaves=8,
        )
    )
    def test_no_echo_is_left_anywhere(self, body: Any) -> None:
        answer = exchange(FakeAdapter(200, json.dumps(body).encode()))

        assert ADMIN_KEY not in json.dumps(answer.body)


def refused() -> Exception:
    return requests.ConnectionError(ProtocolError("Connection aborted.", ConnectionRefusedError(111, "Connection refused")))


def untrusted() -> Exception:
    cause = ssl.SSLCertVerificationError(1, "certificate verify failed")
    cause.verify_message, cause.verify_code = "self-signed certificate", 18
    return requests.exceptions.SSLError(cause)


class TestFresh:
    @pytest.mark.parametrize("fresh", [True, False])
    def test_a_connection_of_its_own_is_asked_for_where_one_that_was_kept_will_not_do(self, fresh: bool) -> None:
        adapter = FakeAdapter()

        exchanger(adapter).exchange("POST", "/x", None, Bounds(), fresh=fresh)

        (request,) = adapter.requests
        assert isinstance(request, GuardedRequest)
        assert request.guard.fresh is fresh


GONE = [
    ConnectionResetError(),
    BrokenPipeError(),
    http.client.RemoteDisconnected(),
    ssl.SSLEOFError(),
    ssl.SSLZeroReturnError(),
]


class TestStale:
    @staticmethod
    def fault(error: Exception, *, reused: bool) -> NetworkError:
        adapter = FakeAdapter(error=requests.ConnectionError(ProtocolError("Connection aborted.", error)))

        def connect(request: Any) -> None:
            request.guard.connected, request.guard.reused = True, reused

        adapter.before = connect
        with pytest.raises(NetworkError) as caught:
            exchange(adapter)
        return caught.value

    @pytest.mark.parametrize("error", GONE, ids=lambda error: type(error).__name__)
    def test_a_kept_connection_that_was_closed_is_told_apart(self, error: Exception) -> None:
        assert self.fault(error, reused=True).stale

    @pytest.mark.parametrize("error", GONE, ids=lambda error: type(error).__name__)
    def test_a_new_one_that_breaks_is_none(self, error: Exception) -> None:
        assert not self.fault(error, reused=False).stale

    @pytest.mark.parametrize("error", [TimeoutError(), http.client.BadStatusLine("x"), http.client.IncompleteRead(b"")])
    def test_a_kept_one_with_another_fault_is_none(self, error: Exception) -> None:
        assert not self.fault(error, reused=True).stale


class TestFaults:
    @pytest.mark.parametrize(
        ("error", "what"),
        [
            (refused(), f"{HOST} refused the connection"),
            (
                requests.ConnectionError(NameResolutionError(HOST, None, socket.gaierror(-2, "unknown"))),  # type: ignore[arg-type]
                f"The name of {HOST} could not be resolved",
            ),
            (requests.ConnectTimeout(), f"{HOST} could not be reached in time"),
            (requests.ReadTimeout(), f"{HOST} sent nothing for too long"),
            (TimeoutError(), f"{HOST} sent nothing for too long"),
            (requests.exceptions.ProxyError(), f"The proxy did not let the request through to {HOST}"),
            (requests.exceptions.InvalidProxyURL(), "The proxy address in the environment cannot be used"),
            (requests.exceptions.SSLError(ssl.SSLError("wrong version")), f"The TLS connection to {HOST} failed"),
            (
                requests.exceptions.ProxyError(ProtocolError("x", ConnectionRefusedError())),
                "The proxy refused the connection",
            ),
            (
                requests.exceptions.ProxyError(NameResolutionError("proxy", None, socket.gaierror(-2, "unknown"))),  # type: ignore[arg-type]
                "The name of the proxy could not be resolved",
            ),
            (http.client.BadStatusLine("x"), f"No connection to {HOST} could be made"),
            (ValueError(ADMIN_KEY), f"No connection to {HOST} could be made"),
        ],
        ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
    )
    def test_a_network_error_says_in_a_few_words_what_it_means(self, error: Exception, what: str) -> None:
        with pytest.raises(NetworkError) as caught:
            exchange(FakeAdapter(error=error))

        assert caught.value.what == what
        assert not caught.value.sent
        assert caught.value.proxied is ("roxy" in what)

    def test_without_a_proxy_none_is_to_blame(self) -> None:
        direct = Exchanger(
            adapter=FakeAdapter(error=requests.exceptions.ProxyError(ConnectionRefusedError())),
            base_url=BASE_URL,
            key=ADMIN_KEY,
            proxies={},
            exchanges=Exchanges(),
        )

        with pytest.raises(NetworkError) as caught:
            direct.exchange("GET", "/x", None, Bounds())

        assert (caught.value.what, caught.value.proxied) == (f"{HOST} refused the connection", False)

    @pytest.mark.parametrize("error", [http.client.BadStatusLine("x"), http.client.LineTooLong("header line"), ValueError("x")])
    def test_an_answer_that_is_no_http_says_so(self, error: Exception) -> None:
        adapter = FakeAdapter(error=error)
        adapter.before = lambda request: setattr(request.guard, "connected", True)

        with pytest.raises(NetworkError) as caught:
            exchange(adapter)

        assert caught.value.what == f"What {HOST} answered is no HTTP that can be read"
        assert caught.value.sent

    def test_it_tells_when_the_server_may_have_seen_the_request(self) -> None:
        adapter = FakeAdapter(error=requests.ConnectionError(ProtocolError("Connection aborted.", ConnectionResetError())))
        adapter.before = lambda request: setattr(request.guard, "connected", True)

        with pytest.raises(NetworkError, match=f"The connection to {HOST} broke off before the answer was whole") as caught:
            exchange(adapter)

        assert caught.value.sent

    def test_a_certificate_that_is_not_trusted_is_told_apart(self) -> None:
        with pytest.raises(UntrustedError) as caught:
            exchange(FakeAdapter(error=untrusted()))

        assert caught.value.reason == "self-signed certificate"

    def test_an_answer_that_takes_too_long_says_so(self) -> None:
        adapter = FakeAdapter(error=requests.ConnectionError())
        adapter.before = lambda request: request.guard.expire()

        with pytest.raises(NetworkError, match="took longer than 60 s"):
            exchange(adapter)

    def test_a_body_that_its_own_bound_cut_is_no_answer(self) -> None:
        adapter = FakeAdapter(200, b'{"status": "run')
        adapter.before = lambda request: request.guard.expire()

        with pytest.raises(NetworkError, match="took longer than 60 s"):
            exchange(adapter)

    def test_one_that_came_whole_at_the_last_moment_is(self) -> None:
        adapter = FakeAdapter(200, b'{"status": "running"}')
        adapter.before = lambda request: request.guard.expire()

        assert exchange(adapter).body == {"status": "running"}


class TestAbort:
    def test_what_is_under_way_ends_as_cancelled(self) -> None:
        adapter = FakeAdapter(error=requests.ConnectionError())
        exchanges = Exchanges()
        subject = exchanger(adapter, exchanges=exchanges)
        adapter.before = lambda _request: exchanges.abort()

        with pytest.raises(Cancelled):
            subject.exchange("GET", "/x", None, Bounds())

    def test_it_shuts_the_connection_down(self) -> None:
        ours, theirs = socket.socketpair()
        adapter = FakeAdapter()
        exchanges = Exchanges()
        subject = exchanger(adapter, exchanges=exchanges)

        def connect_and_abort(request: Any) -> None:
            request.guard.adopt(ours)
            exchanges.abort()

        adapter.before = connect_and_abort

        subject.exchange("GET", "/x", None, Bounds())

        with ours, theirs:
            assert theirs.recv(1) == b""

    @pytest.mark.parametrize("end", [Exchanges.abort, Exchanges.stop])
    def test_what_is_still_to_come_does_not_begin(self, end: Callable[[Exchanges], None]) -> None:
        adapter = FakeAdapter(error=requests.ConnectionError())
        exchanges = Exchanges()
        subject = exchanger(adapter, exchanges=exchanges)
        begun: list[object] = []
        adapter.before = begun.append
        end(exchanges)

        with pytest.raises(Cancelled):
            subject.exchange("GET", "/x", None, Bounds())

        assert begun == []

    def test_what_is_under_way_may_end_well_after_a_stop(self) -> None:
        adapter = FakeAdapter()
        exchanges = Exchanges()
        subject = exchanger(adapter, exchanges=exchanges)
        adapter.before = lambda _request: exchanges.stop()

        assert subject.exchange("GET", "/x", None, Bounds()).status == 200
