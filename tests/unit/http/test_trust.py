"""Which servers and proxies are trusted, and the advice about those that are not."""

import ssl
from typing import Final

import pytest
import trustme

from docs_platform_action.http.trust import (
    UnusableServerError,
    check_proxy,
    create_ssl_context,
    untrusted_certificate,
)

PROXIES: Final = (
    "http://proxy.example.com",
    "HTTPS://PROXY:443",
    "http://[2001:db8::1]:3128",
    "http://proxy:3128/path",
    "http://:word@proxy",
    "http://r\u00f6bot:w@r d%2F%23@proxy:3128",
    "http://proxy:3128?x=1",
)
PROXIES_WITHOUT_SCHEME: Final = {
    "proxy": "http://proxy",
    "proxy:3128/": "http://proxy:3128/",
    "//proxy:3128": "http://proxy:3128",
    "[::1]:3128": "http://[::1]:3128",
    "robot:word@proxy:3128": "http://robot:word@proxy:3128",
}
NOT_PROXIES: Final = (
    "http://robot:s3cr3t@",
    "://",
    "::1",
    "http://proxy:65536",
    "http://proxy:0",
    " http://proxy:3128",
    "htps://proxy",
    "http://robot:s3cr3t\udcff@proxy:3128",
    "proxy/path",
    "http://proxy:3128#",
    "http://proxy:3128\\@other",
    "http://proxy:3128\\path",
    "http://robot:s3/cr3t@proxy:3128",
    "http://robot:31/cr3t@proxy:3128",
    "http://robot:s3#cr3t@proxy:3128",
)
SOCKS_PROXIES: Final = (
    "socks5://robot:s3cr3t@proxy:1080",
    "SOCKS5H://proxy",
    "socks://proxy",
)


@pytest.mark.parametrize("address", PROXIES)
def test_the_address_of_an_http_proxy_is_used_as_it_is(address: str) -> None:
    assert check_proxy(address) == address


@pytest.mark.parametrize(("address", "url"), PROXIES_WITHOUT_SCHEME.items())
def test_an_address_without_a_scheme_is_one_of_an_http_proxy(address: str, url: str) -> None:
    assert check_proxy(address) == url


@pytest.mark.parametrize("address", [*NOT_PROXIES, *SOCKS_PROXIES])
def test_any_other_address_is_refused_and_not_shown(address: str) -> None:
    with pytest.raises(UnusableServerError) as caught:
        check_proxy(address)

    shown = str(vars(caught.value))
    assert "robot" not in shown
    assert "s3" not in shown
    assert "cr3t" not in shown
    assert ("SOCKS" in shown) == (address in SOCKS_PROXIES)


def untrusted(code: int) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code = code
    error.verify_message = "reason."
    return error


@pytest.mark.parametrize(
    ("code", "word"),
    [
        (9, "expired"),
        (10, "expired"),
        (62, "another host"),
        (64, "another host"),
        (18, "authority"),
    ],
)
def test_a_certificate_that_is_not_trusted_has_one_of_three_causes(code: int, word: str) -> None:
    error = untrusted_certificate(untrusted(code), is_proxy_error=False)

    assert word in error.cause
    assert error.details == ("TLS reported: reason.",)


def test_the_certificate_of_another_host_is_a_reason_to_correct_the_right_address() -> None:
    of_server = untrusted_certificate(untrusted(62), is_proxy_error=False)
    of_proxy = untrusted_certificate(untrusted(62), is_proxy_error=True)

    assert "{address}" in of_server.remedy
    assert "the proxy's address" in of_proxy.remedy


def test_an_authority_is_trusted_beside_the_public_ones_and_verified_as_on_every_python() -> None:
    context = create_ssl_context(trustme.CA().cert_pem.bytes().decode())

    assert len(context.get_ca_certs()) == len(create_ssl_context(None).get_ca_certs()) + 1
    assert context.verify_flags == ssl.VERIFY_X509_TRUSTED_FIRST | ssl.VERIFY_X509_PARTIAL_CHAIN
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert not context.options & ssl.OP_IGNORE_UNEXPECTED_EOF
