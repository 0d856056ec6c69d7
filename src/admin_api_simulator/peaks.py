"""Maximum numbers of concurrent spans, and of moments in a window."""

from collections import deque
from collections.abc import Iterable


def max_concurrent(spans: Iterable[tuple[float, float]]) -> int:
    """Return the maximum number of spans that overlap; a span excludes its end."""
    steps = [step for start, end in spans if start < end for step in ((start, 1), (end, -1))]
    maximum = current = 0
    for _, step in sorted(steps):  # ends sort before starts
        current += step
        maximum = max(maximum, current)
    return maximum


def max_within(moments: Iterable[float], seconds: float) -> int:
    """Return the maximum number of moments in a window of so many seconds, which excludes its end."""
    window: deque[float] = deque()
    maximum = 0
    for moment in sorted(moments):
        window.append(moment)
        while moment - window[0] >= seconds:
            window.popleft()
        maximum = max(maximum, len(window))
    return maximum
