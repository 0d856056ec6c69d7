"""What the platform takes of its clients: so many requests in any one second."""

from collections import deque


class RateLimit:
    """Lets so many requests through in any window of `within_seconds`; one that is refused takes nobody's place."""

    def __init__(self, most: int, *, within_seconds: float = 1.0) -> None:
        self._most = most
        self._within_seconds = within_seconds
        self._taken: deque[float] = deque()

    def takes(self, at: float) -> bool:
        """Tell whether a request that arrives at this time, not before those that came before it, is let through."""
        while self._taken and at - self._taken[0] >= self._within_seconds:
            self._taken.popleft()
        if len(self._taken) >= self._most:
            return False
        self._taken.append(at)
        return True
