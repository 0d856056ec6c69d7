"""Which servers and proxies are trusted, and the advice about those that are not."""

import ssl

import pytest
import trustme

from docs_platform_action.errors import DownloadFailed
from docs_platform_action.http.trust import UnusableServerError, check_proxy, create_ssl_context, untrusted_certificate

HTTP_PROXIES = (
    *(
        "http://proxy.example.com",
        "http://proxy:3128/",
        "HTTPS://PROXY:443",
        "http://[2001:db8::1]:3128",
        "http://proxy:3128/path",
    ),
    *("http://robot@proxy:3128", "http://:word@proxy", "http://r\u00f6bot:w@r d%2F%23@proxy:3128", "http://proxy:3128?x=1"),
)
WITHOUT_SCHEME = ("proxy", "proxy:3128/", "//proxy:3128", "192.0.2.1", "[::1]:3128", "robot:word@proxy:3128")
NOT_PROXIES = (
    *("http://robot:s3cr3t@", "https://robot:s3cr3t@:3128", "http://", "://", "/", ":", "@", "::1", "http://[x]:3128"),
    *("http://proxy:65536", "http://proxy:0", "http://proxy:port", "http://proxy:3128:3128", "http://proxy:\u0663\u0661"),
    *("http://pro xy:3128", " http://proxy:3128", "http://proxy:3128\n", "http://robot:s3cr3t\udcff@proxy:3128"),
    *("htps://proxy", "http:/proxy:3128", "http//proxy:3128", "http:proxy:3128", "http:///proxy", "proxy/path"),
    *("http://proxy:3128/p@th", "http://proxy:3128?s3cr3t@", "http://proxy:3128#", "http://proxy:3128\\@other"),
    *("http://robot:s3/cr3t@proxy:3128", "http://robot:s3#cr3t@proxy:3128", "http://robot:12/s3cr3t@proxy:3128"),
)
SOCKS_PROXIES = ("socks5://robot:s3cr3t@proxy:1080", "SOCKS5H://proxy", "socks://proxy")


@pytest.mark.parametrize("address", [*HTTP_PROXIES, *WITHOUT_SCHEME])
def test_the_address_of_an_http_proxy_is_used_with_or_without_its_scheme(address: str) -> None:
    assert check_proxy(address) == (f"http://{address.removeprefix('//')}" if address in WITHOUT_SCHEME else address)


@pytest.mark.parametrize("address", [*NOT_PROXIES, *SOCKS_PROXIES])
def test_any_other_address_is_refused_and_not_shown(address: str) -> None:
    with pytest.raises(UnusableServerError) as caught:
        check_proxy(address)

    failure = caught.value.failure(DownloadFailed, "the storage at s.example.com", "the link")
    texts = "\n".join((failure.summary, *failure.details, failure.cause, failure.remedy))
    assert ("SOCKS" in texts) == (address in SOCKS_PROXIES)
    assert "the storage at s.example.com" in texts
    assert not any(secret in texts for secret in ("s3", "cr3t", "robot"))


@pytest.mark.parametrize("code", [9, 10, 62, 64, 18, 19, 20, 21])  # source: OpenSSL, x509_vfy.h
@pytest.mark.parametrize("is_proxy", [False, True])
def test_the_advice_about_a_certificate_fits_what_is_wrong_with_it(code: int, is_proxy: bool) -> None:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message, error.verify_code = "an example of a reason", code

    untrusted = untrusted_certificate(error, is_proxy_error=is_proxy)
    failure = untrusted.failure(DownloadFailed, "the storage at s.example.com", "the link")

    assert ("with `ca-bundle`" in failure.remedy) == (code in {18, 19, 20, 21})
    assert ("the proxy's address" in failure.remedy) == (code in {62, 64} and is_proxy)
    assert ("the link" in failure.remedy) == (code in {62, 64} and not is_proxy)
    assert ("the proxy" in failure.summary) == is_proxy
    assert "the storage at s.example.com" in failure.summary


@pytest.mark.parametrize("authority", [None, trustme.CA().cert_pem.bytes().decode()], ids=["public", "private"])
def test_what_is_verified_is_the_same_on_every_python(authority: str | None) -> None:
    context = create_ssl_context(authority)

    assert len(context.get_ca_certs()) == len(create_ssl_context(None).get_ca_certs()) + (authority is not None)
    assert context.verify_flags == ssl.VERIFY_X509_TRUSTED_FIRST | ssl.VERIFY_X509_PARTIAL_CHAIN
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_the_end_of_a_tls_connection_is_verified_whatever_openssl_is_configured_to(monkeypatch: pytest.MonkeyPatch) -> None:
    configured = ssl.create_default_context()
    configured.options |= ssl.OP_IGNORE_UNEXPECTED_EOF
    monkeypatch.setattr(ssl, "create_default_context", lambda **_: configured)

    context = create_ssl_context(trustme.CA().cert_pem.bytes().decode())  # a new authority: the tests' contexts are cached

    assert not context.options & ssl.OP_IGNORE_UNEXPECTED_EOF


def test_a_text_without_certificates_is_an_error() -> None:
    with pytest.raises(ssl.SSLError):
        create_ssl_context("garbage")
