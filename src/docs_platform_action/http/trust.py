"""Which servers and proxies are trusted, and what is wrong with those that are not."""

import contextlib
import re
import ssl
from dataclasses import KW_ONLY, dataclass
from typing import Final

import certifi
from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url

from ..errors import ActionError

_PROXY_FORM: Final = (
    "Write HTTPS_PROXY as http://host:port or http://user:password@host:port, with user and password percent-encoded. "
    "If the host can be reached without a proxy, add it to NO_PROXY."
)


@dataclass(eq=False, repr=False)
class UnusableServerError(Exception):
    """A server or proxy that no retry makes usable. Texts contain `{server}`, and `{address}`: where its address comes from."""

    summary: str = "{server} cannot be reached through the proxy"
    _: KW_ONLY
    details: tuple[str, ...] = ()
    cause: str
    remedy: str = _PROXY_FORM

    def failure(self, kind: type[ActionError], server: str, address: str) -> ActionError:
        """Return the failure for a server, such as "the API at api.example.com", whose address comes from `address`."""
        summary, remedy = self.summary.format(server=server), self.remedy.format(address=address)
        return kind(summary, details=self.details, cause=self.cause, remedy=remedy)


def untrusted_certificate(
    error: ssl.SSLCertVerificationError, *, is_proxy_error: bool
) -> UnusableServerError:
    """Return the error for a certificate that OpenSSL does not trust."""
    server, address = (
        ("the proxy for {server}", "the proxy's address")
        if is_proxy_error
        else ("{server}", "{address}")
    )
    if error.verify_code in {9, 10}:  # OpenSSL's codes (source: x509_vfy.h)
        cause = "The certificate has expired, or is not valid yet according to this runner's clock."
        remedy = "Have the certificate renewed, or correct this runner's clock. `ca-bundle` cannot fix this."
    elif error.verify_code in {62, 64}:
        cause = "The certificate was issued for another host."
        remedy = f"Correct {address}, or have the certificate issued for this host. `ca-bundle` cannot fix this."
    else:
        cause = (
            "No trusted authority has signed the certificate. It may come from a private authority."
        )
        remedy = (
            "Pass the private authority's certificate (PEM) with `ca-bundle`. If it is already set, it has another authority, "
            "or lacks an intermediate certificate."
        )
    details = (f"TLS reported: {error.verify_message.rstrip('.')}.",)
    return UnusableServerError(
        f"the certificate of {server} is not trusted", details=details, cause=cause, remedy=remedy
    )


def check_proxy(address: str) -> str:
    """Return a proxy's address with its scheme. Raises `UnusableServerError`, which does not show the address."""
    url = address if "://" in address else f"http://{address.removeprefix('//')}"
    if re.match(r"socks[0-9a-z]*://", url, re.IGNORECASE):
        raise UnusableServerError(
            "{server} cannot be reached through a SOCKS proxy",
            cause="HTTPS_PROXY (or ALL_PROXY) names a SOCKS proxy, which is not supported.",
            remedy="Set HTTPS_PROXY to an HTTP proxy. If the host can be reached without a proxy, add it to NO_PROXY.",
        )
    with contextlib.suppress(LocationParseError):
        parsed = parse_url(url)
        is_proxy = parsed.scheme in {"http", "https"} and parsed.host and parsed.port != 0
        # a path does not matter; but behind a slash, there may be the rest of a password, or of a mistyped scheme
        is_alone = parsed.request_uri == "/" or (address == url and "@" not in parsed.request_uri)
        if (
            is_proxy
            and is_alone
            and parsed.fragment is None
            and address.isprintable()
            and "\\" not in address
        ):
            return url
    raise UnusableServerError(
        details=("The proxy address in the environment is not valid.",),
        cause="HTTPS_PROXY (or ALL_PROXY) is not the address of an HTTP proxy.",
    )


def create_ssl_context(certificates_pem: str | None) -> ssl.SSLContext:
    """Return a context that trusts certifi's authorities and those in a PEM text. Raises `ssl.SSLError` if that has none.

    `SSL_CERT_FILE` and `REQUESTS_CA_BUNDLE` do not count: they name paths of the host, not of the container. The flags are curl's
    (source: CURLOPT_SSL_OPTIONS(3)): `VERIFY_X509_STRICT` would refuse roots made with `openssl req -x509`, and
    `VERIFY_X509_PARTIAL_CHAIN` trusts an intermediate authority without its root. Names, dates and signatures are verified.
    """
    context = ssl.create_default_context(cafile=certifi.where())
    context.minimum_version = (
        ssl.TLSVersion.TLSv1_2
    )  # some distributions leave it to OpenSSL's configuration
    context.options &= (
        ~ssl.OP_IGNORE_UNEXPECTED_EOF
    )  # which OpenSSL's configuration can set: a cut body would look complete
    context.verify_flags = (
        context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN
    ) & ~ssl.VERIFY_X509_STRICT
    if certificates_pem is not None:
        context.load_verify_locations(cadata=certificates_pem)
    return context
