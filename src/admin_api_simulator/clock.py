"""The clocks of the simulator, which tests replace."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime


def as_timestamp(moment: datetime) -> str:
    """Format an aware time as ISO 8601 in UTC, with milliseconds and `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, kw_only=True)
class Clock:
    """A monotonic clock in seconds, and the current date."""

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
