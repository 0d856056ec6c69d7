"""Presigned links to bundles, with the query parameters of Amazon S3."""

import hashlib
import hmac
import itertools
from datetime import datetime, timedelta
from typing import Literal
from urllib.parse import parse_qsl, quote

from admin_api_simulator.clock import Clock

Verdict = Literal["valid", "unsigned", "expired", "mismatch"]

ALGORITHM = "AWS4-HMAC-SHA256"


class LinkSigner:
    """Signs and verifies links."""

    def __init__(self, *, clock: Clock, secret: bytes, link_seconds: float) -> None:
        self._clock = clock
        self._secret = secret
        self._link_seconds = link_seconds
        self._numbers = itertools.count(1)

    def sign(self, *, host: str, path: str, file_name: str) -> tuple[str, datetime]:
        """Return the query of a new GET link to a raw path, and the time at which it expires."""
        signed_at = self._clock.now()
        fields = {
            "X-Amz-Algorithm": ALGORITHM,
            "X-Amz-Credential": f"SIMULATED/{signed_at:%Y%m%d}/eu-central-1/s3/aws4_request",
            # as S3 writes it, but with fractions: a link may be valid for less than a second
            "X-Amz-Date": f"{signed_at:%Y%m%dT%H%M%S.%fZ}",
            "X-Amz-Expires": f"{self._link_seconds:g}",
            "X-Amz-Security-Token": f"session+{next(self._numbers)}==",
            "X-Amz-SignedHeaders": "host",
            "response-content-disposition": f'attachment; filename="{file_name}"',
            "x-id": "GetObject,bundle",
        }
        # Some signers do not encode commas, which break `helm --set`.
        query = "&".join(f"{name}={quote(text, safe=',')}" for name, text in fields.items())
        signature = self._signature(method="GET", host=host, path=path, query=query)
        expires_at = signed_at + timedelta(seconds=self._link_seconds)
        return f"{query}&X-Amz-Signature={signature}", expires_at

    def check(self, *, method: str, host: str, path: str, query: str) -> Verdict:
        """Return whether a link is valid, or why not.

        Like S3, this checks the expiry before the signature.
        """
        fields = dict(parse_qsl(query, keep_blank_values=True))
        given = fields.get("X-Amz-Signature")
        expires_at = _expiry_of(query)
        if given is None or expires_at is None:
            return "unsigned"
        if self._clock.now() >= expires_at:
            return "expired"
        expected = self._signature(method=method, host=host, path=path, query=query)
        if not hmac.compare_digest(given.encode(), expected.encode()):
            return "mismatch"
        return "valid"

    def _signature(self, *, method: str, host: str, path: str, query: str) -> str:
        fields = sorted(parse_qsl(query, keep_blank_values=True))
        canonical = "&".join(
            f"{quote(name, safe='')}={quote(text, safe='')}"
            for name, text in fields
            if name != "X-Amz-Signature"
        )
        message = f"{method}\n{path}\n{canonical}\nhost:{host}"
        signed = message.encode("utf-8", "surrogateescape")
        return hmac.new(self._secret, signed, hashlib.sha256).hexdigest()


def _expiry_of(query: str) -> datetime | None:
    """Return the expiry in a link's query, or None if it cannot be read."""
    fields = dict(parse_qsl(query, keep_blank_values=True))
    try:
        signed_at = datetime.strptime(fields["X-Amz-Date"], "%Y%m%dT%H%M%S.%f%z")
        return signed_at + timedelta(seconds=float(fields["X-Amz-Expires"]))
    except (KeyError, ValueError, OverflowError):
        return None
