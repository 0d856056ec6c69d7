"""Header fields that several servers send: `Retry-After`, dates, and the ids of requests."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

_REQUEST_ID_HEADERS: Final = (
    "X-Request-Id",
    "Request-Id",
    "X-Correlation-Id",
    "X-Amzn-RequestId",
    "X-Amz-Request-Id",
    "X-Goog-Request-Id",
    "X-Ms-Request-Id",
    "X-GitHub-Request-Id",
)


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """Return the server's id of a request, if it sent one."""
    for name in _REQUEST_ID_HEADERS:
        request_id = headers.get(name)
        if request_id:
            return request_id
    return None


def read_retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds of a `Retry-After` header, if it is valid.

    It is a number or a date (RFC 9110, section 10.2.3).
    """
    value = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"[0-9]{1,9}", value):
        return float(value)
    until = http_date(value)
    if until is None:
        return None
    # by the server's clock, if it sent its time: this machine's clock may be wrong
    since = http_date(headers.get("Date", "")) or now
    return max((until - since).total_seconds(), 0.0)


def http_date(value: str) -> datetime | None:
    """Return the time of a date in a header (RFC 9110, section 5.6.7), if it is valid."""
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if date.tzinfo is None:
        return date.replace(tzinfo=UTC)
    return date
