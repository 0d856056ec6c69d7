"""Which addresses are valid, and from which a bundle may be downloaded."""

import pytest

from docs_platform_action.addresses import is_bundle_url


@pytest.mark.parametrize(
    "url",
    [
        "https://s.example.com/b?sig=1",
        "HTTPS://s.example.com:8443",
        "https://me:pw@s.example.com/%zz",
        "http://127.0.0.1:9000/b",
        "http://127.9.9.9/b",
        "http://[::1]/b",
        "http://localhost/b",
        "http://LOCALHOST/b",
    ],
)
def test_a_bundle_is_downloaded_with_https_or_from_this_machine(url: str) -> None:
    assert is_bundle_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://s.example.com/b",
        "http://10.0.0.1/b",
        "http://a.localhost/b",
        "ftp://s.example.com",
        "//s.example.com/b",
        "/b",
        "",
        "https://",
        " https://s.example.com/b",
        "https://s.example.com/a b",
        "https://s.example.com/\x7f",
        "https://s.example.com:0/b",
        "https://s.example.com:65536/b",
        "https://s.example.com:x/",
        "https://[fe80::1/",
        "https://evil\\@s.example.com/",
        "https://a%2eb/",
        "https://a|b/",
        "https://bad\ud800.example.com",
    ],
)
def test_any_other_or_ambiguous_address_is_refused(url: str) -> None:
    assert not is_bundle_url(url)
