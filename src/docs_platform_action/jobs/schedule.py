"""When to read a job again: as seldom as the platform deserves, and soon after the end.

A job that reports progress is read after a good part of its estimated rest, so the readings close in on the end. One that
reports none, or stands still, is read at pauses that hardly depend on its age.
The figures are in docs/evidence/performance.md.
"""

import math
from typing import Final

from ..inputs.settings import WaitSettings
from .progress import EagerEstimate

FIRST_SECONDS: Final = 3.0
"""When a job that this run has started is read first: it was queued, and few jobs end sooner."""

EARLY_SECONDS: Final = 7.5
EARLY_UNTIL_SECONDS: Final = 40.0
STEADY_SECONDS: Final = 4.75
LATE_FRACTION: Final = 1 / 250
"""The pauses without progress to go by. Fewest readings for the same delay come from pauses that go with one over the root of the
chance that the job ends now. The time that jobs take spreads about a log-normal curve; for one of minutes that chance is small
in the first half minute, nearly even for a quarter of an hour, and falls later. So are these."""

REMAINING_FRACTION: Final = 0.6
"""The share of the rest to wait: the end of a job whose pace grows evenly to the double is not missed."""

OBSERVED_FRACTION: Final = 0.4
FIRST_OBSERVED_FRACTION: Final = 0.5
"""The share of the time over which a pace was seen that a pause may take, and the same when nothing has moved yet."""

ENDGAME: Final = 4.0
FINAL_POLL: Final = 2.0
OVERSHOOT: Final = 0.1
"""In shortest pauses. With less than `ENDGAME` left, the second reading from now is aimed at the predicted end; with less than
`FINAL_POLL`, the next one is, plus `OVERSHOOT`."""

OVERDUE_FRACTION: Final = 1 / 4
"""A job that should have ended, or moved, is read again after this share of its standstill."""


class Schedule:
    """Plans the readings of one job.

    `began` is when the wait began. `has_just_started` is for a job that this run started: its age is known, and the wait begins
    with a short pause. Any other may have ended long ago, and is read at once. A shortest pause below a second scales all times
    that are given here in seconds: the pauses, and how long a job counts as young.
    """

    def __init__(self, settings: WaitSettings, *, began: float, has_just_started: bool) -> None:
        self._began = began
        self._shortest_seconds = settings.shortest_pause_seconds
        self._longest_seconds = settings.longest_pause_seconds
        self._has_just_started = has_just_started
        self._scale = min(self._shortest_seconds, 1.0)
        self._status: str | None = None
        self._status_since = began
        self._due = math.inf
        self.first_pause_seconds = min(FIRST_SECONDS * self._scale, self._longest_seconds) if has_just_started else 0.0

    def pause_after(self, now: float, status: str, estimate: EagerEstimate | None) -> float:
        """Return the pause after a reading at `now`; `estimate` is `None` for a reading without progress to go by."""
        if status != self._status:
            self._status, self._status_since = status, self._began if self._status is None else now
        is_early = self._has_just_started and now - self._began < EARLY_UNTIL_SECONDS * self._scale
        blind = max((EARLY_SECONDS if is_early else STEADY_SECONDS) * self._scale, (now - self._status_since) * LATE_FRACTION)
        pause = blind if estimate is None else _towards_the_end(estimate, now, blind, self._shortest_seconds)
        rest = None if estimate is None else estimate.remaining_seconds(now)
        if rest is None or rest > ENDGAME * self._shortest_seconds:
            self._due = math.inf
        else:  # progress that creeps promises its end anew at each reading
            self._due = min(self._due, now + ENDGAME * self._shortest_seconds)
            pause = max(pause, min((now - self._due) * OVERDUE_FRACTION, blind))
        return min(max(pause, self._shortest_seconds), self._longest_seconds)


def _towards_the_end(pace: EagerEstimate, now: float, blind_seconds: float, shortest_seconds: float) -> float:
    rest = pace.remaining_seconds(now)
    if rest is None:
        return min(pace.observed_seconds(now) * FIRST_OBSERVED_FRACTION, blind_seconds)
    if rest <= 0 or pace.is_stalled(now):
        return min(pace.seconds_since_progress(now) * OVERDUE_FRACTION, blind_seconds)
    if rest <= FINAL_POLL * shortest_seconds:
        return rest + OVERSHOOT * shortest_seconds
    if rest <= ENDGAME * shortest_seconds:
        return rest - shortest_seconds
    return min(rest * REMAINING_FRACTION, pace.observed_seconds(now) * OBSERVED_FRACTION)
