"""An error of the transport says whose it is and whether the request may have been processed.

It never shows its own text. The catalog of errors in `tests/wording` uses the same table, `ERRORS`.
"""

import errno
import http.client
import socket
import ssl
from collections.abc import Callable, Set
from typing import Any, Final

import pytest
import requests
from requests.exceptions import ProxyError
from urllib3.exceptions import ConnectTimeoutError, ProtocolError

from docs_platform_action.http.faults import NetworkError, translated
from docs_platform_action.http.trust import UnusableServerError
from tests.keys import ADMIN_KEY
from tests.unit.fakes import HOST


def wrapped(error: Exception) -> Exception:
    return requests.ConnectionError(ProtocolError("Connection aborted.", error))


def by_proxy(error: Exception) -> Exception:
    return ProxyError(ProtocolError("x", error))


def tls(reason: str) -> Exception:
    error: Any = ssl.SSLError(1, "text")
    error.reason = reason
    return requests.exceptions.SSLError(error)


UNKNOWN: Final = {"is_unresolved", "is_unknown_host"}
LOST: Final = {"was_sent"}
PROXY: Final = {"is_proxy_error"}

# the error, the state of its exchange (whether the request was sent, and through a proxy), and the
# flags of the `NetworkError`
ERRORS: Final[dict[str, tuple[Exception, str, Set[str]]]] = {
    "Refused": (wrapped(ConnectionRefusedError()), "", set()),
    "A name that does not exist": (wrapped(socket.gaierror(socket.EAI_NONAME, "x")), "", UNKNOWN),
    "A name without an address": (wrapped(socket.gaierror(socket.EAI_NODATA, "x")), "", UNKNOWN),
    "Name servers that do not respond": (
        wrapped(socket.gaierror(socket.EAI_AGAIN, "x")),
        "",
        {"is_unresolved"},
    ),
    "No connection in time": (requests.ConnectTimeout(ConnectTimeoutError()), "", set()),
    "No route to the network": (wrapped(OSError(errno.ENETUNREACH, "x")), "", set()),
    "A connection that was reset before the request": (wrapped(ConnectionResetError()), "", set()),
    "Another error before the request": (ValueError(ADMIN_KEY), "", set()),
    "No byte of the response in time": (requests.ReadTimeout(), "sent", LOST),
    "A connection that was reset": (wrapped(ConnectionResetError()), "sent", LOST),
    "A connection that was closed": (wrapped(http.client.RemoteDisconnected("x")), "sent", LOST),
    "A connection that was closed while writing": (wrapped(BrokenPipeError()), "sent", LOST),
    "A TLS connection that was cut": (wrapped(ssl.SSLEOFError()), "sent", LOST),
    "Half a response": (wrapped(http.client.IncompleteRead(b"")), "sent", LOST),
    "A connection that was reset behind a proxy": (
        wrapped(ConnectionResetError()),
        "sent, proxy",
        LOST,
    ),
    "Another protocol": (wrapped(http.client.BadStatusLine("x")), "sent", LOST),
    "An invalid header": (ValueError(ADMIN_KEY), "sent", LOST),
    "A TLS error without a reason": (
        requests.exceptions.SSLError(ssl.SSLError("wrong version")),
        "",
        set(),
    ),
    "A failed handshake": (tls("TLSV1_ALERT_INTERNAL_ERROR"), "", set()),
    "A failed handshake behind a proxy": (tls("TLSV1_ALERT_INTERNAL_ERROR"), "proxy", set()),
    "A server without TLS": (tls("WRONG_VERSION_NUMBER"), "", {"is_without_tls"}),
    "A server without TLS behind a proxy": (
        tls("WRONG_VERSION_NUMBER"),
        "proxy",
        {"is_without_tls"},
    ),
    "A TLS error in the response": (tls("RECORD_LAYER_FAILURE"), "sent", LOST),
    "A proxy that refuses the connection": (by_proxy(ConnectionRefusedError()), "proxy", PROXY),
    "A proxy whose name does not exist": (
        by_proxy(wrapped(socket.gaierror(socket.EAI_NONAME, "x"))),
        "proxy",
        PROXY | UNKNOWN,
    ),
    "A proxy that is not reached in time": (by_proxy(TimeoutError()), "proxy", PROXY),
    "A proxy that is not reached": (by_proxy(OSError(errno.ENETUNREACH, "x")), "proxy", PROXY),
    "A proxy that ends the connection": (wrapped(ConnectionResetError()), "proxy", PROXY),
    "A proxy without TLS": (
        by_proxy(tls("WRONG_VERSION_NUMBER")),
        "proxy",
        PROXY | {"is_without_tls"},
    ),
    "A proxy that does not allow the host": (
        by_proxy(OSError(f"Tunnel connection failed: 403 {ADMIN_KEY}")),
        "proxy",
        PROXY,
    ),
    "A proxy that does not reach the host": (
        by_proxy(OSError("Tunnel connection failed: 502 x")),
        "proxy",
        PROXY,
    ),
}


def fault_of(name: str) -> NetworkError:
    error, state, _ = ERRORS[name]
    fault = translated(error, HOST, through_proxy="proxy" in state, was_sent="sent" in state)
    assert isinstance(fault, NetworkError)
    return fault


def message_of(name: str) -> str:
    """Return the message about one of `ERRORS`."""
    return fault_of(name).message


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_of_the_transport_says_whose_it_is_and_whether_the_request_was_sent(
    name: str,
) -> None:
    fault = fault_of(name)
    _, _, flags = ERRORS[name]
    is_about_proxy = "is_proxy_error" in flags
    advice = fault.advice_for("`base-url`")
    remedy = advice["remedy"] if advice is not None else ""

    assert {flag for flag, value in vars(fault).items() if value is True} == flags
    assert ("proxy" in fault.message.lower()) == is_about_proxy
    assert ("NO_PROXY" in remedy) == is_about_proxy
    assert ("`base-url`" in remedy) == (flags == {"is_without_tls"})
    assert ADMIN_KEY not in fault.message


@pytest.mark.parametrize(
    ("wrap", "owner"), [(wrapped, "of {server}"), (by_proxy, "of the proxy for {server}")]
)
def test_a_certificate_that_is_not_trusted_makes_its_server_or_proxy_unusable(
    wrap: Callable[[Exception], Exception], owner: str
) -> None:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code = 20
    error.verify_message = "unable to get local issuer certificate"

    fault = translated(wrap(error), HOST, through_proxy=True, was_sent=False)

    assert isinstance(fault, UnusableServerError)
    assert fault.summary == f"the certificate {owner} is not trusted"


def test_an_error_that_is_not_of_the_transport_stays_as_it_is() -> None:
    error = KeyError("x")

    assert translated(error, HOST, through_proxy=False, was_sent=True) is error
