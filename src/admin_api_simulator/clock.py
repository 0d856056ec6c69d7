"""The two clocks of the simulator, handed in so that tests can turn them."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime


def utc_now() -> datetime:
    """Return the current time, aware, in UTC."""
    return datetime.now(UTC)


def as_timestamp(moment: datetime) -> str:
    """Write an aware time as APIs do: ISO 8601, UTC, milliseconds, `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, kw_only=True)
class Clock:
    """What tells the time: `monotonic` in seconds for durations, `now` for dates."""

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = utc_now
