"""The estimate of the remaining time that people see.

All times are seconds on the clock's `monotonic`.
"""

from typing import Final, NamedTuple

# minimum progress for the displayed estimate: rounding to whole percents and seconds changes
# neither by more than a fifth
MIN_POINTS: Final = 5.0
MIN_SECONDS: Final = 5.0


class _Reading(NamedTuple):
    at: float
    percent: float


class _Progress(NamedTuple):
    start: _Reading
    percent: float


class Estimate:
    """An estimate, only after enough progress. Any thread may read it.

    The rate is measured from the last reading before the first progress, or else from the first
    reading. If the progress falls, it is measured anew.
    """

    def __init__(self) -> None:
        self._start: _Reading | None = None
        self._percent: float | None = None
        # a single value, so that no other thread reads half of an update
        self._progress: _Progress | None = None

    def update(self, at: float, percent: float | None, *, queued: bool, ended: bool) -> None:
        """Record a reading. Progress is `None` if it had none."""
        if queued:
            percent = None
            self._percent = None
        if percent is None:
            if self._percent is None:
                self._start = _Reading(at, 0.0)
            self._progress = None
            return
        has_fallen = self._percent is not None and percent < self._percent
        if self._start is None or has_fallen:
            self._start = _Reading(at, percent)
        self._percent = percent
        self._progress = None if ended else _Progress(self._start, percent)

    def remaining_seconds(self, now: float) -> float | None:
        """Return the estimate, or `None` without enough progress.

        Between readings with progress, it grows.
        """
        progress = self._progress
        if progress is None:
            return None
        points = progress.percent - progress.start.percent
        seconds = now - progress.start.at
        if points < MIN_POINTS or seconds < MIN_SECONDS or progress.percent >= 100:
            return None
        return (100 - progress.percent) * seconds / points
