"""Links lead to the host that they name, and YAML parsers read the strings of the values file back."""

import contextlib
from datetime import UTC, datetime
from typing import Final
from urllib.parse import SplitResult, urlsplit

import idna
import yaml
from hypothesis import example
from hypothesis import strategies as st
from ruamel.yaml import YAML

from docs_platform_action.bundle.helm_values import values_text
from docs_platform_action.bundle.storage import MAX_REDIRECTS, request_bundle
from docs_platform_action.errors import DownloadFailed
from docs_platform_action.http.faults import NetworkError
from docs_platform_action.job import Job
from docs_platform_action.models import Bundle, is_bundle_url, is_loopback
from tests.fuzz import fuzz
from tests.fuzz.mutation import HOSTILE_TEXTS, mutated_text
from tests.hostile import YAML as YAML_LOOKALIKES
from tests.unit.fakes import Answer, FakeTransport, RecordedEvents, context, http_client
from tests.virtual_time import VirtualClock

SCHEMES: Final = ("https://", "https://", "http://", "HTTPS://", "//", "", "https:", "ftp://")
USERS: Final = ("", "", "me:pw@", "a@b@", "evil.example.net\\@", "s.example.com%2f@", "[::1]@")
HOSTS: Final = (
    *("s.example.com", "S.EXAMPLE.com.", "localhost", "127.0.0.1", "[::1]", "[fe80::1%25eth0]", "10.0.0.1", "bücher.example"),
    *("a\u200b.example", "a\u3002example", "\uff4cocalhost", "127.1", "", "evil.example.net\\.s.example.com", "a..b"),
    *("a_b.example", "s.example.com%2eevil.example.net", "127.0.0.1%00", "2130706433", "a" * 64),
)
PORTS: Final = ("", "", ":443", ":8443", ":0", ":", ":65536", ":٣", ":-1")
REST: Final = ("", "/b.tar.gz?sig=a%2Fb,c&d=%7e", "/%7Euser/a b", "/a/../b", "?x=1", "#frag", "/ü?ß=é", "/\\x", "/@", "/%zz")

built = st.builds("{}{}{}{}{}".format, *(st.sampled_from(pool) for pool in (SCHEMES, USERS, HOSTS, PORTS, REST)))
addresses = built | mutated_text(built) | st.text("htps:/@.a[]?#% \\0", max_size=24).map("https://{}".format)


def host_of(parts: SplitResult) -> str:
    """Return the ASCII form of a host name."""
    labels = str(parts.hostname).split(".")
    return ".".join(label if label.isascii() else idna.encode(label, uts46=True).decode() for label in labels).lower()


def requested(url: str, *locations: str) -> list[str]:
    """Fetch a bundle through redirects, and return the addresses of the requests, none of which has the key."""
    targets = [location.encode("utf-8", "surrogatepass").decode("latin-1") for location in locations]
    wire = FakeTransport(*(Answer(status=302, headers={"Location": target}) for target in targets), Answer(body=b"bundle"))
    parts = context(VirtualClock(), RecordedEvents(), client=http_client(wire))
    with contextlib.suppress(DownloadFailed, NetworkError), request_bundle(url, {}, parts, within_seconds=60) as (response, _):
        assert b"".join(response.pieces) == b"bundle"
    assert not any("authorization" in map(str.lower, request.headers) for request in wire.requests)
    return [str(request.url) for request in wire.requests]


def is_safe(address: str) -> bool:
    parts = urlsplit(address)
    is_encrypted = parts.scheme == "https" or is_loopback(str(parts.hostname))
    return (
        is_encrypted and "@" not in parts.netloc and not parts.fragment and all("!" <= character <= "~" for character in address)
    )


@fuzz(500, url=addresses)
@example("https://evil.example.net\\@s.example.com/b")
@example("https://s.example.com%2eevil.example.net/b")
@example("http://localhost\\@evil.example.net/b")
def test_a_link_is_requested_from_the_host_that_it_names(url: str) -> None:
    if is_bundle_url(url):
        for address in requested(url):
            named, request = urlsplit(url), urlsplit(address)
            assert (host_of(request), request.port, request.scheme) == (host_of(named), named.port, named.scheme)
            assert is_safe(address)


@fuzz(300, locations=st.lists(addresses, min_size=1, max_size=MAX_REDIRECTS + 2))
def test_redirects_are_few_and_lead_only_to_safe_addresses(locations: list[str]) -> None:
    addresses = requested("https://s.example.com/a?sig=1", *locations)

    assert len(addresses) <= MAX_REDIRECTS + 1
    assert all(map(is_safe, addresses))


lookalikes = st.sampled_from([*YAML_LOOKALIKES, *HOSTILE_TEXTS]).filter(lambda text: text.isascii() or text.isprintable())
sound = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | lookalikes


@fuzz(200, link=sound, version=st.none() | sound, foreign=st.lists(sound, min_size=3, max_size=3))
@example("a\nb: c", "\n--- #", ["a\nstaticExport: null", "", "a\r\n---\n"])
def test_two_yaml_parsers_read_the_strings_of_a_values_file_back(link: str, version: str | None, foreign: list[str]) -> None:
    domain, job_id, expires_at = foreign
    job = Job(mode="export", domain=domain, job_id=job_id, link=Bundle(url=link, expires_at=expires_at))

    written = values_text(job, version, datetime(2026, 5, 4, tzinfo=UTC))

    expected = {"staticExport": {"enabled": True, "bundleUrl": link} | ({} if version is None else {"version": version})}
    assert yaml.safe_load(written) == expected
    assert YAML(typ="safe", pure=True).load(written) == expected
