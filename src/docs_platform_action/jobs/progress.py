"""How a job's progress goes: how long the rest of it may take, and since when it has stood still. Numbers alone, no text.

This is what people are told; `pace` has the estimate that the next reading is planned by.
"""

from typing import Final

LEAST_POINTS: Final = 5.0
LEAST_SECONDS: Final = 5.0
"""The least movement that an estimate rests on. Platforms report whole percents, and readings lie a second or more apart: over
five of each, either of them is off by a fifth at most."""

LONGEST_REST_SECONDS: Final = 24 * 3600.0
"""An estimate beyond a day says no more than that the job is slow: no job on a hosted runner waits that long."""


class Progress:
    """Follows one job from reading to reading. All times are seconds on one clock that never runs backwards.

    The pace is measured from an anchor. That is the last reading before progress appeared, which counts as 0 %, when this run saw
    the job in the queue or without progress; otherwise it is the first reading with progress. Progress that runs backwards, or a
    job that is queued again, sets a new one. Not safe to use from several threads by itself.
    """

    def __init__(self) -> None:
        self._anchor: tuple[float, float] | None = None
        self._percent: float | None = None
        self._page_count: int | None = None
        self._moved_at: float | None = None
        self._standing = False
        self._going_on = False

    @property
    def still_since(self) -> float | None:
        """When percentage and page count last moved, if a later reading showed them unmoved.

        `None` while nobody knows of a standstill: neither was ever reported, the job is queued or has ended, or no reading came
        since they moved.
        """
        return self._moved_at if self._standing else None

    def see(self, at: float, percent: float | None, page_count: int | None, *, queued: bool = False, ended: bool = False) -> None:
        """Take note of a reading: 0 to 100 % and pages, or `None` for what it did not tell."""
        if queued:
            self._percent = self._page_count = self._moved_at = None
        before = (self._percent, self._page_count)
        self._move_anchor(at, None if queued else percent)
        if not queued:
            self._percent = self._percent if percent is None else percent
            self._page_count = self._page_count if page_count is None else page_count
        moved = (self._percent, self._page_count) != before
        self._moved_at = at if moved else self._moved_at
        self._standing = not (moved or ended)
        self._going_on = percent is not None and not ended

    def rest_seconds(self, now: float) -> float | None:
        """Estimate how long the job still takes, at the pace since the anchor; `None` when there is no telling.

        As long as no reading shows movement, the pace falls and the estimate grows.
        """
        if self._anchor is None or self._percent is None or not self._going_on:
            return None
        since, percent = self._anchor
        points, seconds = self._percent - percent, now - since
        if points < LEAST_POINTS or seconds < LEAST_SECONDS or self._percent >= 100:
            return None
        rest = (100 - self._percent) * seconds / points
        return rest if rest <= LONGEST_REST_SECONDS else None

    def _move_anchor(self, at: float, percent: float | None) -> None:
        if percent is None and self._percent is None:
            self._anchor = (at, 0.0)
        elif percent is not None and (self._anchor is None or (self._percent is not None and percent < self._percent)):
            self._anchor = (at, percent)
