"""Domains of deployments: which of them are the same, and which one a start request names."""

import json


def same_domain(domain: str) -> str:
    """Return the form of a domain that is equal for all its spellings: case does not count."""
    return domain.strip().lower()


def domain_in(body: bytes) -> str | None:
    """Return the domain that a start request's body asks for, None where it holds none."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return None
    domain = asked.get("domain") if isinstance(asked, dict) else None
    return domain if isinstance(domain, str) and domain else None
