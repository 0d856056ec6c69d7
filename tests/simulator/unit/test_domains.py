"""Domains in start requests, and in different spellings."""

import pytest

from admin_api_simulator.domains import domain_in, normalized


@pytest.mark.parametrize(
    ("body", "domain"),
    [
        (b'{"domain": "Docs.example.com:8443", "version": 2}', "Docs.example.com:8443"),
        (b'{"domain": ""}', None),
        (b'{"domain": 7}', None),
        (b"{}", None),
        (b'["domain"]', None),
        (b"{", None),
        (b"\xff", None),
        (b"", None),
        (b"[" * 100_000, None),
    ],
)
def test_a_body_names_a_domain_or_none(body: bytes, domain: str | None) -> None:
    assert domain_in(body) == domain


def test_case_does_not_make_another_domain() -> None:
    assert normalized("Docs.Example.COM") == normalized("docs.example.com") != normalized("docs.example.com:8443")
