"""What can go wrong on the way to a server, in a few words."""

import http.client
import re
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Final

import requests
from requests.exceptions import ProxyError
from urllib3.exceptions import HTTPError

from ..errors import Advice
from .trust import UnusableServerError, untrusted_certificate

# `ValueError` comes from a malformed status line or header
_TRANSPORT_ERRORS: Final = (
    requests.RequestException,
    HTTPError,
    http.client.HTTPException,
    OSError,
    ValueError,
)

# getaddrinfo(3); for any other code, such as `EAI_AGAIN`, the name may exist
_UNKNOWN_HOST: Final[Mapping[int | None, str]] = {
    socket.EAI_NONAME: "does not exist",
    socket.EAI_NODATA: "has no address",
}

_LOST: Final = (
    ConnectionError,
    ssl.SSLEOFError,
    ssl.SSLZeroReturnError,
    http.client.IncompleteRead,
)

# what Python sees of a server without TLS: the first with OpenSSL 3.0, the second from 3.2 on
_NOT_TLS: Final = frozenset(
    {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "HTTP_REQUEST"}
)

_PROXY: Final = Advice(
    cause="The proxy in the environment (HTTPS_PROXY or similar) is down, or does not allow this host.",
    remedy="Correct the proxy's address (most are `http://`), allow this host there, or add the host to NO_PROXY.",
)

_REQUEST_ID_HEADERS: Final = (
    *("X-Request-Id", "Request-Id", "X-Correlation-Id", "X-Amzn-RequestId"),
    *("X-Amz-Request-Id", "X-Goog-Request-Id", "X-Ms-Request-Id", "X-GitHub-Request-Id"),
)


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """Return the server's id of a request, if it sent one."""
    return next((headers[name] for name in _REQUEST_ID_HEADERS if headers.get(name)), None)


def format_status(status: int) -> str:
    """Return a status with its phrase, such as `502 (bad gateway)`."""
    phrase = http.client.responses.get(status)
    return f"{status} ({phrase.lower()})" if phrase else str(status)


@dataclass(eq=False, repr=False)
class NetworkError(Exception):
    """No complete response came. `message` never contains the error's own text, which may contain addresses and secrets."""

    message: str
    _: KW_ONLY
    maybe_processed: bool  # the request was sent, at least in part
    is_proxy_error: bool = False
    is_unresolved: bool = False  # the name of the server, or of the proxy, could not be resolved
    is_unknown_host: bool = False  # because the name servers say that it has no address
    is_without_tls: bool = False

    def advice_for(self, address: str) -> Advice | None:
        """Return the advice about an error whose cause is known. `address` is what the server's address comes from."""
        if self.is_proxy_error:
            return _PROXY
        cause = "The server does not use TLS at this port. It may be a server for plain HTTP."
        return (
            Advice(cause=cause, remedy=f"Correct the host and port in {address}.")
            if self.is_without_tls
            else None
        )


def translated(
    error: Exception, host: str, *, through_proxy: bool, maybe_processed: bool
) -> Exception:
    """Return the `UnusableServerError` or `NetworkError` for an error of the transport, and any other error as it is."""
    if not isinstance(error, _TRANSPORT_ERRORS):
        return error
    causes = _chain(error)
    # urllib3 takes a proxy that accepts the connection and then fails for the server
    is_proxy_error = through_proxy and (
        _has(causes, ProxyError) or not (maybe_processed or _has(causes, ssl.SSLError))
    )
    if untrusted := next(
        (cause for cause in causes if isinstance(cause, ssl.SSLCertVerificationError)), None
    ):
        return untrusted_certificate(untrusted, is_proxy_error=is_proxy_error)
    refusals = (
        re.match(r"Tunnel connection failed: ([0-9]{3})", str(cause))
        for cause in causes
        if isinstance(cause, OSError)
    )
    if status := next((int(refusal[1]) for refusal in refusals if refusal), None):
        message = f"The proxy refused to forward the request to {host}: {format_status(status)}"
        if status == http.client.PROXY_AUTHENTICATION_REQUIRED:
            cause = (
                "The proxy requires a user and a password, or does not accept those in its address."
            )
            return UnusableServerError(details=(f"{message}.",), cause=cause)
        return NetworkError(message, maybe_processed=False, is_proxy_error=True)
    name_error = next((cause.errno for cause in causes if isinstance(cause, socket.gaierror)), 0)
    tls_reason = next(
        (
            cause.reason or ""
            for cause in causes
            if isinstance(cause, ssl.SSLError) and hasattr(cause, "reason")
        ),
        "",
    )
    server, subject = ("the proxy", "The proxy") if is_proxy_error else (host, host)
    if name_error != 0:
        message = f"The name of {server} {_UNKNOWN_HOST.get(name_error, 'could not be resolved')}"
    elif _has(causes, ConnectionRefusedError):
        message = f"{subject} refused the connection"
    elif _has(causes, TimeoutError, requests.Timeout):
        missed = (
            f"The proxy did not connect to {host}"
            if is_proxy_error
            else f"{host} could not be reached"
        )
        message = f"{subject} sent nothing for too long" if maybe_processed else f"{missed} in time"
    elif maybe_processed and _has(causes, *_LOST):
        message = f"The connection to {server} was lost before the response was complete"
    elif _has(causes, ssl.SSLError):
        message = f"The TLS connection to {server} failed{f' ({tls_reason})' if tls_reason else ''}"
    else:
        message = (
            f"The response from {server} is not valid HTTP"
            if maybe_processed
            else f"Could not connect to {server}"
        )
    return NetworkError(
        message,
        maybe_processed=maybe_processed,
        is_proxy_error=is_proxy_error,
        is_unresolved=name_error != 0,
        is_unknown_host=name_error in _UNKNOWN_HOST,
        is_without_tls=not maybe_processed and tls_reason in _NOT_TLS,
    )


def _chain(error: BaseException) -> list[BaseException]:
    """Return an error and those that it wraps; requests and urllib3 wrap in `args` and `reason` too."""
    chain = [error]
    for wrapper in chain:
        for item in (
            *wrapper.args,
            getattr(wrapper, "reason", None),
            wrapper.__cause__,
            wrapper.__context__,
        ):
            if isinstance(item, BaseException) and item not in chain:
                chain.append(item)
    return chain


def _has(causes: Sequence[BaseException], *kinds: type[BaseException]) -> bool:
    return any(isinstance(cause, kinds) for cause in causes)
