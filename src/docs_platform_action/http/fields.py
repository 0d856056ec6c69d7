"""Fields of a JSON body. A field that is missing or invalid is read as `None`."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, TypeGuard

MAX_TEXT_LENGTH: Final = 1000


def read_text(body: object, name: str) -> str | None:
    """Return a text without the space around it, shortened to `MAX_TEXT_LENGTH`.

    If the body is not an object, it has no fields.
    """
    if not isinstance(body, dict):
        return None
    value = body.get(name)
    if not isinstance(value, str):
        return None
    return value.strip()[:MAX_TEXT_LENGTH] or None


def read_percent(body: Mapping[str, object], name: str) -> float | None:
    """Return a percentage, 0 to 100."""
    value = body.get(name)
    if not is_number(value) or not 0 <= value <= 100:
        return None
    return float(value)


def read_count(body: Mapping[str, object], name: str) -> int | None:
    """Return a whole number that is not negative. It may be written with a decimal point."""
    value = body.get(name)
    if not is_number(value) or not 0 <= value < 2**53:
        return None
    return int(value) if value == int(value) else None


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a JSON value is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < math.inf  # false for NaN, too


def parse_time(value: str | float) -> datetime | None:
    """Parse ISO 8601, or seconds or milliseconds since 1970. A time without a zone is UTC."""
    try:
        if isinstance(value, str):
            return _parse_iso(value.strip())
        seconds = value / 1000 if value > 1e11 else value
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _parse_iso(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        return time.replace(tzinfo=UTC)
    return time.astimezone(UTC)
