"""A rate limiter: a limited number of requests begin in any second, and those that wait stand in a queue."""

import math
import threading
from collections import deque
from dataclasses import dataclass
from typing import Final

REQUESTS_PER_SECOND: Final = 10
"""Ten jobs, the default `max-parallel`, make this many at the default `poll-interval`. More jobs are each read less often."""

SPREAD_SECONDS: Final = 0.1
"""How much closer together requests may arrive than they were sent. The limit counts in windows that are longer by this."""


@dataclass(eq=False)
class QueuedRequest:
    """A request that waits, or has begun. It is overdue when its sender has no time left."""

    began_at: float = -math.inf
    is_overdue: bool = False


class RateLimiter:
    """Counts the requests that begin, and keeps the queue of those that wait.

    Overdue requests come first, then the others in the order in which they came. Callers hold `lock` while they call a method.
    """

    def __init__(self, *, requests_a_second: int = REQUESTS_PER_SECOND, spread_seconds: float = SPREAD_SECONDS) -> None:
        self.lock = threading.Lock()
        self._requests_a_second = requests_a_second
        self._window_seconds = 1.0 + spread_seconds
        self._queue: dict[QueuedRequest, None] = {}
        self._begun_at = deque([-math.inf] * requests_a_second, maxlen=requests_a_second)

    def enqueue(self, request: QueuedRequest) -> None:
        """Add a request to the queue's end."""
        self._queue[request] = None

    def remove(self, request: QueuedRequest) -> None:
        """Remove a request from the queue, if it is still there."""
        self._queue.pop(request, None)

    def is_oldest(self, request: QueuedRequest) -> bool:
        """Return whether a request waits for longer than all others."""
        return request is next(iter(self._queue))

    def delay_seconds(self, request: QueuedRequest, now: float) -> float:
        """Return when a request may begin, if every request before it begins as soon as it may; 0 means now."""
        queue = sorted(self._queue, key=lambda queued: not queued.is_overdue)
        windows, place = divmod(queue.index(request), self._requests_a_second)
        return max(self._begun_at[place] + self._window_seconds - now, 0.0) + windows * self._window_seconds

    def begin(self, request: QueuedRequest, now: float) -> None:
        """Remove a request from the queue, and count it."""
        self.remove(request)
        request.began_at = now
        self._begun_at.append(now)
