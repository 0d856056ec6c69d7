"""What can go wrong on the way to a server, in a few words."""

import http.client
import re
import ssl
from collections.abc import Iterator, Mapping
from typing import Final

import requests
from requests.utils import select_proxy
from urllib3.exceptions import HTTPError, NameResolutionError

from ..errors import Advice
from .connection import Guard

FAULTS = (requests.RequestException, HTTPError, http.client.HTTPException, OSError, ValueError)
"""What a requests adapter raises; `ValueError` is what urllib3 and http.client let through of a malformed status line, header or
proxy address."""

MOST_ADDRESSES_SHOWN: Final = 3

_WRONG_DATE: Final = frozenset({9, 10})
_WRONG_NAME: Final = frozenset({62, 64})
"""OpenSSL's codes for a certificate out of its dates, and for one of another host or address (source: x509_vfy.h)."""

_REQUEST_ID_HEADERS: Final = (
    *("X-Request-Id", "Request-Id", "X-Correlation-Id", "X-Amzn-RequestId"),
    *("X-Amz-Request-Id", "X-Goog-Request-Id", "X-Ms-Request-Id"),
)
"""Where APIs, gateways and storages put their own name for a request, by which they find it again."""


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """Tell the server's own name for a request, where it sent one."""
    return next((headers[name] for name in _REQUEST_ID_HEADERS if headers.get(name)), None)


class NetworkError(Exception):
    """No whole answer came. Its text never holds the error's own, which may hold addresses and secrets.

    `sent` tells whether the server may have seen the request, `stale` whether a connection that was kept from an earlier exchange
    turned out to be closed, `proxied` whether the proxy is at fault.
    """

    def __init__(self, what: str, *, sent: bool, stale: bool = False, proxied: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.sent = sent
        self.stale = stale
        self.proxied = proxied


class ResponseTimeout(NetworkError):
    """The exchange was ended because its total time was up."""


class UntrustedError(Exception):
    """The certificate of the server, or of the proxy if `proxied`, is not trusted.

    `reason` is what TLS said, `code` is OpenSSL's for it.
    """

    def __init__(self, reason: str, *, code: int = 0, proxied: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.proxied = proxied

    @property
    def fact(self) -> str:
        """What TLS said, as a sentence."""
        return f"TLS said: {self.reason.rstrip('.')}."

    def advice(self, server: str, address: str) -> Advice:
        """Return the likely cause and the remedy for a server, such as "API", whose address comes from `address`."""
        if self.proxied:
            server, address = "proxy", "the address of the proxy in the environment"
        if self.code in _WRONG_DATE:
            return Advice(
                cause=f"The {server}'s certificate has expired, or is not valid yet by this runner's clock.",
                remedy=f"Have the {server}'s certificate renewed. `ca-bundle` does not help with that.",
            )
        if self.code in _WRONG_NAME:
            return Advice(
                cause=f"The {server}'s certificate was issued for another host.",
                remedy=f"Correct {address}, or have the certificate issued for this host. `ca-bundle` does not help with that.",
            )
        return Advice(
            cause=f"No trusted authority has signed the {server}'s certificate. It may come from a private authority.",
            remedy="Pass the private authority's certificate (PEM) with `ca-bundle`. "
            "If `ca-bundle` is set already, either it holds another authority, or the server does not send its intermediate "
            "certificate: have the server send the full chain, or add that certificate to the file.",
        )


class SocksProxyError(Exception):
    """The environment names a SOCKS proxy for the server. There is no support for those, so no try would help."""


SOCKS: Final = Advice(
    cause="A variable of the environment (ALL_PROXY or HTTPS_PROXY) names a SOCKS proxy. SOCKS proxies are not supported.",
    remedy="Set HTTPS_PROXY to an HTTP proxy. If the host can be reached without a proxy, unset the variable or add the host to "
    "NO_PROXY.",
)


def refuse_socks(url: str, proxies: Mapping[str, str]) -> None:
    """Raise `SocksProxyError` if the proxy for an address is a SOCKS proxy."""
    if re.match(r"socks[0-9a-z]*://", select_proxy(url, proxies) or "", re.IGNORECASE):
        raise SocksProxyError


def fault_of(error: Exception, guard: Guard, *, host: str, through_proxy: bool) -> NetworkError | UntrustedError:
    """Make of what an adapter raised what it means; `through_proxy` tells whether the environment names a proxy for the host."""
    causes = list(_chain(error))
    untrusted = next((cause for cause in causes if isinstance(cause, ssl.SSLCertVerificationError)), None)
    if untrusted is not None:
        proxied = any(isinstance(cause, requests.exceptions.ProxyError) for cause in causes)
        return UntrustedError(untrusted.verify_message, code=untrusted.verify_code, proxied=proxied)
    if through_proxy and (fault := _proxy_fault(causes, host)):
        return NetworkError(f"{fault}{_tried(guard)}", sent=guard.connected, proxied=True)
    gone = any(isinstance(cause, ConnectionError | ssl.SSLEOFError | ssl.SSLZeroReturnError) for cause in causes)
    what = _describe(causes, host, connected=guard.connected)
    return NetworkError(f"{what}{_tried(guard)}", sent=guard.connected, stale=guard.reused and gone)


def _tried(guard: Guard) -> str:
    """Say how each address failed, where a host has several."""
    if len(guard.tried) < 2:
        return ""
    failures = [f"{address}: {_why(error)}" for address, error in guard.tried.items()]
    more = [f"{len(failures) - MOST_ADDRESSES_SHOWN} more"] if len(failures) > MOST_ADDRESSES_SHOWN else []
    return f" (tried {'; '.join([*failures[:MOST_ADDRESSES_SHOWN], *more])})"


def _why(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no answer"
    return (error.strerror or "failed").lower()


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Walk through an error and those that it wraps; requests and urllib3 wrap in `args` and `reason` too."""
    seen: set[int] = set()
    waiting: list[object] = [error]
    while waiting:
        item = waiting.pop(0)
        if isinstance(item, BaseException) and id(item) not in seen:
            seen.add(id(item))
            yield item
            waiting += [*item.args, getattr(item, "reason", None), item.__cause__, item.__context__]


def _proxy_fault(causes: list[BaseException], host: str) -> str | None:
    """Tell in a few words what a proxy has to do with an error, if anything."""

    def among(*kinds: type[BaseException]) -> bool:
        return any(isinstance(cause, kinds) for cause in causes)

    if among(requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema):
        return "The proxy address in the environment cannot be used"
    if not among(requests.exceptions.ProxyError):
        return None
    if among(ConnectionRefusedError):
        return "The proxy refused the connection"
    if among(NameResolutionError):
        return "The name of the proxy could not be resolved"
    return f"The proxy did not let the request through to {host}"


def _describe(causes: list[BaseException], host: str, *, connected: bool) -> str:
    """Tell in a few words what a network error means; never the error's own text, which may hold addresses and secrets."""

    def among(*kinds: type[BaseException]) -> bool:
        return any(isinstance(cause, kinds) for cause in causes)

    if among(NameResolutionError):
        return f"The name of {host} could not be resolved"
    if among(ConnectionRefusedError):
        return f"{host} refused the connection"
    if among(requests.exceptions.ConnectTimeout):
        return f"{host} could not be reached in time"
    if among(requests.exceptions.ReadTimeout, TimeoutError):
        return f"{host} sent nothing for too long"
    if among(ssl.SSLError):
        return f"The TLS connection to {host} failed"
    if not connected:
        return f"No connection to {host} could be made"
    if among(ConnectionError, http.client.IncompleteRead):  # RemoteDisconnected is a ConnectionError
        return f"The connection to {host} broke off before the answer was whole"
    return f"What {host} answered is no HTTP that can be read"
