"""An adapter's error is translated, without its own text."""

import http.client
import socket
import ssl
from collections.abc import Mapping
from typing import Any

import pytest
import requests
from urllib3.exceptions import ConnectTimeoutError, ProtocolError

from docs_platform_action.http.client import Request, Timeouts
from docs_platform_action.http.faults import NetworkError, ResponseTimeout, UntrustedCertificateError
from docs_platform_action.http.resolver import ResolutionTimeout
from tests.keys import ADMIN_KEY
from tests.unit.fakes import BASE_URL, HOST, FakeAdapter, http_client

PROXIES = {"https": "http://proxy.example.com:3128"}


def fetch(adapter: FakeAdapter, proxies: Mapping[str, str] = PROXIES) -> None:
    client = http_client(adapter, proxies=proxies)
    with client.send(Request(method="GET", url=f"{BASE_URL}/x"), Timeouts(), headers={}):
        pytest.fail("there is a response")


def failed(adapter: FakeAdapter, proxies: Mapping[str, str] = PROXIES) -> NetworkError:
    with pytest.raises(NetworkError) as caught:
        fetch(adapter, proxies)
    return caught.value


def refused() -> Exception:
    return requests.ConnectionError(ProtocolError("Connection aborted.", ConnectionRefusedError(111, "Connection refused")))


def untrusted() -> Exception:
    cause = ssl.SSLCertVerificationError(1, "certificate verify failed")
    cause.verify_message, cause.verify_code = "self-signed certificate", 18
    return requests.exceptions.SSLError(cause)


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
            request.exchange.is_connected, request.exchange.is_reused = True, reused

        adapter.before = connect
        return failed(adapter)

    @pytest.mark.parametrize("error", GONE, ids=lambda error: type(error).__name__)
    def test_a_kept_connection_that_was_closed_is_stale(self, error: Exception) -> None:
        assert self.fault(error, reused=True).is_stale

    @pytest.mark.parametrize("error", GONE, ids=lambda error: type(error).__name__)
    def test_a_new_one_that_breaks_is_not_stale(self, error: Exception) -> None:
        assert not self.fault(error, reused=False).is_stale

    @pytest.mark.parametrize("error", [TimeoutError(), http.client.BadStatusLine("x"), http.client.IncompleteRead(b"")])
    def test_a_kept_one_with_another_fault_is_not_stale(self, error: Exception) -> None:
        assert not self.fault(error, reused=True).is_stale


class TestFaults:
    @pytest.mark.parametrize(
        ("error", "message"),
        [
            (refused(), f"{HOST} refused the connection"),
            (
                requests.ConnectionError(ProtocolError("Connection aborted.", socket.gaierror(-2, "unknown"))),
                f"The name of {HOST} does not exist",
            ),
            (requests.ConnectTimeout(), f"{HOST} could not be reached in time"),
            (requests.ReadTimeout(), f"{HOST} sent nothing for too long"),
            (TimeoutError(), f"{HOST} sent nothing for too long"),
            (requests.exceptions.ProxyError(OSError(101, "Network is unreachable")), "Could not connect to the proxy"),
            (requests.exceptions.SSLError(ssl.SSLError("wrong version")), f"The TLS connection to {HOST} failed"),
            (
                requests.exceptions.ProxyError(ProtocolError("x", ConnectionRefusedError())),
                "The proxy refused the connection",
            ),
            (
                requests.exceptions.ProxyError(ProtocolError("x", socket.gaierror(-2, "unknown"))),
                "The name of the proxy does not exist",
            ),
            (requests.exceptions.ProxyError(ConnectTimeoutError()), "The proxy could not be reached in time"),
            (http.client.BadStatusLine("x"), f"Could not connect to {HOST}"),
            (ValueError(ADMIN_KEY), f"Could not connect to {HOST}"),
        ],
        ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
    )
    def test_a_network_error_has_a_message(self, error: Exception, message: str) -> None:
        fault = failed(FakeAdapter(error=error))

        assert (fault.message, fault.maybe_processed, fault.is_proxy_error) == (message, False, "roxy" in message)

    @pytest.mark.parametrize(
        ("error", "message", "is_unknown"),
        [
            (socket.gaierror(socket.EAI_NONAME, "x"), "does not exist", True),
            (socket.gaierror(socket.EAI_NODATA, "x"), "has no address", True),
            (socket.gaierror(socket.EAI_AGAIN, "x"), "could not be resolved", False),
            (socket.gaierror(socket.EAI_FAIL, "x"), "could not be resolved", False),
            (socket.gaierror(), "could not be resolved", False),
            (ConnectTimeoutError(ResolutionTimeout()), "could not be resolved in time", False),
        ],
    )
    @pytest.mark.parametrize("is_proxy", [False, True])
    @pytest.mark.parametrize("is_aborted", [False, True])
    def test_a_name_that_does_not_exist_is_told_from_one_that_may(
        self, error: Exception, message: str, is_unknown: bool, is_proxy: bool, is_aborted: bool
    ) -> None:
        wrapper = requests.exceptions.ProxyError if is_proxy else requests.ConnectionError
        adapter = FakeAdapter(error=wrapper(ProtocolError("x", error)))
        adapter.before = lambda request: request.exchange.abort() if is_aborted else None

        fault = failed(adapter)

        assert fault.message == f"The name of {'the proxy' if is_proxy else HOST} {message}"
        assert (fault.is_unknown_host, fault.is_proxy_error, fault.maybe_processed) == (is_unknown, is_proxy, False)

    @pytest.mark.parametrize(
        ("reason", "is_connected", "maybe_processed", "cause"),
        [
            ("WRONG_VERSION_NUMBER", False, False, "The server does not use TLS at this port."),
            ("RECORD_LAYER_FAILURE", True, True, None),
            ("TLSV13_ALERT_CERTIFICATE_REQUIRED", False, False, "The server requires a client certificate."),
            ("TLSV13_ALERT_CERTIFICATE_REQUIRED", True, False, "The server requires a client certificate."),
            ("SSLV3_ALERT_BAD_CERTIFICATE", True, True, "The server requires a client certificate."),
            ("TLSV1_ALERT_INTERNAL_ERROR", False, False, None),
        ],
    )
    def test_an_error_of_tls_has_its_reason_and_of_a_handshake_advice(
        self, reason: str, is_connected: bool, maybe_processed: bool, cause: str | None
    ) -> None:
        error: Any = ssl.SSLError(1, "text")
        error.reason = reason
        adapter = FakeAdapter(error=requests.exceptions.SSLError(error))
        adapter.before = lambda request: setattr(request.exchange, "is_connected", is_connected)

        fault = failed(adapter)

        assert (fault.message, fault.maybe_processed) == (f"The TLS connection to {HOST} failed ({reason})", maybe_processed)
        advice = fault.advice_for("`base-url`")
        assert (advice is None) == (cause is None)
        assert advice is None or advice["cause"].startswith(str(cause))

    def test_without_a_proxy_no_proxy_is_blamed(self) -> None:
        fault = failed(FakeAdapter(error=requests.exceptions.ProxyError(ConnectionRefusedError())), proxies={})

        assert (fault.message, fault.is_proxy_error) == (f"{HOST} refused the connection", False)

    @pytest.mark.parametrize("error", [http.client.BadStatusLine("x"), http.client.LineTooLong("header line"), ValueError("x")])
    def test_a_response_that_is_not_http_is_an_error(self, error: Exception) -> None:
        adapter = FakeAdapter(error=error)
        adapter.before = lambda request: setattr(request.exchange, "is_connected", True)

        fault = failed(adapter)

        assert (fault.message, fault.maybe_processed) == (f"The response from {HOST} is not valid HTTP", True)

    def test_it_says_when_the_server_may_have_processed_the_request(self) -> None:
        adapter = FakeAdapter(error=requests.ConnectionError(ProtocolError("Connection aborted.", ConnectionResetError())))
        adapter.before = lambda request: setattr(request.exchange, "is_connected", True)

        fault = failed(adapter)

        assert (fault.message, fault.maybe_processed) == (
            f"The connection to {HOST} was lost before the response was complete",
            True,
        )

    def test_a_certificate_that_is_not_trusted_has_an_error_of_its_own(self) -> None:
        with pytest.raises(UntrustedCertificateError) as caught:
            fetch(FakeAdapter(error=untrusted()))

        assert caught.value.reason == "self-signed certificate"

    def test_one_that_takes_too_long_says_so(self) -> None:
        adapter = FakeAdapter(error=requests.ConnectionError())
        adapter.before = lambda request: request.exchange.abort()

        fault = failed(adapter)

        assert isinstance(fault, ResponseTimeout)
        assert fault.message == f"{HOST} took longer than 60 s to respond"
