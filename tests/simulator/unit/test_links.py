"""Signing and verifying links."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from admin_api_simulator.clock import Clock
from admin_api_simulator.links import LinkSigner, Verdict, expiry_of

START = datetime(2024, 6, 1, 12, tzinfo=UTC)


@dataclass
class Hand:
    now: datetime = START

    def signer(self, link_seconds: float = 60.0) -> LinkSigner:
        return LinkSigner(clock=Clock(now=lambda: self.now), secret=b"secret", link_seconds=link_seconds)


def sign(signer: LinkSigner) -> str:
    return signer.sign(host="storage.example", path="/a%2Fb", file_name="bundle.zip")[0]


def check(signer: LinkSigner, query: str, *, method: str = "GET", host: str = "storage.example", path: str = "/a%2Fb") -> Verdict:
    return signer.check(method=method, host=host, path=path, query=query)


def test_a_link_is_good_until_it_expires() -> None:
    hand = Hand()
    signer = hand.signer(link_seconds=0.25)
    query, expires_at = signer.sign(host="storage.example", path="/a%2Fb", file_name="bundle.zip")

    before = check(signer, query)
    hand.now += timedelta(seconds=0.25)
    after = check(signer, query)

    assert (before, after) == ("valid", "expired")
    assert expires_at == START + timedelta(seconds=0.25) == expiry_of(query)


@pytest.mark.parametrize(
    "change", [{"method": "HEAD"}, {"host": "other.example"}, {"path": "/a/b"}, {"path": "/c"}], ids=lambda one: str(one)
)
def test_a_link_is_for_one_method_host_and_path(change: dict[str, str]) -> None:
    signer = Hand().signer()

    assert check(signer, sign(signer), **change) == "mismatch"


def test_another_signer_knows_nothing_of_it() -> None:
    other = LinkSigner(clock=Clock(now=lambda: START), secret=b"other", link_seconds=60)

    assert check(other, sign(Hand().signer())) == "mismatch"


@pytest.mark.parametrize("query", ["", "X-Amz-Signature=1", "X-Amz-Signature=1&X-Amz-Date=x&X-Amz-Expires=1", "a&b=%FF"])
def test_a_query_without_a_signature_is_unsigned(query: str) -> None:
    assert check(Hand().signer(), query) == "unsigned"


def test_revoking_ends_the_links_so_far_alone() -> None:
    signer = Hand().signer()
    before = sign(signer)
    signer.revoke_all()
    after = sign(signer)

    assert (check(signer, before), check(signer, after)) == ("revoked", "valid")


def test_links_differ_though_the_clock_stands_still() -> None:
    signer = Hand().signer()

    assert sign(signer) != sign(signer)
