"""A rate limiter: a limited number of requests begin in any second, and the others wait in a queue."""

import math
import threading
from collections import deque
from dataclasses import dataclass
from typing import Final

REQUESTS_PER_SECOND: Final = 10  # what ten jobs, the default `max-parallel`, need at the default `poll-interval`
SPREAD_SECONDS: Final = 0.1  # how much closer together requests may arrive than they were sent


@dataclass(eq=False)
class QueuedRequest:
    """A request that waits or has begun; it is overdue if its sender has no time left."""

    began_at: float = -math.inf
    is_overdue: bool = False


class RateLimiter:
    """A queue from which overdue requests begin first, then the oldest. Callers hold `lock` during each call."""

    def __init__(self, *, spread_seconds: float = SPREAD_SECONDS) -> None:
        self.lock = threading.Lock()
        self._window_seconds = 1.0 + spread_seconds
        self._queue: dict[QueuedRequest, None] = {}
        self._begun_at = deque([-math.inf] * REQUESTS_PER_SECOND, maxlen=REQUESTS_PER_SECOND)

    def enqueue(self, request: QueuedRequest) -> None:
        """Add a request to the queue."""
        self._queue[request] = None

    def remove(self, request: QueuedRequest) -> None:
        """Remove a request from the queue, if it is still there."""
        self._queue.pop(request, None)

    def is_oldest(self, request: QueuedRequest) -> bool:
        """Return whether a request has waited longer than all others."""
        return request is next(iter(self._queue))

    def delay_seconds(self, request: QueuedRequest, now: float) -> float:
        """Return the seconds until a request may begin, if every request before it begins as soon as it may."""
        queue = sorted(self._queue, key=lambda queued: not queued.is_overdue)
        windows, index = divmod(queue.index(request), REQUESTS_PER_SECOND)
        return max(self._begun_at[index] + self._window_seconds - now, 0.0) + windows * self._window_seconds

    def begin(self, request: QueuedRequest, now: float) -> None:
        """Remove a request from the queue, and count it."""
        self.remove(request)
        request.began_at = now
        self._begun_at.append(now)
