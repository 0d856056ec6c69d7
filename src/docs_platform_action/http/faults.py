"""What can go wrong on the way to a server, in a few words."""

import http.client
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Final

import requests
from urllib3.exceptions import HTTPError, NameResolutionError

from ..errors import ActionError
from .connection import Guard

FAULTS = (requests.RequestException, HTTPError, http.client.HTTPException, OSError, ValueError)
"""What a requests adapter raises; `ValueError` is what urllib3 and http.client let through of a malformed status line, header or
proxy address."""

MAX_ADDRESSES_SHOWN: Final = 3

_WRONG_DATE: Final = frozenset({9, 10})
_WRONG_NAME: Final = frozenset({62, 64})
"""OpenSSL's codes for a certificate out of its dates, and for one of another host or address (source: x509_vfy.h)."""

_REQUEST_ID_HEADERS: Final = (
    *("X-Request-Id", "Request-Id", "X-Correlation-Id", "X-Amzn-RequestId"),
    *("X-Amz-Request-Id", "X-Goog-Request-Id", "X-Ms-Request-Id"),
)
"""Where APIs, gateways and storages put their own name for a request."""


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """Return the server's own name for a request, where it sent one."""
    return next((headers[name] for name in _REQUEST_ID_HEADERS if headers.get(name)), None)


@dataclass(eq=False, repr=False)
class NetworkError(Exception):
    """No complete response came. `what` never holds the error's own text, which may hold addresses and secrets.

    `sent` says whether the server may have seen the request, `stale` whether a connection that was kept from an earlier exchange
    turned out to be closed, `proxied` whether the proxy is at fault.
    """

    message: str
    _: KW_ONLY
    maybe_processed: bool
    is_stale: bool = False
    is_proxy_error: bool = False


class ResponseTimeout(NetworkError):
    """The exchange was ended because its total time was up."""


@dataclass(eq=False, repr=False)
class UntrustedCertificateError(Exception):
    """The certificate of the server, or of the proxy if `proxied`, is not trusted, for OpenSSL's `reason` and its `code`."""

    reason: str
    _: KW_ONLY
    code: int = 0
    is_proxy_error: bool = False

    def failure(self, kind: type[ActionError], whose: str, server: str, address: str) -> ActionError:
        """Return the failure for a `server`, such as "API", whose address comes from `address`."""
        if self.is_proxy_error:
            whose, server, address = f"the proxy for {whose}", "proxy", "the address of the proxy in the environment"
        if self.code in _WRONG_DATE:
            cause = f"The {server}'s certificate has expired, or is not valid yet by this runner's clock."
            remedy = f"Have the {server}'s certificate renewed. `ca-bundle` does not help with that."
        elif self.code in _WRONG_NAME:
            cause = f"The {server}'s certificate was issued for another host."
            remedy = f"Correct {address}, or have the certificate issued for this host. `ca-bundle` does not help with that."
        else:
            cause = f"No trusted authority has signed the {server}'s certificate. It may come from a private authority."
            remedy = (
                "Pass the private authority's certificate (PEM) with `ca-bundle`. "
                "If `ca-bundle` is set already, either it holds another authority, or the server does not send its intermediate "
                "certificate: have the server send the full chain, or add that certificate to the file."
            )
        facts = (f"TLS reported: {self.reason.rstrip('.')}.",)
        return kind(f"the certificate of {whose} is not trusted", details=facts, cause=cause, remedy=remedy)


class SocksProxyError(Exception):
    """The environment names a SOCKS proxy for the server, which is not supported."""

    def failure(self, kind: type[ActionError], server: str) -> ActionError:
        """Return the failure for a server, such as "the API at api.example.com"."""
        return kind(
            f"{server} cannot be reached through a SOCKS proxy",
            cause="An environment variable (ALL_PROXY or HTTPS_PROXY) names a SOCKS proxy. SOCKS proxies are not supported.",
            remedy="Set HTTPS_PROXY to an HTTP proxy. If the host can be reached without a proxy, unset the variable or add the "
            "host to NO_PROXY.",
        )


def fault_of(error: Exception, guard: Guard, *, host: str, through_proxy: bool) -> NetworkError | UntrustedCertificateError:
    """Return what an adapter's error means. `through_proxy` says whether the environment names a proxy for the host."""
    causes = [*_chain(error)]
    untrusted = next((cause for cause in causes if isinstance(cause, ssl.SSLCertVerificationError)), None)
    if untrusted is not None:
        is_proxy_error = _among(causes, requests.exceptions.ProxyError)
        return UntrustedCertificateError(untrusted.verify_message, code=untrusted.verify_code, is_proxy_error=is_proxy_error)
    if through_proxy and (fault := _proxy_fault(causes, host)):
        return NetworkError(f"{fault}{_tried(guard)}", maybe_processed=guard.is_connected, is_proxy_error=True)
    gone = _among(causes, ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError)
    message = _describe(causes, host, connected=guard.is_connected)
    return NetworkError(f"{message}{_tried(guard)}", maybe_processed=guard.is_connected, is_stale=guard.is_reused and gone)


def _tried(guard: Guard) -> str:
    """Say how each address failed, where a host has several."""
    if len(guard.address_errors) < 2:
        return ""
    failures = [f"{address}: {_why(error)}" for address, error in guard.address_errors.items()]
    if len(failures) > MAX_ADDRESSES_SHOWN:
        failures[MAX_ADDRESSES_SHOWN:] = [f"{len(failures) - MAX_ADDRESSES_SHOWN} more"]
    return f" (tried {'; '.join(failures)})"


def _why(error: OSError) -> str:
    return "no answer" if isinstance(error, TimeoutError) else (error.strerror or "failed").lower()


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those that it wraps; requests and urllib3 wrap in `args` and `reason` too."""
    seen: set[int] = set()
    waiting: list[object] = [error]
    while waiting:
        item = waiting.pop(0)
        if isinstance(item, BaseException) and id(item) not in seen:
            seen.add(id(item))
            yield item
            waiting += [*item.args, getattr(item, "reason", None), item.__cause__, item.__context__]


def _among(causes: list[BaseException], *kinds: type[BaseException]) -> bool:
    return any(isinstance(cause, kinds) for cause in causes)


def _proxy_fault(causes: list[BaseException], host: str) -> str | None:
    """Return what a proxy has to do with an error, if anything."""
    if _among(causes, requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema):
        return "The proxy address in the environment cannot be used"
    if not _among(causes, requests.exceptions.ProxyError):
        return None
    if _among(causes, ConnectionRefusedError):
        return "The proxy refused the connection"
    if _among(causes, NameResolutionError):
        return "The name of the proxy could not be resolved"
    return f"The proxy refused to forward the request to {host}"


def _describe(causes: list[BaseException], host: str, *, connected: bool) -> str:
    what_of = {
        NameResolutionError: f"The name of {host} could not be resolved",
        ConnectionRefusedError: f"{host} refused the connection",
        requests.exceptions.ConnectTimeout: f"{host} could not be reached in time",
        requests.exceptions.ReadTimeout: f"{host} sent nothing for too long",
        TimeoutError: f"{host} sent nothing for too long",
        ssl.SSLError: f"The TLS connection to {host} failed",
    }
    for kind, message in what_of.items():
        if _among(causes, kind):
            return message
    if not connected:
        return f"No connection to {host} could be made"
    if _among(causes, ConnectionError, http.client.IncompleteRead):  # RemoteDisconnected is a ConnectionError
        return f"The connection to {host} was lost before the response was complete"
    return f"What {host} answered is not valid HTTP"
