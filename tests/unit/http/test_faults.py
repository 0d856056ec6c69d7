"""An error of the transport is translated, without its own text.

`ERRORS` is the table of errors, which the pages about wording show as well.
"""

import errno
import http.client
import socket
import ssl
from collections.abc import Set
from typing import Any, Final

import pytest
import requests
from requests.exceptions import ProxyError
from urllib3.exceptions import ConnectTimeoutError, ProtocolError

from docs_platform_action.http.faults import NetworkError
from docs_platform_action.http.transport import Request, Timeouts
from docs_platform_action.http.trust import UnusableServerError
from tests.keys import ADMIN_KEY
from tests.unit.fakes import BASE_URL, FakeTransport, http_client

PROXIES: Final = {"https": "http://proxy.example.com:3128"}
FLAGS: Final = ("maybe_processed", "is_proxy_error", "is_unresolved", "is_unknown_host", "is_without_tls")

NEW: Final[Set[str]] = set()
SENT: Final = {"sent"}
PROXIED: Final = {"proxy"}


def wrapped(error: Exception) -> Exception:
    return requests.ConnectionError(ProtocolError("Connection aborted.", error))


def by_proxy(error: Exception) -> Exception:
    return ProxyError(ProtocolError("x", error))


def tls(reason: str) -> Exception:
    error: Any = ssl.SSLError(1, "text")
    error.reason = reason
    return requests.exceptions.SSLError(error)


def unresolved(number: int) -> Exception:
    return wrapped(socket.gaierror(number, "x"))


def refused_by_proxy(status: int) -> Exception:
    return by_proxy(OSError(f"Tunnel connection failed: {status} {ADMIN_KEY}"))


UNKNOWN: Final = {"is_unresolved", "is_unknown_host"}
LOST: Final = {"maybe_processed"}

# the error, the state of its exchange (whether the request was sent, and through a proxy), and the flags of the `NetworkError`
ERRORS: Final[dict[str, tuple[Exception, Set[str], Set[str]]]] = {
    "Refused": (wrapped(ConnectionRefusedError()), NEW, set()),
    "A name that does not exist": (unresolved(socket.EAI_NONAME), NEW, UNKNOWN),
    "A name without an address": (unresolved(socket.EAI_NODATA), NEW, UNKNOWN),
    "Name servers that do not respond": (unresolved(socket.EAI_AGAIN), NEW, {"is_unresolved"}),
    "No connection in time": (requests.ConnectTimeout(ConnectTimeoutError()), NEW, set()),
    "No route to the network": (wrapped(OSError(errno.ENETUNREACH, "x")), NEW, set()),
    "A connection that was reset before the request": (wrapped(ConnectionResetError()), NEW, set()),
    "Another error before the request": (ValueError(ADMIN_KEY), NEW, set()),
    "No byte of the response in time": (requests.ReadTimeout(), SENT, LOST),
    "A connection that was reset": (wrapped(ConnectionResetError()), SENT, LOST),
    "A connection that was closed": (wrapped(http.client.RemoteDisconnected("x")), SENT, LOST),
    "A connection that was closed while writing": (wrapped(BrokenPipeError()), SENT, LOST),
    "A TLS connection that was cut": (wrapped(ssl.SSLEOFError()), SENT, LOST),
    "Half a response": (wrapped(http.client.IncompleteRead(b"")), SENT, LOST),
    "A connection that was reset behind a proxy": (wrapped(ConnectionResetError()), SENT | PROXIED, LOST),
    "Another protocol": (wrapped(http.client.BadStatusLine("x")), SENT, LOST),
    "An invalid header": (ValueError(ADMIN_KEY), SENT, LOST),
    "A TLS error without a reason": (requests.exceptions.SSLError(ssl.SSLError("wrong version")), NEW, set()),
    "A failed handshake": (tls("TLSV1_ALERT_INTERNAL_ERROR"), NEW, set()),
    "A failed handshake behind a proxy": (tls("TLSV1_ALERT_INTERNAL_ERROR"), PROXIED, set()),
    "A server without TLS": (tls("WRONG_VERSION_NUMBER"), NEW, {"is_without_tls"}),
    "A server without TLS behind a proxy": (tls("WRONG_VERSION_NUMBER"), PROXIED, {"is_without_tls"}),
    "A TLS error in the response": (tls("RECORD_LAYER_FAILURE"), SENT, LOST),
    "A proxy that refuses the connection": (by_proxy(ConnectionRefusedError()), PROXIED, {"is_proxy_error"}),
    "A proxy whose name does not exist": (by_proxy(unresolved(socket.EAI_NONAME)), PROXIED, {"is_proxy_error", *UNKNOWN}),
    "A proxy that is not reached in time": (by_proxy(TimeoutError()), PROXIED, {"is_proxy_error"}),
    "A proxy that is not reached": (by_proxy(OSError(errno.ENETUNREACH, "x")), PROXIED, {"is_proxy_error"}),
    "A proxy that ends the connection": (wrapped(ConnectionResetError()), PROXIED, {"is_proxy_error"}),
    "A proxy without TLS": (by_proxy(tls("WRONG_VERSION_NUMBER")), PROXIED, {"is_proxy_error", "is_without_tls"}),
    "A proxy that does not allow the host": (refused_by_proxy(403), PROXIED, {"is_proxy_error"}),
    "A proxy that does not reach the host": (refused_by_proxy(502), PROXIED, {"is_proxy_error"}),
}


def fetch(error: Exception, state: Set[str] = NEW) -> None:
    """Send a request that ends with an error, in this state of its exchange."""
    transport = FakeTransport(error=error)
    transport.before = lambda sent: sent.exchange.begin() if "sent" in state else None
    client = http_client(transport, proxies=PROXIES if "proxy" in state else {})
    with client.send(Request(method="GET", url=f"{BASE_URL}/x"), Timeouts(), headers={}):
        pytest.fail("there is a response")


def failed(error: Exception, state: Set[str] = NEW) -> NetworkError:
    """Return the error of such a request."""
    with pytest.raises(NetworkError) as caught:
        fetch(error, state)
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
    assert ("proxy" in fault.message.lower()) == fault.is_proxy_error
    assert ADMIN_KEY not in fault.message


@pytest.mark.parametrize("name", ERRORS)
def test_there_is_advice_about_proxies_and_servers_without_tls_alone(name: str) -> None:
    error, state, flags = ERRORS[name]

    remedy = (failed(error, state).advice_for("`base-url`") or {"remedy": ""})["remedy"]

    assert ("NO_PROXY" in remedy) == ("is_proxy_error" in flags)
    assert ("`base-url`" in remedy) == (flags == {"is_without_tls"})


def test_a_proxy_that_requires_other_credentials_is_unusable() -> None:
    with pytest.raises(UnusableServerError) as caught:
        fetch(refused_by_proxy(407), PROXIED)

    assert not any(ADMIN_KEY in text for text in caught.value.details)


@pytest.mark.parametrize("is_proxy", [False, True])
def test_a_certificate_that_is_not_trusted_makes_the_server_or_its_proxy_unusable(is_proxy: bool) -> None:
    cause = ssl.SSLCertVerificationError(1, "certificate verify failed")
    cause.verify_message, cause.verify_code = "an example", 18
    error = requests.exceptions.SSLError(cause)

    with pytest.raises(UnusableServerError) as caught:
        fetch(by_proxy(error) if is_proxy else error, PROXIED)

    assert ("the proxy for {server}" in caught.value.summary) == is_proxy


def test_without_a_proxy_no_proxy_is_blamed() -> None:
    assert not failed(by_proxy(ConnectionRefusedError())).is_proxy_error
