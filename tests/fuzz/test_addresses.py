"""URLs from a platform or a storage: a request goes to the host that the URL names, or none is sent."""

import contextlib
from dataclasses import replace
from typing import Final
from urllib.parse import SplitResult, urlsplit

import idna
from hypothesis import example
from hypothesis import strategies as st

from docs_platform_action.bundle.storage import MAX_REDIRECTS, request_bundle
from docs_platform_action.errors import DownloadFailed
from docs_platform_action.http.faults import NetworkError
from docs_platform_action.models import is_bundle_url, is_loopback
from docs_platform_action.redaction import Redactor
from tests.fuzz import fuzz
from tests.fuzz.mutation import HOSTILE_TEXTS, mutated_text
from tests.unit.fakes import RecordedEvents, Redirecting, context, http_client
from tests.virtual_time import VirtualClock

SCHEMES: Final = (
    *("https://", "https://", "https://", "http://", "HTTPS://", "//", "", "https:", "https:/", "ftp://", "javascript:"),
)
USERS: Final = ("", "", "", "me@", "me:pw@", "a@b@", "evil.example.net\\@", ":@", "%40@", "s.example.com%2f@", "[::1]@")
HOSTS: Final = (
    *("s.example.com", "s.example.com", "S.EXAMPLE.com.", "localhost", "127.0.0.1", "[::1]", "[fe80::1%25eth0]", "[::1"),
    "10.0.0.1",
    *("bücher.example", "xn--bcher-kva.example", "a\u200b.example", "a\u3002example", "\uff4cocalhost", "127.1", "0x7f.1", "0"),
    "",
    *("evil.example.net\\.s.example.com", "s.example.com%2eevil.example.net", "a..b", "-a.example", "a_b.example", "*"),
    *("a" * 64, "ß.example"),
    *("localhost\\", "s.example.com;x", "127.0.0.1%00", "[v1.x]", "[::ffff:127.0.0.1]", "2130706433", "a,b", "(a)"),
)
PORTS: Final = ("", "", "", ":443", ":8443", ":0", ":", ":65536", ":٣", ":x", ":0443", ":-1")
REST: Final = (
    *("", "/", "/b.tar.gz?sig=a%2Fb,c&d=%7e", "/%7Euser/a b", "/a/../b", "?x=1", "#frag", "/ü?ß=é", "/\\x", "//x", "/@", "/%zz"),
    "/a?b#c",
)

built = st.builds("{}{}{}{}{}".format, *(st.sampled_from(pool) for pool in (SCHEMES, USERS, HOSTS, PORTS, REST)))
addresses = st.one_of(
    built,
    mutated_text(built),
    st.text("htps:/@.a[]?#% \\0", max_size=24).map("https://{}".format),
    st.sampled_from(HOSTILE_TEXTS),
    st.text(st.characters(), max_size=30),
)


class RecordingRedactor(Redactor):
    """Records the targets of redirects, whose secrets are to be hidden."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def add_link(self, url: str) -> None:
        self.links.append(url)
        super().add_link(url)


def fetch(url: str, *locations: str) -> tuple[list[str], list[str]]:
    """Fetch a bundle, and return the URLs of the link and its redirects, and those of the requests."""
    wire, redactor = Redirecting(*map(as_read, locations)), RecordingRedactor()
    client = replace(http_client(wire), redactor=redactor)
    with (
        contextlib.suppress(DownloadFailed, NetworkError),
        request_bundle(url, {}, context(VirtualClock(), RecordedEvents(), client=client), within_seconds=60) as (response, _),
    ):
        assert b"".join(response.pieces) == b"bundle"
    assert not any("authorization" in map(str.lower, request.headers) for request in wire.requests)
    return [url, *redactor.links], [str(request.url) for request in wire.requests]


def as_read(header: str) -> str:
    """Return a header's text as `http.client` decodes it."""
    return header.encode("utf-8", "surrogatepass").decode("latin-1")


def host_of(parts: SplitResult) -> str:
    """Return the ASCII form of a host name."""
    labels = str(parts.hostname).split(".")
    return ".".join(label if label.isascii() else idna.encode(label, uts46=True).decode() for label in labels).lower()


def assert_requests_named_host(named: str, requested: str) -> None:
    expected, request = urlsplit(named), urlsplit(requested)
    assert is_bundle_url(named)
    assert request.scheme == expected.scheme
    assert host_of(request) == host_of(expected)
    assert request.port == expected.port
    assert "@" not in request.netloc
    assert request.fragment == ""
    assert request.scheme == "https" or is_loopback(str(request.hostname))
    assert all("!" <= character <= "~" for character in requested)


@fuzz("links to bundles", url=addresses)
@example("https://evil.example.net\\.s.example.com/b")
@example("https://evil.example.net\\@s.example.com/b")
@example("https://s.example.com%2eevil.example.net/b")
@example("https://s.example.com:0/b")
@example("https://s.example.com|evil.example.net/b")
@example("http://localhost\\@evil.example.net/b")
@example("http://evil.example.net\\@localhost/b")
def test_a_link_is_requested_from_the_host_that_it_names(url: str) -> None:
    if not is_bundle_url(url):
        return

    (named,), requested = fetch(url)

    assert len(requested) <= 1
    for address in requested:
        assert_requests_named_host(named, address)


@fuzz("redirects", locations=st.lists(addresses, min_size=1, max_size=MAX_REDIRECTS + 2))
def test_a_redirect_is_followed_only_to_the_host_that_it_names(locations: list[str]) -> None:
    named, requested = fetch("https://s.example.com/a?sig=1", *locations)

    assert len(requested) <= MAX_REDIRECTS + 1
    assert len(named) - len(requested) in {0, 1}
    for expected, address in zip(named, requested, strict=False):
        assert_requests_named_host(expected, address)
