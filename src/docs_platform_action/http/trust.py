"""Which servers and proxies are trusted, and what is wrong with those that are not."""

import re
import ssl
from dataclasses import KW_ONLY, dataclass
from typing import Final

import certifi
from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url

from ..errors import ActionError

_PROXY_FORM: Final = (
    "Write HTTPS_PROXY as http://host:port or http://user:password@host:port, "
    "with user and password percent-encoded. "
    "If the host can be reached without a proxy, add it to NO_PROXY."
)

# OpenSSL's codes for a certificate that is not valid yet or has expired, and for one of another
# host or IP address (source: x509_vfy.h)
_NOT_VALID_NOW: Final = frozenset({9, 10})
_OTHER_HOST: Final = frozenset({62, 64})


@dataclass(eq=False, repr=False)
class UnusableServerError(Exception):
    """A server or proxy that no retry makes usable.

    Texts contain `{server}`, and `{address}`: where its address comes from.
    """

    summary: str = "{server} cannot be reached through the proxy"
    _: KW_ONLY
    details: tuple[str, ...] = ()
    cause: str
    remedy: str = _PROXY_FORM

    def failure(self, kind: type[ActionError], server: str, address: str) -> ActionError:
        """Return the failure for a server, such as "the API at api.example.com".

        `address` is what the server's address comes from.
        """
        return kind(
            self.summary.format(server=server),
            details=self.details,
            cause=self.cause,
            remedy=self.remedy.format(address=address),
        )


def untrusted_certificate(
    error: ssl.SSLCertVerificationError, *, is_proxy_error: bool
) -> UnusableServerError:
    """Return the error for a certificate that OpenSSL does not trust."""
    if is_proxy_error:
        server = "the proxy for {server}"
        address = "the proxy's address"
    else:
        server = "{server}"
        address = "{address}"
    if error.verify_code in _NOT_VALID_NOW:
        cause = "The certificate has expired, or is not valid yet according to this runner's clock."
        remedy = (
            "Have the certificate renewed, or correct this runner's clock. "
            "`ca-bundle` cannot fix this."
        )
    elif error.verify_code in _OTHER_HOST:
        cause = "The certificate was issued for another host."
        remedy = (
            f"Correct {address}, or have the certificate issued for this host. "
            "`ca-bundle` cannot fix this."
        )
    else:
        cause = (
            "No trusted authority has signed the certificate. It may come from a private authority."
        )
        remedy = (
            "Pass the private authority's certificate (PEM) with `ca-bundle`. "
            "If it is already set, it has another authority, or lacks an intermediate certificate."
        )
    return UnusableServerError(
        f"the certificate of {server} is not trusted",
        details=(f"TLS reported: {error.verify_message.rstrip('.')}.",),
        cause=cause,
        remedy=remedy,
    )


def check_proxy(address: str) -> str:
    """Return a proxy's address with its scheme.

    Raises `UnusableServerError`, which does not show the address.
    """
    has_scheme = "://" in address
    url = address if has_scheme else f"http://{address.removeprefix('//')}"
    if re.match(r"socks[0-9a-z]*://", url, re.IGNORECASE):
        raise UnusableServerError(
            "{server} cannot be reached through a SOCKS proxy",
            cause="HTTPS_PROXY (or ALL_PROXY) names a SOCKS proxy, which is not supported.",
            remedy=(
                "Set HTTPS_PROXY to an HTTP proxy. "
                "If the host can be reached without a proxy, add it to NO_PROXY."
            ),
        )
    if not _is_http_proxy(url, is_scheme_given=has_scheme):
        raise UnusableServerError(
            details=("The proxy address in the environment is not valid.",),
            cause="HTTPS_PROXY (or ALL_PROXY) is not the address of an HTTP proxy.",
        )
    return url


def _is_http_proxy(url: str, *, is_scheme_given: bool) -> bool:
    if not url.isprintable() or "\\" in url:
        return False
    try:
        parsed = parse_url(url)
    except LocationParseError:
        return False
    if parsed.scheme not in {"http", "https"} or not parsed.host or parsed.port == 0:
        return False
    if parsed.fragment is not None:
        return False
    if parsed.request_uri == "/":
        return True
    # a path does not matter, but it may be the rest of a password that contains a slash, or of an
    # address whose scheme is mistyped
    return is_scheme_given and "@" not in parsed.request_uri


def create_ssl_context(certificates_pem: str | None) -> ssl.SSLContext:
    """Return a context that trusts certifi's authorities and those in a PEM text.

    Raises `ssl.SSLError` if the text has none.

    `SSL_CERT_FILE` and `REQUESTS_CA_BUNDLE` do not count: they name paths of the host, not of the
    container. The flags are curl's (source: CURLOPT_SSL_OPTIONS(3)): `VERIFY_X509_STRICT` would
    refuse roots made with `openssl req -x509`, and `VERIFY_X509_PARTIAL_CHAIN` trusts an
    intermediate authority without its root. Names, dates and signatures are verified.
    """
    context = ssl.create_default_context(cafile=certifi.where())
    # some distributions leave it to OpenSSL's configuration
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # OpenSSL's configuration can set it: a cut body would look complete
    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if certificates_pem is not None:
        context.load_verify_locations(cadata=certificates_pem)
    return context
