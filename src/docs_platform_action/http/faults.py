"""What can go wrong on the way to a server, in a few words."""

import http.client
import re
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Final, TypeVar

import requests
from requests.exceptions import ProxyError
from urllib3.exceptions import HTTPError

from ..errors import Advice
from .trust import UnusableServerError, untrusted_certificate

_Error = TypeVar("_Error", bound=BaseException)

# `ValueError` comes from a malformed status line or header
_TRANSPORT_ERRORS: Final = (
    requests.RequestException,
    HTTPError,
    http.client.HTTPException,
    OSError,
    ValueError,
)

# answers of the name servers (getaddrinfo(3)); any other code, such as `EAI_AGAIN`, may pass
_UNKNOWN_HOST: Final[Mapping[int | None, str]] = {
    socket.EAI_NONAME: "does not exist",
    socket.EAI_NODATA: "has no address",
}

_CONNECTION_LOST: Final = (
    ConnectionError,
    ssl.SSLEOFError,
    ssl.SSLZeroReturnError,
    http.client.IncompleteRead,
)

# what Python sees of a server without TLS
_NOT_TLS: Final = frozenset(
    {
        "WRONG_VERSION_NUMBER",  # with OpenSSL 3.0
        "RECORD_LAYER_FAILURE",  # from OpenSSL 3.2 on
        "PACKET_LENGTH_TOO_LONG",
        "HTTP_REQUEST",
    }
)

_PROXY: Final = Advice(
    cause=(
        "The proxy in the environment (HTTPS_PROXY or similar) is down, "
        "or does not allow this host."
    ),
    remedy=(
        "Correct the proxy's address (most are `http://`), allow this host there, "
        "or add the host to NO_PROXY."
    ),
)


def format_status(status: int) -> str:
    """Return a status with its phrase, such as `502 (bad gateway)`."""
    phrase = http.client.responses.get(status)
    return f"{status} ({phrase.lower()})" if phrase else str(status)


@dataclass(eq=False, repr=False)
class NetworkError(Exception):
    """No complete response came.

    `message` never contains the error's own text, which may contain addresses and secrets.
    """

    message: str
    _: KW_ONLY
    was_sent: bool  # at least in part: the server may have processed the request
    is_proxy_error: bool = False
    is_unresolved: bool = False  # the name of the server, or of the proxy, could not be resolved
    is_unknown_host: bool = False  # the name servers say that it, or its address, does not exist
    is_without_tls: bool = False

    def advice_for(self, address: str) -> Advice | None:
        """Return the advice about an error whose cause is known.

        `address` is what the server's address comes from.
        """
        if self.is_proxy_error:
            return _PROXY
        if self.is_without_tls:
            cause = "The server does not use TLS at this port. It may be a server for plain HTTP."
            return Advice(cause=cause, remedy=f"Correct the host and port in {address}.")
        return None


def translated(error: Exception, host: str, *, through_proxy: bool, was_sent: bool) -> Exception:
    """Return the `UnusableServerError` or `NetworkError` for an error of the transport.

    Any other error is returned as it is.
    """
    if not isinstance(error, _TRANSPORT_ERRORS):
        return error
    causes = _causes_of(error)
    is_proxy_error = through_proxy and _is_fault_of_proxy(causes, was_sent=was_sent)
    untrusted = _first(causes, ssl.SSLCertVerificationError)
    if untrusted is not None:
        return untrusted_certificate(untrusted, is_proxy_error=is_proxy_error)
    refusal_status = _tunnel_refusal_status(causes)
    if refusal_status is not None:
        return _refused_by_proxy(host, refusal_status)
    message = _message_about(causes, host, is_proxy_error=is_proxy_error, was_sent=was_sent)
    name_error = _first(causes, socket.gaierror)
    return NetworkError(
        message,
        was_sent=was_sent,
        is_proxy_error=is_proxy_error,
        is_unresolved=name_error is not None,
        is_unknown_host=name_error is not None and name_error.errno in _UNKNOWN_HOST,
        is_without_tls=not was_sent and _tls_reason(causes) in _NOT_TLS,
    )


def _is_fault_of_proxy(causes: Sequence[BaseException], *, was_sent: bool) -> bool:
    """Return whether a request through a proxy failed at the proxy."""
    if _has(causes, ProxyError):
        return True
    # urllib3 blames the server if a proxy accepts the connection and then fails
    has_reached_server = was_sent or _has(causes, ssl.SSLError)
    return not has_reached_server


def _tunnel_refusal_status(causes: Sequence[BaseException]) -> int | None:
    """Return the status with which a proxy refused a tunnel to the server, if it did."""
    for cause in causes:
        if not isinstance(cause, OSError):
            continue
        refusal = re.match(r"Tunnel connection failed: ([0-9]{3})", str(cause))
        if refusal is not None:
            return int(refusal[1])
    return None


def _refused_by_proxy(host: str, status: int) -> UnusableServerError | NetworkError:
    message = f"The proxy refused to forward the request to {host}: {format_status(status)}"
    if status == http.client.PROXY_AUTHENTICATION_REQUIRED:
        cause = "The proxy requires a user and a password, or does not accept those in its address."
        return UnusableServerError(details=(f"{message}.",), cause=cause)
    return NetworkError(message, was_sent=False, is_proxy_error=True)


def _message_about(
    causes: Sequence[BaseException], host: str, *, is_proxy_error: bool, was_sent: bool
) -> str:
    server = "the proxy" if is_proxy_error else host
    subject = "The proxy" if is_proxy_error else host
    name_error = _first(causes, socket.gaierror)
    if name_error is not None:
        problem = _UNKNOWN_HOST.get(name_error.errno, "could not be resolved")
        return f"The name of {server} {problem}"
    if _has(causes, ConnectionRefusedError):
        return f"{subject} refused the connection"
    if _has(causes, TimeoutError, requests.Timeout):
        if was_sent:
            return f"{subject} sent nothing for too long"
        if is_proxy_error:
            return f"The proxy did not connect to {host} in time"
        return f"{host} could not be reached in time"
    if was_sent and _has(causes, *_CONNECTION_LOST):
        return f"The connection to {server} was lost before the response was complete"
    if _has(causes, ssl.SSLError):
        tls_reason = _tls_reason(causes)
        explanation = f" ({tls_reason})" if tls_reason else ""
        return f"The TLS connection to {server} failed{explanation}"
    if was_sent:
        return f"The response from {server} is not valid HTTP"
    return f"Could not connect to {server}"


def _tls_reason(causes: Sequence[BaseException]) -> str:
    """Return OpenSSL's name for what failed, such as `WRONG_VERSION_NUMBER`, or an empty text."""
    for cause in causes:
        # OpenSSL's own errors have a `reason`, those that Python code raises do not
        if isinstance(cause, ssl.SSLError) and hasattr(cause, "reason"):
            return cause.reason or ""
    return ""


def _causes_of(error: BaseException) -> list[BaseException]:
    """Return an error and those that it wraps."""
    causes: list[BaseException] = []
    pending = [error]
    while pending:
        wrapper = pending.pop(0)
        if wrapper in causes:
            continue
        causes.append(wrapper)
        # requests and urllib3 wrap errors in `args` and `reason` too
        reason = getattr(wrapper, "reason", None)
        wrapped = (*wrapper.args, reason, wrapper.__cause__, wrapper.__context__)
        pending += [item for item in wrapped if isinstance(item, BaseException)]
    return causes


def _has(causes: Sequence[BaseException], *kinds: type[BaseException]) -> bool:
    return any(isinstance(cause, kinds) for cause in causes)


def _first(causes: Sequence[BaseException], kind: type[_Error]) -> _Error | None:
    for cause in causes:
        if isinstance(cause, kind):
            return cause
    return None
