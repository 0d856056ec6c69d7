"""A rate limiter: a limited number of requests begin in any second, and the others wait in a queue."""

import math
from collections import deque
from dataclasses import dataclass
from typing import Final

REQUESTS_PER_SECOND: Final = 10  # what ten jobs, the default `max-parallel`, need at the default `poll-interval`
WINDOW_SECONDS: Final = 1.1  # more than a second: requests may arrive closer together than they were sent


@dataclass(eq=False, kw_only=True)
class QueuedRequest:
    """A request that waits or has begun; it is overdue if its sender has no time left."""

    is_start: bool = False  # of a job
    is_overdue: bool = False
    began_at: float = -math.inf


class RateLimiter:
    """A queue from which overdue requests begin first, then the oldest."""

    def __init__(self) -> None:
        self._queue: list[QueuedRequest] = []
        self._begun_at = deque([-math.inf] * REQUESTS_PER_SECOND, maxlen=REQUESTS_PER_SECOND)

    def delay_seconds(self, request: QueuedRequest, now: float) -> float:
        """Return the seconds until a request may begin, if every request before it begins as soon as it may."""
        if request not in self._queue:
            self._queue.append(request)
        queue = sorted(self._queue, key=lambda queued: not queued.is_overdue)
        windows, index = divmod(queue.index(request), REQUESTS_PER_SECOND)
        return max(self._begun_at[index] + WINDOW_SECONDS - now, 0.0) + windows * WINDOW_SECONDS

    def begin(self, request: QueuedRequest, now: float) -> None:
        """Remove a request from the queue, and count it."""
        self.leave(request)
        request.began_at = now
        self._begun_at.append(now)

    def leave(self, request: QueuedRequest) -> None:
        """Remove a request from the queue, if it is there."""
        if request in self._queue:
            self._queue.remove(request)
