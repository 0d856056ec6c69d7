"""A rate limiter: a limited number of requests begin in any second, and the others wait in a queue."""

import math
from collections import deque
from dataclasses import dataclass
from typing import Final

REQUESTS_PER_SECOND: Final = 10  # what ten jobs, the default `max-parallel`, need at the default `poll-interval`
WINDOW_SECONDS: Final = 1.1  # more than a second: requests may arrive closer together than they were sent


@dataclass(eq=False)
class QueuedRequest:
    """A request that waits or has begun; it is overdue if its sender has no time left."""

    began_at: float = -math.inf
    is_overdue: bool = False


class RateLimiter:
    """A queue from which overdue requests begin first, then the oldest."""

    def __init__(self) -> None:
        self.queue: list[QueuedRequest] = []
        self._begun_at = deque([-math.inf] * REQUESTS_PER_SECOND, maxlen=REQUESTS_PER_SECOND)

    def delay_seconds(self, request: QueuedRequest, now: float) -> float:
        """Return the seconds until a request may begin, if every request before it begins as soon as it may."""
        queue = sorted(self.queue, key=lambda queued: not queued.is_overdue)
        windows, index = divmod(queue.index(request), REQUESTS_PER_SECOND)
        return max(self._begun_at[index] + WINDOW_SECONDS - now, 0.0) + windows * WINDOW_SECONDS

    def begin(self, request: QueuedRequest, now: float) -> None:
        """Remove a request from the queue, and count it."""
        self.queue.remove(request)
        request.began_at = now
        self._begun_at.append(now)
