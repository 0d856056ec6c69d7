"""Pauses between attempts, and `Retry-After`."""

import math
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import format_datetime

import pytest

from docs_platform_action.http.retry import (
    LAST_ATTEMPT_SECONDS,
    PROXY,
    RetryState,
    TransientError,
    full_jitter,
    read_retry_after,
    retry,
)
from docs_platform_action.job import Job
from docs_platform_action.models import EXPORT, STORAGE
from tests.unit.fakes import NOON, FakeClock, RecordedEvents


class TestRetryAfter:
    def test_a_date_is_compared_with_the_servers_own_clock(self) -> None:
        server = NOON - timedelta(hours=3)
        headers = {"Retry-After": format_datetime(server + timedelta(seconds=20), usegmt=True), "Date": format_datetime(server)}

        assert read_retry_after(headers, NOON) == 20

    @pytest.mark.parametrize(
        ("text", "seconds"),
        [("0", 0), (" 7 ", 7), ("Mon, 04 May 2026 12:00:30 GMT", 30), ("Mon, 04 May 2026 11:00:00 GMT", 0)]
        + [(text, None) for text in ("", "-1", "1.5", "soon", "1e3", "٣", "9999999999", "Mon, 99 May 2026 12:00:30 GMT")],
    )
    def test_the_two_forms_are_read_and_nothing_else(self, text: str, seconds: float | None) -> None:
        assert read_retry_after({"Retry-After": text}, NOON) == seconds

    def test_without_one_there_is_none(self) -> None:
        assert read_retry_after({}, NOON) is None


@dataclass
class FakeBreaker:
    """A breaker that records the pauses that it is told."""

    failing_since: float = math.inf
    ceiling_seconds: float = 1.0
    pauses: list[float] = field(default_factory=list)

    def back_off(self, pause_seconds: float) -> None:
        self.pauses.append(pause_seconds)


class Operation:
    """An operation that fails until an attempt; pauses are half their ceiling."""

    def __init__(self, *, succeeds_at: int = 10**6, tolerance: float = 20.0, breaker: FakeBreaker | None = None) -> None:
        self.clock = FakeClock()
        self.job = Job(mode=EXPORT)
        self.events = RecordedEvents()
        self.state = RetryState(
            job=self.job,
            events=self.events,
            clock=self.clock,
            tolerance_seconds=tolerance,
            server=STORAGE,
            jitter=lambda ceiling: ceiling / 2,
            breaker=breaker,
        )
        self.times: list[float] = []
        self.timeouts: list[float] = []
        self._succeeds_at = succeeds_at

    def attempt(self) -> str:
        self.times.append(self.clock.elapsed)
        self.timeouts.append(self.state.start_attempt())
        if len(self.times) < self._succeeds_at:
            raise TransientError("it is down", advice=PROXY)
        return "good"

    def carry_out(self) -> str:
        return retry(self.attempt, self.state)


class TestRetry:
    def test_pauses_grow_until_it_succeeds(self) -> None:
        operation = Operation(succeeds_at=5)

        assert operation.carry_out() == "good"
        assert operation.times == [0, 0.5, 1.5, 3.5, 7.5]
        assert operation.events.seen == [
            ("retrying", operation.job, STORAGE, "it is down", 20, 0.5),
            ("recovered", operation.job, STORAGE, 7.5),
        ]

    def test_it_ends_with_one_attempt_when_no_time_remains(self) -> None:
        operation = Operation(tolerance=5)

        with pytest.raises(TransientError):
            operation.carry_out()

        assert operation.times == [0, 0.5, 1.5, 3.5, 5]
        assert operation.timeouts[-1] == LAST_ATTEMPT_SECONDS
        assert operation.state.outage_seconds() == 5


def test_pauses_are_drawn_below_a_ceiling() -> None:
    assert all(0 <= full_jitter(3) <= 3 for _ in range(100))


class TestWithBreaker:
    def test_it_is_told_each_pause(self) -> None:
        breaker = FakeBreaker()

        Operation(succeeds_at=4, breaker=breaker).carry_out()

        assert breaker.pauses == [0.5, 1, 2]

    def test_its_ceiling_makes_the_pauses_longer(self) -> None:
        breaker = FakeBreaker(ceiling_seconds=3)
        operation = Operation(succeeds_at=5, breaker=breaker)

        operation.carry_out()

        assert breaker.pauses == operation.clock.pauses == [1.5, 1.5, 2, 4]

    def test_the_outage_is_as_old_as_its_own(self) -> None:
        breaker = FakeBreaker()
        operation = Operation(tolerance=20, breaker=breaker)
        breaker.failing_since = operation.clock.monotonic() - 15

        with pytest.raises(TransientError):
            operation.carry_out()

        assert operation.times[-1] == 5
        assert operation.events.of("retrying") == [(STORAGE, "it is down", 5, 0.5)]
        assert operation.state.outage_seconds() == 20

    def test_an_outage_that_has_used_up_the_tolerance_leaves_one_attempt(self) -> None:
        breaker = FakeBreaker()
        operation = Operation(tolerance=20, breaker=breaker)
        breaker.failing_since = operation.clock.monotonic() - 500

        with pytest.raises(TransientError):
            operation.carry_out()

        assert (operation.times, operation.timeouts, operation.events.seen, breaker.pauses) == (
            [0],
            [LAST_ATTEMPT_SECONDS],
            [],
            [],
        )

    def test_a_closed_breaker_does_not_make_the_outage_younger(self) -> None:
        operation = Operation(tolerance=20, breaker=FakeBreaker())

        with pytest.raises(TransientError):
            operation.carry_out()

        assert operation.times[-1] == 20

    def test_before_the_first_attempt_there_is_no_outage(self) -> None:
        assert Operation(breaker=FakeBreaker()).state.outage_seconds() == 0
