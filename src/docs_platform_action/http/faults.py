"""What can go wrong on the way to a server, in a few words."""

import contextlib
import http.client
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Final

import requests
from requests.exceptions import ProxyError
from urllib3.exceptions import ConnectTimeoutError, HTTPError

from ..errors import ActionError, Advice, Cancelled
from .connection import Exchange
from .proxy import UnusableProxyError
from .resolver import ResolutionTimeout
from .tls import CERTIFICATE_REQUIRED, MISSING_CERTIFICATE, handshake_advice, reason_of

# `ValueError` comes from a malformed status line or header
_ADAPTER_ERRORS: Final = (requests.RequestException, HTTPError, http.client.HTTPException, OSError, ValueError)

# getaddrinfo(3); for any other code, such as `EAI_AGAIN`, the name may exist
_UNKNOWN_HOST: Final[Mapping[int | None, str]] = {socket.EAI_NONAME: "does not exist", socket.EAI_NODATA: "has no address"}

_CLOSED: Final = (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError)  # RemoteDisconnected is a ConnectionError
_LOST: Final = (*_CLOSED, http.client.IncompleteRead)

_MAX_ADDRESSES_SHOWN: Final = 3

_WRONG_DATE: Final = frozenset({9, 10})  # OpenSSL's codes (source: x509_vfy.h)
_WRONG_NAME: Final = frozenset({62, 64})

_REQUEST_ID_HEADERS: Final = (
    *("X-Request-Id", "Request-Id", "X-Correlation-Id", "X-Amzn-RequestId"),
    *("X-Amz-Request-Id", "X-Goog-Request-Id", "X-Ms-Request-Id"),
)


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """Return the server's id of a request, if it sent one."""
    return next((headers[name] for name in _REQUEST_ID_HEADERS if headers.get(name)), None)


@dataclass(eq=False, repr=False)
class NetworkError(Exception):
    """No complete response came. `message` never contains the error's own text, which may contain addresses and secrets."""

    message: str
    _: KW_ONLY
    maybe_processed: bool
    is_stale: bool = False  # the server had closed a connection that was kept from an earlier request
    is_proxy_error: bool = False
    is_unresolved: bool = False  # the name of the server, or of the proxy, could not be resolved
    is_unknown_host: bool = False  # the name servers say that the name of the server, or of the proxy, has no address
    tls_reason: str = ""  # OpenSSL's constant, if the TLS handshake failed

    def advice_for(self, address: str) -> Advice | None:
        """Return the advice about a failed TLS handshake, if its cause is known. `address` is what the server's comes from."""
        return handshake_advice(self.tls_reason, address, is_proxy=self.is_proxy_error)


class ResponseTimeout(NetworkError):
    """The exchange was aborted because its total time was up."""


@dataclass(eq=False, repr=False)
class UntrustedCertificateError(Exception):
    """The certificate is not trusted. `reason` and `code` are OpenSSL's."""

    reason: str
    _: KW_ONLY
    code: int = 0
    is_proxy_error: bool = False

    def failure(self, kind: type[ActionError], server: str, address: str) -> ActionError:
        """Return the failure for a server, such as "the API at api.example.com", whose address comes from `address`."""
        if self.is_proxy_error:
            server, address = f"the proxy for {server}", "the address of the proxy in the environment"
        if self.code in _WRONG_DATE:
            cause = "The certificate has expired, or is not valid yet by this runner's clock."
            remedy = "Have the certificate renewed. `ca-bundle` does not help with that."
        elif self.code in _WRONG_NAME:
            cause = "The certificate was issued for another host."
            remedy = f"Correct {address}, or have the certificate issued for this host. `ca-bundle` does not help with that."
        else:
            cause = "No trusted authority has signed the certificate. It may come from a private authority."
            remedy = (
                "Pass the private authority's certificate (PEM) with `ca-bundle`. If `ca-bundle` is set already, it holds "
                "another authority, or the server does not send its intermediate certificate: add that certificate to the file."
            )
        details = (f"TLS reported: {self.reason.rstrip('.')}.",)
        return kind(f"the certificate of {server} is not trusted", details=details, cause=cause, remedy=remedy)


@contextlib.contextmanager
def translate_errors(exchange: Exchange) -> Iterator[None]:
    """Raise `Cancelled`, `UntrustedCertificateError`, `UnusableProxyError` or `NetworkError` in place of an adapter's error."""
    try:
        yield
    except _ADAPTER_ERRORS as error:
        raise _translated(error, exchange) from error


def _translated(error: Exception, exchange: Exchange) -> Exception:
    if exchange.is_cancelled:
        return Cancelled("cancelled")
    causes = _chain(error)
    name_problem = _problem_of_name(causes)
    if exchange.is_aborted and not exchange.address_errors and name_problem is None:
        message = f"{exchange.host} took longer than {exchange.total_seconds:.3g} s to respond"
        return ResponseTimeout(message, maybe_processed=exchange.is_connected)
    is_proxy_error = exchange.through_proxy and (exchange.is_tunneling or _has(causes, ProxyError))
    if untrusted := next((cause for cause in causes if isinstance(cause, ssl.SSLCertVerificationError)), None):
        return UntrustedCertificateError(untrusted.verify_message, code=untrusted.verify_code, is_proxy_error=is_proxy_error)
    tls_reason = reason_of(causes)
    message = _describe(causes, exchange, is_proxy_error=is_proxy_error, tls_reason=tls_reason)
    if exchange.proxy_status == http.client.PROXY_AUTHENTICATION_REQUIRED:
        cause = "The proxy requires a user and a password, or does not accept those in its address."
        return UnusableProxyError(f"{message}.", cause=cause)
    return NetworkError(
        message + _addresses_tried(exchange),
        # with TLS 1.3, a server rejects a client without a certificate after the client has sent its request (RFC 8446, 4.4.2.4)
        maybe_processed=exchange.is_connected and tls_reason != MISSING_CERTIFICATE,
        is_stale=exchange.is_reused and _has(causes, *_CLOSED),
        is_proxy_error=is_proxy_error,
        is_unresolved=name_problem is not None,
        is_unknown_host=name_problem in _UNKNOWN_HOST.values(),
        tls_reason=tls_reason if not exchange.is_connected or tls_reason in CERTIFICATE_REQUIRED else "",
    )


def format_status(status: int) -> str:
    """Return a status with its phrase, such as `502 (bad gateway)`."""
    phrase = http.client.responses.get(status)
    return f"{status} ({phrase.lower()})" if phrase else str(status)


def _problem_of_name(causes: list[BaseException]) -> str | None:
    """Return what went wrong when the name of the server or the proxy was looked up, if that failed."""
    if _has(causes, ResolutionTimeout):
        return "could not be resolved in time"
    codes = [cause.errno for cause in causes if isinstance(cause, socket.gaierror)]
    return _UNKNOWN_HOST.get(codes[0], "could not be resolved") if codes else None


def _addresses_tried(exchange: Exchange) -> str:
    if len(exchange.address_errors) < 2:
        return ""
    failures = [
        f"{address}: {'timed out' if isinstance(error, TimeoutError) else (error.strerror or 'failed').lower()}"
        for address, error in exchange.address_errors.items()
    ]
    if len(failures) > _MAX_ADDRESSES_SHOWN:
        failures[_MAX_ADDRESSES_SHOWN:] = [f"{len(failures) - _MAX_ADDRESSES_SHOWN} more"]
    return f" (tried {'; '.join(failures)})"


def _chain(error: BaseException) -> list[BaseException]:
    """Return an error and those that it wraps; requests and urllib3 wrap in `args` and `reason` too."""
    chain = [error]
    for wrapper in chain:
        for item in (*wrapper.args, getattr(wrapper, "reason", None), wrapper.__cause__, wrapper.__context__):
            if isinstance(item, BaseException) and item not in chain:
                chain.append(item)
    return chain


def _has(causes: list[BaseException], *kinds: type[BaseException]) -> bool:
    return any(isinstance(cause, kinds) for cause in causes)


def _describe(causes: list[BaseException], exchange: Exchange, *, is_proxy_error: bool, tls_reason: str) -> str:
    if exchange.proxy_status is not None:
        return f"The proxy refused to forward the request to {exchange.host}: {format_status(exchange.proxy_status)}"
    server, subject = ("the proxy", "The proxy") if is_proxy_error else (exchange.host, exchange.host)
    is_connected = exchange.is_connected or exchange.is_tunneling
    if is_connected and _has(causes, *_LOST):
        return f"The connection to {server} was lost before the response was complete"
    if (name_problem := _problem_of_name(causes)) is not None:
        return f"The name of {server} {name_problem}"
    messages = {
        (ConnectionRefusedError,): f"{subject} refused the connection",
        (ConnectTimeoutError, requests.ConnectTimeout): f"{subject} could not be reached in time",
        (TimeoutError, requests.ReadTimeout): f"{subject} sent nothing for too long",
        (ssl.SSLError,): f"The TLS connection to {server} failed{f' ({tls_reason})' if tls_reason else ''}",
    }
    for kinds, message in messages.items():
        if _has(causes, *kinds):
            return message
    return f"The response from {server} is not valid HTTP" if is_connected else f"Could not connect to {server}"
