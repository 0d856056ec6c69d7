"""A limited number of requests begin in a second, in the order of the queue."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.http.rate_limit import REQUESTS_PER_SECOND, WINDOW_SECONDS, QueuedRequest, RateLimiter


class Requests:
    """Requests that come at given moments; each begins as soon as the limiter allows it."""

    def __init__(self) -> None:
        self.limiter = RateLimiter()
        self._coming: list[tuple[float, str, bool]] = []
        self._waiting: dict[QueuedRequest, str] = {}

    def add(self, *names: str, at: float = 0.0, is_overdue: bool = False) -> None:
        self._coming += [(at, name, is_overdue) for name in names]

    def run(self) -> list[tuple[str, float]]:
        """Let all requests begin; return their names, and when each began."""
        begun = []
        now = 0.0
        coming = sorted(self._coming, key=lambda request: request[0])
        while coming or self._waiting:
            while coming and coming[0][0] <= now:
                _, name, is_overdue = coming.pop(0)
                request = QueuedRequest(is_overdue=is_overdue)
                self._waiting[request] = name
                self.limiter.delay_seconds(request, now)
            due = {request: now + self.limiter.delay_seconds(request, now) for request in self._waiting}
            request = min(due, key=lambda one: due[one], default=None)
            if request is not None and due[request] <= now:
                self.limiter.begin(request, now)
                begun.append((self._waiting.pop(request), round(now, 6)))
            else:
                now = min([*due.values(), *(at for at, *_ in coming[:1])])
        return begun


def numbers(count: int) -> list[str]:
    return [f"{number:02}" for number in range(count)]


def test_a_limited_number_begins_in_a_second_in_the_order_of_the_queue() -> None:
    requests = Requests()
    requests.add(*numbers(25))

    assert requests.run() == [(name, int(name) // 10 * WINDOW_SECONDS) for name in numbers(25)]


def test_requests_that_arrive_a_tenth_of_a_second_closer_together_keep_the_limit() -> None:
    assert WINDOW_SECONDS == 1 + 0.1


def test_a_window_counts_from_when_each_request_began() -> None:
    requests = Requests()
    for number in range(10):
        requests.add(f"{number}", at=0.1 * number)
    requests.add("one more", "another", at=0.95)

    assert requests.run()[10:] == [("one more", 1.1), ("another", 1.2)]


def test_overdue_requests_come_first() -> None:
    requests = Requests()
    requests.add(*numbers(25))
    requests.add(*(f"late {name}" for name in numbers(12)), at=0.5, is_overdue=True)

    begun = dict(requests.run())

    assert [begun[f"late {name}"] for name in numbers(12)] == [*[WINDOW_SECONDS] * 10, *[2 * WINDOW_SECONDS] * 2]
    assert [begun[name] for name in numbers(25)] == pytest.approx(
        [*[0] * 10, *[2 * WINDOW_SECONDS] * 8, *[3 * WINDOW_SECONDS] * 7]
    )


def test_a_request_that_leaves_the_queue_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("docs_platform_action.http.rate_limit.REQUESTS_PER_SECOND", 1)
    limiter = RateLimiter()
    limiter.begin(QueuedRequest(), now=0.0)
    leaving, last = QueuedRequest(), QueuedRequest()
    delays = [limiter.delay_seconds(request, now=0.0) for request in (leaving, last)]

    limiter.leave(leaving)
    limiter.leave(QueuedRequest())

    assert delays == [WINDOW_SECONDS, 2 * WINDOW_SECONDS]
    assert limiter.delay_seconds(last, now=0.0) == WINDOW_SECONDS


@given(st.lists(st.tuples(st.floats(0, 5), st.booleans()), min_size=1, max_size=60))
def test_no_second_has_more_whenever_they_come(coming: list[tuple[float, bool]]) -> None:
    requests = Requests()
    for at, is_overdue in coming:
        requests.add("x", at=at, is_overdue=is_overdue)

    begun = [at for _, at in requests.run()]

    assert len(begun) == len(coming)
    assert all(later >= first + WINDOW_SECONDS - 1e-5 for first, later in zip(begun, begun[REQUESTS_PER_SECOND:], strict=False))
