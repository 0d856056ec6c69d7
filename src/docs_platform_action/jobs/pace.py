"""How fast a job comes to its end, as far as its readings tell: what the next reading is planned by. Numbers alone, no text.

`progress` holds the estimate that people are told. It is even, and waits for enough movement; this one is there from the first
movement on, and rather too short than too long.
"""

from typing import Final, NamedTuple

NOISE_POINTS: Final = 5.0
"""Progress that falls by no more is unsteady, and counts as standing; more, and the job has begun anew."""

FALLS: Final = 3
"""Readings in a row that must show the fall: one alone may come from a copy of the platform that lags behind."""

MOST_FALLS: Final = 10
"""A job that begins anew more often than this has no pace to go by."""

LOOK_BACK: Final = 1 / 4
LEAST_POINTS: Final = 3.0
"""The recent pace is that of a quarter as many points as are left, but of three at least: of whole percents, the first and the
last may be cut."""

GRAIN_POINTS: Final = 2.0
"""Steps that lie closer are taken together, so that some fifty are kept at most, however often a job is read."""

STILL: Final = 2.0
"""How many times the longest step so far makes a standstill."""


class Step(NamedTuple):
    """A reading that showed progress: when, in seconds, and 0 to 100."""

    at: float
    percent: float


class Pace:
    """Follows one job from reading to reading. All times are seconds on one clock that never runs backwards.

    `began` is when the job certainly had made no progress, if anybody knows; `finest_seconds` is the shortest time between two
    readings. A pace holds from the last reading without progress on. A standstill begins a new one, and so does progress
    that stays behind where it was.
    """

    def __init__(self, *, began: float | None, finest_seconds: float) -> None:
        self._last_at = began
        self._longest_step = finest_seconds
        self._steps: list[Step] = []
        self._falls = self._fallen = 0

    def see(self, at: float, percent: float | None) -> None:
        """Take note of a reading: 0 to 100 %, or `None` if it did not tell."""
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
            if self._falls == FALLS:
                self._steps, self._falls, self._fallen = [step], 0, self._fallen + 1
        elif percent > last.percent:
            if before is not None and self.stands_still(before):
                self._steps = [Step(before, last.percent)]
            self._longest_step = max(self._longest_step, at - last.at)
            if len(self._steps) > 2 and last.percent - self._steps[-2].percent < GRAIN_POINTS:
                self._steps.pop()
            self._steps.append(step)

    @property
    def is_to_be_trusted(self) -> bool:
        """Whether the job has not begun anew too often."""
        return self._fallen <= MOST_FALLS

    def seen_for(self, now: float) -> float:
        """Return for how many seconds the pace has been followed."""
        return now - self._steps[0].at if self._steps else 0.0

    def still_for(self, now: float) -> float:
        """Return how many seconds ago progress was last seen to move."""
        return now - self._steps[-1].at if self._steps else 0.0

    def stands_still(self, now: float) -> bool:
        """Whether progress has not moved for much longer than it ever took to."""
        return self.still_for(now) > STILL * self._longest_step

    def rest_seconds(self, now: float) -> float | None:
        """Estimate how long the job still takes, at the faster of its pace as a whole and of late; `None` before it has moved.

        It is less than nothing when the job should have ended.
        """
        if len(self._steps) < 2:
            return None
        last, left = self._steps[-1], 100 - self._steps[-1].percent
        nearer = last.percent - max(left * LOOK_BACK, LEAST_POINTS)
        recent = next((step for step in reversed(self._steps) if step.percent <= nearer), self._steps[0])
        a_point = min((last.at - since.at) / (last.percent - since.percent) for since in (self._steps[0], recent))
        return left * a_point - self.still_for(now)
