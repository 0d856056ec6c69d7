"""Plans when to read a job again: few requests, but soon after the job's end.

Measured in docs/evidence.md.
"""

import math
from typing import Final

from ..inputs.settings import WaitSettings
from .estimate import MAX_RESTARTS, Estimate

# before the first reading of a job that this run started; few jobs end sooner
FIRST_SECONDS: Final = 3.0

# The pauses without progress: 7.5 s until a job is 40 s old, then 4.75 s, or 1/250 of the time in
# one status if that is longer. For a given delay, the fewest readings come from pauses
# proportional to one over the square root of the chance that the job ends now. For log-normal
# durations of minutes, that chance is low for half a minute, nearly constant for a quarter of an
# hour, then falls.
EARLY_SECONDS: Final = 7.5
EARLY_UNTIL_SECONDS: Final = 40.0
STEADY_SECONDS: Final = 4.75
LATE_FRACTION: Final = 1 / 250

# of the remaining time, to wait: a job that accelerates evenly to twice its rate is still read
# before its end
REMAINING_FRACTION: Final = 0.6

OBSERVED_FRACTION: Final = 0.4  # the longest pause, of the time over which the rate was measured
FIRST_OBSERVED_FRACTION: Final = 0.5  # the same before the first progress

# the pause for a stalled or overdue job, of the time since its last progress
OVERDUE_FRACTION: Final = 1 / 4

# In shortest pauses. With less than `ENDGAME` remaining, the second reading from now is planned
# for the estimated end. With less than `FINAL_POLL` remaining, the next reading is planned for
# the end plus `OVERSHOOT`.
ENDGAME: Final = 4.0
FINAL_POLL: Final = 2.0
OVERSHOOT: Final = 0.1


class Schedule:
    """Plans the readings of one job. `began` is when the wait began.

    A job that has not just started may have ended. `expected_end_at` is for people, as of the last
    reading.
    """

    def __init__(self, settings: WaitSettings, *, began: float, has_just_started: bool) -> None:
        self.first_pause_seconds = 0.0
        self.expected_end_at: float | None = None
        self._began = began
        self._shortest_seconds = settings.poll_interval_seconds
        self._longest_seconds = settings.max_poll_interval_seconds
        self._has_just_started = has_just_started
        self._scale = min(self._shortest_seconds, 1.0)  # of the constants in seconds
        if has_just_started:
            self.first_pause_seconds = min(FIRST_SECONDS * self._scale, self._longest_seconds)
        self._estimate = Estimate(
            began=began if has_just_started else None,
            shortest_pause_seconds=self._shortest_seconds,
        )
        self._status: str | None = None
        self._status_since = began
        self._overdue_at = math.inf

    def pause_after(self, now: float, status: str, percent: float | None) -> float:
        """Return the pause after a reading at `now` that reported a status and progress.

        `percent` is `None` if it reported no progress.
        """
        default = self._default_pause(now, status)
        self._estimate.update(now, percent)
        self.expected_end_at = None
        pause = default
        remaining: float | None = None
        if percent is not None and self._estimate.restarts <= MAX_RESTARTS:
            remaining = self._estimate.remaining_seconds(now)
            pause = self._pause_with_progress(now, remaining, default)
            self.expected_end_at = self._estimate.expected_end_at(now)
        endgame_seconds = ENDGAME * self._shortest_seconds
        if remaining is None or remaining > endgame_seconds:
            self._overdue_at = math.inf
        else:
            # if progress slows down, each reading estimates a later end: the earliest one counts
            self._overdue_at = min(self._overdue_at, now + endgame_seconds)
            overdue_pause = (now - self._overdue_at) * OVERDUE_FRACTION
            pause = max(pause, min(overdue_pause, default))
        return min(max(pause, self._shortest_seconds), self._longest_seconds)

    def _default_pause(self, now: float, status: str) -> float:
        """Return the pause without progress."""
        if status != self._status:
            is_first = self._status is None
            self._status_since = self._began if is_first else now
            self._status = status
        late_seconds = (now - self._status_since) * LATE_FRACTION
        is_early = now - self._began < EARLY_UNTIL_SECONDS * self._scale
        if self._has_just_started and is_early:
            return max(EARLY_SECONDS * self._scale, late_seconds)
        return max(STEADY_SECONDS * self._scale, late_seconds)

    def _pause_with_progress(self, now: float, remaining: float | None, default: float) -> float:
        estimate = self._estimate
        shortest = self._shortest_seconds
        if remaining is None:
            return min(estimate.observed_seconds(now) * FIRST_OBSERVED_FRACTION, default)
        if remaining <= 0 or estimate.is_stalled(now):
            return min(estimate.seconds_since_progress(now) * OVERDUE_FRACTION, default)
        if remaining <= FINAL_POLL * shortest:
            return remaining + OVERSHOOT * shortest
        if remaining <= ENDGAME * shortest:
            return remaining - shortest
        longest = estimate.observed_seconds(now) * OBSERVED_FRACTION
        return min(remaining * REMAINING_FRACTION, longest)
