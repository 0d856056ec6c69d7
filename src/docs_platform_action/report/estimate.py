"""The estimate of the remaining time that people see. All times are seconds on the clock's `monotonic`."""

from typing import Final

# minimum progress for the displayed estimate: rounding to whole percents and seconds changes neither by more than a fifth
MIN_POINTS: Final = 5.0
MIN_SECONDS: Final = 5.0


class Estimate:
    """An estimate, only after enough progress. Any thread may read it.

    The rate is measured from the last reading before the first progress, else from the first one, and again if it falls.
    """

    stalled_since: float | None = None
    """When progress or page count last changed, if a later reading showed no change. `None` if the job is queued or has ended."""

    def __init__(self) -> None:
        self._start: tuple[float, float] | None = None
        self._percent: float | None = None
        self._pages: int | None = None
        self._changed_at: float | None = None
        self._latest: tuple[float, float, float] | None = None  # a single value, so that no other thread reads half of an update

    def update(self, at: float, percent: float | None, pages: int | None, *, queued: bool, ended: bool) -> None:
        """Record a reading. Progress and page count are `None` if it had none."""
        if queued:
            percent = pages = self._percent = self._pages = self._changed_at = None
        before = (self._percent, self._pages)
        if percent is not None:
            if self._start is None or (self._percent is not None and percent < self._percent):
                self._start = (at, percent)
            self._percent = percent
        elif self._percent is None:
            self._start = (at, 0.0)
        self._pages = self._pages if pages is None else pages
        has_changed = (self._percent, self._pages) != before
        self._changed_at = at if has_changed else self._changed_at
        self.stalled_since = None if has_changed or ended else self._changed_at
        self._latest = (*self._start, percent) if self._start is not None and percent is not None and not ended else None

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
