"""A proxy's address is checked before it is used, and is never shown."""

import pytest

from docs_platform_action.errors import DownloadFailed
from docs_platform_action.http.connection import AbortableAdapter, create_ssl_context
from docs_platform_action.http.proxy import UnusableProxyError, check_proxy


@pytest.mark.parametrize(
    "address",
    [
        "http://proxy.example.com",
        "http://proxy.example.com:3128",
        "http://proxy.example.com:3128/",
        "http://proxy.example.com:",
        "https://proxy.example.com:443",
        "HTTP://PROXY:3128",
        "http://192.0.2.1:3128",
        "http://[2001:db8::1]:3128",
        "http://my_proxy:3128",
        "http://robot@proxy:3128",
        "http://robot:word@proxy:3128",
        "http://robot:w@rd@proxy:3128",
        "http://robot:w rd@proxy:3128",
        "http://r\u00f6bot:w\u20acrd@proxy:3128",
        "http://pr\u00f6xy:3128",
        "http://proxy:3128/path",
        "http://proxy:3128?x=1",
        "http://robot:%e2%82%ac%2F%23@proxy:3128",
        "http://:word@proxy:3128",
    ],
)
def test_the_address_of_an_http_proxy_is_used(address: str) -> None:
    assert check_proxy(address) == address


@pytest.mark.parametrize(
    "address", ["proxy", "proxy:3128", "proxy:3128/", "//proxy:3128", "192.0.2.1", "[::1]:3128", "robot:word@proxy:3128"]
)
def test_one_without_a_scheme_is_used_over_http(address: str) -> None:
    assert check_proxy(address) == f"http://{address.removeprefix('//')}"


@pytest.mark.parametrize(
    "address",
    [
        *(
            "http://robot:s3cr3t@",
            "https://robot:s3cr3t@:3128",
            "http://",
            "https://",
            "http://:3128",
            "://",
            "//",
            "/",
            ":",
            "@",
            "::1",
        ),
        *("http://[::1", "http://[::1:3128", "http://[x]:3128", "http://[]:3128", "http://::1:3128"),
        *(
            "http://proxy:99999",
            "http://proxy:65536",
            "http://proxy:0",
            "http://proxy:port",
            "http://proxy:-1",
            "http://proxy:+80",
        ),
        *("http://proxy:8_0", "http://proxy: 80", "http://proxy:\u0663\u0661", "http://proxy:3128:3128"),
        *(
            "http://pro xy:3128",
            " http://proxy:3128",
            "http://proxy:3128 ",
            "http://proxy:3128\n",
            "\thttp://proxy",
            "http://pro\x00xy",
        ),
        *("http://robot:s3cr3t\udcff@proxy:3128", "\udcff"),
        *("htps://proxy", "ftp://proxy", "http:/proxy:3128", "http//proxy:3128", "http:proxy:3128", "1://proxy", "http:///proxy"),
        *("http://proxy:3128/p@th", "http://proxy:3128?s3cr3t@", "http://proxy:3128#", "http://proxy:3128\\@other", "proxy/path"),
        *("http://robot:s3/cr3t@proxy:3128", "http://robot:s3#cr3t@proxy:3128", "http://robot:12/s3cr3t@proxy:3128"),
    ],
)
def test_any_other_address_is_refused_and_not_shown(address: str) -> None:
    with pytest.raises(UnusableProxyError) as caught:
        check_proxy(address)

    failure = caught.value.failure(DownloadFailed, "the storage at s.example.com", "the link")
    texts = (failure.summary, *failure.details, failure.cause, failure.remedy)
    assert all(texts)
    assert not any("s3" in text or "robot" in text for text in texts)


@pytest.mark.parametrize(
    ("address", "credentials"),
    [
        ("http://proxy", None),
        ("http://robot:word@proxy", "cm9ib3Q6d29yZA=="),
        ("http://robot:w%40rd%3A%2f@proxy", "cm9ib3Q6d0ByZDov"),
        ("http://robot:w@rd@proxy", "cm9ib3Q6d0ByZA=="),
        ("http://robot:%E2%82%AC%FC@proxy", "cm9ib3Q64oKs/A=="),
        ("http://robot:w rd\u20ac@proxy", "cm9ib3Q6dyByZOKCrA=="),
        ("http://robot@proxy", "cm9ib3Q6"),
        ("http://:word@proxy", "OndvcmQ="),
        ("http://@proxy", None),
    ],
)
def test_credentials_are_sent_as_the_address_has_them(address: str, credentials: str | None) -> None:
    headers = AbortableAdapter(create_ssl_context(None)).proxy_headers(address)

    assert headers == ({"Proxy-Authorization": f"Basic {credentials}"} if credentials else {})
