"""Estimates how long a job still takes, to plan its readings. All times are seconds on the clock's `monotonic`."""

from typing import Final, NamedTuple

NOISE_POINTS: Final = 5.0  # a larger fall means that the job has restarted; a smaller one is noise
CONFIRMING_READINGS: Final = 3  # consecutive readings that must show the fall: one alone may come from a server with old data
MAX_RESTARTS: Final = 10  # after more of them, progress says nothing about the end

RECENT_FRACTION: Final = 1 / 4
MIN_RECENT_POINTS: Final = 3.0
"""The recent rate covers the latest points: a quarter of the remaining ones, at least three, because platforms round."""

MIN_STEP_POINTS: Final = 2.0  # closer steps are merged, so that about fifty are kept at most
STALL_FACTOR: Final = (
    2.0  # a job is stalled after this many times the longest time between two steps
)


class Step(NamedTuple):
    """A reading that showed progress, 0 to 100 %."""

    at: float
    percent: float


class PollingEstimate:
    """The estimate that the next reading is planned with, which errs on the short side. `began` is the job's start, if known.

    The rate is measured from the last reading before the first progress, and again after a stall or a restart.
    """

    def __init__(self, *, began: float | None, shortest_pause_seconds: float) -> None:
        self._last_at = began
        self._longest_gap = shortest_pause_seconds
        self._steps: list[Step] = []
        self._consecutive_falls = self.restarts = 0

    def update(self, at: float, percent: float | None) -> None:
        """Record a reading."""
        previous_at, self._last_at = self._last_at, at
        if percent is None:
            return
        step = Step(at, percent)
        if not self._steps:
            self._steps = (
                [step] if previous_at is None or percent <= 0 else [Step(previous_at, 0.0), step]
            )
            return
        last = self._steps[-1]
        self._consecutive_falls = (
            self._consecutive_falls + 1 if percent < last.percent - NOISE_POINTS else 0
        )
        if self._consecutive_falls == CONFIRMING_READINGS:
            self._steps, self._consecutive_falls, self.restarts = [step], 0, self.restarts + 1
        elif percent > last.percent:
            if previous_at is not None and self.is_stalled(previous_at):
                self._steps = [Step(previous_at, last.percent)]
            self._longest_gap = max(self._longest_gap, at - last.at)
            if len(self._steps) > 2 and last.percent - self._steps[-2].percent < MIN_STEP_POINTS:
                self._steps.pop()
            self._steps.append(step)

    def observed_seconds(self, now: float) -> float:
        """Return for how long the rate has been measured."""
        return now - self._steps[0].at if self._steps else 0.0

    def seconds_since_progress(self, now: float) -> float:
        """Return how long ago progress last increased."""
        return now - self._steps[-1].at if self._steps else 0.0

    def is_stalled(self, now: float) -> bool:
        """Return whether progress has not increased for much longer than before."""
        return self.seconds_since_progress(now) > STALL_FACTOR * self._longest_gap

    def remaining_seconds(self, now: float) -> float | None:
        """Return an estimate from the faster of the average and the recent rate. It is negative if the job is overdue."""
        if len(self._steps) < 2:
            return None
        first, last = self._steps[0], self._steps[-1]
        remaining_points = 100 - last.percent
        recent_from = last.percent - max(remaining_points * RECENT_FRACTION, MIN_RECENT_POINTS)
        recent = next(
            (step for step in reversed(self._steps) if step.percent <= recent_from), first
        )
        seconds_per_point = min(
            (last.at - since.at) / (last.percent - since.percent) for since in (first, recent)
        )
        return remaining_points * seconds_per_point - self.seconds_since_progress(now)
