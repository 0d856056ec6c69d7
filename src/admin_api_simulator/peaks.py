"""The most at once: of what lasts for a while, and of what happens within one stretch of time."""

from collections import deque
from collections.abc import Iterable


def most_at_once(spans: Iterable[tuple[float, float]]) -> int:
    """Return how many spans, each from its start up to, not including, its end, have a moment in common at most."""
    steps = [step for start, end in spans if start < end for step in ((start, 1), (end, -1))]
    most = now = 0
    for _, step in sorted(steps):  # at one moment what ends goes before what starts
        now += step
        most = max(most, now)
    return most


def most_within(moments: Iterable[float], seconds: float) -> int:
    """Return how many moments at most lie in one stretch of so many seconds, its end not included."""
    stretch: deque[float] = deque()
    most = 0
    for moment in sorted(moments):
        stretch.append(moment)
        while moment - stretch[0] >= seconds:
            stretch.popleft()
        most = max(most, len(stretch))
    return most
