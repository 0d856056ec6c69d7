"""Estimates how long a job still takes: to plan its readings, and for people.

All times are seconds on the clock's `monotonic`.
"""

from typing import Final, NamedTuple

NOISE_POINTS: Final = 5.0  # a larger fall means that the job has restarted; a smaller one is noise

# consecutive readings that must show the fall: one alone may come from a server with old data
CONFIRMING_READINGS: Final = 3

MAX_RESTARTS: Final = 10  # after more of them, progress says nothing about the end

# the recent rate covers the latest points: a quarter of the remaining ones, but at least three,
# because platforms round
RECENT_FRACTION: Final = 1 / 4
MIN_RECENT_POINTS: Final = 3.0

MIN_STEP_POINTS: Final = 2.0  # closer steps are merged, so that about fifty are kept at most

# a job is stalled after this many times the longest time between two steps
STALL_FACTOR: Final = 2.0

# minimum progress for people: rounding to whole percents and seconds changes neither by more than
# a fifth
MIN_POINTS: Final = 5.0
MIN_SECONDS: Final = 5.0


class Step(NamedTuple):
    """A reading that showed progress, 0 to 100 %."""

    at: float
    percent: float


class Estimate:
    """The estimate of the remaining time, which errs on the short side.

    `began` is the job's start, if known. The rate is measured from the last reading before the
    first progress, and again after a stall or a restart.
    """

    def __init__(self, *, began: float | None, shortest_pause_seconds: float) -> None:
        self.restarts = 0
        self._last_at = began
        self._longest_gap = shortest_pause_seconds
        self._steps: list[Step] = []
        self._consecutive_falls = 0

    def update(self, at: float, percent: float | None) -> None:
        """Record a reading."""
        previous_at = self._last_at
        self._last_at = at
        if percent is None:
            return
        if not self._steps:
            if previous_at is not None and percent > 0:
                self._steps.append(Step(previous_at, 0.0))
            self._steps.append(Step(at, percent))
            return
        last = self._steps[-1]
        if percent < last.percent - NOISE_POINTS:
            self._consecutive_falls += 1
        else:
            self._consecutive_falls = 0
        if self._consecutive_falls == CONFIRMING_READINGS:
            self.restarts += 1
            self._consecutive_falls = 0
            self._steps = [Step(at, percent)]
        elif percent > last.percent:
            if previous_at is not None and self.is_stalled(previous_at):
                self._steps = [Step(previous_at, last.percent)]
            self._longest_gap = max(self._longest_gap, at - last.at)
            self._append(Step(at, percent))

    def _append(self, step: Step) -> None:
        """Append a step. The one before it is left out if it was close to its own previous one."""
        is_third = len(self._steps) > 2
        if is_third and self._steps[-1].percent - self._steps[-2].percent < MIN_STEP_POINTS:
            self._steps.pop()
        self._steps.append(step)

    def observed_seconds(self, now: float) -> float:
        """Return for how long the rate has been measured."""
        if not self._steps:
            return 0.0
        return now - self._steps[0].at

    def seconds_since_progress(self, now: float) -> float:
        """Return how long ago progress last increased."""
        if not self._steps:
            return 0.0
        return now - self._steps[-1].at

    def is_stalled(self, now: float) -> bool:
        """Return whether progress has not increased for much longer than before."""
        return self.seconds_since_progress(now) > STALL_FACTOR * self._longest_gap

    def remaining_seconds(self, now: float) -> float | None:
        """Return an estimate from the faster of the average and the recent rate.

        It is negative if the job is overdue.
        """
        if len(self._steps) < 2:
            return None
        last = self._steps[-1]
        remaining_points = 100 - last.percent
        recent_points = max(remaining_points * RECENT_FRACTION, MIN_RECENT_POINTS)
        seconds_per_point = min(
            _seconds_per_point(self._steps[0], last),
            _seconds_per_point(self._step_before(last.percent - recent_points), last),
        )
        return remaining_points * seconds_per_point - self.seconds_since_progress(now)

    def expected_end_at(self, now: float) -> float | None:
        """Return when the job ends by the estimate, or `None` after too little progress.

        It is in the past if the job is overdue.
        """
        remaining = self.remaining_seconds(now)
        if remaining is None:
            return None
        first = self._steps[0]
        last = self._steps[-1]
        if last.percent - first.percent < MIN_POINTS or last.at - first.at < MIN_SECONDS:
            return None
        return now + remaining

    def _step_before(self, percent: float) -> Step:
        """Return the last step with at most this progress, or else the first one."""
        for step in reversed(self._steps):
            if step.percent <= percent:
                return step
        return self._steps[0]


def _seconds_per_point(first: Step, last: Step) -> float:
    return (last.at - first.at) / (last.percent - first.percent)
