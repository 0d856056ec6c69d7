"""An adapter's error is translated, without its own text."""

import errno
import http.client
import socket
import ssl
from collections.abc import Mapping
from typing import Any, Final

import pytest
import requests
from requests.exceptions import ProxyError
from urllib3.exceptions import ConnectTimeoutError, ProtocolError

from docs_platform_action.http.client import Request, Timeouts
from docs_platform_action.http.faults import NetworkError, ResponseTimeout, UntrustedCertificateError
from docs_platform_action.http.proxy import UnusableProxyError
from docs_platform_action.http.resolver import ResolutionTimeout
from tests.keys import ADMIN_KEY
from tests.unit.fakes import BASE_URL, FakeAdapter, http_client

PROXIES: Final = {"https": "http://proxy.example.com:3128"}
FLAGS: Final = ("maybe_processed", "is_stale", "is_proxy_error", "is_unresolved", "is_unknown_host")

NEW: Final[Mapping[str, Any]] = {}
CONNECTED: Final[Mapping[str, Any]] = {"is_connected": True}
REUSED: Final[Mapping[str, Any]] = {"is_connected": True, "is_reused": True}
ABORTED: Final[Mapping[str, Any]] = {"is_aborted": True}
TUNNELING: Final[Mapping[str, Any]] = {"is_tunneling": True}


def wrapped(error: Exception) -> Exception:
    return requests.ConnectionError(ProtocolError("Connection aborted.", error))


def by_proxy(error: Exception) -> Exception:
    return ProxyError(ProtocolError("x", error))


def tls(reason: str) -> Exception:
    error: Any = ssl.SSLError(1, "text")
    error.reason = reason
    return requests.exceptions.SSLError(error)


def unresolved(number: int) -> Exception:
    return socket.gaierror(number, "x")


UNKNOWN: Final = {"is_unresolved", "is_unknown_host"}
ADDRESSES: Final = {
    "192.0.2.1": ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
    "192.0.2.2": TimeoutError(),
    "2001:db8::1": OSError("odd"),
}

ERRORS: Final[dict[str, tuple[Exception, Mapping[str, Any], set[str]]]] = {
    "Refused": (wrapped(ConnectionRefusedError()), NEW, set()),
    "A name that does not exist": (wrapped(unresolved(socket.EAI_NONAME)), NEW, UNKNOWN),
    "A name without an address": (wrapped(unresolved(socket.EAI_NODATA)), NEW, UNKNOWN),
    "Such a name when the time is up": (wrapped(unresolved(socket.EAI_NONAME)), ABORTED, UNKNOWN),
    "Name servers that do not respond": (wrapped(unresolved(socket.EAI_AGAIN)), NEW, {"is_unresolved"}),
    "Name servers that fail": (wrapped(unresolved(socket.EAI_FAIL)), NEW, {"is_unresolved"}),
    "An error without a number": (wrapped(socket.gaierror()), NEW, {"is_unresolved"}),
    "Name servers that take too long": (wrapped(ConnectTimeoutError(ResolutionTimeout())), ABORTED, {"is_unresolved"}),
    "No connection in time": (requests.ConnectTimeout(), NEW, set()),
    "No connection to any of two addresses": (wrapped(OSError()), {"address_errors": dict([*ADDRESSES.items()][:2])}, set()),
    "No connection to any of three addresses": (wrapped(OSError()), {"address_errors": ADDRESSES}, set()),
    "No connection to any of five addresses": (
        wrapped(OSError()),
        {"is_aborted": True, "address_errors": {**ADDRESSES, "192.0.2.4": OSError(), "192.0.2.5": OSError()}},
        set(),
    ),
    "No connection to the only address": (wrapped(OSError()), {"address_errors": {"192.0.2.1": OSError()}}, set()),
    "No byte of the response in time": (requests.ReadTimeout(), CONNECTED, {"maybe_processed"}),
    "No further byte in time": (TimeoutError(), CONNECTED, {"maybe_processed"}),
    "No response in time": (requests.ConnectionError(), ABORTED, set()),
    "No complete response in time": (requests.ConnectionError(), {**ABORTED, **CONNECTED}, {"maybe_processed"}),
    "A connection that was reset": (wrapped(ConnectionResetError()), CONNECTED, {"maybe_processed"}),
    "A kept connection that was reset": (wrapped(ConnectionResetError()), REUSED, {"maybe_processed", "is_stale"}),
    "A kept connection that was closed": (wrapped(http.client.RemoteDisconnected()), REUSED, {"maybe_processed", "is_stale"}),
    "A kept connection that was closed while writing": (wrapped(BrokenPipeError()), REUSED, {"maybe_processed", "is_stale"}),
    "A kept TLS connection that was cut": (wrapped(ssl.SSLEOFError()), REUSED, {"maybe_processed", "is_stale"}),
    "A kept TLS connection that was closed": (wrapped(ssl.SSLZeroReturnError()), REUSED, {"maybe_processed", "is_stale"}),
    "Half a response on a kept connection": (wrapped(http.client.IncompleteRead(b"")), REUSED, {"maybe_processed"}),
    "A kept connection that is silent": (wrapped(TimeoutError()), REUSED, {"maybe_processed"}),
    "Another protocol on a kept connection": (wrapped(http.client.BadStatusLine("x")), REUSED, {"maybe_processed"}),
    "Another protocol": (http.client.BadStatusLine("x"), CONNECTED, {"maybe_processed"}),
    "A line that is too long": (http.client.LineTooLong("header line"), CONNECTED, {"maybe_processed"}),
    "An invalid header": (ValueError(ADMIN_KEY), CONNECTED, {"maybe_processed"}),
    "Another error before there is a connection": (ValueError(ADMIN_KEY), NEW, set()),
    "A TLS error without a reason": (requests.exceptions.SSLError(ssl.SSLError("wrong version")), NEW, set()),
    "A failed handshake": (tls("TLSV1_ALERT_INTERNAL_ERROR"), NEW, set()),
    "A server without TLS": (tls("WRONG_VERSION_NUMBER"), NEW, set()),
    "A TLS error in the response": (tls("RECORD_LAYER_FAILURE"), CONNECTED, {"maybe_processed"}),
    "A client certificate that is required after the request": (tls("TLSV13_ALERT_CERTIFICATE_REQUIRED"), CONNECTED, set()),
    "A client certificate that is required": (tls("SSLV3_ALERT_BAD_CERTIFICATE"), CONNECTED, {"maybe_processed"}),
    "A proxy that refuses the connection": (by_proxy(ConnectionRefusedError()), NEW, {"is_proxy_error"}),
    "A proxy whose name does not exist": (by_proxy(unresolved(socket.EAI_NONAME)), NEW, {"is_proxy_error", *UNKNOWN}),
    "A proxy that is not reached in time": (by_proxy(ConnectTimeoutError()), NEW, {"is_proxy_error"}),
    "A proxy that is not reached": (by_proxy(OSError(errno.ENETUNREACH, "x")), NEW, {"is_proxy_error"}),
    "A proxy that ends the connection": (wrapped(ConnectionResetError()), TUNNELING, {"is_proxy_error"}),
    "A proxy that refuses to forward": (wrapped(OSError()), {**TUNNELING, "proxy_status": 503}, {"is_proxy_error"}),
}


def fetch(error: Exception, state: Mapping[str, Any] = NEW, proxies: Mapping[str, str] = PROXIES) -> None:
    """Send a request that ends with an error, in this state of its exchange."""
    adapter = FakeAdapter(error=error)
    adapter.before = lambda request: vars(request.exchange).update(state)
    with http_client(adapter, proxies=proxies).send(Request(method="GET", url=f"{BASE_URL}/x"), Timeouts(), headers={}):
        pytest.fail("there is a response")


def failed(error: Exception, state: Mapping[str, Any] = NEW, proxies: Mapping[str, str] = PROXIES) -> NetworkError:
    with pytest.raises(NetworkError) as caught:
        fetch(error, state, proxies)
    return caught.value


def message_of(name: str) -> str:
    """Return the message about one of `ERRORS`."""
    error, state, _ = ERRORS[name]
    return failed(error, state).message


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_says_whose_it_is_and_whether_the_request_may_have_been_processed(name: str) -> None:
    error, state, flags = ERRORS[name]

    fault = failed(error, state)

    assert {flag for flag in FLAGS if getattr(fault, flag)} == flags
    assert isinstance(fault, ResponseTimeout) == (name in {"No response in time", "No complete response in time"})


@pytest.mark.parametrize(
    ("reason", "state", "has_advice"),
    [
        ("WRONG_VERSION_NUMBER", NEW, True),
        ("RECORD_LAYER_FAILURE", CONNECTED, False),
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", NEW, True),
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", CONNECTED, True),
        ("SSLV3_ALERT_BAD_CERTIFICATE", CONNECTED, True),
        ("TLSV1_ALERT_INTERNAL_ERROR", NEW, False),
    ],
)
def test_only_the_error_of_a_handshake_has_advice(reason: str, state: Mapping[str, Any], has_advice: bool) -> None:
    assert (failed(tls(reason), state).advice_for("`base-url`") is not None) == has_advice


def test_without_a_proxy_no_proxy_is_blamed() -> None:
    assert not failed(ProxyError(ConnectionRefusedError()), proxies={}).is_proxy_error


def test_a_proxy_that_wants_other_credentials_is_unusable() -> None:
    with pytest.raises(UnusableProxyError):
        fetch(wrapped(OSError()), {**TUNNELING, "proxy_status": 407})


@pytest.mark.parametrize("state", [NEW, TUNNELING])
def test_a_certificate_that_is_not_trusted_has_an_error_of_its_own(state: Mapping[str, Any]) -> None:
    cause = ssl.SSLCertVerificationError(1, "certificate verify failed")
    cause.verify_message, cause.verify_code = "self-signed certificate", 18

    with pytest.raises(UntrustedCertificateError) as caught:
        fetch(requests.exceptions.SSLError(cause), state)

    assert (caught.value.reason, caught.value.code) == ("self-signed certificate", 18)
    assert caught.value.is_proxy_error == (state is TUNNELING)
