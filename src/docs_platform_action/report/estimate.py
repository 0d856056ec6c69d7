"""The estimate of the remaining time that people see. All times are seconds on the clock's `monotonic`."""

from typing import Final

# minimum progress for the displayed estimate: rounding to whole percents and seconds changes neither by more than a fifth
MIN_POINTS: Final = 5.0
MIN_SECONDS: Final = 5.0


class Estimate:
    """An estimate, only after enough progress. Any thread may read it.

    The rate is measured from the last reading before the first progress, else from the first one, and again if it falls.
    """

    def __init__(self) -> None:
        self._start: tuple[float, float] | None = None
        self._percent: float | None = None
        self._latest: tuple[float, float, float] | None = (
            None  # a single value, so that no other thread reads half of an update
        )

    def update(self, at: float, percent: float | None, *, queued: bool, ended: bool) -> None:
        """Record a reading. Progress is `None` if it had none."""
        if queued:
            percent = self._percent = None
        if percent is not None:
            if self._start is None or (self._percent is not None and percent < self._percent):
                self._start = (at, percent)
            self._percent = percent
        elif self._percent is None:
            self._start = (at, 0.0)
        self._latest = (
            (*self._start, percent)
            if self._start is not None and percent is not None and not ended
            else None
        )

    def remaining_seconds(self, now: float) -> float | None:
        """Return the estimate, or `None` without enough progress. Between readings with progress, it grows."""
        latest = self._latest
        if latest is None:
            return None
        began_at, began_percent, percent = latest
        points, seconds = percent - began_percent, now - began_at
        if points < MIN_POINTS or seconds < MIN_SECONDS or percent >= 100:
            return None
        return (100 - percent) * seconds / points
