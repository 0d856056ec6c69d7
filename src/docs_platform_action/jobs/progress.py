"""How fast a job progresses: an eager estimate, which the next reading is planned by, and a steady one, which people see.

The eager one begins with the first movement, and is rather too short than too long. The steady one waits for enough movement.
"""

from typing import Final, NamedTuple

NOISE_POINTS: Final = 5.0
"""Progress that falls by no more is unsteady, and counts as standing; more, and the job has begun anew."""

CONFIRMING_READINGS: Final = 3
"""Readings in a row that must show the fall: one alone may come from a copy of the platform that lags behind."""

MAX_RESTARTS: Final = 10
"""A job that begins anew more often than this has no pace to go by."""

RECENT_FRACTION: Final = 1 / 4
MIN_RECENT_POINTS: Final = 3.0
"""The recent pace is that of a quarter as many points as are left, but of three at least: of whole percents, the first and the
last may be cut."""

MIN_STEP_POINTS: Final = 2.0
"""Steps that lie closer are taken together, so that some fifty are kept at most, however often a job is read."""

STALL_FACTOR: Final = 2.0
"""How many times the longest step so far makes a standstill."""

MIN_POINTS: Final = 5.0
MIN_SECONDS: Final = 5.0
"""The least movement that an estimate rests on. Platforms report whole percents, and readings lie a second or more apart: over
five of each, either of them is off by a fifth at most."""

MAX_REMAINING_SECONDS: Final = 24 * 3600.0
"""A longer estimate is not shown: no job on a hosted runner waits that long."""


class Step(NamedTuple):
    """A reading that showed progress: when, in seconds, and 0 to 100."""

    at: float
    percent: float


class EagerEstimate:
    """The estimate that the next reading is planned by. All times are seconds on one clock that never runs backwards.

    A pace holds from the last reading without progress on. A standstill begins a new one, and so does progress
    that stays behind where it was. `began` is when the job certainly had made no progress, if anybody knows; `finest_seconds` is
    the shortest time between two readings.
    """

    def __init__(self, *, began: float | None, finest_seconds: float) -> None:
        self._last_at = began
        self._longest_step = finest_seconds
        self._steps: list[Step] = []
        self._falls = self._fallen = 0

    def update(self, at: float, percent: float | None) -> None:
        """Record a reading: 0 to 100 %, or `None` if it did not report any."""
        before, self._last_at = self._last_at, at
        if percent is None:
            return
        step = Step(at, percent)
        if not self._steps:
            self._steps = [step] if before is None or percent <= 0 else [Step(before, 0.0), step]
            return
        last = self._steps[-1]
        self._falls = self._falls + 1 if percent < last.percent - NOISE_POINTS else 0
        if self._falls:
            if self._falls == CONFIRMING_READINGS:
                self._steps, self._falls, self._fallen = [step], 0, self._fallen + 1
        elif percent > last.percent:
            if before is not None and self.is_stalled(before):
                self._steps = [Step(before, last.percent)]
            self._longest_step = max(self._longest_step, at - last.at)
            if len(self._steps) > 2 and last.percent - self._steps[-2].percent < MIN_STEP_POINTS:
                self._steps.pop()
            self._steps.append(step)

    @property
    def is_reliable(self) -> bool:
        """Whether the job has not begun anew too often."""
        return self._fallen <= MAX_RESTARTS

    def observed_seconds(self, now: float) -> float:
        """Return for how many seconds the pace has been followed."""
        return now - self._steps[0].at if self._steps else 0.0

    def seconds_since_progress(self, now: float) -> float:
        """Return how many seconds ago progress was last seen to move."""
        return now - self._steps[-1].at if self._steps else 0.0

    def is_stalled(self, now: float) -> bool:
        """Whether progress has not moved for much longer than it ever took to."""
        return self.seconds_since_progress(now) > STALL_FACTOR * self._longest_step

    def remaining_seconds(self, now: float) -> float | None:
        """Estimate the remaining time from the faster of the average and the recent pace; `None` before the job has moved.

        It is negative when the job should have ended.
        """
        if len(self._steps) < 2:
            return None
        last, left = self._steps[-1], 100 - self._steps[-1].percent
        nearer = last.percent - max(left * RECENT_FRACTION, MIN_RECENT_POINTS)
        recent = next((step for step in reversed(self._steps) if step.percent <= nearer), self._steps[0])
        a_point = min((last.at - since.at) / (last.percent - since.percent) for since in (self._steps[0], recent))
        return left * a_point - self.seconds_since_progress(now)


class SteadyEstimate:
    """The estimate that people see. Any thread may read it.

    The pace is measured from an anchor. That is the last reading before progress appeared, which counts as 0 %, when this run saw
    the job in the queue or without progress; otherwise it is the first reading with progress. Progress that runs backwards, or a
    job that is queued again, sets a new one.
    """

    stalled_since: float | None = None
    """When percentage and page count last moved, if a later reading showed them unmoved.

    `None` while nobody knows of a standstill: neither was ever reported, the job is queued or has ended, or no reading came
    since they moved.
    """

    def __init__(self) -> None:
        self._anchor: Step | None = None
        self._percent: float | None = None
        self._page_count: int | None = None
        self._moved_at: float | None = None
        self._pace: tuple[Step, float] | None = None  # one value, so that no thread reads half of a change

    def update(
        self, at: float, percent: float | None, page_count: int | None, *, queued: bool = False, ended: bool = False
    ) -> None:
        """Record a reading: 0 to 100 % and pages, or `None` for what it did not report."""
        if queued:
            percent = page_count = self._percent = self._page_count = self._moved_at = None
        before = (self._percent, self._page_count)
        if percent is not None:
            if self._anchor is None or (self._percent is not None and percent < self._percent):
                self._anchor = Step(at, percent)
            self._percent = percent
        elif self._percent is None:
            self._anchor = Step(at, 0.0)
        self._page_count = self._page_count if page_count is None else page_count
        moved = (self._percent, self._page_count) != before
        self._moved_at = at if moved else self._moved_at
        self.stalled_since = None if moved or ended else self._moved_at
        self._pace = (self._anchor, percent) if self._anchor is not None and percent is not None and not ended else None

    def remaining_seconds(self, now: float) -> float | None:
        """Estimate the remaining time from the pace since the anchor; `None` without enough movement.

        As long as no reading shows movement, the pace falls and the estimate grows.
        """
        pace = self._pace
        if pace is None:
            return None
        anchor, percent = pace
        points, seconds = percent - anchor.percent, now - anchor.at
        if points < MIN_POINTS or seconds < MIN_SECONDS or percent >= 100:
            return None
        rest = (100 - percent) * seconds / points
        return rest if rest <= MAX_REMAINING_SECONDS else None
