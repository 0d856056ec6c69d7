"""The rate limit of the platform."""

from collections import deque


class RateLimit:
    """Allows `maximum` requests in any window of `window_seconds`; rejected requests do not count."""

    def __init__(self, maximum: int, *, window_seconds: float = 1.0) -> None:
        self._maximum = maximum
        self._window_seconds = window_seconds
        self._allowed: deque[float] = deque()

    def allows(self, at: float) -> bool:
        """Return whether a request is allowed. Calls must be in the order of time."""
        while self._allowed and at - self._allowed[0] >= self._window_seconds:
            self._allowed.popleft()
        if len(self._allowed) >= self._maximum:
            return False
        self._allowed.append(at)
        return True
