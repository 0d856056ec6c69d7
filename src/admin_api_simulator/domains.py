"""Domains of deployments."""

import json


def normalized(domain: str) -> str:
    """Return a form of a domain that is the same for all its spellings."""
    return domain.strip().lower()


def domain_in(body: bytes) -> str | None:
    """Return the domain in the body of a start request, or None."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return None
    domain = fields.get("domain") if isinstance(fields, dict) else None
    return domain if isinstance(domain, str) and domain else None
